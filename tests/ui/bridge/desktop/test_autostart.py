"""The entry in the autostart folder: what is there counts, whoever wrote it."""

import configparser
import re
import sys

import pytest

from desktop_agent.types.errors import StorageFailed
from ui.bridge.desktop import autostart
from ui.bridge.desktop.autostart import Autostart, why_impossible

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the specification is for desktops of Linux")


@pytest.fixture
def entry(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "autostart" / "desktop-agent.desktop"


def command_of(entry):
    """Return the words of Exec, parsed as the specification says."""
    parser = configparser.RawConfigParser()
    parser.optionxform = str
    parser.read(entry, encoding="utf-8")
    section = parser["Desktop Entry"]
    assert (section["Type"], section["Name"], section["Terminal"]) == ("Application", "Desktop Agent", "false")
    unescaped = section["Exec"].replace("\\\\", "\\")
    words = re.findall(r'"((?:[^"\\]|\\.)*)"|([^ "]+)', unescaped)
    return [re.sub(r"\\(.)", r"\1", quoted).replace("%%", "%") or plain.replace("%%", "%") for quoted, plain in words]


def test_an_entry_is_written_and_removed(entry, tmp_path):
    data = tmp_path / "data"
    start = Autostart(data)
    assert not start.is_on()
    start.set_enabled(enabled=False)
    start.set_enabled(enabled=True)
    start.set_enabled(enabled=True)
    assert start.is_on()
    command = command_of(entry)
    assert command[-3:] == ["--data-dir", str(data), "--background"]
    assert command[:-3] == autostart.program_command()
    assert [path.name for path in entry.parent.iterdir()] == ["desktop-agent.desktop"]
    start.set_enabled(enabled=False)
    assert not start.is_on()
    assert list(entry.parent.iterdir()) == []


@pytest.mark.parametrize("name", ["a b", 'a"b', "a$HOME`id`", "a\\b", "50%", "größe", "a'b", "a;b&c"])
def test_a_path_stays_what_it_is(entry, tmp_path, name):
    start = Autostart(tmp_path / name)
    start.set_enabled(enabled=True)
    assert command_of(entry)[-2] == str(tmp_path / name)
    assert start.is_on()


def test_a_path_with_lines_is_refused(entry, tmp_path):
    start = Autostart(tmp_path / "a\nExec=evil")
    with pytest.raises(StorageFailed, match="cannot be used there"):
        start.set_enabled(enabled=True)
    assert not entry.exists()


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false"])
def test_what_the_desktop_switches_off_is_off(entry, tmp_path, line):
    start = Autostart(tmp_path)
    start.set_enabled(enabled=True)
    entry.write_text(f"{entry.read_text()}{line}\n")
    assert not start.is_on()


def test_an_entry_that_starts_something_else_is_not_this_one(entry, tmp_path):
    Autostart(tmp_path / "other").set_enabled(enabled=True)
    assert not Autostart(tmp_path).is_on()
    entry.write_bytes(b"\xff\0" * 100_000)
    assert not Autostart(tmp_path).is_on()


def test_a_folder_that_cannot_be_written_is_said(entry, tmp_path):
    (tmp_path / "config").write_text("a file")
    with pytest.raises(StorageFailed) as caught:
        Autostart(tmp_path).set_enabled(enabled=True)
    assert str(caught.value).startswith("“Start with the computer” was not changed: ")


def test_in_a_sandboxed_package_it_is_not_pretended(monkeypatch):
    assert why_impossible() is None
    for name in ("FLATPAK_ID", "SNAP"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "/snap/desktop-agent/1")
            assert "Not possible in this package" in str(why_impossible())


def test_an_appimage_starts_itself(monkeypatch, entry, tmp_path):
    monkeypatch.setenv("APPIMAGE", "/home/me/Desktop Agent.AppImage")
    Autostart(tmp_path).set_enabled(enabled=True)
    assert command_of(entry)[0] == "/home/me/Desktop Agent.AppImage"
