"""Checkpoints: files as they were before a call or a restore changed them, and the plan of a restore."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.frozen_model import FrozenModel
from desktop_agent.types.tool_calls import FileChanges

RestoreEffect = Literal["put_back", "removed", "brought_back", "left"]
UnreadReason = Literal["folder", "too_large", "not_permitted", "not_a_file"]


class FileState(FrozenModel):
    """A file at one moment: the SHA-256 of its bytes and its permissions, or neither where there was none.

    `unread` is why the bytes of an existing file are not known.
    """

    digest: str | None = None
    mode: int | None = None
    unread: UnreadReason | None = None


class SavedFile(FrozenModel):
    """One file of a checkpoint. `path` is relative to the workspace.

    `after` is the state in which the file is expected: as the call left it, None while the call has not ended, and
    `before` once it was restored. `folder_mode` are the permissions of a folder before the call. `attributes` are its
    extended attributes before the call, by name, in base64; `owner` its user and group. All are restored where
    possible, and do not count as a change. `lines` are how many the call added and removed; None where that is not
    known, or it is no text.
    """

    path: str
    before: FileState
    after: FileState | None = None
    folder_mode: int | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    owner: tuple[int, int] | None = None
    lines: tuple[int, int] | None = None


class Checkpoint(FrozenModel):
    """What can be restored of one call. `new_folders` did not exist before it; paths as in SavedFile.

    `workspace` is "" where the conversation has none. `tool` is the tool's identity, and `input` the arguments that
    ran, None when the tool cannot undo them. `succeeded` is None while it is not known how the call ended. `undone` is
    True once undoing begins, and `undo_said` is the tool's report once it has ended: between the two nobody knows what
    it did.

    Where a specialist made the call, its message is in no history: `caller_message_id` and `caller_tool_use_id` are the
    call of the conversation's own agent that it worked for. Both are empty for that agent's own calls, and where an
    earlier version saved the checkpoint.

    A checkpoint that was saved while the checkpoint `undoes` was restored belongs to the same call, and has its time.
    `is_redo`: restoring it brings back what was undone; a checkpoint saved at that undoes again. `note_id` is the
    message that tells the model about the restore.
    """

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
    caller_message_id: str = ""
    caller_tool_use_id: str = ""

    @property
    def needs_undo(self) -> bool:
        """Whether the call may have had an effect that its tool has not certainly undone."""
        return self.input is not None and self.succeeded is not False and self.undo_said is None

    @property
    def has_effect(self) -> bool:
        """Whether the call changed something, or may have."""
        changed = any(file.before != file.after for file in self.files)
        return self.restored or changed or self.needs_undo

    @property
    def lines(self) -> tuple[int, int] | None:
        """How many lines the call added and removed; None where that is not known of every file."""
        added, removed = 0, 0
        for file in self.files:
            if file.lines is None:
                return None
            added, removed = added + file.lines[0], removed + file.lines[1]
        return (added, removed) if self.files else None

    @property
    def changes(self) -> FileChanges:
        """What the call changed in the files."""
        changed = [file for file in self.files if file.before != file.after]
        created = tuple(file.path for file in changed if file.before == FileState())
        deleted = tuple(file.path for file in changed if file.after == FileState())
        others = tuple(file.path for file in changed if file.path not in {*created, *deleted})
        return FileChanges(created, others, deleted, len(changed), lines=self.lines)


@dataclass(frozen=True, slots=True)
class CheckpointedCall:
    """The call that a checkpoint belongs to, as it is shown: a specialist's call belongs to the call that started it.

    Other fields as in Checkpoint. `changed_nothing`: there is nothing to undo.
    """

    message_id: str
    tool_use_id: str
    checkpoint_id: str
    restored: bool = False
    is_redo: bool = False
    note_id: str = ""
    lines: tuple[int, int] | None = None
    changed_nothing: bool = False


@dataclass(frozen=True, slots=True)
class FileRestorePlan:
    """What a restore would do to one file; nothing was touched yet.

    `name` is its path in the workspace `folder`, byte for byte. `restored_state` is what the file would be,
    `overwritten_state` the same where the person also lets later changes be replaced. `reason` is why it cannot be
    restored fully.
    """

    folder: str
    name: str
    current_state: FileState
    restored_state: FileState
    overwritten_state: FileState
    reason: Sentence | None = None

    @property
    def path(self) -> str:
        """The path to show: names on disk need not be Unicode."""
        return self.name.encode("utf-8", "replace").decode()

    @property
    def key(self) -> str:
        """What identifies it among the files of all folders."""
        return f"{self.folder}/{self.name}"

    @property
    def is_conflict(self) -> bool:
        """Whether the person must decide, because the file was changed since."""
        return self.restored_state != self.overwritten_state

    def effect(self, *, replaced: bool = False) -> RestoreEffect:
        """Return what becomes of the file; `replaced`: where later changes are replaced too."""
        state, no_file = self.overwritten_state if replaced else self.restored_state, FileState()
        if state == self.current_state:
            return "left"
        if state == no_file:
            return "removed"
        return "brought_back" if self.current_state == no_file else "put_back"


@dataclass(frozen=True, slots=True)
class IrreversibleCalls:
    """Calls of one tool of which a restore undoes nothing. `examples` describe some of them.

    `files` are some of those that they are known to have changed.
    """

    tool: str
    count: int
    examples: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore would do. `undo_tools` would undo their calls, `undo_refusals` says why others would not."""

    checkpoint_ids: tuple[str, ...] = ()
    files: tuple[FileRestorePlan, ...] = ()
    undo_tools: tuple[str, ...] = ()
    undo_refusals: tuple[Sentence, ...] = ()
    irreversible: tuple[IrreversibleCalls, ...] = ()

    @property
    def changes_something(self) -> bool:
        """Whether there is anything to do, or might be if the person wants it."""
        return bool(self.undo_tools) or any(file.effect() != "left" or file.is_conflict for file in self.files)
