"""What can be undone in one conversation, as the screens see it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop_agent.conversation.items import NoticeItem, ToolCallItem, UserItem
from desktop_agent.vocabulary.conduct.checkpoints import FileRestorePlan, RestorePlan
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.tool_calls import DiffPreview

if TYPE_CHECKING:
    from desktop_agent.engine.checkpoints import Checkpoints
    from desktop_agent.engine.session import Session
    from desktop_agent.tools.file_keeper import RestoreReport

_NO_CHECKPOINTS = "This conversation keeps nothing, so nothing of it can be undone."


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """What is to be undone or redone: that of an item of the transcript, or of the checkpoints `ids` alone."""

    item_id: str
    is_redo: bool = False
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NotUndone:
    """What was not undone, and why. `path` is a file, or a tool."""

    path: str
    why: Sentence


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What came of it. `files` were put back, brought back or removed; `said` is what tools say that they undid.

    `saved` are the checkpoints that take this back.
    """

    files: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    left: tuple[NotUndone, ...] = ()
    saved: tuple[str, ...] = ()


class CheckpointUndo:
    """Says what undoing and redoing would do, and does it. Items are named by their ids in the transcript.

    All methods raise WrongUse for what is not there any more, and StorageFailed.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def show(self) -> None:
        """Let the calls in the transcript say which of them can be undone."""
        if self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()

    def prompt_at(self, index: int) -> UserItem | None:
        """The prompt at a place of the transcript, or the last one before it."""
        items = (self._session.transcript[at] for at in range(min(index, len(self._session.transcript) - 1), -1, -1))
        return next((item for item in items if isinstance(item, UserItem)), None)

    def item(self, item_id: str) -> ToolCallItem | UserItem | NoticeItem | None:
        """The call, the prompt, or the line that tells of an undoing."""
        found = (each for each in self._session.transcript if isinstance(each, ToolCallItem | UserItem | NoticeItem))
        return next((each for each in found if each.id == item_id), None)

    async def forecast(self, request: UndoRequest) -> RestorePlan:
        """What that would do: for a call, for all since a prompt, for all of one undoing; nothing is changed."""
        if request.is_redo:
            return await self._checkpoints.preview_redo(*(request.ids or self._redos(request.item_id)))
        if request.ids:
            return await self._checkpoints.preview(*request.ids)
        match self.item(request.item_id):
            case ToolCallItem() as call:
                return await self._checkpoints.preview(*(id_ for id_, done in call.checkpoints.items() if not done))
            case UserItem() as prompt:
                return await self._checkpoints.preview_since(prompt.message_id)
            case _:
                raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")

    def _redos(self, item_id: str) -> tuple[str, ...]:
        item = self.item(item_id)
        return () if item is None or isinstance(item, UserItem) else tuple(item.redos)

    async def difference(self, file: FileRestorePlan, *, replaced: bool) -> DiffPreview | Sentence:
        """The lines of a file that would change, or why there are none."""
        return await self._checkpoints.difference(file, replaced=replaced)

    async def undo(
        self, forecast: RestorePlan, replacing: Collection[FileRestorePlan], on_progress: Callable[[int, int], None]
    ) -> UndoResult:
        """Do it. Files in `replacing` are put back although they were changed since.

        Raises WrongUse while the agent works.
        """
        return _undo_result(await self._checkpoints.restore_forecast(forecast, replacing, on_progress))

    @property
    def _checkpoints(self) -> "Checkpoints":
        found = self._session.checkpoints
        if found is None:
            raise WrongUse(_NO_CHECKPOINTS, "Change the files back by hand.")
        return found


def _undo_result(done: "tuple[RestoreReport, ...]") -> UndoResult:
    left = {each.path: NotUndone(each.path, each.why) for restored in done for each in restored.left_alone}
    return UndoResult(
        files=tuple(dict.fromkeys(path for each in done for path in each.restored)),
        said=tuple(each.undone for each in done if each.is_new_undo),
        left=tuple(left.values()),
        saved=tuple(each.saved.id for each in done if each.saved is not None),
    )
