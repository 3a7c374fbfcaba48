"""Which formula is drawn next: those on the screen, then those beside it; none of those that only flew by."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer

from ui.transcript.workshop import Workshop

_BEAT = 30
"""Milliseconds between two looks at what waits."""

_SEEN, _BESIDE = 3, 8
"""Beats that a formula must have been asked for, on the screen and beside it, before it is drawn."""

_TOGETHER = 4
"""Beats until what came is told while more is being drawn: each telling lays out and paints."""

_AT_WORK = 2
"""Jobs in the worker's hands: the one at hand, and one that keeps it from ending."""

_MOST = 400
"""Formulas that wait; the oldest are given up."""

Told = Callable[[], None]
Hear = Callable[[], Told | None]
"""Hears that the formula is there; answers who must be told after all that came at once, each of them once."""


@dataclass(slots=True, eq=False)
class _Wanted:
    name: Hashable
    job: Callable[[], Any]
    since: int
    """The beat in which it was asked for."""
    orders: "list[Order]" = field(default_factory=list["Order"])
    seen: int = 0
    """The beat in which it was last seen on the screen; 0 for never."""
    is_at_work: bool = False
    is_done: bool = False


class Order:
    """Of one who waits for one formula."""

    __slots__ = ("_orders", "_wanted", "hear")

    def __init__(self, orders: "Orders", wanted: _Wanted, hear: Hear) -> None:
        self._orders, self._wanted, self.hear = orders, wanted, hear

    def seen(self) -> None:
        """It would stand on the screen."""
        self._wanted = self._orders.see(self._wanted, self)

    def drop(self) -> None:
        """Nobody waits for it here any more."""
        self._orders.drop(self._wanted, self)


class Orders(QObject):
    """`keep` is given the name and the result of each job before anybody hears of it."""

    def __init__(self, workshop: Workshop, keep: Callable[[Hashable, Any], None]) -> None:
        super().__init__(workshop)
        self._workshop = workshop
        self._keep = keep
        self._wanted: dict[Hashable, _Wanted] = {}
        self._beats = 1
        self._hearing: list[Hear] = []
        self._told = 0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_BEAT)
        self._timer.timeout.connect(self._beat)
        workshop.closing.connect(self._stop)
        self._stopped = False

    def add(self, name: Hashable, job: Callable[[], Any], hear: Hear) -> Order:
        """Let the job be done when its turn comes."""
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = self._wanted[name] = _Wanted(name, job, self._beats)
            if len(self._wanted) > _MOST:
                self._give_up(next(iter(self._wanted.values())))
        order = Order(self, wanted, hear)
        wanted.orders.append(order)
        self._wake()
        return order

    def see(self, wanted: _Wanted, order: Order) -> _Wanted:
        """It would stand on the screen now; answers under what it waits."""
        # Until those who wait are told, what they have is painted as before.
        if wanted.is_done:
            return wanted
        wanted = self._wanted.setdefault(wanted.name, wanted)
        if order not in wanted.orders:
            wanted.orders.append(order)
        wanted.seen = self._beats
        self._wake()
        return wanted

    def drop(self, wanted: _Wanted, order: Order) -> None:
        """One of those who wait does not any more."""
        if order in wanted.orders:
            wanted.orders.remove(order)
            if not wanted.orders:
                self._give_up(wanted)

    def clear(self) -> None:
        """Nobody waits for anything."""
        for wanted in list(self._wanted.values()):
            wanted.orders.clear()
            self._give_up(wanted)

    def _give_up(self, wanted: _Wanted) -> None:
        # What is being drawn is kept all the same.
        if not wanted.is_at_work or self._workshop.drop(_key(wanted)):
            wanted.is_at_work = False
            self._wanted.pop(wanted.name, None)

    def _wake(self) -> None:
        if not self._timer.isActive() and not self._stopped:
            self._timer.start()

    def _stop(self) -> None:
        self._stopped = True
        self._timer.stop()

    def _beat(self) -> None:
        self._beats += 1
        self._feed()
        works = any(each.is_at_work for each in self._wanted.values())
        if not works or self._beats - self._told >= _TOGETHER:
            self._tell()
        if self._hearing or any(not each.is_at_work for each in self._wanted.values()):
            self._wake()

    def _feed(self) -> None:
        """Hand the worker what is next."""
        free, waiting = _AT_WORK, list[_Wanted]()
        for each in self._wanted.values():
            # The worker gives jobs up when it is given far too many.
            each.is_at_work = each.is_at_work and self._workshop.has(_key(each))
            free -= each.is_at_work
            if not each.is_at_work:
                waiting.append(each)
        # Those seen last stand on the screen; among them, and among all others, those asked for first are above.
        waiting.sort(key=lambda each: -each.seen)
        for each in waiting[: max(0, free)]:
            if self._beats - each.since >= (_SEEN if each.seen else _BESIDE):
                each.is_at_work = True
                self._workshop.do(_key(each), each.job, partial(self._arrived, each))

    def _arrived(self, wanted: _Wanted, result: Any) -> None:
        self._wanted.pop(wanted.name, None)
        wanted.is_done = True
        self._keep(wanted.name, result)
        self._hearing += [order.hear for order in wanted.orders]
        wanted.orders.clear()
        self._feed()
        if self._hearing:
            self._wake()

    def _tell(self) -> None:
        self._told = self._beats
        hearing, self._hearing = self._hearing, []
        told = dict.fromkeys(hear() for hear in hearing)
        for tell in told:
            if tell:
                tell()


def _key(wanted: _Wanted) -> Hashable:
    return "formula", wanted.name
