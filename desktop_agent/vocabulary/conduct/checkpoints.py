"""Checkpoints: the files that a call was about to change, as they were."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

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
    """What can be put back of one call. `new_folders` were not there before it; paths as in SavedFile."""

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
