"""The real window in its own process, with a person in it: `python -m tests.soak.driven_window --help`.

It needs no screen. The person sends a prompt or leaves a draft, and presses “Allow once” wherever it is offered. Each
text in banners, boxes and the transcript is printed to standard output as a JSON string on its own line, and so is
each press (`PRESSED_ALLOW`).
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
    """Checks the windows ten times a second."""

    def __init__(self, app: QApplication, options: argparse.Namespace) -> None:
        super().__init__(app)
        self._app = app
        self._prompt: str = options.prompt
        self._draft: str = options.draft
        self._said: set[str] = set()
        timer = QTimer(self)
        timer.timeout.connect(self._check_windows)
        timer.start(_EVERY_MS)

    def _check_windows(self) -> None:
        for window in self._app.topLevelWidgets():
            if not window.isVisible():
                continue
            for text in _shown_texts(window):
                if text not in self._said:
                    self._said.add(text)
                    _write_line(text)
            if self._press(window, "Allow once"):
                _write_line(PRESSED_ALLOW)
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


def _write_line(text: str) -> None:
    sys.stdout.write(f"{json.dumps(text)}\n")
    sys.stdout.flush()


def find_shown(window: QWidget, widget_type: type[W], name: str) -> W | None:
    """Return the first widget of this kind and accessible name that is showing."""
    every = window.findChildren(widget_type)
    return next((widget for widget in every if widget.isVisible() and widget.accessibleName() == name), None)


def _shown_texts(window: QWidget) -> Iterator[str]:
    for container_type in (QuestionBox, BannerFrame):
        for container in window.findChildren(container_type):
            if container.isVisible():
                yield from (label.text() for label in container.findChildren(QLabel) if label.text())
    transcript = find_shown(window, QWidget, "Transcript")
    tree = None if transcript is None else QAccessible.queryAccessibleInterface(transcript)
    for index in range(0 if tree is None else tree.childCount()):
        row = tree.child(index)
        yield f"{row.text(QAccessible.Text.Name)}: {row.text(QAccessible.Text.Description)}"


def main() -> int:
    """Return the exit code of the window."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.driven_window", description="The window, used")
    parser.add_argument("--prompt", default="", help="what is sent")
    parser.add_argument("--draft", default="", help="what is written then, and not sent")
    options, arguments = parser.parse_known_args()
    open_application = startup_window.open_application

    def opened() -> QApplication:
        app = open_application()
        Person(app, options)
        return app

    startup_window.open_application = opened
    from ui.__main__ import main as window

    return window(arguments)


if __name__ == "__main__":
    sys.exit(main())
