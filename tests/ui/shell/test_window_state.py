"""The look of the last time, from a file that anybody may have written in."""

import threading

import pytest

from desktop_agent.types.preferences import Preferences
from tests.frame.patience import PATIENCE
from ui.shell import window
from ui.shell.window import WindowStateFile, load_appearance, load_enter_sends, save_appearance
from ui.style.theme import ReadingStyle

USUAL = ("system", 100, ReadingStyle())


@pytest.fixture
def file(tmp_path):
    return tmp_path / "window.ini"


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
    ("line", "is_usual"),
    [("theme=pink", True), ("zoom=large", True), ("size=", True), ("compact=maybe", True), ("line_width=x", True)],
)
def test_what_is_no_look_is_left_out(file, line, is_usual):
    file.write_text(f"[look]\n{line}\n")
    assert (load_appearance(settings(file)) == USUAL) is is_usual


@pytest.mark.parametrize(("written", "zoom"), [("1", 50), ("100000", 300), ("nan", 50)])
def test_a_zoom_that_nobody_could_read_is_bounded(file, written, zoom):
    file.write_text(f"[look]\nzoom={written}\n")
    assert load_appearance(settings(file))[1] == zoom


def test_nobody_waits_for_a_slow_disk(file, monkeypatch):
    disk = threading.Event()
    monkeypatch.setattr(window.os, "access", lambda *_: disk.wait(PATIENCE))
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
