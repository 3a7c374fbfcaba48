"""What every row works with, and what it says happened."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from ui.transcript.blocks.syntax import Word, words_by_line
from ui.transcript.look import Look
from ui.transcript.pictures import Thumbnails
from ui.transcript.workshop import Workshop

_COLOURED = 200
"""Code blocks whose colours are remembered."""


class RowFacts(QObject):
    """What a person did in a row."""

    changed = Signal(str)
    remedy_requested = Signal(str, object)
    approval_requested = Signal(str)
    image_opened = Signal(object)
    code_copied = Signal(str)
    details_copied = Signal(str)


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


class Highlighter:
    """Colours of code, from the worker or from what is remembered."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._known: OrderedDict[tuple[str, str], list[list[Word]]] = OrderedDict()

    def colour(self, text: str, language: str, then: Callable[[list[list[Word]]], None]) -> None:
        """Ask; the answer comes at once or later."""
        key = (language, text)
        if key in self._known:
            self._known.move_to_end(key)
            then(self._known[key])
            return

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
