"""Hostile texts: each is streamed at once, and opened whole and walked through.

The limit gets the same text in lines of at most 100 characters.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

from PySide6.QtCore import Qt

from desktop_agent.types.messages import Message
from tests.bench.transcript.hostile_texts import break_lines, hostile_text
from tests.bench.transcript.opening import press
from tests.bench.transcript.sides import Ours, Sides, both_sides
from tests.bench.transcript.streaming import Spent, compare, memory_mb, stream_and_close, stream_answer, warm_up
from tests.bench.transcript.texts import frames_of
from tests.bench.transcript.window import Window
from ui.transcript.viewport.viewport import RowViewport

ROUNDS = 5
SECONDS = 4.0
"""Another round begins only within these seconds."""
_PAGES = 25

Round = Callable[[Window, Sides], tuple[Spent, Spent, dict[str, Any]]]


def streamed(name: str) -> dict[str, Any]:
    """Return CPU time until all is quiet, the longest turn of the loop, and memory above that of the empty window."""
    text = hostile_text(name)
    ours, limits = frames_of(text, at_once=True), frames_of(break_lines(text), at_once=True)

    def once(window: Window, sides: Sides) -> tuple[Spent, Spent, dict[str, Any]]:
        shown = sides.ours()
        empty = memory_mb()
        spent = stream_answer(window, shown, ours, to_the_end=True)
        more = memory_mb() - empty
        shown.close()
        return spent, stream_and_close(window, sides.limit(), limits, to_the_end=True), {"more_mb": round(more, 1)}

    return _measured(once)


def opened(name: str) -> dict[str, Any]:
    """Return the same for a finished message, and the longest turn while it is walked through from its start."""
    text = hostile_text(name)

    def once(window: Window, sides: Sides) -> tuple[Spent, Spent, dict[str, Any]]:
        shown = sides.ours()
        empty = memory_mb()
        spent = _opened(window, lambda: shown.open([Message.user("Go on."), Message.assistant(text)]))
        figures = {"more_mb": round(memory_mb() - empty, 1)} | _walked(window, shown)
        shown.close()
        limit = sides.limit()
        return spent, _opened(window, lambda: limit.edit.setPlainText(break_lines(text))), figures

    return _measured(once)


def _measured(once: Round) -> dict[str, Any]:
    """Run as many rounds as there is time for; further figures are those of the first round."""
    with both_sides() as (window, sides):
        warm_up(window, sides)
        began = time.monotonic()
        ours, limit, figures = once(window, sides)
        rounds = [(ours, limit)]
        while len(rounds) < ROUNDS and time.monotonic() - began < SECONDS:
            rounds.append(once(window, sides)[:2])
    return compare(rounds) | figures


def _opened(window: Window, open_: Callable[[], object]) -> Spent:
    window.calm()
    cpu_began = time.process_time()
    window.drive(_once(open_))
    window.until_quiet()
    spent = time.process_time() - cpu_began
    return Spent(window.watchdog.longest, window.watchdog.where, spent, 1.0)


def _once(move: Callable[[], object]) -> Iterator[None]:
    move()
    yield
    yield


def _walked(window: Window, shown: Ours) -> dict[str, Any]:
    """Go to the start, some pages down and to the end; `walk_blank` counts the paintings with a missing block."""
    window.calm()
    blank: list[str] = []
    window.on_painted = lambda: blank.extend(islice(missing(shown.view.row_viewport), 1))
    for key in (Qt.Key.Key_Home, *[Qt.Key.Key_PageDown] * _PAGES, Qt.Key.Key_End):
        window.drive(_once(partial(press, shown.view, key)))
    window.on_painted = lambda: None
    window.until_quiet()
    figures = {"walk_longest_ms": round(window.watchdog.longest * 1000, 1), "walk_longest_in": window.watchdog.where}
    return figures | {"walk_blank": len(blank), "walk_blank_in": ", ".join(sorted(set(blank)))}


def missing(screen: RowViewport) -> Iterator[str]:
    """Yield the types of visible blocks that are not laid out although the viewport has no lazy sections left."""
    rows = screen.rows
    if rows.has_lazy_sections_in_view():
        return
    top = rows.top
    for _, row, y in rows.between(top, top + rows.view):
        for index in range(row.stack.block_at(top - y), len(row.blocks)):
            if y + row.stack.block_top(index) >= top + rows.view:
                break
            if not row.blocks[index].is_laid_out and row.stack.block_box(index).height() > 0:
                yield type(row.blocks[index]).__name__
