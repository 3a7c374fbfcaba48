"""The transcript against plain insertText in the same run, and against itself at 10, 10,000 and 100,000 messages.

`run()` needs a QApplication's platform (offscreen will do) and answers figures; nothing here asserts a time.
Streaming: text comes in pieces of 5 characters, 200 pieces a second grouped into frames of 1/60 s (3.33 pieces), or
"at once" in frames of 4,000 characters. Frames follow each other without pause and each is painted; what is measured
is the CPU time of the whole process.
"""

import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QApplication, QTextEdit, QWidget

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.vocabulary.engine_events import Envelope, TurnStarted
from desktop_agent.vocabulary.images import StoredSource
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.provider_events import ContentDelta
from ui.look.theme import ThemeSource
from ui.transcript.view import TranscriptView

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECTION = """## Section {n}: what happens to a block

A paragraph of ordinary prose with **bold words**, some *emphasis*, a bit of `inline code` and a
[link](https://example.org/{n}) to somewhere; it goes on for a few lines so that breaking them costs something,
as it does in an answer of a model. The quick brown fox jumps over the lazy dog while nobody looks.

- first point, with a few words
- second point, with `code` in it
- third point, which is a little longer than the others and wraps

```python
def section_{n}(values: list[int]) -> int:
    total = 0
    for value in values:
        total += value * {n}  # a comment
    return total
```

| name | value | remark |
|------|------:|--------|
| a{n} | {n} | first |
| b{n} | 2 | second **bold** |

"""


class NoPictures:
    """There are none here."""

    def path_of(self, source: StoredSource) -> Path:
        """Nothing lies there."""
        return Path("/nonexistent") / source.digest


def text_of(size: int) -> str:
    """So many characters of an answer."""
    sections: list[str] = []
    length = 0
    while length < size:
        sections.append(SECTION.format(n=len(sections)))
        length += len(sections[-1])
    return "".join(sections)[:size]


def frames_of(text: str, at_once: bool) -> list[str]:
    """What arrives in each frame."""
    if at_once:
        return [text[at : at + 4000] for at in range(0, len(text), 4000)]
    frames, at, due = [], 0, 0.0
    while at < len(text):
        due += 200 / 60
        count = int(due) * 5
        due -= int(due)
        frames.append(text[at : at + count])
        at += count
    return frames


def drive(steps: Iterator[None]) -> list[float]:
    """Run one step at each turn of the event loop; painting happens between them. Answers the gaps in seconds."""
    loop = QEventLoop()
    timer = QTimer()
    gaps: list[float] = []
    last = time.perf_counter()

    def step() -> None:
        nonlocal last
        now = time.perf_counter()
        gaps.append(now - last)
        last = now
        if next(steps, "end") == "end":
            timer.stop()
            loop.quit()

    timer.timeout.connect(step)
    timer.start(0)
    loop.exec()
    return gaps


def shown(widget: QWidget) -> QWidget:
    """On the screen, painted once."""
    widget.resize(900, 800)
    widget.show()
    drive(iter([None, None]))
    return widget


def gone(widget: QWidget) -> None:
    """Deleted."""
    if isinstance(widget, TranscriptView):
        widget.close_workers()
    widget.close()
    widget.deleteLater()
    drive(iter([None, None]))


def stream_plain(text: str, at_once: bool) -> tuple[float, float]:
    """CPU seconds and longest gap of the limit."""
    edit = shown(QTextEdit())

    def steps() -> Iterator[None]:
        cursor = QTextCursor(edit.document())
        bar = edit.verticalScrollBar()
        for frame in frames_of(text, at_once):
            for at in range(0, len(frame), 5):
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(frame[at : at + 5])
            bar.setValue(bar.maximum())
            yield

    return measured(edit, steps())


def stream_view(text: str, at_once: bool) -> tuple[float, float]:
    """CPU seconds and longest gap of the transcript."""
    transcript = Transcript()
    view = shown(TranscriptView(ThemeSource(), NoPictures()))
    transcript.add_message(Message.user("Go on."))
    transcript.apply(Envelope(1, "r", None, "t", NOW, TurnStarted("t", "m", "model")))
    view.set_transcript(transcript)

    def steps() -> Iterator[None]:
        for frame in frames_of(text, at_once):
            changes = [
                change
                for at in range(0, len(frame), 5)
                for change in transcript.apply(Envelope(2, "r", None, "t", NOW, ContentDelta(frame[at : at + 5])))
            ]
            view.apply(tuple(dict.fromkeys(changes)))
            yield

    return measured(view, steps())


def measured(widget: QWidget, steps: Iterator[None]) -> tuple[float, float]:
    """CPU of the process while the steps run, and the longest gap between two of them."""
    before = time.process_time()
    gaps = drive(steps)
    spent = time.process_time() - before
    gone(widget)
    return spent, max(gaps[1:])


