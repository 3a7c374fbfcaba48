"""Code as it stands on a page, and which language the makers of highlighters say it is."""

import re

from bs4 import Tag
from bs4.element import NavigableString

from desktop_agent.tools.web.reading.parsing import BLOCKS, attribute, child_elements, class_names

BESIDE_CODE = frozenset(
    {
        *("linenos", "lineno", "linenodiv", "gutter", "rouge-gutter", "lnt", "line-numbers", "line-numbers-rows"),
        *("hljs-ln-numbers", "boring"),
    }
)
"""Classes of the numbers of lines, and of what mdBook folds away."""

# GitHub, Prism and highlight.js, Sphinx, MDN.
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:highlight-source-|highlight-text-|language-|lang-|highlight-|brush:\s*|sourceCode\s+)([A-Za-z0-9+#_.-]+)"
)
_NO_LANGUAGE = frozenset({"default", "none", "notranslate", "text", "plaintext", "plain", "wrapper"})
_TICKS = re.compile("`+")


def code_block(pre: Tag) -> str:
    """Between marks, with its language; empty when there is no code."""
    text = _text(pre).strip("\n").rstrip()
    if not text.strip():
        return ""
    fence = _fence(text, 3)
    return f"{fence}{_language(pre)}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Code within a line, whatever marks are in it (CommonMark, 6.1)."""
    text = " ".join(text.split())
    if not text:
        return ""
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _fence(text: str, least: int) -> str:
    """More marks in a row than the text has."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)


def _text(pre: Tag) -> str:
    """As it stands there, without the numbers of lines."""
    pieces: list[str] = []

    def gather(part: Tag) -> None:
        for each in part.contents:
            if isinstance(each, NavigableString):
                pieces.append(str(each))
            elif not isinstance(each, Tag) or class_names(each) & BESIDE_CODE:
                continue
            elif each.name == "br":
                pieces.append("\n")
            else:
                if each.name in BLOCKS and pieces and not pieces[-1].endswith("\n"):
                    pieces.append("\n")
                gather(each)

    gather(pre)
    return "".join(pieces)


def _language(pre: Tag) -> str:
    """The code itself says it, or something around it."""
    near: list[Tag] = [pre, *child_elements(pre), *pre.parents]
    return next((name for each in near if (name := _language_class(each))), "")


def _language_class(element: Tag) -> str:
    found = _LANGUAGE.search(attribute(element, "class"))
    name = found[1].lower() if found else ""
    return name if name not in _NO_LANGUAGE and len(name) < 20 else ""
