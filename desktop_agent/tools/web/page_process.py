"""Read one page, in the worker process. The parser is not Python, so the kernel restricts the process to reading its
input and writing its answer.
"""

import gc
import re
import sys
import warnings
from typing import Any

# Also tags and selectors of Unicode, in which text can be smuggled.
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


MAX_ANSWER_LENGTH = 3_000_000
"""Characters of an answer."""

WARM_UP_PAGE = "<p><a href='//é'>x</a>"
"""A page whose reading imports everything: names of hosts that are not in ASCII need a module of their own."""

_MAX_TITLE_LENGTH = 300
_RECURSION_LIMIT = 5_000
# Beautiful Soup works without them. They select by CSS and guess encodings, and take half of the start-up time.
_BLOCKED_MODULES = ("soupsieve", "cchardet", "chardet", "charset_normalizer")


def prepare() -> None:
    """Import everything that reading needs."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    # The tree lives until the end; looking through it for garbage again and again takes longer than making it.
    gc.disable()
    warnings.simplefilter("ignore")
    for name in _BLOCKED_MODULES:
        sys.modules[name] = None  # pyright: ignore[reportArgumentType]  an import of it fails
    read_page(WARM_UP_PAGE, "http://x/")


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
