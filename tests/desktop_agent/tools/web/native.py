"""What native code could try in the process that reads a page, unseen by Python's audit hooks."""

import json
import sys
from pathlib import Path

from desktop_agent.tools.web import page_process
from desktop_agent.tools.web.pages import WebPageReader

_ROOT = str(Path(page_process.__file__).parents[3])

DEEDS = {
    "open": "libc.open(there, 0)",
    "openat": "libc.openat(-100, there, 0)",
    "create": "libc.open(new, 0o102, 0o600)",
    "list": "libc.open(folder, 0o200000)",
    "remove": "libc.unlink(other)",
    "rename": "libc.rename(third, moved)",
    "mode": "libc.chmod(there, 0o600)",
    "look": "libc.access(there, 4)",
    "UDP": "libc.socket(2, 2, 0)",
    "TCP": "libc.socket(2, 1, 0)",
    "service": "libc.socket(1, 1, 0)",
    "pair": "libc.socketpair(1, 1, 0, pair)",
    "fork": "libc.fork() or libc._exit(0)",
    "trace": "libc.ptrace(0x4206, victim, None, None)",
    "signal": "libc.kill(victim, 0)",
    "memory": "libc.process_vm_readv(victim, None, 0, None, 0, 0)",
    "watch": "libc.inotify_init1(0)",
    "hidden file": "libc.memfd_create(b'x', 0)",
    "ring": "libc.syscall(425, 1, ring)",
    "key": "libc.syscall(248 if machine == 'x86_64' else 217, b'user', b'x', b'y', 1, -1)",
}
"""Each is a call of the C library. It returns -1 where the kernel refused, something else where it was done."""

# Native code raises no audit events; ctypes does, where a function is looked up, and from Python 3.14 on where it is
# called.
_PROGRAM = """
import ctypes, json, os, sys
sys.path.insert(0, {root!r})
from desktop_agent.sandbox import kernel_limits
from desktop_agent.tools.web import page_process
{before}
from desktop_agent.processes import worker_process
worker_process._REFUSED = tuple(each for each in worker_process._REFUSED if each != "ctypes.")
libc, machine = ctypes.CDLL(None), os.uname().machine
folder, there, new, other, third, moved, victim, message = json.loads({given!r})
folder, there, new, other, third, moved = (each.encode() for each in (folder, there, new, other, third, moved))
pair, ring = ctypes.create_string_buffer(8), ctypes.create_string_buffer(256)
def printing(call_id):
    # Two frames: the answer, and the end.
    frames = [json.dumps([call_id, answers]).encode() for answers in (json.loads(message), [])]
    layout = b"".join(b"\\\\0\\\\0\\\\0\\\\%03o%%s" % len(frame) for frame in frames)
    return (ctypes.c_char_p * 5)(b"/usr/bin/printf", layout, *frames, None)
true = page_process.read_page
def read(html, base):
    if html == page_process.WARM_UP_PAGE:
        return true(html, base)
    words = printing(sys._getframe(1).f_locals["call_id"])
    {deed}
page_process.read_page = read
sys.exit(worker_process.main())
"""


def reader_with_deeds(folder: Path, victim: int, *, before: str = "", deed: str = "") -> WebPageReader:
    """Return a reader whose real child runs `deed` (else all of DEEDS) for a page, and `before` at its start."""
    names = ("there", "new", "other", "third", "moved")
    for name in ("there", "other", "third"):
        (folder / name).write_text("as it was")
    message = json.dumps([{"title": "", "text": "it was run", "hidden": 0, "cut": False}])
    arguments = json.dumps([str(folder), *(str(folder / name) for name in names), victim, message])
    tried = ", ".join(f"{name!r}: {code}" for name, code in DEEDS.items())
    deed = deed or f"return {{'title': '', 'text': json.dumps({{{tried}}}), 'hidden': 0, 'cut': False}}"
    program = _PROGRAM.format(root=_ROOT, before=before, given=arguments, deed=deed)
    return WebPageReader((sys.executable, "-I", "-B", "-c", program))
