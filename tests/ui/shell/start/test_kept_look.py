"""The look of the last time, from a file that anybody may have written in."""

import pytest
from PySide6.QtCore import QSettings

from ui.look.theme import Reading
from ui.shell.start.kept_look import keep_look, kept_look

USUAL = ("system", 100, Reading())


@pytest.fixture
def file(tmp_path):
    return tmp_path / "window.ini"


def settings(file):
    return QSettings(str(file), QSettings.Format.IniFormat)


def test_nothing_was_kept_yet(file):
    assert kept_look(settings(file)) == USUAL


def test_it_comes_back_in_another_process(file):
    reading = Reading(font="Noto Serif", size=12.5, line_width=1 << 16, is_compact=True)
    first = settings(file)
    keep_look(first, "dark", 130, reading)
    first.sync()
    assert kept_look(settings(file)) == ("dark", 130, reading)


@pytest.mark.parametrize(
    ("line", "is_usual"),
    [("theme=pink", True), ("zoom=large", True), ("size=", True), ("compact=maybe", True), ("line_width=x", True)],
)
def test_what_is_no_look_is_left_out(file, line, is_usual):
    file.write_text(f"[look]\n{line}\n")
    assert (kept_look(settings(file)) == USUAL) is is_usual


@pytest.mark.parametrize(("written", "zoom"), [("1", 50), ("100000", 300), ("nan", 50)])
def test_a_zoom_that_nobody_could_read_is_bounded(file, written, zoom):
    file.write_text(f"[look]\nzoom={written}\n")
    assert kept_look(settings(file))[1] == zoom
