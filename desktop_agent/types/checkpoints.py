"""Checkpoints: files as they were before a call or a restore changed them, and the plan of a restore."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence

RestoreEffect = Literal["put_back", "removed", "brought_back", "left"]
UnreadReason = Literal["folder", "too_large", "not_permitted", "not_a_file"]


class FileState(BaseModel):
    """A file at one moment: SHA-256 of its bytes and its permissions, or neither where there was none.

    `unread` says why the bytes of what was there are not known: it is a folder, larger than what is saved, not ours
    to read, or no ordinary file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str | None = None
    mode: int | None = None
    unread: UnreadReason | None = None


class SavedFile(BaseModel):
    """One file. `path` is relative to the workspace.

    `after` is how it is expected to be found: as the call left it, None while the call has not ended, and `before`
    once it was put back. `attributes` are extended ones that it had before, by name, in base64; `owner` its user and
    group then. Both come back with its bytes where they can, and tell nobody that a file was changed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    before: FileState
    after: FileState | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    owner: tuple[int, int] | None = None


class Checkpoint(BaseModel):
    """What can be put back of one call. `new_folders` were not there before it; paths as in SavedFile.

    `workspace` is "" where the conversation has none. `tool` is the identity of the tool, and `input` what ran, None
    when the tool cannot undo it. `succeeded` is None while it is not known how the call ended. `undone` is True from
    the moment on in which undoing begins, and `undo_said` has what the tool said once it came to its end: between the
    two nobody knows what it did.

    One that was saved when the checkpoint `undoes` was restored belongs to the same call, and has its time. `is_redo`:
    restoring it brings back what was undone; restoring one that was saved at that is an undoing again. `note_id` is the
    message in which the model hears of the restoring that it was saved at.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    conversation_id: str
    tool_use_id: str
    message_id: str
    workspace: str
    created_at: datetime
    files: tuple[SavedFile, ...]
    new_folders: tuple[str, ...] = ()
    restored: bool = False
    tool: str = ""
    input: JsonObject | None = None
    succeeded: bool | None = None
    undone: bool = False
    undo_said: str | None = None
    undoes: str | None = None
    is_redo: bool = False
    note_id: str = ""

    @property
    def needs_undo(self) -> bool:
        """Whether the call may have had an effect that its tool has not certainly undone."""
        return self.input is not None and self.succeeded is not False and self.undo_said is None


@dataclass(frozen=True, slots=True)
class CheckpointedCall:
    """Which call a checkpoint belongs to, as it is shown: that of a specialist belongs to the call that started it.

    The rest as in Checkpoint.
    """

    message_id: str
    tool_use_id: str
    checkpoint_id: str
    restored: bool = False
    is_redo: bool = False
    note_id: str = ""


@dataclass(frozen=True, slots=True)
class FileRestorePlan:
    """What restoring would make of one file, as it was found `now`; nothing was touched.

    `name` is its path in the workspace `folder`, byte for byte. `then` is what it would be, `overwritten_state` the
    same where the person lets what was changed since be replaced. `why` says what keeps it from being all that it was.
    `stamp` tells one version from the next where no bytes were read.
    """

    folder: str
    name: str
    current_state: FileState
    restored_state: FileState
    overwritten_state: FileState
    reason: Sentence | None = None
    stamp: tuple[int, ...] | None = None

    @property
    def path(self) -> str:
        """The path to be shown: names on disk need not be Unicode."""
        return self.name.encode("utf-8", "replace").decode()

    @property
    def key(self) -> str:
        """What names it among the files of all folders."""
        return f"{self.folder}/{self.name}"

    @property
    def is_conflict(self) -> bool:
        """Whether it depends on the person: something of it was changed since."""
        return self.restored_state != self.overwritten_state

    @property
    def can_be_saved(self) -> bool:
        """Whether what is there now is saved before it is replaced: then nothing is lost."""
        return self.current_state.unread in {None, "folder"}

    def effect(self, *, replaced: bool = False) -> RestoreEffect:
        """What becomes of it; `replaced`: although it was changed since."""
        then, nothing = self.overwritten_state if replaced else self.restored_state, FileState()
        if then == self.current_state:
            return "left"
        if then == nothing:
            return "removed"
        return "brought_back" if self.current_state == nothing else "put_back"


@dataclass(frozen=True, slots=True)
class IrreversibleCalls:
    """Calls of one tool that restoring takes nothing back of; `examples` are some of what they were about.

    `files` are some of those that they are known to have changed.
    """

    tool: str
    count: int
    examples: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What restoring would do. `calls` are the checkpoints, `undoing` the tools that would take back what they did.

    `not_undone` says why others would not, `lasting` are the calls of which nothing can be taken back.
    """

    checkpoint_ids: tuple[str, ...] = ()
    files: tuple[FileRestorePlan, ...] = ()
    undo_tools: tuple[str, ...] = ()
    undo_refusals: tuple[Sentence, ...] = ()
    irreversible: tuple[IrreversibleCalls, ...] = ()

    @property
    def changes_something(self) -> bool:
        """Whether there is anything to be done, or that might be done if the person wants it."""
        return bool(self.undo_tools) or any(each.effect() != "left" or each.is_conflict for each in self.files)
