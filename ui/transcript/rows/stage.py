"""What every row works with, and what it says happened."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, QTimer, Signal

from ui.transcript.blocks.code.syntax import Word, words_by_line
from ui.transcript.blocks.math.formulas import Formulas
from ui.transcript.look import Look
from ui.transcript.pictures import Thumbnails
from ui.transcript.workshop import Workshop

_COLOURED = 200
"""Code blocks whose colours are remembered."""

_REST = 90
"""Milliseconds."""

_AT_ONCE = 40
"""Code blocks that wait for colours; earlier ones ask again when they are seen again."""


class RowFacts(QObject):
    """What a person did in a row."""

    changed = Signal(str)
    arrived = Signal(str)
    remedy_requested = Signal(str, object)
    approval_requested = Signal(str)
    image_opened = Signal(object)
    code_copied = Signal(str)
    details_copied = Signal(str)
    link_activated = Signal(str)


@dataclass(slots=True)
class Choices:
    """What the person unfolded, folded or wrapped. View state: it is never stored with a conversation."""

    made: dict[tuple[str, str], bool] = field(default_factory=dict[tuple[str, str], bool])

    def get(self, item_id: str, what: str, *, default: bool) -> bool:
        """The person's choice, or the default when there is none."""
        return self.made.get((item_id, what), default)

    def set(self, item_id: str, what: str, *, value: bool) -> None:
        """Choose."""
        self.made[item_id, what] = value


class Highlighter(QObject):
    """Colours of code, from what is remembered, or from the worker once nobody has asked for a moment.

    The worker shares the interpreter with the screen, so colouring waits until scrolling has come to rest.
    """

    def __init__(self, workshop: Workshop, parent: QObject) -> None:
        super().__init__(parent)
        self._workshop = workshop
        self._waiting: dict[tuple[str, str], Callable[[list[list[Word]]], None]] = {}
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST)
        self._rest.timeout.connect(self._send)
        self._known: OrderedDict[tuple[str, str], list[list[Word]]] = OrderedDict()

    def colour(self, text: str, language: str, then: Callable[[list[list[Word]]], None]) -> None:
        """Ask; the answer comes at once or later."""
        key = (language, text)
        if key in self._known:
            self._known.move_to_end(key)
            then(self._known[key])
            return
        self._waiting[key] = then
        while len(self._waiting) > _AT_ONCE:
            del self._waiting[next(iter(self._waiting))]
        self._rest.start()

    def stop(self) -> None:
        """Nothing is coloured any more."""
        self._rest.stop()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for key, then in waiting.items():
            self._ask(key, then)

    def _ask(self, key: tuple[str, str], then: Callable[[list[list[Word]]], None]) -> None:
        language, text = key

        def arrived(words: list[list[Word]]) -> None:
            self._known[key] = words
            if len(self._known) > _COLOURED:
                self._known.popitem(last=False)
            then(words)

        self._workshop.do(("code", *key), lambda: words_by_line(text, language), arrived)


@dataclass(slots=True)
class Stage:
    """Shared by all rows of one view."""

    look: Look
    facts: RowFacts
    thumbnails: Thumbnails
    highlighter: Highlighter
    choices: Choices = field(default_factory=Choices)
    formulas: Formulas | None = None
