"""asyncio in Qt's event loop: running it, background tasks, frame ticks, termination signals, idle garbage collection.

A full garbage collection takes 30 to 260 ms once long texts are open, and Python does it in the middle of a frame. So
it is done when no run is active and the window had no input for some seconds. Survivors are frozen, so that the next
collection sees only newer objects. Frozen objects that become garbage stay; therefore all are collected again when
there are twice as many as after the last full collection. Memory is bounded without an idle moment too: after
`MAX_UNCOLLECTED` new objects Python collects by itself.
"""

import asyncio
import gc
import logging
import signal
import socket

# asyncio documents these for implementers of event loops only; hence their names.
from asyncio import _get_running_loop, _set_running_loop  # pyright: ignore[reportPrivateUsage]
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context
from functools import wraps
from heapq import heapify, heappop, heappush
from math import ceil
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast
from weakref import WeakSet

import qasync  # pyright: ignore[reportMissingTypeStubs] - it ships none; only the loop class is used
from PySide6.QtCore import QEvent, QObject, QSocketNotifier, Qt, QTimer, QTimerEvent, Signal, SignalInstance
from PySide6.QtGui import QWindow
from PySide6.QtWidgets import QApplication

from desktop_agent.types.errors import AgentError
from ui.bridge.internal_errors import internal_error

if TYPE_CHECKING:
    from _typeshed import HasFileno

_MAX_THREADS = 10
_MIN_CANCELLED = 100
"""Cancelled timers that may stay in the heap, however few others there are."""


class EventLoop(qasync.QEventLoop):  # pyright: ignore[reportUntypedBaseClass]
    """qasync's loop, with one Qt timer for all callbacks that are ready and one for those that wait.

    qasync creates a Qt timer for each callback, and a cancelled one lives until it is due: a stream would leave
    hundreds a second behind. It also calls back when its loop no longer runs: see `count_as_running`.
    """

    def __init__(self, app: QApplication) -> None:
        self._callbacks = _Callbacks(cast("asyncio.AbstractEventLoop", self))
        self._readers: dict[int, tuple[QSocketNotifier, asyncio.Handle]] = {}
        super().__init__(app)  # pyright: ignore[reportUnknownMemberType]
        # qasync's own executor starts ten threads at once, even if there is no work.
        self.set_default_executor(ThreadPoolExecutor(_MAX_THREADS, "background"))  # pyright: ignore[reportUnknownMemberType]

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Call the callback in the next turn of the loop."""
        handle = asyncio.Handle(callback, args, self, context)
        self._callbacks.ready.append(handle)
        if not self._callbacks.soon:
            self._callbacks.wake_soon()
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call the callback at a moment of the loop's clock."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._callbacks.add_timer(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call the callback after so many seconds."""
        return self.call_at(monotonic() + delay, callback, *args, context=context)

    def _add_reader(  # pyright: ignore[reportIncompatibleMethodOverride]  # asyncio needs the handle
        self, fd: "int | HasFileno", callback: Callable[..., object], *args: Any
    ) -> asyncio.Handle:
        """Watch a socket until `_remove_reader`. asyncio's transports call this.

        qasync instead stops watching for each read, which it does in the next turn of the loop.
        """
        self._remove_reader(fd)
        handle = asyncio.Handle(callback, args, cast("asyncio.AbstractEventLoop", self))
        number = fd if isinstance(fd, int) else fd.fileno()
        notifier = QSocketNotifier(number, QSocketNotifier.Type.Read, self._callbacks)
        self._readers[number] = notifier, handle

        def on_ready(*_: object) -> None:
            self._callbacks.count_as_running(handle._run)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001  asyncio's loops do so

        notifier.activated.connect(on_ready)
        return handle

    def _remove_reader(self, fd: "int | HasFileno") -> bool:
        """Return whether the socket was watched. asyncio's transports call this."""
        number = fd if isinstance(fd, int) else fd.fileno()
        if number not in self._readers:
            return False
        notifier, handle = self._readers.pop(number)
        handle.cancel()
        notifier.setEnabled(False)
        # Delete it later: it may be emitting its signal at this moment.
        notifier.deleteLater()
        return True

    def _timer_handle_cancelled(self, _: asyncio.TimerHandle) -> None:
        """asyncio's handles call this."""
        self._callbacks.on_timer_cancelled()

    def close(self) -> None:
        """Release everything. The loop cannot be used again."""
        for fd in tuple(self._readers):
            self._remove_reader(fd)
        super().close()
        self._callbacks.stop()


