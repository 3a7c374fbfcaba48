"""What each kind of element becomes, where the library's own way loses something that a reader needs."""

import re
from collections.abc import Callable
from urllib.parse import urljoin

from bs4 import Tag
from bs4.element import NavigableString

from desktop_agent.tools.web.reading.code import code_span
from desktop_agent.tools.web.reading.converter import MarkdownConverter
from desktop_agent.tools.web.reading.parsing import attribute, class_names

SPACES = re.compile(r"[ \t\r\n\f]+")

# Signatures in the documentation of Sphinx and rustdoc: code, though made of words and links.
_SIGNATURES = frozenset({"sig", "code-header"})
_TITLES = frozenset({"admonition-title", "admonitionblock-title", "callout-title", "alert-title"})
_MAX_ADDRESS_LENGTH = 1_000


# Also what would end the address, or the line that it stands in.
_NOT_IN_ADDRESSES = re.compile(r"[\x00-\x20()<>\[\]\\\x7f-\xa0]")


def escape_brackets(text: str) -> str:
    """As words within brackets: brackets of its own that do not fit together are no brackets."""
    depth = 0
    for each in re.findall(r"(?<!\\)[\[\]]", text):
        depth += 1 if each == "[" else -1
        if depth < 0:
            break
    is_sound = depth == 0 and "](" not in re.sub(r"!\[[^\[\]]*\]\([^()]*\)", "", text)
    return text if is_sound else re.sub(r"(?<!\\)([\[\]])", r"\\\1", text)


def _normalize_href(href: str) -> str:
    """WHATWG URL: line ends and tabs are left out, and backslashes of a web address are slashes."""
    plain = re.sub(r"[\t\r\n]", "", href.strip())
    before, mark, after = plain.partition("?")
    return before.replace("\\", "/") + mark + after


def _on_one_line(theirs: Callable[..., str]) -> Callable[..., str]:
    """Marks around words; none around words that are marked already, nor over the end of a line."""

    def convert(self: "ElementConverter", el: Tag, text: str, parent_tags: set[str]) -> str:
        inner = text.strip()
        if not inner:
            return " " if text else ""
        marked = theirs(self, el, text, parent_tags)
        is_marked = inner.startswith(marked.strip().partition(inner)[0] or "\n")
        return text if "\n" in inner or is_marked else marked

    return convert


class ElementConverter(MarkdownConverter):
    """Any element that is not named here is written as the library does it."""

    def __init__(self, base: str) -> None:
        super().__init__(
            heading_style="atx",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            sub_symbol="<sub>",
            sup_symbol="<sup>",
            wrap=True,  # a line end in the source is a space,
            wrap_width=None,  # and paragraphs stay on one line
        )
        self._base = base
        self._numbers: dict[int, int] = {}

    def address(self, href: str) -> str | None:
        """Where a link leads; None within the page itself, and out of the web."""
        try:
            whole = urljoin(self._base, _normalize_href(href))
        except ValueError:
            return None
        is_web = whole.lower().startswith(("http://", "https://", "mailto:"))
        if href.startswith("#") or not href or not is_web or len(whole) > _MAX_ADDRESS_LENGTH:
            return None
        return _NOT_IN_ADDRESSES.sub(lambda each: f"%{ord(each[0]):02X}", whole)

    def process_text(self, el: NavigableString, parent_tags: set[str] | None = None) -> str:
        """Text that looks like a link, and is none, is not to look like one."""
        text = super().process_text(el, parent_tags)
        if "]" not in text or "_noformat" in (parent_tags or ()):
            return text
        following = el.find_next(string=True) if text.endswith("]") else None
        is_split = following is not None and str(following).startswith("(")
        return text.replace("](", "\\](") if not is_split else text[:-1].replace("](", "\\](") + "\\]"

    convert_b = convert_strong = _on_one_line(MarkdownConverter.convert_b)
    convert_em = convert_i = _on_one_line(MarkdownConverter.convert_em)
    convert_del = convert_s = convert_strike = _on_one_line(MarkdownConverter.convert_del)
    convert_sub = _on_one_line(MarkdownConverter.convert_sub)
    convert_tt = MarkdownConverter.convert_code

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Marks of references stay as they are."""
        return text if text.startswith("[") else super().convert_sup(el, text, parent_tags)

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """The end of a line, where there are lines."""
        del el, text
        return " " if "_inline" in parent_tags else "\n"

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Its description, if it has one."""
        del text, parent_tags
        alt = escape_brackets(SPACES.sub(" ", attribute(el, "alt")).strip())
        address = self.address(attribute(el, "src"))
        return f"![{alt}]({address})" if alt and address else alt

    def convert_input(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Boxes of lists of tasks."""
        del text, parent_tags
        if attribute(el, "type").lower() != "checkbox":
            return ""
        beside = el.next_sibling
        has_space = isinstance(beside, NavigableString) and beside[:1].isspace()
        return ("[x]" if "checked" in el.attrs else "[ ]") + " " * (not has_space)

    def convert_q(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Within marks."""
        del el, parent_tags
        return f"“{text}”"

    def convert_rt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """How a character is read."""
        del el, parent_tags
        return f" ({text})" if text else ""

    def convert_rp(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Nothing: its marks are put around what is read anyway."""
        del el, text, parent_tags
        return ""

    convert_title = convert_rp

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """What is in it: who wrote this puts the marks around."""
        del el, parent_tags
        return text

    convert_a = convert_caption = convert_th = convert_tr = convert_td

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802 - the library's name
        """A heading; one that is a signature as code."""
        return super().convert_hN(n, el, _signature(el) or text, parent_tags)

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """The same for a term."""
        return super().convert_dt(el, _signature(el) or text, parent_tags)

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """One that is the title of a box is bold."""
        return super().convert_p(el, _title(el, text), parent_tags)

    def convert_div(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """The same."""
        return super().convert_div(el, _title(el, text), parent_tags)

    convert_article = convert_section = convert_div

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """What is said of something folded away is its title."""
        return super().convert_div(el, _bold(text), parent_tags)

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """The library counts the items before each, which takes minutes for long lists."""
        del parent_tags
        text = text.strip()
        if not text:
            return ""
        mark = "- "
        if el.parent and el.parent.name == "ol":
            number = self._numbers.setdefault(id(el.parent), _first_number(el.parent))
            self._numbers[id(el.parent)] = number + 1
            mark = f"{number}. "
        indent = "\n" + " " * len(mark)
        return mark + text.replace("\n", indent).replace(f"{indent}\n", "\n\n").replace(f"{indent}\n", "\n\n") + "\n"


def _signature(element: Tag) -> str:
    return code_span(element.get_text().rstrip("¶§# \n")) if class_names(element) & _SIGNATURES else ""


def _title(element: Tag, text: str) -> str:
    return _bold(text) if class_names(element) & _TITLES else text


def _bold(text: str) -> str:
    line = text.strip()
    return f"**{line}**" if line and "\n" not in line and not line.startswith(("#", "**", "`")) else text


def _first_number(ordered: Tag) -> int:
    start = attribute(ordered, "start")
    return int(start) if start.isdecimal() and len(start) < 10 else 1
