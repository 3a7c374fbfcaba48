"""Conversations that other assistants left on this disk, for the screens: listed, shown where they are, continued."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.types.conversation_tree import FOUND_PREFIX, ConversationOrigin
from desktop_agent.types.errors import Sentence, WrongUse
from ui.bridge.event_loop import BackgroundTasks, in_background

if TYPE_CHECKING:
    from desktop_agent.engine.exchange.found_histories import FoundHistories
    from desktop_agent.engine.session import Session
    from desktop_agent.types.search import SearchResults


def is_found_id(conversation_id: str) -> bool:
    """Return whether this is the id of a conversation of another program, as the screens name it."""
    return conversation_id.startswith(FOUND_PREFIX)


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A conversation in the list of a program, by the id of the screens."""

    id: str
    title: str
    updated_at: datetime


class FoundConversations(QObject):
    """Names found conversations by ids of its own, which begin with "found-" and are the same at every start."""

    programs_found = Signal(list)
    """All FoundPrograms, whether the person wants to see them or not."""
    listed = Signal(str, object)
    """A program, and its FoundRows, the newest first."""
    shown_changed = Signal()
    """The person chose which programs are shown."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._origins: dict[str, ConversationOrigin] = {}
        self._copying: dict[str, Callable[[str], object]] = {}
        engine.on_preferences(lambda _: self._on_preferences())
        self._shown = self.shown
        self._is_searched = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The programs whose conversations the person wants to see."""
        return self._engine.preferences.histories.shown

    @property
    def is_offer_wanted(self) -> bool:
        """Whether the person may be asked about programs that were never offered."""
        return self._engine.preferences.histories.offers

    @property
    def offered(self) -> tuple[str, ...]:
        """The programs that the person was asked about."""
        return self._engine.preferences.histories.offered

    def answer(self, programs: Sequence[str], *, shows: bool = False, offers: bool = True) -> None:
        """Save the person's answer to the offer of these programs; `offers`: later found ones may be offered."""
        histories = self._engine.preferences.histories
        self._change(
            offered=tuple(dict.fromkeys((*histories.offered, *programs))),
            shown=tuple(dict.fromkeys((*histories.shown, *programs))) if shows else histories.shown,
            offers=offers,
        )

    def show_program(self, program: str, shows: bool) -> None:  # noqa: FBT001  # a slot
        """Show the conversations of a program, or hide them."""
        others = tuple(other for other in self.shown if other != program)
        self._change(shown=(*others, program) if shows else others)

    def start_indexing(self) -> None:
        """Let the search find the shown programs' conversations. Call it when `engine.exchange` is loaded."""
        from desktop_agent.engine.exchange.found_histories import FoundHistorySource

        self._is_searched = True
        self._engine.store.search.found.set_source(FoundHistorySource(self.shown))

    @in_background
    async def find(self) -> None:
        """Look for programs; `programs_found` answers."""
        self.programs_found.emit(list(await self._histories.programs()))

    @in_background
    async def list(self, program: str) -> None:
        """Read the current list of a program; `listed` answers."""
        conversations = await self._histories.conversations(program)
        rows = [
            FoundRow(self.id_of(program, conversation.id), conversation.title, conversation.updated_at)
            for conversation in conversations
        ]
        self.listed.emit(program, rows)

    def id_of(self, program: str, conversation_id: str) -> str:
        """Return the id by which the screens know a conversation of a program."""
        from desktop_agent.exchange.foreign_tree import found_id

        id_ = found_id(program, conversation_id)
        self._origins[id_] = ConversationOrigin(program=program, id=conversation_id)
        return id_

    def note_results(self, _query: object, results: "SearchResults") -> None:
        """Note the origins of search results, so that they can be opened."""
        for hits in results.conversations:
            if hits.origin is not None:
                self._origins[hits.conversation_id] = hits.origin

    async def open(
        self, found_id: str, is_wanted: Callable[[], bool], show: "Callable[[Session, Sentence], object]"
    ) -> None:
        """Call `show` with a read-only session and the Sentence that says so, if `is_wanted` once it is loaded.

        Raises as FoundHistories.open.
        """
        origin = self._origin(found_id)
        session, held = await self._histories.open(origin.program, origin.id, found_id)
        if is_wanted():
            show(session, held.sentence)

    def continue_here(self, found_id: str, show: Callable[[str], object]) -> None:
        """Copy a conversation into this program, once for repeated calls; the last `show` gets the copy's id."""
        is_begun = found_id in self._copying
        self._copying[found_id] = show
        if not is_begun:
            self._tasks.start(self._continue(found_id))

    @cached_property
    def _histories(self) -> "FoundHistories":
        # Imported late: the readers are needed only to show or search found conversations.
        from desktop_agent.engine.exchange.found_histories import FoundHistories

        return FoundHistories(self._engine)

    def _origin(self, found_id: str) -> ConversationOrigin:
        if found_id not in self._origins:
            raise WrongUse("This conversation of another program is not known any more.", "Open its list again.")
        return self._origins[found_id]

    async def _continue(self, found_id: str) -> None:
        try:
            origin = self._origin(found_id)
            copy_id = await self._histories.copy(origin.program, origin.id)
        finally:
            show = self._copying.pop(found_id)
        show(copy_id)

    def _change(self, **changes: object) -> None:
        changed = self._engine.preferences.with_changes("histories", **changes)
        self._tasks.start(self._engine.change_preferences(changed))

    def _on_preferences(self) -> None:
        if self.shown != self._shown:
            self._shown = self.shown
            if self._is_searched:
                self.start_indexing()
            self.shown_changed.emit()
