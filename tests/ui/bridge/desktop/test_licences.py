"""What the program is made of, read from real metadata, and from a bill of materials."""

import json
from importlib.metadata import distribution, version

import pytest

from resources import resource_path
from ui.bridge.desktop import licences
from ui.bridge.desktop.licences import (
    BILL_OF_MATERIALS,
    Component,
    installed_components,
    parse_bill_of_materials,
    program_components,
)


@pytest.fixture(scope="module")
def components():
    return {component.name: component for component in installed_components()}


def test_what_the_program_needs_is_there_with_its_version(components):
    assert {"Python", "desktop-agent", "httpx", "PySide6_Essentials", "mcp", "selectolax"} <= components.keys()
    assert components["httpx"].version == version("httpx")
    assert [*components] == sorted(components, key=str.casefold)


def test_the_tools_of_development_are_not_part_of_it(components):
    # Also not those that a library names for an extra that nobody asked for: rich, for the command of httpx.
    assert not {"pytest", "ruff", "pyinstaller", "openai", "rich"} & components.keys()


def test_every_component_names_a_licence_and_shows_its_text(components):
    assert [name for name, component in components.items() if not component.licence] == ["quickjs-ng"]
    short = [name for name, component in components.items() if len(component.text) < 300]
    assert short == []


def test_the_text_is_the_one_that_the_distribution_brings(components):
    text = distribution("httpx").locate_file("").joinpath(f"httpx-{version('httpx')}.dist-info/licenses/LICENSE.md")
    assert components["httpx"].text == text.read_text(encoding="utf-8").strip()
    # Two files: of the library, and of what it was made after.
    assert "Alex Kocharin" in components["markdown-it-py"].text
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in components["Python"].text


def test_a_distribution_without_a_text_has_the_standard_one_and_its_author(components):
    assert components["latex2mathml"].text.startswith("latex2mathml, Ronie Martinez")
    assert "WITHOUT WARRANTY OF ANY KIND" in components["latex2mathml"].text
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in components["PySide6_Essentials"].text
    assert "GNU GENERAL PUBLIC LICENSE" in components["PySide6_Essentials"].text


def test_what_a_distribution_carries_of_others_has_its_terms_too(components):
    pytest.importorskip("hunspell", reason="not for Macs with a processor of Intel")
    text = components["chunspell"].text
    assert text.startswith("MIT LICENSE")
    assert "MOZILLA PUBLIC LICENSE" in text
    assert "Copyright 2000-2011 by Kevin Atkinson" in text


def test_a_packaged_program_reads_its_bill_of_materials(tmp_path, monkeypatch):
    licence = {"id": "MIT", "text": {"contentType": "text/plain", "content": "Do as you like."}}
    part = {"type": "library", "name": "thing", "version": "1.2", "licenses": [{"license": licence}]}
    file = tmp_path / BILL_OF_MATERIALS
    file.write_text(json.dumps({"components": [part, {"type": "library", "name": "bare"}]}))
    monkeypatch.setattr(licences, "resource_path", tmp_path.joinpath)
    assert program_components() == [Component("thing", "1.2", "MIT", "Do as you like."), Component("bare", "", "", "")]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"components": [1]}', '{"components": [{"name": "a", "licenses": [{}]}]}']
)
def test_a_damaged_bill_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011  json's own, or ours
        parse_bill_of_materials(text)


def test_a_checkout_has_no_bill():
    with pytest.raises(FileNotFoundError):
        resource_path(BILL_OF_MATERIALS)
