"""Desktop entry, manual page and recipes agree with the program; packages of equal programs have equal bytes."""

import argparse
import hashlib
import os
import plistlib
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest

from desktop_agent.__main__ import HEADLESS
from desktop_agent.api import command_line, conversations_command
from tests.frame.translations import script
from ui.bridge.desktop.licences import parse_bill_of_materials

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging"
bill_of_materials, linux_packages, linux_tree = map(script, ("bill_of_materials", "linux_packages", "linux_tree"))
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
APPLICATION_ID = SETTINGS["tool"]["desktop-agent"]["application-id"]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="these packages are Linux's")


@pytest.fixture(autouse=True)
def epoch(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {word for action in parser._actions for word in action.option_strings if word.startswith("--")}


def test_the_page_of_the_manual_names_every_option_and_command(monkeypatch):
    parsers = [command_line._ask_parser()]
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", lambda parser, _: parsers.append(parser) or sys.exit())
    with pytest.raises(SystemExit):
        command_line.parse_window_arguments([])
    (commands,) = (action.choices for action in conversations_command._parser()._actions if action.dest == "command")
    page = (FOLDER / "linux/desktop-agent.1").read_text()
    named = {f"--{word}" for word in re.findall(r"-([a-z][a-z-]+)", page)}
    options = set().union(*map(options_of, parsers))
    assert {"--data-dir", "--demo", "--workspace"} <= options
    assert options - named == set()
    assert {*commands, *(words[0] for words in HEADLESS)} - set(re.findall(r"[a-z]+", page)) == set()
    # The lint of mandoc asks for it; lines of macros may be longer, as they take a whole example.
    assert [line for line in page.splitlines() if len(line) > 80 and not line.startswith(".")] == []


def test_the_desktop_entry_opens_links_pictures_and_texts():
    lines = (FOLDER / "linux/desktop-agent.desktop").read_text(encoding="utf-8").splitlines()
    entry = dict(line.split("=", 1) for line in lines[1:])
    assert entry["Exec"] == "desktop-agent %U"
    assert {"x-scheme-handler/desktop-agent", "image/png", "text/plain"} <= set(entry["MimeType"].split(";"))
    for key in ("GenericName", "Comment", "Keywords"):
        assert {f"{key}[de]", f"{key}[zh_CN]"} <= entry.keys()


def test_the_metadata_has_each_text_in_three_languages():
    tree = ElementTree.fromstring(linux_tree.application_metadata("9.9.9", "a.b.C"))
    language = "{http://www.w3.org/XML/1998/namespace}lang"
    for tag in ("summary", "description/p", "description/ul/li"):
        languages = [element.get(language) for element in tree.findall(tag)]
        assert languages.count(None) == languages.count("de") == languages.count("zh_CN") > 0
    assert tree.findtext("id") == "a.b.C"
    assert tree.find("releases/release").attrib == {"version": "9.9.9", "date": "2023-11-14", "type": "development"}


def test_flatpak_and_the_project_call_it_the_same():
    recipe = (FOLDER / "linux/flatpak/desktop-agent.yaml").read_text()
    assert f"app-id: {APPLICATION_ID}\n" in recipe
    assert f"desktop-agent-{SETTINGS['project']['version']}-linux" in recipe


def test_what_macos_reads_about_the_application_is_valid():
    info = plistlib.loads((FOLDER / "other_systems/Info.plist").read_bytes())
    (link,) = info["CFBundleURLTypes"]
    assert link["CFBundleURLSchemes"] == ["desktop-agent"]
    assert "public.png" in info["CFBundleDocumentTypes"][0]["LSItemContentTypes"]
    assert plistlib.loads((FOLDER / "other_systems/entitlements.plist").read_bytes())


def program_in(folder: Path) -> Path:
    program = folder / "program"
    (program / "_internal/resources").mkdir(parents=True)
    (program / "desktop-agent").write_text("#!/bin/sh\necho here\n")
    (program / "desktop-agent").chmod(0o755)
    (program / "_internal/resources/guide.md").write_text("guide")
    (program / "_internal/link").symlink_to("resources")
    return program


@linux_only
def test_equal_programs_make_equal_packages_wherever_and_by_whom_they_are_built(tmp_path):
    made = []
    for name, umask in (("one", 0o022), ("another", 0o077)):
        folder = tmp_path / name
        before = os.umask(umask)
        try:
            program = program_in(folder)
            tree = folder / "tree"
            linux_tree.lay_out(program, tree, "1.0", "a.b.C")
            files = [
                linux_packages.archive(tree, folder, "1.0"),
                linux_packages.debian_package(tree, folder, {"version": "1.0", "description": "about"}),
            ]
        finally:
            os.umask(before)
        made.append({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    assert made[0] == made[1]
    assert len(made[0]) == 2
    icons = {path.parents[1].name for path in (tmp_path / "one/tree").rglob("desktop-agent.png")}
    assert {"16x16", "48x48", "512x512"} <= icons


@linux_only
def test_the_bill_of_materials_names_the_owner_of_every_file(tmp_path):
    program = program_in(tmp_path)
    internal = program / "_internal"
    for name in (
        *("httpx/__init__.pyc", f"httpx-{version('httpx')}.dist-info/METADATA", "json/decoder.pyc"),
        *("python3.11/lib-dynload/_json.so", "pyi_rth_inspect.pyc"),
        *("libz.so.1", "desktop_agent/__init__.pyc", "base_library.zip"),
    ):
        (internal / name).parent.mkdir(parents=True, exist_ok=True)
        (internal / name).write_bytes(b"")
    file = bill_of_materials.write_bill(program, "1.0")
    components = {component.name: component for component in parse_bill_of_materials(file.read_text())}
    assert components.keys() == {"desktop-agent", "httpx", "pyinstaller", "Python", "zlib1g"}
    assert components["httpx"].licence == "BSD-3-Clause"
    assert "Jean-loup Gailly" in components["zlib1g"].text
    assert '"purl": "pkg:pypi/httpx@' in file.read_text()
    (internal / "stray.bin").write_bytes(b"")
    with pytest.raises(SystemExit, match=r"stray\.bin"):
        bill_of_materials.components_of(program)
