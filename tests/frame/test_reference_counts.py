"""PySide6 6.12.0 on Python 3.11 drops one reference to True at every emit() and one to None at every void call.

Python 3.12 made both immortal, so there the counts never change.
"""

import sys
from collections.abc import Callable
from functools import partial

import pytest
from PySide6.QtCore import QObject, Signal

EMISSIONS = 20_000
NOISE = 1_000


class Speaker(QObject):
    """Emits signals with and without an argument."""

    flagged = Signal(bool)
    said = Signal()


def drift(work: Callable[[], object]) -> dict[str, int]:
    """How far the counts of True and None moved."""
    before = sys.getrefcount(True), sys.getrefcount(None)
    work()
    return {"True": sys.getrefcount(True) - before[0], "None": sys.getrefcount(None) - before[1]}


def test_signals_keep_references() -> None:
    speaker, received = Speaker(), [0]

    def count(*_: object) -> None:
        received[0] += 1

    speaker.flagged.connect(count)
    speaker.said.connect(count)

    def work() -> None:
        for _ in range(EMISSIONS):
            speaker.flagged.emit(True)
            speaker.said.emit()
            speaker.blockSignals(False)

    moved = drift(work)
    assert received[0] == 2 * EMISSIONS
    assert all(abs(change) < NOISE for change in moved.values()), moved


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="True and None are immortal")
def test_the_measure_sees_a_drift() -> None:
    kept: list[object] = []
    moved = drift(partial(kept.extend, [True, None] * EMISSIONS))
    assert moved["True"] >= EMISSIONS - NOISE
    assert moved["None"] >= EMISSIONS - NOISE
