"""What stands at a place of a workspace: for saving it, and for telling whether it changed since."""

import hashlib
import os
import stat
from base64 import b64decode, b64encode
from dataclasses import dataclass

from desktop_agent.tools.disk.attributes import Extras, extras_of
from desktop_agent.tools.disk.model_paths import refuse
from desktop_agent.tools.in_thread import StopSign
from desktop_agent.tools.workspace import Place, Workspace
from desktop_agent.vocabulary.conduct.checkpoints import FileState, SavedFile, Unread
from desktop_agent.vocabulary.errors import OutsideWorkspace, Sentence, ToolFailed

SAVED_LIMIT = 256 * 1024 * 1024
_PIECE = 1024 * 1024
_ATTEMPTS = 3

Stamp = tuple[int, ...]
_NO_EXTRAS = Extras()


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. `stamp` changes with every change of it, None for nothing; `data` where bytes were asked for.

    `names` is how many names on the disk a file has (hard links), `extras` come with the bytes.
    """

    state: FileState
    stamp: Stamp | None
    data: bytes | None = None
    names: int = 1
    extras: Extras = _NO_EXTRAS


def path_of(place: Place) -> str:
    """A place as checkpoints hold it: byte for byte, also for names that are not Unicode."""
    return "/".join(place.parts)


def place_of(path: str) -> Place:
    """The place again, literally: a link that somebody put there since leads nowhere. Raises OutsideWorkspace."""
    parts = tuple(path.split("/"))
    if not all(parts) or {".", ".."} & set(parts):
        refuse(path, "is no path that was saved.")
    return Place(parts)


def stamp_of(found: os.stat_result | None) -> Stamp | None:
    """What tells one version of a file from the next without reading it."""
    if found is None:
        return None
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def look(workspace: Workspace, place: Place, sign: StopSign, *, with_data: bool = False) -> Look:
    """Read what is there, at most SAVED_LIMIT bytes. Raises ToolFailed for what the disk refuses."""
    for _ in range(_ATTEMPTS):
        sign.check()
        try:
            found = workspace.stat(place)
        except OutsideWorkspace:
            # A folder on the way was replaced by a link.
            return Look(FileState(unread="not_a_file"), None)
        stamp = stamp_of(found)
        if found is None:
            return Look(FileState(), stamp)
        unread = _unread(found)
        if unread is not None:
            return Look(FileState(unread=unread), stamp)
        read = _read(workspace, place, sign, with_data=with_data)
        if stamp_of(workspace.stat(place)) != stamp:
            continue  # written to while it was read
        if read is None:
            return Look(FileState(unread="not_permitted"), stamp)
        digest, data, extras = read
        state = FileState(digest=digest, mode=stat.S_IMODE(found.st_mode) & 0o777)
        return Look(state, stamp, data, found.st_nlink, extras)
    raise ToolFailed(
        Sentence("“{path}” is being written to by another program.", {"path": str(place)}),
        "Wait until that program is done.",
    )


def saved_file(path: str, found: Look, after: FileState | None = None) -> SavedFile:
    """What was found, as a checkpoint holds it."""
    attributes = tuple((name, b64encode(value).decode()) for name, value in found.extras.attributes)
    return SavedFile(path=path, before=found.state, after=after, attributes=attributes, owner=found.extras.owner)


def extras_saved(file: SavedFile) -> Extras:
    """The same back. Of what is no base64 nothing comes back."""
    try:
        return Extras(tuple((name, b64decode(value, validate=True)) for name, value in file.attributes), file.owner)
    except ValueError:
        return Extras(owner=file.owner)


def is_same(one: FileState, other: FileState | None) -> bool:
    """Whether both are certainly the same; what could not be read is not the same as anything."""
    return one == other and one.unread in {None, "folder"}


def _unread(found: os.stat_result) -> Unread | None:
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    if not stat.S_ISREG(found.st_mode):
        return "not_a_file"
    return "too_large" if found.st_size > SAVED_LIMIT else None


def _read(
    workspace: Workspace, place: Place, sign: StopSign, *, with_data: bool
) -> tuple[str, bytes | None, Extras] | None:
    """Digest, bytes, extras; None where it may not be read, or is not there any more, or grew beyond the limit."""
    hasher = hashlib.sha256()
    pieces: list[bytes] = []
    extras = _NO_EXTRAS
    size = 0
    try:
        with workspace.reading(place) as file:
            if with_data:
                extras = extras_of(file.fileno())
            while (piece := file.read(_PIECE)) and size <= SAVED_LIMIT:
                sign.check()
                size += len(piece)
                hasher.update(piece)
                if with_data:
                    pieces.append(piece)
    except ToolFailed as error:
        if isinstance(error.__cause__, PermissionError | FileNotFoundError):
            return None
        raise
    return None if size > SAVED_LIMIT else (hasher.hexdigest(), b"".join(pieces) if with_data else None, extras)
