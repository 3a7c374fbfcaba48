"""Checkpoints: the files that a call was about to change, as they were, and what its tool needs to undo it."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from desktop_agent.vocabulary.blocks import JsonObject

Unread = Literal["folder", "too_large", "not_permitted", "not_a_file"]


class FileState(BaseModel):
    """A file at one moment: SHA-256 of its bytes and its permissions, or neither where there was none.

    `unread` says why the bytes of what was there are not known: it is a folder, larger than what is saved, not ours
    to read, or no ordinary file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str | None = None
    mode: int | None = None
    unread: Unread | None = None


class SavedFile(BaseModel):
    """One file. `path` is relative to the workspace.

    `after` is how it is expected to be found: as the call left it, None while the call has not ended, and `before`
    once it was put back.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    before: FileState
    after: FileState | None = None


class Checkpoint(BaseModel):
    """What can be put back of one call. `new_folders` were not there before it; paths as in SavedFile.

    `workspace` is "" where the conversation has none. `tool` is the identity of the tool, and `input` what ran, None
    when the tool cannot undo it. `succeeded` is None while it is not known how the call ended. `undone` is True from
    the moment on in which undoing begins, and `undo_said` has what the tool said once it came to its end: between the
    two nobody knows what it did.
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

    @property
    def owes_undo(self) -> bool:
        """Whether the call may have had an effect that its tool has not certainly undone."""
        return self.input is not None and self.succeeded is not False and self.undo_said is None
