"""The program itself, with its window, a server and a folder: `python -m tests.bench.window.ours FOLDER`.

It asks for a short answer, so that modules that are loaded late are loaded, and then for the long one. At its end it
prints the CPU seconds that the process with all its threads used for the long one, and the number of characters that it
shows. With `calls` as a second argument it also prints how often each function of ours was called.
"""

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from PySide6.QtCore import QTimer

import ui.app
from desktop_agent.api.command_line import LaunchOptions
from desktop_agent.types.messages import Message
from ui.bridge.conversation import OpenConversation

REST_MS = 1000
"""Pause before a question and after an answer: work that follows an answer belongs to its cost."""
COUNTS_CALLS = sys.argv[2:] == ["calls"]
ROOT = f"{Path(__file__).parents[3]}/"
OURS = (f"{ROOT}desktop_agent/", f"{ROOT}ui/")


class Asking:
    """Asks for two answers, measures the second, and closes the window."""

    def __init__(self, controller: ui.app.AppController) -> None:
        self._controller = controller
        self._conversation: OpenConversation | None = None
        self._calls = Counter[str]()
        self._wait()

    def _wait(self) -> None:
        """Wait until the window has a conversation and is at rest."""
        self._conversation = self._controller.library.current
        if self._conversation is None:
            QTimer.singleShot(100, self._wait)
            return
        QTimer.singleShot(REST_MS, self._warm_up)

    def _warm_up(self) -> None:
        assert self._conversation is not None
        self._conversation.finished.connect(self._on_finished)
        self._next = self._measure
        self._conversation.send(Message.user("short"))

    def _on_finished(self) -> None:
        QTimer.singleShot(REST_MS, self._next)

    def _measure(self) -> None:
        assert self._conversation is not None
        self._next = self._close
        if COUNTS_CALLS:
            threading.setprofile(self._count)
            sys.setprofile(self._count)
        self._cpu_began = time.process_time()
        self._conversation.send(Message.user("long"))

    def _count(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS):
            self._calls[f"{code.co_filename.removeprefix(ROOT)} {code.co_qualname}"] += 1

    def _close(self) -> None:
        assert self._conversation is not None
        spent = time.process_time() - self._cpu_began
        sys.setprofile(None)
        threading.setprofile(None)
        item = self._conversation.transcript[len(self._conversation.transcript) - 1]
        characters = len(str(getattr(item, "text", "")))
        sys.stdout.write(json.dumps({"cpu_s": spent, "characters": characters, "calls": self._calls}) + "\n")
        sys.stdout.flush()
        self._controller.end()


def main() -> int:
    """Run the program as its command does, and let Asking use it."""
    begin = ui.app.AppController.begin

    def begin_and_ask(controller: ui.app.AppController, options: LaunchOptions) -> None:
        begin(controller, options)
        controller.asking = Asking(controller)  # pyright: ignore[reportAttributeAccessIssue]

    ui.app.AppController.begin = begin_and_ask  # type: ignore[method-assign]
    from ui.__main__ import main as start

    return start(["--data-dir", sys.argv[1]])


if __name__ == "__main__":
    sys.exit(main())
