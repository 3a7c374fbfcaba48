"""The time from the start of the process until one can type, and memory and wake-ups at rest: ours and a bare shell.

Our program shows the conversation after one can type: `whole` is when it is shown, and `longest_wait_ms` the longest
time that a key would have waited in between.

The bare shell is a plain PySide6 window with a splitter, a list, a text view and an editor. Both show the same
conversation. Both run as processes, in turn, and each prints its own times, of the clock that all processes share.
"""

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

from desktop_agent.engine.engine import Engine
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import Endpoint

DISPLAY = True
GOALS = {"first_paint.ratio": 1.1, "typing.ratio": 1.5, "memory_mb.ours": 90.0}

ROUNDS = 7
REST = 3.0
"""Seconds at rest before memory and wake-ups are measured, and again while they are."""
PATIENCE = 30.0
MESSAGES = 40

# Prints three times: of the window's first paint, of the first moment at which a key would reach the editor, and of the
# moment when the conversation is visible; and how long a key would have waited at most in between.
WATCH = """
import json, sys, time
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication

class Watch(QObject):
    def __init__(self, window, editor, is_whole):
        super().__init__(window)
        self.window, self.editor, self.is_whole, self.painted = window, editor, is_whole, None
        self.typing, self.checked, self.longest = None, None, 0.0
        self.timer = QTimer(self, interval=1)
        self.timer.timeout.connect(self.check)
        self.timer.start()
        window.installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and self.painted is None:
            # Paint events are delivered together; at the next turn of the loop the pixels are shown.
            self.painted = 0.0
            QTimer.singleShot(0, self.paint)
        return False

    def paint(self):
        self.painted = time.monotonic()

    def check(self):
        now = time.monotonic()
        if self.typing is None:
            if self.painted and self.window.isActiveWindow() and self.editor.hasFocus():
                self.typing = self.checked = now
        if self.typing is not None:
            self.longest, self.checked = max(self.longest, now - self.checked), now
            if self.is_whole():
                self.timer.stop()
                moments = {"paint": self.painted, "typing": self.typing, "whole": now}
                print(json.dumps({"moments": moments, "longest": self.longest}), flush=True)
"""

SEEN = """
class Seen(QObject):
    def __init__(self, transcript):
        super().__init__(transcript)
        self.transcript, self.is_seen = transcript, False
        transcript.viewport().installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and len(self.transcript.row_viewport.rows):
            QTimer.singleShot(0, lambda: setattr(self, "is_seen", True))
        return False
"""

# Our program, with the watch added to its window as soon as the class exists, so that nothing is imported earlier.
# `importlib.abc` would import seven modules that the bare shell does not have.
OURS = """
import sys, importlib.machinery
class After:
    def find_spec(self, name, path, target=None):
        if name != "ui.shell.window":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            original = module.MainWindow.__init__
            def init(window, *args, **kwargs):
                original(window, *args, **kwargs)
                exec(WATCH + SEEN, globals())
                Watch(window, window.frame.composer.editor, lambda: is_whole(window))
            module.MainWindow.__init__ = init
        spec.loader.exec_module = exec_module
        return spec
def is_whole(window):
    # Whether the conversation was painted in an earlier turn of the loop.
    if not hasattr(window, "page"):
        return False
    if not hasattr(window, "seen"):
        window.seen = Seen(window.page.transcript)
    return window.seen.is_seen
sys.meta_path.insert(0, After())
from ui.__main__ import main
sys.exit(main(["--data-dir", sys.argv[1]]))
"""

BARE = """
import json, sys
from PySide6.QtWidgets import (
    QApplication, QHBoxLayout, QListWidget, QMainWindow, QPlainTextEdit, QPushButton, QSplitter, QTextBrowser,
    QVBoxLayout, QWidget,
)
app = QApplication(sys.argv)
window = QMainWindow()
titles = QListWidget()
titles.addItems(json.load(open(sys.argv[1] + "/titles.json")))
view = QTextBrowser()
view.setMarkdown(open(sys.argv[1] + "/conversation.md").read())
editor = QPlainTextEdit()
editor.setMaximumHeight(100)
send = QPushButton("Send")
row = QHBoxLayout()
row.addWidget(editor)
row.addWidget(send)
column = QVBoxLayout()
column.addWidget(view)
column.addLayout(row)
page = QWidget()
page.setLayout(column)
splitter = QSplitter()
splitter.addWidget(titles)
splitter.addWidget(page)
window.setCentralWidget(splitter)
window.resize(1180, 800)
exec(WATCH, globals())
Watch(window, editor, lambda: True)
window.show()
editor.setFocus()
app.exec()
"""