class _Callbacks(QObject):
    """Callbacks in the order in which they became ready, and timers by their moment."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self.ready = deque[asyncio.Handle]()
        self._timers: list[asyncio.TimerHandle] = []
        self._cancelled = 0
        self.soon = self._later = 0  # Qt's timers; 0: none
        self._later_at = 0.0
        self._is_stopped = False
        self._is_postponed = False

    def add_timer(self, handle: asyncio.TimerHandle) -> None:
        heappush(self._timers, handle)
        if self._timers[0] is handle:
            self._wake_later()

    def on_timer_cancelled(self) -> None:
        self._cancelled += 1
        if self._cancelled > max(_MIN_CANCELLED, len(self._timers) // 2):
            self._timers = [handle for handle in self._timers if not handle.cancelled()]
            heapify(self._timers)
            self._cancelled = 0

    def stop(self) -> None:
        self._is_stopped = True
        self.ready.clear()
        self._timers.clear()
        for timer in filter(None, (self.soon, self._later)):
            self.killTimer(timer)

    def timerEvent(self, event: QTimerEvent) -> None:
        """Run what is ready now; what becomes ready meanwhile has its turn after Qt's own events."""
        # Qt does not deliver a timer again within its own event, so a loop inside a callback needs another one.
        timer = event.timerId()
        self.killTimer(timer)
        if timer == self.soon:
            self.soon = 0
        else:
            self._later = 0
        if asyncio.current_task(self._loop) is not None:
            # A task runs a nested loop of Qt. asyncio enters no other task meanwhile, and its wake-up would be lost.
            self._is_postponed = True
            return
        if not self._later:
            self._take_due()
        self.count_as_running(self._run_ready)

    def count_as_running(self, work: Callable[[], object]) -> None:
        """Call `work` while asyncio takes this loop for the running one.

        Qt also calls outside of `run_forever`: `run_until_complete` of qasync 0.28 handles Qt's events once more after
        it. From Python 3.14 on a step of a task would fail then ("is not the running loop").
        """
        running = _get_running_loop()
        if running is self._loop:
            work()
            return
        _set_running_loop(self._loop)
        try:
            work()
        finally:
            _set_running_loop(running)

    def _run_ready(self) -> None:
        ready = self.ready
        for _ in range(len(ready)):
            if not ready:
                return
            handle = ready.popleft()
            if ready and not self.soon:
                self.wake_soon()
            if not handle.cancelled():
                handle._run()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001  asyncio's loops do so
            if self._is_postponed:
                self._catch_up()

    def _catch_up(self) -> None:
        self._is_postponed = False
        self._take_due()
        if self.ready and not self.soon:
            self.wake_soon()

    def _take_due(self) -> None:
        now = monotonic()
        while self._timers and (self._timers[0].when() <= now or self._timers[0].cancelled()):
            handle = heappop(self._timers)
            if handle.cancelled():
                self._cancelled = max(0, self._cancelled - 1)
            else:
                self.ready.append(handle)
        self._wake_later()

    def wake_soon(self) -> None:
        if not self._is_stopped:
            self.soon = self.startTimer(0)

    def _wake_later(self) -> None:
        if not self._timers or self._is_stopped:
            return
        when = self._timers[0].when()
        if self._later:
            if self._later_at <= when:
                return
            self.killTimer(self._later)
        self._later_at = when
        self._later = self.startTimer(max(0, ceil((when - monotonic()) * 1000)), Qt.TimerType.PreciseTimer)


def run_event_loop(app: QApplication, main: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run `main` inside Qt's loop. Returns its exit code.

    The program ends when `main` returns, not when the last window closes: `main` first closes everything in order.
    """
    app.setQuitOnLastWindowClosed(False)
    loop = cast("asyncio.AbstractEventLoop", EventLoop(app))
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()
        asyncio.set_event_loop(None)


_SIGNAL_NAMES = ("SIGTERM", "SIGINT", "SIGHUP")


class TerminationSignals(QObject):
    """Emits `end_requested` when the system or the terminal asks the program to end.

    Python runs its handlers only between two of its own instructions, and an idle Qt runs none: the wakeup socket makes
    Qt call into Python (doc.qt.io/qt-6/unix-signals.html, docs.python.org/3/library/signal.html).
    """

    end_requested = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)
        self._previous_wakeup_fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        # Windows has no SIGHUP.
        numbers = [getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name)]
        self._previous_handlers = {number: signal.signal(number, self._on_signal) for number in numbers}

    def close(self) -> None:
        """Restore the previous handlers. A signal that comes while the program ends is ignored until then."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._previous_wakeup_fd)
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)
        self._read.close()
        self._write.close()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.end_requested.emit()

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            self._read.recv(4096)


_log = logging.getLogger(__name__)


