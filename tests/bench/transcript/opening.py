"""Opening a conversation of any number of messages, and moving in it.

The limit is a plain QTextEdit that shows twenty messages: the cost of a screenful, whatever the length.
"""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea

from desktop_agent.conversation.transcript import Transcript
from tests.bench.transcript.sides import Ours, Sides, both_sides
from tests.bench.transcript.streaming import memory_mb
from tests.bench.transcript.texts import messages
from tests.bench.transcript.window import SIZE, Window, application

COUNTS = (10, 100, 1_000, 10_000, 100_000)
ROUNDS = 7
PLAIN_MESSAGES = 20
WHEELS, PAGES, JUMPS, SIZES = 300, 150, 60, 30
_NOTCH = 120


def first_paints() -> dict[str, Any]:
    """Return the milliseconds from a conversation in memory to its pixels; all counts in turn."""
    times: dict[str, list[float]] = {str(count): [] for count in (*COUNTS, "plain")}
    with both_sides() as (window, sides):
        transcripts = {count: Transcript(messages(count, sides.pictures)) for count in COUNTS}
        for _ in range(ROUNDS + 1):
            for count, transcript in transcripts.items():
                shown = sides.ours()
                times[str(count)].append(_painted_after(window, partial(shown.view.set_transcript, transcript)))
                shown.close()
            limit = sides.limit()
            times["plain"].append(_painted_after(window, partial(limit.edit.setMarkdown, _plain_text(sides))))
    # The first round imports modules that are loaded late.
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    figures: dict[str, Any] = {f"{name}_ms": round(value, 1) for name, value in medians.items()}
    for count in (10_000, 100_000):
        figures[f"{count}_over_10"] = round(medians[str(count)] / medians["10"], 2)
    return {**figures, "rounds": ROUNDS}


def moved(count: int) -> dict[str, Any]:
    """Return memory above that of the empty window, and milliseconds of each kind of move with its painting."""
    with both_sides() as (window, sides):
        shown = sides.ours()
        figures = _opened(window, sides, shown, count)
        window.calm()
        moves = {name: _spread(move(window, shown.view)) for name, move in _MOVES.items()}
        figures |= moves | _jumps(window, shown)
        figures |= {"longest_ms": round(window.watchdog.longest * 1000, 1), "longest_in": window.watchdog.where}
        window.until_quiet()
        figures["memory"]["after_moving_mb"] = round(memory_mb() - figures["memory"]["empty_mb"], 1)
        shown.close()
        limit = sides.limit()
        limit.edit.setMarkdown(_plain_text(sides))
        window.calm()
        for name in ("wheel", "page", "resize"):
            p50 = figures[name]["limit_p50"] = _spread(_MOVES[name](window, limit.edit))["p50"]
            figures[name]["p50_over_limit"] = round(figures[name]["p50"] / p50, 2) if p50 else 0.0
        return figures


def _plain_text(sides: Sides) -> str:
    return "\n\n".join(message.text for message in messages(PLAIN_MESSAGES, sides.pictures))


def _opened(window: Window, sides: Sides, shown: Ours, count: int) -> dict[str, Any]:
    empty = memory_mb()
    began = time.perf_counter()
    transcript = Transcript(messages(count, sides.pictures))
    built = time.perf_counter() - began
    alone = memory_mb()
    shown.transcript = transcript
    shown.view.set_transcript(transcript)
    window.until_quiet()
    opened = memory_mb()
    memory = {"empty_mb": empty, "items_mb": alone - empty, "view_mb": opened - alone, "more_mb": opened - empty}
    return {"items_ms": round(built * 1000, 1), "memory": {name: round(value, 1) for name, value in memory.items()}}


def _wheel(window: Window, area: QAbstractScrollArea) -> list[float]:
    """Scroll up by notches of the wheel, and down again from the start."""

    def turn(direction: int) -> None:
        middle = QPointF(area.viewport().rect().center())
        none = Qt.KeyboardModifier.NoModifier
        event = QWheelEvent(
            middle,
            area.viewport().mapToGlobal(middle),
            QPoint(),
            QPoint(0, direction * _NOTCH),
            Qt.MouseButton.NoButton,
            none,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        application().sendEvent(area.viewport(), event)

    return _there_and_back(window, area, WHEELS, turn)


def _page(window: Window, area: QAbstractScrollArea) -> list[float]:
    """Scroll up by pages, and down again from the start."""
    keys = {1: Qt.Key.Key_PageUp, -1: Qt.Key.Key_PageDown}
    return _there_and_back(window, area, PAGES, lambda direction: press(area, keys[direction]))


def _far(window: Window, area: QAbstractScrollArea) -> list[float]:
    """Drag the scroll bar to random positions."""
    chance, bar = random.Random(1), area.verticalScrollBar()
    moves = (lambda: bar.setValue(chance.randrange(bar.maximum() + 1)) for _ in range(JUMPS))
    return _timed(window, moves)


def _resize(window: Window, _: QAbstractScrollArea) -> list[float]:
    """Make the window narrower step by step."""

    def moves() -> Iterator[Callable[[], None]]:
        for step in range(SIZES):
            yield partial(window.resize, SIZE[0] - 4 * (step + 1), SIZE[1])

    times = _timed(window, moves())
    window.resize(*SIZE)
    window.until_quiet()
    return times


_MOVES = {"wheel": _wheel, "page": _page, "far": _far, "resize": _resize}


def _there_and_back(window: Window, area: QAbstractScrollArea, count: int, move: Callable[[int], None]) -> list[float]:
    bar = area.verticalScrollBar()

    def moves() -> Iterator[Callable[[], None]]:
        direction = 1
        for _ in range(count):
            if bar.value() == 0:
                direction = -1
            elif bar.value() == bar.maximum():
                direction = 1
            yield partial(move, direction)

    return _timed(window, moves())


def _jumps(window: Window, shown: Ours) -> dict[str, float]:
    """Go to the start, go to the end, and select all; return the slowest of three each."""
    control, none = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.NoModifier
    keys = {
        "to_start_ms": (Qt.Key.Key_Home, none),
        "to_end_ms": (Qt.Key.Key_End, none),
        "select_all_ms": (Qt.Key.Key_A, control),
    }
    times: dict[str, list[float]] = {name: [] for name in keys}
    for _ in range(3):
        for name, (key, modifiers) in keys.items():
            times[name].append(_painted_after(window, partial(press, shown.view, key, modifiers)))
        shown.view.row_viewport.selection.clear()
    return {name: round(max(values), 1) for name, values in times.items()}


def press(
    area: QAbstractScrollArea, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    """Press and release a key."""
    for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
        application().sendEvent(area, QKeyEvent(kind, key, modifiers))


def _painted_after(window: Window, move: Callable[[], object]) -> float:
    """Return the milliseconds from a move to the end of the painting that follows."""
    return (_timed(window, iter([move])) or [0.0])[0] * 1000


def _timed(window: Window, moves: Iterator[Callable[[], object]]) -> list[float]:
    """Return the seconds of each move with the painting that follows, without moves that paint nothing."""
    times: list[float] = []

    def steps() -> Iterator[None]:
        for move in moves:
            began = time.perf_counter()
            move()
            yield
            if window.painted_at > began:
                times.append(window.painted_at - began)

    window.drive(steps())
    return times


def _spread(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {"p50": 0.0, "p99": 0.0}
    quantiles = (statistics.median(seconds), statistics.quantiles(seconds, n=100, method="inclusive")[-1])
    return {name: round(value * 1000, 2) for name, value in zip(("p50", "p99"), quantiles, strict=True)}
