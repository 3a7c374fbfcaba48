"""Random Markdown, and a reader that does with the steps of a stream what a row does with them."""

from dataclasses import replace

from hypothesis import strategies as st

from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.stream import MarkdownStream

WORDS = (
    "word", "*em*", "**strong", "text**", "`code`", "``", "~~gone~~", "[link](https://x.org)", "[foo]", "[^1]",
    "[^n]", "$x^2$", "$5", "\\(y\\)", "\\[z\\]", "$$w$$", "$$", "\\$", "漢字", "שלום", "مرحبا", "👩‍🚀", "e\u0301",
    "\u202e", "|", "a | b", "<b>", "&amp;", "\\", "!", "![pic](https://x.org/p.png)", "\0", "\t", "  ", "\u00a0",
    "1.", "-", "#", ":",
)  # fmt: skip
STARTS = (
    "", "a", "# ", "## h", "- ", "* x", "+ ", "1. ", "7) ", "10. x", "> ", ">", "> > ", "```", "```py", "~~~", "````",
    "    code", "\tx", "---", "===", "***", "- - -", "$$", "$$ a", "\\[", "\\]", "b $$", "\\begin{align}",
    "\\end{align}", "[^1]: ", "[^n]:", "[foo]: /url", "[bar]:", "'title", "| a | b |", "|---|---|", "|:-:|", "| c |",
    "a | b", "-|-", "- [ ] ", "- [x] t", "  ", "   ", "     ", "- ```", "> ```", "> - ", "- > ", "1. - ", "- 1. ",
    "- $$", "> $$", "  $$", "  ```", "    - y", "  - x", "   - z", "> " * 25 + "q", "- " * 24 + "d",
    "  " * 12 + "- y",
)  # fmt: skip
ENDS = ("\n",) * 12 + ("\r\n", "\r", "\n\n", "\n\n", "\n\n\n", "\n \n", " \n", "\t\n")

word = st.sampled_from(WORDS)
line = st.builds(
    lambda start, words, end: start + " ".join(words) + end,
    st.sampled_from(STARTS),
    st.lists(word, max_size=3),
    st.sampled_from(ENDS),
)
wild = st.lists(line, min_size=2, max_size=12).map("".join)


def _indented(text: str, first: str, rest: str) -> str:
    lines = text.split("\n")
    return "\n".join([first + lines[0], *(rest + line if line else line for line in lines[1:])])


_prose = st.lists(word, min_size=1, max_size=5).map(" ".join)
_paragraph = st.lists(_prose, min_size=1, max_size=3).map("\n".join)
_code = st.lists(st.one_of(_prose, st.sampled_from(STARTS)), max_size=4).map("\n".join)
_fence = st.builds(
    "{0}{1}\n{2}\n{0}".format, st.sampled_from(["```", "~~~", "`````"]), st.sampled_from(["", "py"]), _code
)
_math = st.builds(
    lambda ends, body: f"{ends[0]}{body}{ends[1]}",
    st.sampled_from([("$$\n", "\n$$"), ("\\[\n", "\n\\]"), ("$$", "$$"), ("\\begin{align}\n", "\n\\end{align}")]),
    st.sampled_from(["x^2", "a &= b \\\\\nc &= d", "- x\n- y", "```\nz", "a $$ b", "\n", "# h"]),
)
_row = st.lists(_prose, min_size=1, max_size=4).map(lambda cells: "| " + " | ".join(cells) + " |")
_table = st.builds(
    lambda head, rows: "\n".join([head, "|---|---|", *rows]),
    st.sampled_from(["| a | b |", "a | b"]),
    st.lists(_row, max_size=4),
)
_definition = st.sampled_from(
    ["[foo]: /url", "[foo]: /url 'a\ntitle'", "[^1]: note", "[^n]: note\n\n    more", "[^1]:"]
)
_leaf = st.one_of(_paragraph, _fence, _math, _table, _definition, _prose.map("## {}".format), st.just("***"))


