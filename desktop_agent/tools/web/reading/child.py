"""Reads one page in a process of its own: JSON on its input, JSON on its output.

What it may use is bounded before the page is looked at: what a page could make of it is work without end, or memory
without end; both end here. The parser alone is not Python: where the system has it, the kernel holds it to reading
what it was given and writing its answer.
"""

import gc
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from desktop_agent.tools.confining.limits import limit_process

MEMORY = 2_000_000_000
"""Bytes of address space."""

SECONDS = 15
LONGEST = 3_000_000
"""Characters of an answer."""

FIRST = "<p><a href='//é'>x</a>"
"""A page whose reading imports everything: names of hosts that are not in ASCII need a module of their own."""

_LONGEST_TITLE = 300
_DEEPEST_CALLS = 5_000
# Beautiful Soup does without them. They take half of the start, to select by CSS and to guess what bytes mean.
_UNUSED = ("soupsieve", "cchardet", "chardet", "charset_normalizer")
_OUTSIDE = ("open", "socket.", "subprocess.", "pty.", "os.", "shutil.", "ctypes.")


def _bound() -> None:
    limit_process(for_good=False, AS=MEMORY, CPU=SECONDS, FSIZE=0, CORE=0)
    # Whoever started this may be gone, and with them whoever would end it.
    if sys.platform != "win32":
        signal.alarm(3 * SECONDS)


def _look(event: str, _arguments: tuple[Any, ...]) -> None:
    """An audit hook of Python, for systems on which nothing else refuses. Raises PermissionError."""
    if event.startswith(_OUTSIDE) and event not in {"os.putenv", "os.unsetenv"}:
        raise PermissionError(event)


def read(html: str, base: str) -> dict[str, Any]:
    """Title and text of a page, how many hidden characters were taken out, how many were not read because they are
    transparent, and whether the end is missing."""
    from desktop_agent.tools.web.plain import plain
    from desktop_agent.tools.web.reading.main_part import main_part
    from desktop_agent.tools.web.reading.parsing import attribute, page_of
    from desktop_agent.tools.web.reading.writing import markdown_of

    page, transparent = page_of(html)
    title = found.get_text() if (found := page.find("title")) else ""
    given = attribute(found, "href") if (found := page.find("base")) else ""
    text, hidden = plain(markdown_of(main_part(page), _base(base, given)))
    return {
        "title": plain(" ".join(title.split()))[0][:_LONGEST_TITLE],
        "text": text[:LONGEST],
        "hidden": hidden,
        "transparent": transparent,
        "cut": len(text) > LONGEST,
    }


def _base(base: str, given: str) -> str:
    from urllib.parse import urljoin

    try:
        found = urljoin(base, given)
    except ValueError:
        return base
    return found if found.startswith(("http://", "https://")) else base


def main() -> int:
    """One page, then the end."""
    sys.setrecursionlimit(_DEEPEST_CALLS)
    # The tree lives until the end; looking through it for garbage again and again takes longer than making it.
    gc.disable()
    warnings.simplefilter("ignore")
    for name in _UNUSED:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType]  an import of it fails
    read(FIRST, "http://x/")
    from desktop_agent.tools.confining.reckoning import close_in

    _bound()
    close_in()
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
