"""Rights of root that a process gives up for good (capabilities(7))."""

import ctypes

from desktop_agent.tools.confining.landlock import told

_READ_BOUNDING, _DROP_BOUNDING, _AMBIENT, _CLEAR_AMBIENT = 23, 24, 47, 4
_VERSION = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))


def drop_capabilities(libc: ctypes.CDLL) -> None:
    """Drop all of them, also those that a program started later would get. Raises OSError."""
    told(libc.prctl(_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0))
    each = 0
    # Who may not drop them has none to give, and gets none by a program (no_new_privileges).
    while libc.prctl(_READ_BOUNDING, each, 0, 0, 0) >= 0:
        libc.prctl(_DROP_BOUNDING, each, 0, 0, 0)
        each += 1
    nothing = (ctypes.c_uint32 * 6)()
    told(libc.capset(ctypes.byref(_Header(_VERSION, 0)), nothing))