def _list(blocks: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    marks = st.sampled_from(
        [("- ", "  "), ("* ", "  "), ("1. ", "   "), ("9) ", "   "), ("-   ", "    "), (" - ", "   ")]
    )
    between = st.sampled_from(["\n", "\n", "\n\n", "\n\n\n"])

    def joined(mark: tuple[str, str], items: list[tuple[str, str]]) -> str:
        return "".join(_indented(text, *mark) + gap for text, gap in items).rstrip("\n")

    return st.builds(joined, marks, st.lists(st.tuples(blocks, between), min_size=1, max_size=5))


def _containers(blocks: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.builds(lambda parts, gap: gap.join(parts), st.lists(blocks, min_size=1, max_size=3), GAPS)
    return st.one_of(
        _list(several),
        several.map(lambda text: _indented(text, "> ", "> ")),
        several.map(lambda text: _indented(text, "[^n]: ", "    ")),
    )


GAPS = st.sampled_from(["\n\n", "\n", "\n\n\n"])
blocks = st.recursive(_leaf, _containers, max_leaves=8)
orderly = st.builds(
    lambda parts, gap, end: gap.join(parts) + end,
    st.lists(blocks, min_size=1, max_size=5),
    GAPS,
    st.sampled_from(["", "\n", "\r\n", "\r"]),
)
# A few lines that have to do with each other, again and again: what depends on several of them is met often.
THEMES = (
    ("- a", "- ```", "  ```", "   ```", "    ```", "   ```py", "", "w", "  x", "    y"),
    ("1. a", "   ```", "```", "  ~~~", "   x", "", "# h", "w", "$$", "> ```"),
    ("$$", "$$ a", "b $$", "b $$ c", "a", "- x", "", "  $$", "> $$"),
    ("\\[", "x", "x \\]", "\\] y", "", "- \\[", "  \\]", "\\begin{align}", "\\end{align}", "\\end{align} z"),
    ("word word", "word word word", "a | b", f"a | b{' and on' * 6}", "--|--", "=====", "---", "", f"[^{'l' * 45}]: x"),
    ("[foo]: /url", "[foo]:", "/url", "'title", "more'", "word word word word word", "", "'t'", "[foo"),
    ("- x", " - x", "   - x", "  - x", "    - x", "1. x", "  2) x", "", "  x", "x", "- - -"),
    ("3. x", "  3. x", "   3. x", "    3. x", "3) x", "", "   x", "x", "- x", "   - x"),
    ("\n| a | b |\n|---|---|\n| c", "| c | d |", "| e", "f", "", "    g", "> h", "- i", "\\| j |"),
    ("\n| a | b |\n|---|---|\n| c", "| c | d |\n| e", "| f\n| g"),
    ("[foo]: /url\n'a b c d e f g h i j k", "l m n o p q r s t u v", "w x' y", "w x'"),
    ("[foo b c d e f g h i j k", "l m n o p q r s t u v w x", "y]: /url", "", "[foo]"),
    ("word word word", "=====", "word word", "word"),
    ("[^1]: x", "[^1]", "    x", "x", "", "- x", "> x", "[^1]:"),
    ("> a", "> - a", "> 1. c", "> 3. c", ">", "> # h", "> > a", "> > - b", "w", "", "> [foo]: /u", "> 'title", "> t'"),
    (
        "> [^1]: a",
        ">     b",
        ">     - c",
        ">",
        "> w",
        ">     > d",
        "[^1]: a",
        "    b",
        "    - c",
        "    a | b",
        "    -|-",
        "",
    ),
)


def _themed(theme: tuple[str, ...]) -> st.SearchStrategy[str]:
    few = st.lists(st.sampled_from(theme), min_size=2, max_size=4)
    return few.flatmap(lambda lines: st.lists(st.sampled_from(lines), min_size=5, max_size=18).map("\n".join))


themed = st.sampled_from(THEMES).flatmap(_themed)
_KINDS = (
    themed,
    themed,
    themed,
    st.builds("{}\n{}".format, themed, themed),
    _themed(STARTS),
    _themed(STARTS),
    wild,
    wild,
    st.builds("{}\n{}".format, orderly, wild),
)
markdown = st.sampled_from(_KINDS).flatmap(lambda kind: kind)


class Reader:
    """A reader that applies the steps of a stream as a row does."""

    def __init__(self) -> None:
        self.stream = MarkdownStream()
        self.closed: list[Leaf] = []
        self.tail: tuple[Leaf, ...] = ()

    def take(self, step) -> None:
        if step.grown is not None:
            last = self.tail[-1]
            assert last.kind in {"code", "math"}
            self.tail = (*self.tail[:-1], replace(last, text=last.text + step.grown))
        elif step.rows is not None:
            last = self.tail[-1]
            assert len(self.tail) == 1
            assert last.kind == "table"
            rows_kept = last.cells[: len(last.cells) - step.replaced]
            self.tail = (replace(last, cells=(*rows_kept, *step.rows)),)
        else:
            self.closed += step.closed
            self.tail = step.tail

    def append(self, text: str) -> None:
        self.take(self.stream.append(text))

    def finish(self) -> None:
        self.take(self.stream.finish())


def cut_up(text: str, sizes: list[int]):
    """Yield the text in pieces of these sizes, repeated."""
    start, index = 0, 0
    while start < len(text):
        size = sizes[index % len(sizes)] if sizes else 1
        yield text[start : start + size]
        start, index = start + size, index + 1
