"""Reads one page in a process of its own: JSON on its input, JSON on its output.

What it may use is bounded before the page is looked at. It is Python through and through, so what a page could make of
it is work without end, or memory without end; both end here.
"""

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

MEMORY = 2_000_000_000
"""Bytes of address space."""

SECONDS = 10
LONGEST = 3_000_000
"""Characters of an answer."""

_LONGEST_TITLE = 300
_DEEPEST_CALLS = 5_000
_OUTSIDE = ("open", "socket.", "subprocess.", "pty.", "os.", "shutil.", "ctypes.")


def _confine() -> None:
    try:
        import resource
        import signal
    except ImportError:
        return
    for limit, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, SECONDS),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    # Whoever started this may be gone, and with them whoever would end it.
    signal.alarm(3 * SECONDS)


def _look(event: str, _arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python. Raises PermissionError."""
    if event.startswith(_OUTSIDE) and event not in {"os.putenv", "os.unsetenv"}:
        raise PermissionError(event)


def read(html: str, base: str) -> dict[str, Any]:
    """Title and text of a page, how many hidden characters were taken out, and whether the end is missing."""
    from desktop_agent.tools.web.plain import plain
    from desktop_agent.tools.web.reading.main_part import main_part
    from desktop_agent.tools.web.reading.markdown import Writer
    from desktop_agent.tools.web.reading.tree import tree_of

    page = tree_of(html.replace("\x01", ""))
    base_element = next((each for each in page.all() if each.name == "base"), None)
    title = next((each.text() for each in page.all() if each.name == "title"), "")
    text, hidden = plain(Writer(_base(base, base_element)).page(main_part(page)))
    return {
        "title": plain(" ".join(title.split()))[0][:_LONGEST_TITLE],
        "text": text[:LONGEST],
        "hidden": hidden,
        "cut": len(text) > LONGEST,
    }


def _base(base: str, element: Any) -> str:
    from urllib.parse import urljoin

    try:
        found = urljoin(base, element.attributes.get("href", "")) if element else base
    except ValueError:
        return base
    return found if found.startswith(("http://", "https://")) else base


def main() -> int:
    """One page, then the end."""
    sys.setrecursionlimit(_DEEPEST_CALLS)
    # The tree lives until the end; looking through it for garbage again and again takes longer than making it.
    gc.disable()
    read("<p>", "http://x/")  # imports everything while that is possible
    _confine()
    sys.addaudithook(_look)
    wanted = json.loads(sys.stdin.buffer.read())
    answer = json.dumps(read(wanted["html"], wanted["base"]))
    sys.stdout.buffer.write(answer.encode())
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    # Run by its path in an isolated interpreter, this file does not know the folder that the program lies in.
    sys.path.insert(0, str(Path(__file__).parents[4]))
    code = main()
    # Nothing of a large tree needs to be taken apart.
    os._exit(code)
