"""Read one page in a worker process: JSON on its input, JSON on its output.

What it may use is bounded before the page is looked at: what a page could make of it is work without end, or memory
without end; both end here. The parser alone is not Python: where the system has it, the kernel holds it to reading
what it was given and writing its answer.
"""

import gc
import json
import os
import re
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from desktop_agent.sandbox.kernel_limits import limit_process

# Also what text in Unicode's tags and selectors is smuggled in.
_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_MAYBE_INVISIBLE = re.compile(f"[{_INVISIBLE}\u200c\u200d\ufe00-\ufe0f]")
# Joiners, and one selector, stay where scripts and emoji need them.
_HIDDEN = re.compile(
    f"[{_INVISIBLE}]|[\ufe00-\ufe0f]{{2,}}|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200c\u200d])"
)


def strip_invisible(text: str) -> tuple[str, int]:
    r"""Return the text with every line end as \n, and how many hidden characters were removed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    before = len(text)
    if _MAYBE_INVISIBLE.search(text):
        # Taking one out may bring others together.
        while (shorter := _HIDDEN.sub("", text)) != text:
            text = shorter
    return text, before - len(text)


MEMORY = 2_000_000_000
"""Bytes of address space."""

SECONDS = 15
MAX_ANSWER_LENGTH = 3_000_000
"""Characters of an answer."""

WARM_UP_PAGE = "<p><a href='//é'>x</a>"
"""A page whose reading imports everything: names of hosts that are not in ASCII need a module of their own."""

_MAX_TITLE_LENGTH = 300
_RECURSION_LIMIT = 5_000
# Beautiful Soup does without them. They take half of the start, to select by CSS and to guess what bytes mean.
_BLOCKED_MODULES = ("soupsieve", "cchardet", "chardet", "charset_normalizer")
_REFUSED_EVENTS = ("open", "socket.", "subprocess.", "pty.", "os.", "shutil.", "ctypes.")


def _limit_resources() -> None:
    limit_process(for_good=False, AS=MEMORY, CPU=SECONDS, FSIZE=0, CORE=0)
    # Whoever started this may be gone, and with them whoever would end it.
    if sys.platform != "win32":
        signal.alarm(3 * SECONDS)


def _refuse_event(event: str, _arguments: tuple[Any, ...]) -> None:
    """Refuse as an audit hook, for systems on which nothing else refuses. Raises PermissionError."""
    if event.startswith(_REFUSED_EVENTS) and event not in {"os.putenv", "os.unsetenv"}:
        raise PermissionError(event)


def read_page(html: str, base: str) -> dict[str, Any]:
    """Return title, text, counts of hidden and of transparent characters, and whether the end is missing."""
    from desktop_agent.tools.web.html_parser import attribute, find_main_part, parse_page
    from desktop_agent.tools.web.html_to_markdown import to_markdown

    page, transparent = parse_page(html)
    title = element.get_text() if (element := page.find("title")) else ""
    href = attribute(element, "href") if (element := page.find("base")) else ""
    text, hidden = strip_invisible(to_markdown(find_main_part(page), _base_url(base, href)))
    return {
        "title": strip_invisible(" ".join(title.split()))[0][:_MAX_TITLE_LENGTH],
        "text": text[:MAX_ANSWER_LENGTH],
        "hidden": hidden,
        "transparent": transparent,
        "cut": len(text) > MAX_ANSWER_LENGTH,
    }


def _base_url(base: str, href: str) -> str:
    from urllib.parse import urljoin

    try:
        url = urljoin(base, href)
    except ValueError:
        return base
    return url if url.startswith(("http://", "https://")) else base


def main() -> int:
    """Read one page, then end."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    # The tree lives until the end; looking through it for garbage again and again takes longer than making it.
    gc.disable()
    warnings.simplefilter("ignore")
    for name in _BLOCKED_MODULES:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType]  an import of it fails
    read_page(WARM_UP_PAGE, "http://x/")
    from desktop_agent.sandbox.kernel_limits import confine_worker

    _limit_resources()
    confine_worker()
    sys.addaudithook(_refuse_event)
    request = json.loads(sys.stdin.buffer.read())
    answer = json.dumps(read_page(request["html"], request["base"]))
    sys.stdout.buffer.write(answer.encode())
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    # Run by its path in an isolated interpreter, this file does not know the folder that the program lies in.
    sys.path.insert(0, str(Path(__file__).parents[3]))
    code = main()
    # Nothing of a large tree needs to be taken apart.
    os._exit(code)
