"""Where a build may ask for new versions, and why another asks nobody."""

import json
import sys

import pytest

from tests.frame.translations import script
from ui.bridge.desktop.updates import update_source

FEED = "https://updates.example.org:8443/newest.json"
NO_ADDRESS = "This build has no address to ask for new versions."
BY_SYSTEM = "New versions come with your system's software updates."


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Return the resource folder of a built program."""
    for name in ("FLATPAK_ID", "SNAP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    folder = tmp_path / "resources"
    folder.mkdir()
    (folder / "guide.md").write_text("guide")
    return tmp_path


def test_a_checkout_has_no_address():
    source = update_source()
    assert (source.feed, str(source.why_not)) == ("", NO_ADDRESS)


def test_the_build_writes_what_the_program_reads(built):
    write = script("build").write_update_feed
    assert write(built, "") is None
    assert str(update_source().why_not) == NO_ADDRESS
    assert write(built, FEED) == built / "resources/updates.json"
    assert (update_source().feed, update_source().host, update_source().why_not) == (
        FEED,
        "updates.example.org:8443",
        None,
    )
    write(built, "system")
    assert (update_source().feed, str(update_source().why_not)) == ("", BY_SYSTEM)


@pytest.mark.parametrize(
    "feed", ["http://example.org/", "example.org", "https://", "https://me:word@example.org/", "no"]
)
def test_the_build_takes_only_https(built, feed):
    with pytest.raises(SystemExit, match="https"):
        script("build").write_update_feed(built, feed)
    assert not (built / "resources/updates.json").exists()


@pytest.mark.parametrize("name", ["FLATPAK_ID", "SNAP"])
def test_a_package_that_the_system_updates_asks_nobody(built, monkeypatch, name):
    script("build").write_update_feed(built, FEED)
    monkeypatch.setenv(name, "here")
    assert (update_source().feed, str(update_source().why_not)) == ("", BY_SYSTEM)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", json.dumps({"feed": 7}), json.dumps({"feed": ""})])
def test_a_damaged_file_is_no_address(built, text):
    (built / "resources/updates.json").write_text(text)
    assert str(update_source().why_not) == NO_ADDRESS
