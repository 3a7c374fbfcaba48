"""What stands at a place of a workspace: for saving it, and for telling whether it changed since."""

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from dataclasses import dataclass

from desktop_agent.tools.disk.attributes import FileAttributes, read_attributes
from desktop_agent.tools.disk.model_paths import reject_path
from desktop_agent.tools.in_thread import CancelToken
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.conduct.checkpoints import FileState, SavedFile, UnreadReason
from desktop_agent.vocabulary.errors import OutsideWorkspace, Sentence, ToolFailed

MAX_SAVED_BYTES = 256 * 1024 * 1024
_CHUNK = 1024 * 1024
_ATTEMPTS = 3

FileStamp = tuple[int, ...]
_NO_EXTRAS = FileAttributes()


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What was found. `stamp` changes with every change of it, None for nothing; `data` where bytes were asked for.

    `names` is how many names on the disk a file has (hard links), `extras` come with the bytes.
    """

    state: FileState
    stamp: FileStamp | None
    data: bytes | None = None
    link_count: int = 1
    extras: FileAttributes = _NO_EXTRAS


def saved_path(place: WorkspacePath) -> str:
    """A place as checkpoints hold it: byte for byte, also for names that are not Unicode."""
    return "/".join(place.parts)


def parse_saved_path(path: str) -> WorkspacePath:
    """The place again, literally: a link that somebody put there since leads nowhere. Raises OutsideWorkspace."""
    parts = tuple(path.split("/"))
    if not all(parts) or {".", ".."} & set(parts):
        reject_path(path, "is no path that was saved.")
    return WorkspacePath(parts)


def file_stamp(found: os.stat_result | None) -> FileStamp | None:
    """What tells one version of a file from the next without reading it."""
    if found is None:
        return None
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def take_snapshot(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool = False
) -> FileSnapshot:
    """Read what is there, at most SAVED_LIMIT bytes. Raises ToolFailed for what the disk refuses."""
    for _ in range(_ATTEMPTS):
        token.raise_if_cancelled()
        try:
            found = workspace.stat(place)
        except OutsideWorkspace:
            # A folder on the way was replaced by a link.
            return FileSnapshot(FileState(unread="not_a_file"), None)
        stamp = file_stamp(found)
        if found is None:
            return FileSnapshot(FileState(), stamp)
        unread = _unreadable_reason(found)
        if unread is not None:
            return FileSnapshot(FileState(unread=unread), stamp)
        read = _read_file(workspace, place, token, with_data=with_data)
        if file_stamp(workspace.stat(place)) != stamp:
            continue  # written to while it was read
        if read is None:
            return FileSnapshot(FileState(unread="not_permitted"), stamp)
        digest, data, extras = read
        state = FileState(digest=digest, mode=stat.S_IMODE(found.st_mode) & 0o777)
        return FileSnapshot(state, stamp, data, found.st_nlink, extras)
    raise ToolFailed(
        Sentence("“{path}” is being written to by another program.", {"path": str(place)}),
        "Wait until that program is done.",
    )


def saved_file(path: str, found: FileSnapshot, after: FileState | None = None) -> SavedFile:
    """What was found, as a checkpoint holds it."""
    attributes = tuple((name, b64encode(value).decode()) for name, value in found.extras.attributes)
    return SavedFile(path=path, before=found.state, after=after, attributes=attributes, owner=found.extras.owner)


def saved_attributes(file: SavedFile) -> FileAttributes:
    """The same back. Of what is no base64 nothing comes back."""
    try:
        return FileAttributes(
            tuple((name, b64decode(value, validate=True)) for name, value in file.attributes), file.owner
        )
    except ValueError:
        return FileAttributes(owner=file.owner)


def is_same_state(one: FileState, other: FileState | None) -> bool:
    """Whether both are certainly the same; what could not be read is not the same as anything."""
    return one == other and one.unread in {None, "folder"}


def _unreadable_reason(found: os.stat_result) -> UnreadReason | None:
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    if not stat.S_ISREG(found.st_mode):
        return "not_a_file"
    return "too_large" if found.st_size > MAX_SAVED_BYTES else None


def _read_file(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool
) -> tuple[str, bytes | None, FileAttributes] | None:
    """Digest, bytes, extras; None where it may not be read, or is not there any more, or grew beyond the limit."""
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