def streaming(rounds: int, sizes: tuple[int, ...]) -> dict[str, float]:
    """Ratios to the limit, medians, both sides in turn."""
    figures: dict[str, float] = {}
    for size in sizes:
        for at_once in (False, True):
            limits, ours, gaps = [], [], []
            text = text_of(size)
            for _ in range(rounds):
                limits.append(stream_plain(text, at_once)[0])
                spent, gap = stream_view(text, at_once)
                ours.append(spent)
                gaps.append(gap)
            name = f"{size // 1000}k{' at once' if at_once else ''}"
            limit, mine = statistics.median(limits), statistics.median(ours)
            figures[f"stream {name}: CPU as a multiple of insertText"] = round(mine / limit, 2)
            figures[f"stream {name}: CPU s (limit {limit:.2f})"] = round(mine, 2)
            figures[f"stream {name}: longest gap ms"] = round(statistics.median(gaps) * 1000, 1)
    return figures


def conversation(count: int) -> Transcript:
    """So many messages, of 550 characters each on average."""
    body = text_of(4000)
    messages = []
    for number in range(count // 2):
        messages.append(Message.user(f"Question {number}: " + body[: 40 + number % 160]))
        messages.append(Message.assistant(body[: 300 + 137 * number % 1400] + "\n"))
    return Transcript(messages)


def first_paint(count: int, rounds: int) -> float:
    """Milliseconds from set_transcript to the end of the first painting."""
    transcript = conversation(count)
    times: list[float] = []
    for _ in range(rounds):
        view = TranscriptView(ThemeSource(), NoPictures())
        shown(view)
        start = time.perf_counter()
        view.set_transcript(transcript)
        view.viewport().repaint()
        times.append((time.perf_counter() - start) * 1000)
        gone(view)
    return round(statistics.median(times), 1)


def scrolling(count: int, pixels: int) -> dict[str, float]:
    """Milliseconds of one step of so many pixels up, layout and painting included."""
    view = shown(TranscriptView(ThemeSource(), NoPictures()))
    view.set_transcript(conversation(count))
    view.viewport().repaint()
    times: list[float] = []

    def steps() -> Iterator[None]:
        for _ in range(600):
            start = time.perf_counter()
            view.scroller.scroll_by(-pixels)
            yield
            times.append((time.perf_counter() - start) * 1000)

    drive(steps())
    gone(view)
    times.sort()
    return {
        f"scroll {pixels} px p50 ms": round(times[len(times) // 2], 2),
        f"scroll {pixels} px p99 ms": round(times[int(len(times) * 0.99)], 2),
        f"scroll {pixels} px worst ms": round(times[-1], 2),
    }


def resizing(count: int) -> float:
    """Milliseconds of one change of width, painting included."""
    view = shown(TranscriptView(ThemeSource(), NoPictures()))
    view.set_transcript(conversation(count))
    times: list[float] = []
    for step in range(40):
        start = time.perf_counter()
        view.resize(700 - step * 3, 800)
        view.viewport().repaint()
        times.append((time.perf_counter() - start) * 1000)
    gone(view)
    return round(statistics.median(times), 1)


def long_message(size: int) -> dict[str, float]:
    """One message of so many characters, opened and scrolled to its start."""
    view = shown(TranscriptView(ThemeSource(), NoPictures()))
    transcript = Transcript([Message.user("Go on."), Message.assistant(text_of(size))])
    start = time.perf_counter()
    view.set_transcript(transcript)
    view.viewport().repaint()
    opened = (time.perf_counter() - start) * 1000
    start = time.perf_counter()
    view.scroller.to_start()
    view.viewport().repaint()
    figures = {
        f"open one message of {size // 1000}k ms": round(opened, 1),
        "jump to its start ms": round((time.perf_counter() - start) * 1000, 1),
    }
    gone(view)
    return figures


def memory(count: int) -> float:
    """Megabytes of Python objects that the view adds to the transcript itself."""
    transcript = conversation(count)
    tracemalloc.start()
    view = shown(TranscriptView(ThemeSource(), NoPictures()))
    view.set_transcript(transcript)
    view.viewport().repaint()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gone(view)
    return round(used / 1e6, 1)


def run(rounds: int = 5, sizes: tuple[int, ...] = (10_000, 50_000, 200_000)) -> dict[str, float]:
    """All figures."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    figures: dict[str, float] = {}
    small, large, huge = (first_paint(count, rounds) for count in (10, 10_000, 100_000))
    figures |= {"first paint 10 ms": small, "first paint 10,000 ms": large, "first paint 100,000 ms": huge}
    figures["first paint 10,000 as a multiple of 10"] = round(large / small, 2)
    figures |= scrolling(10_000, 63) | scrolling(10_000, 400)
    figures["resize ms"] = resizing(10_000)
    figures |= long_message(200_000)
    figures["view memory at 10,000 MB"] = memory(10_000)
    figures |= streaming(rounds, sizes)
    del app
    return figures


def profile(size: int) -> Callable[[], object]:
    """For the profiler: one stream."""
    return lambda: stream_view(text_of(size), at_once=False)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    for name, value in run(*((1, (10_000, 50_000)) if quick else ())).items():
        print(f"{name}: {value}")
