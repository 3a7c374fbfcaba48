"""Take a snapshot of a file: its bytes, and what else a checkpoint stores of it."""

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from dataclasses import dataclass

from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.tools.open_folders import FileAttributes, read_attributes
from desktop_agent.tools.workspace import Workspace, WorkspacePath, reject_path
from desktop_agent.types.checkpoints import FileState, SavedFile, UnreadReason
from desktop_agent.types.errors import Sentence, ToolFailed

MAX_SAVED_BYTES = 256 * 1024 * 1024
_CHUNK = 1024 * 1024
_ATTEMPTS = 3

FileStamp = tuple[int, ...]
_NO_EXTRAS = FileAttributes()


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it is now. `stamp` changes with every change of the file; None where there is no file.

    `data` and `extras` are there if bytes were requested. `link_count` is how many hard links a file has,
    `folder_mode` are the permissions of a folder.
    """

    state: FileState
    stamp: FileStamp | None
    data: bytes | None = None
    link_count: int = 1
    folder_mode: int | None = None
    extras: FileAttributes = _NO_EXTRAS


def saved_path(place: WorkspacePath) -> str:
    """Return a path as checkpoints store it: byte for byte, also for names that are not Unicode."""
    return "/".join(place.parts)


def parse_saved_path(path: str) -> WorkspacePath:
    """Parse a stored path literally: a link that somebody put there since leads nowhere. Raises OutsideWorkspace."""
    parts = tuple(path.split("/"))
    if not all(parts) or {".", ".."} & set(parts):
        reject_path(path, "is no path that was saved.")
    return WorkspacePath(parts)


def file_stamp(status: os.stat_result | None) -> FileStamp | None:
    """Return what distinguishes one version of a file from the next without reading it."""
    if status is None:
        return None
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def take_snapshot(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool = False
) -> FileSnapshot:
    """Read a file, at most MAX_SAVED_BYTES. Raises ToolFailed for what the disk refuses, and for a link on the way."""
    for _ in range(_ATTEMPTS):
        token.raise_if_cancelled()
        status = workspace.stat(place)
        stamp = file_stamp(status)
        if status is None:
            return FileSnapshot(FileState(), stamp)
        unread, mode = _unreadable_reason(status), stat.S_IMODE(status.st_mode) & 0o777
        if unread is not None:
            return FileSnapshot(FileState(unread=unread), stamp, folder_mode=mode if unread == "folder" else None)
        content = _read_file(workspace, place, token, with_data=with_data)
        if file_stamp(workspace.stat(place)) != stamp:
            continue  # written to while it was read
        if content is None:
            return FileSnapshot(FileState(unread="not_permitted"), stamp)
        digest, data, extras = content
        return FileSnapshot(FileState(digest=digest, mode=mode), stamp, data, status.st_nlink, extras=extras)
    raise ToolFailed(
        Sentence("“{path}” is being written to by another program.", {"path": str(place)}),
        "Wait until that program is done.",
    )


def saved_file(path: str, snapshot: FileSnapshot, after: FileState | None = None) -> SavedFile:
    """Return a snapshot as a checkpoint stores it."""
    attributes = tuple((name, b64encode(value).decode()) for name, value in snapshot.extras.attributes)
    return SavedFile(
        path=path,
        before=snapshot.state,
        after=after,
        folder_mode=snapshot.folder_mode,
        attributes=attributes,
        owner=snapshot.extras.owner,
    )


def saved_attributes(file: SavedFile) -> FileAttributes:
    """Decode stored attributes. Invalid base64 gives none."""
    try:
        return FileAttributes(
            tuple((name, b64decode(value, validate=True)) for name, value in file.attributes), file.owner
        )
    except ValueError:
        return FileAttributes(owner=file.owner)


def is_same_state(first: FileState, second: FileState | None) -> bool:
    """Return whether both are certainly the same; what could not be read equals nothing."""
    return first == second and first.unread in {None, "folder"}


def _unreadable_reason(status: os.stat_result) -> UnreadReason | None:
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    if not stat.S_ISREG(status.st_mode):
        return "not_a_file"
    return "too_large" if status.st_size > MAX_SAVED_BYTES else None


def _read_file(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool
) -> tuple[str, bytes | None, FileAttributes] | None:
    """Read digest, bytes, extras; None for a file that may not be read, is gone, or grew beyond the limit."""
    hasher = hashlib.sha256()
    pieces: list[bytes] = []
    extras = _NO_EXTRAS
    size = 0
    try:
        with workspace.open_for_reading(place) as file:
            if with_data:
                extras = read_attributes(file.fileno())
            while (piece := file.read(_CHUNK)) and size <= MAX_SAVED_BYTES:
                token.raise_if_cancelled()
                size += len(piece)
                hasher.update(piece)
                if with_data:
                    pieces.append(piece)
    except ToolFailed as error:
        if isinstance(error.__cause__, PermissionError | FileNotFoundError):
            return None
        raise
    return None if size > MAX_SAVED_BYTES else (hasher.hexdigest(), b"".join(pieces) if with_data else None, extras)
