"""What asks for colours of code, and when: not while scrolling, and nothing twice."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer

from ui.transcript.blocks.colouring.coloured import Code, Coloured, Slice, Standing, Word
from ui.transcript.blocks.colouring.colourist import Colourist, Errand
from ui.transcript.blocks.colouring.frames import Answer
from ui.transcript.workshop import Result, Workshop

_COLOURED = 200
"""Code blocks whose colours are remembered."""

_REST = 90
"""Milliseconds."""

_UNPAINTED = 300
"""Milliseconds after which colours of code that has stopped growing are painted by themselves."""

_AT_ONCE = 40
"""Code blocks that wait for colours; earlier ones ask again when they are seen again."""

Hearer = Callable[[Slice], None]


@dataclass(slots=True)
class _Asked:
    """Who waits for a block, and what has come of it."""

    code: Code
    hearers: list[Hearer] = field(default_factory=list[Hearer])
    words: list[list[Word]] = field(default_factory=list[list[Word]])

    def add(self, hear: Hearer) -> None:
        """One more, who hears what has come already."""
        if hear not in self.hearers:
            self.hearers.append(hear)
            if self.words:
                hear(Slice(0, self.words, is_last=False))


class Highlighter(QObject):
    """Colours of code, from what is remembered, or from the colourist once nobody has asked for a moment.

    What scrolls by is not worth colouring, so that waits until scrolling has come to rest.
    """

    def __init__(self, workshop: Workshop, parent: QObject) -> None:
        super().__init__(parent)
        self._workshop = workshop
        self.colourist = Colourist(self._next_errand, self)
        self._waiting: OrderedDict[Code, _Asked] = OrderedDict()
        self._ready: OrderedDict[Code, _Asked] = OrderedDict()
        self._at_hand: _Asked | None = None
        self._known: OrderedDict[Code, list[list[Word]]] = OrderedDict()
        self._growing: list[Errand] = []
        self._ready_growing: deque[Errand] = deque()
        self._unpainted: list[Callable[[], None]] = []
        self._rest = self._timer(_REST, self._send)
        self._beat = self._timer(_REST, self._send_growing)
        self._late = self._timer(_UNPAINTED, self._paint)

    def colour(self, text: str, language: str, then: Hearer) -> None:
        """Ask; the answer comes at once or later, in slices."""
        code = Code(text, language)
        if code in self._known:
            self._known.move_to_end(code)
            then(Slice(0, self._known[code], is_last=True))
        elif self.colourist.refuses(code):
            then(Slice(0, [], is_last=True))
        elif self._at_hand and self._at_hand.code == code:
            self._at_hand.add(then)
        elif code in self._ready:
            self._ready[code].add(then)
        else:
            self._waiting.setdefault(code, _Asked(code)).add(then)
            _shorten(self._waiting)
            self._rest.start()

    def colour_more(
        self, text: str, language: str, standing: Standing, then: Callable[[Coloured | None], None]
    ) -> None:
        """Colours for what was added to code that still grows; asked for a few times a second."""

        def hear(found: Answer) -> None:
            then(found if isinstance(found, Coloured) else None)

        self._growing.append(Errand(Code(text, language, standing), hear))
        if not self._beat.isActive():
            self._beat.start()

    def elsewhere(self, key: Hashable, job: Callable[[], Result], then: Callable[[Result], None]) -> None:
        """Do the job in the worker, and hand its result to `then`."""
        self._workshop.do(key, job, then)

    def later(self, act: Callable[[], None]) -> None:
        """Once some frames have passed; never, when the view is gone by then."""
        self._unpainted.append(act)
        if not self._late.isActive():
            self._late.start()

    @property
    def is_idle(self) -> bool:
        """Whether no colours are still to come."""
        asked = self._waiting or self._ready or self._growing or self._ready_growing or self.colourist.is_busy
        return not (asked or self._unpainted or self._workshop.is_busy)

    def stop(self) -> None:
        """Nothing is coloured any more."""
        self._rest.stop()
        self._beat.stop()
        self._late.stop()
        self.colourist.close()

    def _timer(self, interval: int, act: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(interval)
        timer.timeout.connect(act)
        return timer

    def _paint(self) -> None:
        unpainted, self._unpainted = self._unpainted, []
        for act in unpainted:
            act()

    def _send_growing(self) -> None:
        self._ready_growing += self._growing
        self._growing = []
        self.colourist.look()

    def _send(self) -> None:
        self._ready.update(self._waiting)
        _shorten(self._ready)
        self._waiting.clear()
        self.colourist.look()

    def _next_errand(self) -> Errand | None:
        """What grows comes first: it is looked at, and short."""
        if self._ready_growing:
            return self._ready_growing.popleft()
        if not self._ready:
            return None
        _, asked = self._ready.popitem(last=False)
        self._at_hand = asked
        return Errand(asked.code, lambda answer: self._arrived(asked, answer))

    def _arrived(self, asked: _Asked, answer: Answer) -> None:
        found = answer if isinstance(answer, Slice) else Slice(len(asked.words), [], is_last=True)
        asked.words[found.line :] = found.words
        if found.is_last:
            self._at_hand = None
            if answer is not None:
                self._remember(asked)
        for hear in [*asked.hearers]:
            hear(found)

    def _remember(self, asked: _Asked) -> None:
        self._known[asked.code] = asked.words
        if len(self._known) > _COLOURED:
            self._known.popitem(last=False)


def _shorten(asked: OrderedDict[Code, _Asked]) -> None:
    while len(asked) > _AT_ONCE:
        asked.popitem(last=False)