class BackgroundTasks:
    """Starts coroutines, and calls `on_error` with each AgentError that ends one."""

    def __init__(self, on_error: Callable[[AgentError], None]) -> None:
        self._on_error = on_error
        self._running: set[asyncio.Task[None]] = set()
        self._groups: WeakSet[BackgroundTasks] = WeakSet()
        self._when_idle: Callable[[], object] | None = None
        self._is_closed = False

    def create_group(self) -> "BackgroundTasks":
        """Return a group for some of the tasks, such as those of one window; `close` cancels these too."""
        group = BackgroundTasks(self._on_error)
        self._groups.add(group)
        return group

    def when_idle(self, callback: Callable[[], object]) -> None:
        """Call the callback once, as soon as none of these tasks runs."""
        self._when_idle = callback
        self._notify_when_idle()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine in the background; not after `close`, when the objects that it needs are closed too."""
        if self._is_closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(self._report_crash(work))
        self._running.add(task)
        task.add_done_callback(self._on_done)
        # A task that is cancelled before its first step never awaits its work.
        task.add_done_callback(lambda _: work.close())

    def report(self, error: AgentError) -> None:
        """Call `on_error` with an error that ended nothing."""
        self._on_error(error)

    async def close(self) -> None:
        """Cancel the running tasks and wait for them."""
        # Repeat: a cancelled task may start another one.
        while self._running:
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running)
        self._is_closed = True
        for group in tuple(self._groups):
            await group.close()

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._notify_when_idle()

    def _notify_when_idle(self) -> None:
        if not self._running and self._when_idle is not None:
            callback, self._when_idle = self._when_idle, None
            callback()

    async def _report_crash(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            await work
        except AgentError as error:
            self._on_error(error)
        except Exception as error:  # noqa: BLE001 - the window must stay usable; the log has the rest
            _log.exception("a background task failed")
            self._on_error(internal_error(error))


class _HasTasks(Protocol):
    _tasks: BackgroundTasks


_Owner = TypeVar("_Owner", bound=_HasTasks)
_Parameters = ParamSpec("_Parameters")


def in_background(
    method: Callable[Concatenate[_Owner, _Parameters], Coroutine[Any, Any, object]],
) -> Callable[Concatenate[_Owner, _Parameters], None]:
    """Let a call of the method return at once: its coroutine is one of the object's background tasks."""

    @wraps(method)
    def start(owner: _Owner, *args: _Parameters.args, **named: _Parameters.kwargs) -> None:
        owner._tasks.start(method(owner, *args, **named))  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001

    return start


FRAME_SECONDS = 1 / 60


class FrameClock(QObject):
    """Ticks once after each request, at most once a frame. Idle, it does nothing."""

    tick = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timer = QTimer(self, singleShot=True, timerType=Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_timeout)
        self._last = 0.0

    def request(self) -> None:
        """Tick at once if the last frame is past, else when it is."""
        if not self._timer.isActive():
            wait = max(0.0, self._last + FRAME_SECONDS - monotonic())
            self._timer.start(ceil(wait * 1000))

    def stop(self) -> None:
        """Cancel a requested tick."""
        self._timer.stop()

    def _on_timeout(self) -> None:
        self._last = monotonic()
        self.tick.emit()


YOUNG, MIDDLE = 700, 10
"""Python's defaults: new objects before a young collection, and young collections before a middle one."""

OLD = 100
"""Middle collections before Python does a full one by itself."""

MAX_UNCOLLECTED = YOUNG * MIDDLE * OLD

_MIN_MIDDLE_COLLECTIONS = 3
"""Middle collections since the last full one: with fewer there is nothing to gain."""

_MIN_FROZEN = 200_000
"""The least number of frozen objects for a full collection."""

_IDLE_MS = 4000
"""Milliseconds without input or activity."""

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
    """Collects garbage some seconds after the last input and the last `activity`, such as the end of a run.

    `is_working` returns whether a run is under way.
    """

    def __init__(self, activity: SignalInstance, is_working: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._is_working = is_working
        self._previous_threshold = gc.get_threshold()
        self._last_count: int | None = None
        self._last_activity = 0.0
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._on_idle)
        activity.connect(self._on_activity)
        set_thresholds()

    def watch(self, window: QWindow) -> None:
        """Watch a window for input."""
        window.installEventFilter(self)

    def close(self) -> None:
        """Let Python collect by itself again."""
        self._timer.stop()
        gc.set_threshold(*self._previous_threshold)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: ARG002  Qt's name
        if event.type() in _INPUT_EVENTS:
            self._on_activity()
        return False

    def _on_activity(self) -> None:
        # Restarting the timer for every move of the mouse would cost more.
        self._last_activity = monotonic()
        if not self._timer.isActive():
            self._timer.start(_IDLE_MS)

    def _on_idle(self) -> None:
        missing = _IDLE_MS - int((monotonic() - self._last_activity) * 1000)
        if missing > 0:
            self._timer.start(missing)
        elif not self._is_working() and gc.get_count()[2] >= _MIN_MIDDLE_COLLECTIONS:
            # Counted only now, as counting looks at each object.
            last_count = gc.get_freeze_count() if self._last_count is None else self._last_count
            self._last_count = collect(last_count)


def set_thresholds() -> None:
    """Let Python collect the oldest generation by itself only as a last resort."""
    gc.set_threshold(YOUNG, MIDDLE, OLD)


def collect(last_count: int) -> int:
    """Collect garbage and freeze the rest. Takes and returns the number of objects after the last full collection."""
    is_whole = gc.get_freeze_count() > 2 * max(last_count, _MIN_FROZEN)
    if is_whole:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count() if is_whole else last_count
