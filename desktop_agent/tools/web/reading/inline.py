"""What stands within a line: words, links, emphasis, code."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import urljoin

from desktop_agent.tools.web.reading.tree import HEADINGS, Element

_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_SPACES = re.compile(r"[ \t\r\n\f]+")
_BREAK = "\x01"  # no text of a page holds it: the child takes it out
_TICKS = re.compile("`+")
_AROUND_BREAK = re.compile(rf" *{_BREAK} *")
# What makers of documentation put behind a heading to be copied.
_ANCHORS = frozenset({"¶", "§", "#", "🔗", "⚓", "Permalink", "Anchor", "Link to this heading"})
_LONGEST_ADDRESS = 1_000


class Lines:
    """Writes what stands within lines. `base` is what addresses are relative to."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._special: dict[str, Callable[[Element], str]] = {
            "a": self._link,
            "img": self._picture,
            "sup": self._raised,
            "sub": self._raised,
            "math": self._formula,
            "q": self._quoted,
            "rt": self._above,
            "br": lambda _node: _BREAK,
            "input": self._box,
            "rp": lambda _node: "",
            "title": lambda _node: "",
        }

    def of(self, children: Iterable[Element | str]) -> str:
        """One paragraph; it has line ends where the page breaks a line."""
        text = _SPACES.sub(" ", "".join(self._written(each) for each in children))
        return _AROUND_BREAK.sub("\n", text).strip(" \n\xa0")

    def line(self, element: Element) -> str:
        """The same on one line."""
        return self.of(element.children).replace("\n", " ")

    def _written(self, node: Element | str) -> str:
        if isinstance(node, str):
            return node
        if node.name in _MARKS:
            return self._marked(node, _MARKS[node.name])
        if node.name in _CODE:
            return _edged(_code(_text_of(node)), node)
        if special := self._special.get(node.name):
            return special(node)
        inner = "".join(self._written(each) for each in node.children)
        return f" {inner} " if node.has_blocks or node.name in {"p", "div", "li", "td", *HEADINGS} else inner

    def _marked(self, node: Element, mark: str) -> str:
        text = self.of(node.children)
        if not text or text.startswith(mark) or "\n" in text:
            return _edged(text, node) if text else " "
        return _edged(f"{mark}{text}{mark}", node)

    def _link(self, node: Element) -> str:
        text = self.line(node)
        if not text or text in _ANCHORS:
            return " "
        address = self.address(node.attributes.get("href", ""))
        if address is None:
            return _edged(text, node)
        return _edged(f"<{address}>" if text == address else f"[{text}]({address})", node)

    def address(self, href: str) -> str | None:
        """Where a link leads; None within the page itself, and out of the web."""
        try:
            whole = urljoin(self._base, href.strip())
        except ValueError:
            return None
        is_web = whole.lower().startswith(("http://", "https://", "mailto:"))
        if href.startswith("#") or not href or not is_web or len(whole) > _LONGEST_ADDRESS:
            return None
        return whole.replace(" ", "%20").replace("(", "%28").replace(")", "%29").replace("<", "%3C").replace(">", "%3E")

    def _picture(self, node: Element) -> str:
        alt = _SPACES.sub(" ", node.attributes.get("alt", "")).strip()
        address = self.address(node.attributes.get("src", ""))
        if not alt:
            return ""
        return f"![{alt}]({address})" if address else alt

    def _raised(self, node: Element) -> str:
        text = self.of(node.children)
        return text if not text or text.startswith("[") else f"<{node.name}>{text}</{node.name}>"

    def _formula(self, node: Element) -> str:
        for each in node.all():
            if each.name == "annotation" and "tex" in each.attributes.get("encoding", ""):
                return f"${each.text().strip()}$"
        return f"${alt}$" if (alt := node.attributes.get("alttext", "")) else node.text()

    def _quoted(self, node: Element) -> str:
        return f"“{self.of(node.children)}”"

    def _above(self, node: Element) -> str:
        return f" ({text})" if (text := self.of(node.children)) else ""

    def _box(self, node: Element) -> str:
        if node.attributes.get("type", "").lower() != "checkbox":
            return ""
        return "[x] " if "checked" in node.attributes else "[ ] "


def code_span(text: str) -> str:
    """Code within a line, whatever marks are in it (CommonMark, 6.1)."""
    return _code(_SPACES.sub(" ", text).strip())


def fence_for(text: str, least: int) -> str:
    """More marks in a row than the text has."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def _code(text: str) -> str:
    if not text:
        return ""
    fence = fence_for(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _text_of(node: Element) -> str:
    return _SPACES.sub(" ", node.text()).strip()


def _edged(text: str, node: Element) -> str:
    """With the spaces that stood within the mark, outside of it."""
    raw = node.text()
    before = " " if raw[:1].isspace() else ""
    after = " " if raw[-1:].isspace() else ""
    return f"{before}{text}{after}"
