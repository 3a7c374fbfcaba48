"""The real window in a process of its own, with somebody in it: `python -m tests.soak.driven_window --help`.

It needs no screen. Who sits there sends a prompt or leaves a draft, and presses “Allow once” where that is asked; all
that the window says to people, in banners, boxes and the transcript, goes to standard output, a JSON string a line, and
so does each press (`PRESSED_ALLOW`).
"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPlainTextEdit, QWidget

from ui.shell import startup_window
from ui.shell.banners import BannerFrame
from ui.style.widgets import QuestionBox

PRESSED_ALLOW = "(pressed: Allow once)"
_EVERY_MS = 100
W = TypeVar("W", bound=QWidget)


class Person(QObject):
    """Looks at the window ten times a second."""

    def __init__(self, app: QApplication, asked: argparse.Namespace) -> None:
        super().__init__(app)
        self._app = app
        self._prompt: str = asked.prompt
        self._draft: str = asked.draft
        self._said: set[str] = set()
        timer = QTimer(self)
        timer.timeout.connect(self._look)
        timer.start(_EVERY_MS)

    def _look(self) -> None:
        for window in self._app.topLevelWidgets():
            if not window.isVisible():
                continue
            for words in _words(window):
                if words not in self._said:
                    self._said.add(words)
                    _say(words)
            if self._press(window, "Allow once"):
                _say(PRESSED_ALLOW)
            self._write(window)

    def _write(self, window: QWidget) -> None:
        editor = find_shown(window, QPlainTextEdit, "Message")
        if editor is None:
            return
        if self._prompt:
            editor.setPlainText(self._prompt)
            if self._press(window, "Send"):
                self._prompt = ""
        elif self._draft:
            editor.setPlainText(self._draft)
            self._draft = ""

    def _press(self, window: QWidget, name: str) -> bool:
        button = find_shown(window, QAbstractButton, name)
        if button is None or not button.isEnabled():
            return False
        button.click()
        return True


def _say(words: str) -> None:
    sys.stdout.write(f"{json.dumps(words)}\n")
    sys.stdout.flush()


def find_shown(window: QWidget, kind: type[W], name: str) -> W | None:
    """Return the first widget of this kind and accessible name that is showing."""
    every = window.findChildren(kind)
    return next((each for each in every if each.isVisible() and each.accessibleName() == name), None)


def _words(window: QWidget) -> Iterator[str]:
    for kind in (QuestionBox, BannerFrame):
        for each in window.findChildren(kind):
            if each.isVisible():
                yield from (label.text() for label in each.findChildren(QLabel) if label.text())
    transcript = find_shown(window, QWidget, "Transcript")
    tree = None if transcript is None else QAccessible.queryAccessibleInterface(transcript)
    for index in range(0 if tree is None else tree.childCount()):
        row = tree.child(index)
        yield f"{row.text(QAccessible.Text.Name)}: {row.text(QAccessible.Text.Description)}"


def main() -> int:
    """The window's own exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.driven_window", description="The window, used")
    parser.add_argument("--prompt", default="", help="what is sent")
    parser.add_argument("--draft", default="", help="what is written then, and not sent")
    asked, words = parser.parse_known_args()
    open_application = startup_window.open_application

    def opened() -> QApplication:
        app = open_application()
        Person(app, asked)
        return app

    startup_window.open_application = opened
    from ui.__main__ import main as window

    return window(words)


if __name__ == "__main__":
    sys.exit(main())
