"""What a filter of system calls answers, reckoned as the kernel does (Linux, kernel/seccomp.c), for any machine."""

import struct


def answer(steps: list[bytes], architecture: int, call: int, *arguments: int) -> int:
    """What the filter says of a call with these arguments."""
    data = struct.pack("<iIQ6Q", call, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    at = loaded = 0
    while True:
        code, then, otherwise, value = struct.unpack("HBBI", steps[at])
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        elif code == 0x54:
            loaded &= value
        else:
            at += then if {0x15: loaded == value, 0x35: loaded >= value}[code] else otherwise
