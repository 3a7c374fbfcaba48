"""The look of the last time, from a file that anybody may have written in."""

import base64
import json
import math
import threading

import pytest
from PySide6.QtCore import QByteArray, QSettings

from desktop_agent.storage import files
from desktop_agent.types.preferences import Preferences
from tests.frame.patience import PATIENCE
from ui.bridge.desktop.window_state import WindowStateFile
from ui.shell.window import load_appearance, load_enter_sends, save_appearance
from ui.style.theme import ReadingStyle

USUAL = ("system", 100, ReadingStyle())


@pytest.fixture
def file(tmp_path):
    return tmp_path / "window.json"


def look(theme, zoom):
    return Preferences().with_changes("appearance", theme=theme, zoom=zoom)


def settings(file):
    return WindowStateFile(file.parent)


def test_nothing_was_kept_yet(file):
    assert load_appearance(settings(file)) == USUAL


def test_it_comes_back_in_another_process(file):
    reading = ReadingStyle(font="Noto Serif", size=12.5, line_width=1 << 16, is_compact=True)
    written = settings(file)
    save_appearance(written, look("light", 90), ReadingStyle())
    save_appearance(written, look("dark", 130).with_changes("chat", enter_sends=False), reading)
    written.close()
    assert not load_enter_sends(settings(file))
    assert load_appearance(settings(file)) == ("dark", 130, reading)


@pytest.mark.parametrize(
    ("name", "value"),
    [("theme", "pink"), ("zoom", "large"), ("size", None), ("compact", "maybe"), ("line_width", [1]), ("font", "")],
)
def test_what_is_no_look_is_left_out(file, name, value):
    file.write_text(json.dumps({f"look/{name}": value}))
    assert load_appearance(settings(file)) == USUAL


@pytest.mark.parametrize("damaged", [b"", b"{", b"[]", b"[" * 100_000, b"\xff"])
def test_a_damaged_file_is_written_anew(file, damaged):
    file.write_bytes(damaged)
    written = settings(file)
    assert load_appearance(written) == USUAL
    save_appearance(written, look("dark", 130), ReadingStyle())
    written.close()
    assert load_appearance(settings(file))[:2] == ("dark", 130)


def test_a_folder_that_cannot_be_looked_into_holds_nothing(tmp_path):
    assert load_appearance(WindowStateFile(tmp_path / ("long" * 100))) == USUAL


@pytest.mark.parametrize(("written", "zoom"), [(1, 50), (100000, 300), (math.nan, 50)])
def test_a_zoom_that_nobody_could_read_is_bounded(file, written, zoom):
    file.write_text(json.dumps({"look/zoom": written}))
    assert load_appearance(settings(file))[1] == zoom


def test_what_an_earlier_version_saved_is_taken_over(file):
    old = QSettings(str(file.with_suffix(".ini")), QSettings.Format.IniFormat)
    old.setValue("look/theme", "dark")
    old.setValue("look/zoom", 130)
    old.setValue("write/enter_sends", False)
    old.setValue("window/geometry", QByteArray(b"\0place"))
    old.sync()
    written = settings(file)
    assert load_appearance(written)[:2] == ("dark", 130)
    assert not load_enter_sends(written)
    assert base64.b64decode(written.text("window/geometry")) == b"\0place"
    written.save({"look/theme": "light"})
    written.close()
    again = settings(file)
    assert load_appearance(again)[:2] == ("light", 130)
    assert again.text("window/geometry") == written.text("window/geometry")


def test_nobody_waits_for_a_slow_disk(file, monkeypatch):
    disk = threading.Event()
    write = files.write_atomically
    monkeypatch.setattr(files, "write_atomically", lambda *given: disk.wait(PATIENCE) and write(*given))
    written = settings(file)
    save_appearance(written, look("dark", 130), ReadingStyle())
    assert not file.exists()
    # Who reads meanwhile, to add to it, does not add to what was there before.
    assert load_appearance(written)[:2] == ("dark", 130)
    disk.set()
    written.close()
    assert load_appearance(settings(file))[:2] == ("dark", 130)


def test_a_folder_that_was_moved_away_is_not_made_again(tmp_path, qapp):
    folder = tmp_path / "data"
    folder.mkdir()
    file = WindowStateFile(folder)
    save_appearance(file, look("dark", 130), ReadingStyle())
    file.close()
    folder.rename(tmp_path / "elsewhere")
    save_appearance(file, look("light", 100), ReadingStyle())
    file.close()
    del file
    qapp.processEvents()
    assert not folder.exists()
    assert load_appearance(WindowStateFile(tmp_path / "elsewhere"))[:2] == ("dark", 130)
