"""Garbage of the oldest generation, looked for when nobody waits.

Looking through all objects takes 30 to 260 ms once long texts are open, and Python does it in the middle of a frame.
So it hardly ever does it by itself: a moment is chosen in which no run works and nobody has touched the window for
some seconds. What is left then is frozen, so that the next look sees only what came later. Frozen objects that become
garbage stay, therefore all of them are looked at again when there are twice as many as after the last such look.

In a long session without an idle moment memory is bounded all the same: after `MAX_UNCOLLECTED` objects that were made
and not given up Python looks by itself, as ever.
"""

import gc
from collections.abc import Callable
from time import monotonic

from PySide6.QtCore import QEvent, QObject, QTimer, SignalInstance
from PySide6.QtGui import QWindow

YOUNG, MIDDLE = 700, 10
"""As Python has them: objects until the youngest are looked at, and such looks until those that survived are."""

OLD = 100
"""Looks at the middle generation until Python looks at all by itself."""

MAX_UNCOLLECTED = YOUNG * MIDDLE * OLD

_MIN_MIDDLE_COLLECTIONS = 3
"""Looks at the middle generation since the last look at all: with fewer there is nothing to gain."""

_MIN_FROZEN = 200_000
"""Frozen objects that are not looked at again, however few there were."""

_IDLE_MS = 4000
"""Milliseconds without input or news."""

_INPUT_EVENTS = frozenset(
    {
        QEvent.Type.KeyPress,
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseButtonRelease,
        QEvent.Type.MouseMove,
        QEvent.Type.Wheel,
        QEvent.Type.TouchUpdate,
    }
)


class IdleGarbageCollector(QObject):
    """Input and `news` wake it once; when nothing more comes it does nothing at all.

    `works` says whether somebody waits for a run; its end is news.
    """

    def __init__(self, news: SignalInstance, works: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._is_working = works
        self._before = gc.get_threshold()
        self._left = gc.get_freeze_count()
        self._last_activity = 0.0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_idle)
        news.connect(self._on_activity)
        set_thresholds()

    def watch(self, window: QWindow) -> None:
        """Hear what is done in a window."""
        window.installEventFilter(self)

    def close(self) -> None:
        """Leave it to Python again."""
        self._timer.stop()
        gc.set_threshold(*self._before)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: ARG002  Qt's name
        """Nothing is kept from the window."""
        if event.type() in _INPUT_EVENTS:
            self._on_activity()
        return False

    def _on_activity(self) -> None:
        # A timer that were started again for every move of the mouse would cost more.
        self._last_activity = monotonic()
        if not self._timer.isActive():
            self._timer.start(_IDLE_MS)

    def _on_idle(self) -> None:
        missing = _IDLE_MS - int((monotonic() - self._last_activity) * 1000)
        if missing > 0:
            self._timer.start(missing)
        elif not self._is_working() and gc.get_count()[2] >= _MIN_MIDDLE_COLLECTIONS:
            self._left = collect(self._left)


def set_thresholds() -> None:
    """Let Python look at the oldest generation by itself only as the last resort."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def collect(left: int) -> int:
    """Look for garbage and freeze the rest; `left` and the answer: objects that were left by the last look at all."""
    is_whole = gc.get_freeze_count() > 2 * max(left, _MIN_FROZEN)
    if is_whole:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count() if is_whole else left
