"""Extended attributes of a file that is about to be replaced by another one (xattr(7))."""

import contextlib
import os

from desktop_agent.tools.disk.folders import Folder

# Not those of the system's security: what holds for the old bytes, such as a program's rights, need not for the new.
_KEPT = ("user.", "system.posix_acl_access")


def keep_attributes(folder: Folder, name: str, descriptor: int) -> None:
    """Give the file behind `descriptor` the attributes of the one called `name`, as far as there is one and the disk
    takes them."""
    if not hasattr(os, "setxattr"):
        return
    with contextlib.suppress(OSError):
        source = folder.open(name, os.O_RDONLY)
        try:
            for attribute in os.listxattr(source):
                if attribute.startswith(_KEPT):
                    with contextlib.suppress(OSError):
                        os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
        finally:
            os.close(source)
