"""Extended attributes (xattr(7)) and owner of a file that is about to be replaced or brought back."""

import contextlib
import os
from dataclasses import dataclass

from desktop_agent.tools.disk.folders import Folder

MAX_ATTRIBUTE_BYTES = 64 * 1024
"""Of all attributes of one file that are read to be saved, names and values together."""

MAX_ATTRIBUTES = 100
# Not those of the system's security: what holds for the old bytes, such as a program's rights, need not for the new.
_COPIED_PREFIXES = ("user.", "system.posix_acl_access")


@dataclass(frozen=True, slots=True)
class FileAttributes:
    """What a file has besides bytes and permissions. `owner` is user and group, None where it is not known."""

    attributes: tuple[tuple[str, bytes], ...] = ()
    owner: tuple[int, int] | None = None


def read_attributes(descriptor: int) -> FileAttributes:
    """Those of an open file, within the bounds above: an attribute that does not fit is left out. Raises OSError."""
    found = os.fstat(descriptor)
    owner = (found.st_uid, found.st_gid) if hasattr(os, "fchown") else None
    return FileAttributes(tuple(_extended_attributes(descriptor)), owner)


def _extended_attributes(descriptor: int) -> list[tuple[str, bytes]]:
    kept: list[tuple[str, bytes]] = []
    room = MAX_ATTRIBUTE_BYTES
    if not hasattr(os, "getxattr"):
        return kept
    with contextlib.suppress(OSError):
        for name in sorted(os.listxattr(descriptor)):
            # Names of files on disk need not be Unicode, nor need these.
            if not name.startswith(_COPIED_PREFIXES) or not name.isprintable() or len(kept) == MAX_ATTRIBUTES:
                continue
            with contextlib.suppress(OSError):
                value = os.getxattr(descriptor, name)
                if (size := len(name) + len(value)) <= room:
                    room -= size
                    kept.append((name, value))
    return kept


def apply_attributes(extras: FileAttributes, descriptor: int) -> None:
    """Give them to an open file, as far as the disk takes them and the system lets us; the group without the user
    where it is only that."""
    for name, value in extras.attributes if hasattr(os, "setxattr") else ():
        if name.startswith(_COPIED_PREFIXES):
            with contextlib.suppress(OSError):
                os.setxattr(descriptor, name, value)
    if extras.owner is None or not hasattr(os, "fchown"):
        return
    found = os.fstat(descriptor)
    if extras.owner == (found.st_uid, found.st_gid):
        return
    for user in (extras.owner[0], -1):
        with contextlib.suppress(OSError, OverflowError):
            os.fchown(descriptor, user, extras.owner[1])
            return


def copy_attributes(folder: Folder, name: str, descriptor: int) -> None:
    """Give the file behind `descriptor` the attributes of the one called `name`, as far as there is one and the disk
    takes them."""
    if not hasattr(os, "setxattr"):
        return
    with contextlib.suppress(OSError):
        source = folder.open(name, os.O_RDONLY)
        try:
            for attribute in os.listxattr(source):
                if attribute.startswith(_COPIED_PREFIXES):
                    with contextlib.suppress(OSError):
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)
