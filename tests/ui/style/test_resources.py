import sys

import pytest

import resources
from resources import resource_path


def test_finds_a_file_of_the_checkout():
    assert resource_path("icons", "send.svg").read_text().startswith("<svg")


def test_says_what_is_missing():
    with pytest.raises(FileNotFoundError, match="icons/nothing"):
        resource_path("icons", "nothing.svg")


def test_finds_files_of_a_frozen_program(tmp_path, monkeypatch):
    unpacked = tmp_path / "resources" / "icons"
    unpacked.mkdir(parents=True)
    (unpacked / "only-frozen.svg").write_text("<svg/>")
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    monkeypatch.setattr(resources, "__file__", str(tmp_path / "elsewhere" / "__init__.py"))
    assert resource_path("icons", "only-frozen.svg") == unpacked / "only-frozen.svg"
