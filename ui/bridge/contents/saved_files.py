"""Files that the person saves somewhere: wholly there or not at all, with the rights that new files have."""

import asyncio
import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from desktop_agent.vocabulary.errors import AgentError, DiskFull, Sentence, StorageFailed

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NEW_FILE_MODE = 0o666
"""Less what the person's umask takes away."""


async def save_file(path: Path, data: bytes) -> None:
    """Write it in a thread; a file of that name is replaced and keeps its rights. Raises StorageFailed."""
    try:
        await asyncio.to_thread(_write_atomically, path, data)
    except OSError as error:
        raise _save_error(error, path) from error


def _write_atomically(path: Path, data: bytes) -> None:
    # Through a link to what it leads to: replacing the link would leave the old file where people expect the new one.
    target = path.resolve()
    temporary = target.with_name(f".{uuid4().hex}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, _NEW_FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            _check_writable(target)
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _check_writable(target: Path) -> None:
    """Raises OSError for a folder, and for a file that its owner wants kept as it is."""
    with target.open("r+b"):
        pass


def _save_error(error: OSError, path: Path) -> AgentError:
    name, detail = str(path), f"{error.strerror}: {path}"
    if error.errno in _NO_ROOM:
        what = Sentence("There is no room left for “{path}”.", {"path": name})
        return DiskFull(what, "Free some space, or save it on another disk.", detail=detail)
    if error.errno in _NOT_ALLOWED:
        what = Sentence("“{path}” cannot be written to.", {"path": name})
        return StorageFailed(what, "Choose another folder, or change the rights of this one.", detail=detail)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        what = Sentence("The folder of “{path}” is gone.", {"path": name})
        return StorageFailed(what, "Choose another folder.", detail=detail)
    what = Sentence("“{path}” cannot be saved: {reason}.", {"path": name, "reason": error.strerror or str(error)})
    return StorageFailed(what, "Choose another name or another folder.", detail=detail)
