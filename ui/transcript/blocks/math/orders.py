"""Which formula is drawn next: those on the screen, then those beside it; none of those that only flew by."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer

from ui.transcript.workshop import JobQueue

_TICK_MS = 30
"""Milliseconds between two looks at what waits."""

_VISIBLE_TICKS, _NEARBY_TICKS = 3, 8
"""Beats that a formula must have been asked for, on the screen and beside it, before it is drawn."""

_MAX_BATCH = 4
"""Beats until what came is told while more is being drawn: each telling lays out and paints."""

_MAX_RUNNING = 2
"""Jobs in the worker's hands: the one at hand, and one that keeps it from ending."""

_MAX_QUEUED = 400
"""Formulas that wait; the oldest are given up."""

Notify = Callable[[], None]
OnReady = Callable[[], Notify | None]
"""Hears that the formula is there; answers who must be told after all that came at once, each of them once."""


@dataclass(slots=True, eq=False)
class _QueuedRender:
    name: Hashable
    job: Callable[[], Any]
    since: int
    """The beat in which it was asked for."""
    tickets: "list[RenderTicket]" = field(default_factory=list["RenderTicket"])
    last_visible: int = 0
    """The beat in which it was last seen on the screen; 0 for never."""
    is_running: bool = False
    is_done: bool = False


class RenderTicket:
    """Of one who waits for one formula."""

    __slots__ = ("_orders", "_wanted", "on_ready")

    def __init__(self, tickets: "RenderQueue", wanted: _QueuedRender, on_ready: OnReady) -> None:
        self._orders, self._wanted, self.on_ready = tickets, wanted, on_ready

    def mark_visible(self) -> None:
        """It would stand on the screen."""
        self._wanted = self._orders.mark_visible(self._wanted, self)

    def cancel(self) -> None:
        """Nobody waits for it here any more."""
        self._orders.cancel(self._wanted, self)


class RenderQueue(QObject):
    """`keep` is given the name and the result of each job before anybody hears of it."""

    def __init__(self, job_queue: JobQueue, keep: Callable[[Hashable, Any], None]) -> None:
        super().__init__(job_queue)
        self._job_queue = job_queue
        self._store_result = keep
        self._wanted: dict[Hashable, _QueuedRender] = {}
        self._ticks = 1
        self._ready_listeners: list[OnReady] = []
        self._notified = 0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self._on_tick)
        job_queue.closing.connect(self._stop)
        self._stopped = False

    def add(self, name: Hashable, job: Callable[[], Any], on_ready: OnReady) -> RenderTicket:
        """Let the job be done when its turn comes."""
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = self._wanted[name] = _QueuedRender(name, job, self._ticks)
            if len(self._wanted) > _MAX_QUEUED:
                self._give_up(next(iter(self._wanted.values())))
        ticket = RenderTicket(self, wanted, on_ready)
        wanted.tickets.append(ticket)
        self._wake()
        return ticket

    def mark_visible(self, wanted: _QueuedRender, ticket: RenderTicket) -> _QueuedRender:
        """It would stand on the screen now; answers under what it waits."""
        # Until those who wait are told, what they have is painted as before.
        if wanted.is_done:
            return wanted
        wanted = self._wanted.setdefault(wanted.name, wanted)
        if ticket not in wanted.tickets:
            wanted.tickets.append(ticket)
        wanted.last_visible = self._ticks
        self._wake()
        return wanted

    def cancel(self, wanted: _QueuedRender, ticket: RenderTicket) -> None:
        """One of those who wait does not any more."""
        if ticket in wanted.tickets:
            wanted.tickets.remove(ticket)
            if not wanted.tickets:
                self._give_up(wanted)

    def clear(self) -> None:
        """Nobody waits for anything."""
        for wanted in list(self._wanted.values()):
            wanted.tickets.clear()
            self._give_up(wanted)

    def _give_up(self, wanted: _QueuedRender) -> None:
        # What is being drawn is kept all the same.
        if not wanted.is_running or self._job_queue.cancel(_priority(wanted)):
            wanted.is_running = False
            self._wanted.pop(wanted.name, None)

    def _wake(self) -> None:
        if not self._timer.isActive() and not self._stopped:
            self._timer.start()

    def _stop(self) -> None:
        self._stopped = True
        self._timer.stop()

    def _on_tick(self) -> None:
        self._ticks += 1
        self._submit_next()
        works = any(each.is_running for each in self._wanted.values())
        if not works or self._ticks - self._notified >= _MAX_BATCH:
            self._notify()
        if self._ready_listeners or any(not each.is_running for each in self._wanted.values()):
            self._wake()

    def _submit_next(self) -> None:
        """Hand the worker what is next."""
        free, waiting = _MAX_RUNNING, list[_QueuedRender]()
        for each in self._wanted.values():
            # The worker gives jobs up when it is given far too many.
            each.is_running = each.is_running and self._job_queue.has(_priority(each))
            free -= each.is_running
            if not each.is_running:
                waiting.append(each)
        # Those seen last stand on the screen; among them, and among all others, those asked for first are above.
        waiting.sort(key=lambda each: -each.last_visible)
        for each in waiting[: max(0, free)]:
            if self._ticks - each.since >= (_VISIBLE_TICKS if each.last_visible else _NEARBY_TICKS):
                each.is_running = True
                self._job_queue.submit(_priority(each), each.job, partial(self._on_result, each))

    def _on_result(self, wanted: _QueuedRender, result: Any) -> None:
        self._wanted.pop(wanted.name, None)
        wanted.is_done = True
        self._store_result(wanted.name, result)
        self._ready_listeners += [ticket.on_ready for ticket in wanted.tickets]
        wanted.tickets.clear()
        self._submit_next()
        if self._ready_listeners:
            self._wake()

    def _notify(self) -> None:
        self._notified = self._ticks
        hearing, self._ready_listeners = self._ready_listeners, []
        told = dict.fromkeys(on_ready() for on_ready in hearing)
        for notify in told:
            if notify:
                notify()


def _priority(wanted: _QueuedRender) -> Hashable:
    return "formula", wanted.name