ANSWER = """\
## Part {0}

An ordinary answer of a few sentences, with **emphasis**, `code` and a list. It is about as long as such answers are.

- the first point, which needs some words
- the second point, which needs a few more words than the first

```python
def part(number: int = {0}) -> str:
    return f"part {{number}}"
```
"""


def run() -> dict[str, Any]:
    """Return milliseconds, megabytes and wake-ups per second: medians, and ours over the bare shell's."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-start-") as folder_name:
        folder = Path(folder_name)
        asyncio.run(_fill(folder))
        # Bytecode is written at installation or by the first start, which is not measured.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
        programs = {"ours": OURS, "bare": BARE}
        for code in programs.values():
            _moments(code, folder, environment)
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
        for _ in range(ROUNDS):
            for name, code in programs.items():
                rounds[name].append(_moments(code, folder, environment))
        rest = {name: _at_rest(code, folder, environment) for name, code in programs.items()}
    return {
        "first_paint": _compared(rounds, "paint"),
        "typing": _compared(rounds, "typing"),
        "whole": _compared(rounds, "whole"),
        "longest_wait_ms": statistics.median(moments["longest"] for moments in rounds["ours"]),
        "memory_mb": {name: figures["memory_mb"] for name, figures in rest.items()},
        "wakeups_per_s": {name: figures["wakeups_per_s"] for name, figures in rest.items()},
    }


def _compared(rounds: dict[str, list[dict[str, float]]], moment: str) -> dict[str, float]:
    medians = {name: statistics.median(moments[moment] for moments in times) for name, times in rounds.items()}
    return {
        **{f"{name}_ms": round(value, 1) for name, value in medians.items()},
        "ratio": round(medians["ours"] / medians["bare"], 2),
    }


async def _fill(folder: Path) -> None:
    """Write a data folder with a server and a conversation, and the same conversation for the bare shell."""
    engine = await Engine.open(folder)
    server = Endpoint(id="studio", title="Studio", base_url="http://127.0.0.1:9/v1")
    providers = engine.preferences.providers.model_copy(
        update={"endpoints": (server,), "endpoint_id": server.id, "model": "m"}
    )
    await engine.change_preferences(engine.preferences.model_copy(update={"providers": providers}))
    titles = [f"Conversation {number}" for number in range(50)]
    parts: list[str] = []
    for title in titles:
        record = await engine.store.create_conversation(title=title, endpoint_id=server.id, model="m")
    for number in range(MESSAGES // 2):
        question, answer = f"Tell me about part {number}.", ANSWER.format(number)
        await engine.store.commit(record.id, Message.user(question), Message.assistant(answer))
        parts += [question, answer]
    await engine.close()
    (folder / "titles.json").write_text(json.dumps(titles))
    (folder / "conversation.md").write_text("\n\n".join(parts))


class _Process:
    def __init__(self, code: str, folder: Path, environment: dict[str, str]) -> None:
        began = time.monotonic()
        command = [sys.executable, "-c", f"WATCH = {WATCH!r}\nSEEN = {SEEN!r}\n{code}", str(folder)]
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._process.stdout is not None
        times = json.loads(self._process.stdout.readline() or self._failure())
        self.moments = {name: (moment - began) * 1000 for name, moment in times["moments"].items()}
        self.moments["longest"] = times["longest"] * 1000
        self.pid = self._process.pid

    def _failure(self) -> str:
        _, errors = self._process.communicate()
        raise RuntimeError(errors.decode()[-2000:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def _moments(code: str, folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Return milliseconds from the start of the process, and the longest wait after one could type."""
    with _Process(code, folder, environment) as process:
        return process.moments


def _at_rest(code: str, folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Return memory (PSS: shared pages count in part), and voluntary context switches of all threads per second."""
    with _Process(code, folder, environment) as process:
        time.sleep(REST)
        before = _switches(process.pid)
        time.sleep(REST)
        woken = _switches(process.pid) - before
        sizes = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        kilobytes = next(int(line.split()[1]) for line in sizes.splitlines() if line.startswith("Pss:"))
    return {"memory_mb": round(kilobytes / 1024, 1), "wakeups_per_s": round(woken / REST, 2)}


def _switches(pid: int) -> int:
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        lines = status.read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return total
