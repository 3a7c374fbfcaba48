"""Spelling in the real window: the underlines on the screen, and the menu by keys and by the tree alone."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QImage

from tests.fakes.dictionaries import ENGLISH, write_dictionary
from tests.fakes.window_process import NO_TITLES, Screen, opened, wait_until
from ui.bridge.spelling.dictionaries import FOLDER

CAMERA = """
import sys
from PySide6.QtWidgets import QApplication
app = QApplication([])
app.primaryScreen().grabWindow(0).save(sys.argv[1])
"""
_WIDEST_GAP = 8
"""Pixels between two columns of one underline. Between two wrong words there are correct ones."""


def underlined(environment: dict[str, str], screen: Screen, folder: Path) -> int:
    """Return how many words of the message are underlined in red on the screen."""
    picture = folder / "screen.png"
    subprocess.run([sys.executable, "-c", CAMERA, str(picture)], env=environment, check=True)
    image, (left, top, width, height) = QImage(str(picture)), screen.wait_for("Message")["box"]
    columns = [
        x
        for x in range(left, left + width)
        if any(_is_red(image.pixelColor(x, y)) for y in range(top, top + height) if image.valid(x, y))
    ]
    gaps = (after - before for before, after in pairwise(columns))
    return sum(gap > _WIDEST_GAP for gap in gaps) + bool(columns)


def _is_red(colour: QColor) -> bool:
    return colour.red() - max(colour.green(), colour.blue()) > 60


def wait_underlined(environment: dict[str, str], screen: Screen, folder: Path, count: int) -> None:
    wait_until(f"{count} words are underlined", lambda: underlined(environment, screen, folder) == count)


def type_message(screen: Screen, text: str) -> None:
    screen.wait_for("Message")
    screen.write("Message", "")
    screen.focus("Message")
    screen.type(text)
    screen.wait_last("Message", text)


@pytest.mark.exhaustive(
    "tests/ui/composer/test_spelling.py::test_a_suggestion_replaces_the_word_in_one_step",
    "tests/ui/composer/test_spelling.py::test_an_added_word_stays_right_and_an_ignored_one_until_the_end",
)
def test_a_wrong_word_is_replaced_and_an_added_one_is_right_after_a_restart(
    real_display: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "preferences.json").write_text(json.dumps(NO_TITLES))
    write_dictionary(data / FOLDER, "en_US", ENGLISH)
    with opened(real_display, data, "--demo") as (program, screen):
        type_message(screen, "helo the catz ")
        wait_underlined(real_display, screen, tmp_path, 2)
        screen.keys("Home", "shift+F10")
        screen.wait_for("hello")
        screen.keys("Return")
        screen.wait_last("Message", "hello the catz ")
        wait_underlined(real_display, screen, tmp_path, 1)
        screen.keys("End", "ctrl+Left", "shift+F10")
        screen.wait_for("Add to dictionary")
        screen.press("Add to dictionary")
        screen.wait_gone("Add to dictionary")
        wait_underlined(real_display, screen, tmp_path, 0)
        screen.wait_last("Message", "hello the catz ")
        screen.write("Message", "")
        screen.wait_last("Message", "")
        assert program.end() == 0
    with opened(real_display, data, "--demo") as (_, screen):
        screen.wait_for("Message")
        # Written at once, so that both words are checked together. If typed, the first would be marked alone at first.
        screen.write("Message", "the catz here blorb a")
        screen.wait_last("Message", "the catz here blorb a")
        wait_underlined(real_display, screen, tmp_path, 1)
