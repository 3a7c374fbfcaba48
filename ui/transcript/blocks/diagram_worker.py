"""The worker process that renders one Mermaid diagram: JSON on its input, a PNG or an error on its output.

It imports nothing of this program.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

# Bytes of address space; about a tenth of it is used.
MEMORY_LIMIT = 1_500_000_000

_CPU_SECONDS = 40
_MAX_PIXELS = 16_000_000
_MAX_SIDE = 16_000

# Prefixes of names in Python's table of audit events; os.mkfifo and os.mknod have none.
_PROCESS_EVENTS = ("socket.", "subprocess.", "pty.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
_FILE_EVENTS = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "shutil.")
_PERMISSION_EVENTS = ("os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr", "os.removexattr")
_FORBIDDEN_EVENTS = (*_PROCESS_EVENTS, *_FILE_EVENTS, *_PERMISSION_EVENTS, "os.startfile", "os.kill")
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EXTERNAL_REFERENCE = re.compile(
    r"""\s(?:xlink:)?(?:href|src)\s*=\s*("(?!#|data:)[^"]*"|'(?!#|data:)[^']*')""", re.IGNORECASE
)
_VIEW_BOX = re.compile(r'viewBox="[-\d.e]+[ ,]+[-\d.e]+[ ,]+([\d.e]+)[ ,]+([\d.e]+)"')


def _confine() -> None:
    sys.addaudithook(_audit)
    try:
        import resource
        import signal
    except ImportError:
        return
    for limit, most in (
        (resource.RLIMIT_AS, MEMORY_LIMIT),
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    # The parent may be gone, and could not end this process.
    signal.alarm(_CPU_SECONDS)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN_EVENTS):
        raise PermissionError(event)
    if event == "open":
        _, mode, flags = arguments
        # `os.open` has no mode, only flags.
        if (isinstance(mode, str) and set(mode) & set("wax+")) or (isinstance(flags, int) and flags & _WRITE_FLAGS):
            raise PermissionError(event)


def render(request: Mapping[str, Any]) -> bytes:
    """Return the diagram as PNG. Raises whatever the renderer raises."""
    config = {"securityLevel": "strict", "themeVariables": request["colors"], "maxTextSize": 50_000}
    library: Any = import_module("mermaidx")
    svg = _EXTERNAL_REFERENCE.sub("", library.render(request["source"], theme="base", config=config).svg())
    view_box = _VIEW_BOX.search(svg)
    if view_box is None:
        raise ValueError("the diagram has no size")
    width, height = max(1.0, float(view_box[1])), max(1.0, float(view_box[2]))
    scale = min(float(request["scale"]), (_MAX_PIXELS / (width * height)) ** 0.5, _MAX_SIDE / max(width, height))
    return library.svg_to_png(svg, width=width * scale)


def main() -> None:
    """Render one diagram and exit."""
    _confine()
    request = json.loads(sys.stdin.buffer.read())
    try:
        answer = b"ok\n" + render(request)
    except MemoryError:
        sys.exit(1)
    except BaseException as error:  # noqa: BLE001  whatever it is, the other side wants to say it
        words = str(error).strip() or type(error).__name__
        answer = b"no\n" + words.encode("utf-8", "replace")[:2000]
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
