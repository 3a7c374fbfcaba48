"""What is a formula and what is money."""

import pytest

from desktop_agent.markdown import parser
from desktop_agent.markdown.parser import make_parser
from ui.transcript.markdown.stream import parse_leaves

PARSER = make_parser()


def formulas(text):
    tokens = PARSER.parseInline(text, {})[0].children or ()
    return [(token.type, token.markup, token.content) for token in tokens if token.type.startswith("math")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so $x^2$ and $y$.", [("math_inline", "$", "x^2"), ("math_inline", "$", "y")]),
        ("the $n$th of $k$-means", [("math_inline", "$", "n"), ("math_inline", "$", "k")]),
        ("其中$x$是", [("math_inline", "$", "x")]),
        ("$x$ is 5", [("math_inline", "$", "x")]),
        ("$$x$$, then", [("math_inline_double", "$$", "x")]),
        ("\\( a_1 \\) and \\[b\\]!", [("math_inline", "\\(", "a_1"), ("math_inline_double", "\\[", "b")]),
        ("$a \\$ b$", [("math_inline", "$", "a \\$ b")]),
        ("\\(f(x\\\\)\\)", [("math_inline", "\\(", "f(x\\\\)")]),
        ("$a\nb$", [("math_inline", "$", "a\nb")]),
        ("**$x$**", [("math_inline", "$", "x")]),
        ("$*a*$", [("math_inline", "$", "*a*")]),
    ],
)
def test_formulas_in_a_line(text, expected):
    assert formulas(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "$5 and $6",
        "from $5-$6",
        "US$5 or US$6",
        "$ x $",
        "$x $",
        "$ x$",
        "$",
        "$$",
        "$$$$",
        "$$ $$",
        "`$x$`",
        "\\$x$",
        "$HOME:$PATH",
        "${HOME}:${PATH}",
        "a $x",
        "\\(\\)",
        "\\[\\\\\\]",
        "\\(!\\)",
        "\\(a",
        "\\\\(a\\\\)",
        "\\(a \\(b\\",
        "x$a$1",
    ],
)
def test_what_is_no_formula(text):
    assert formulas(text) == []


@pytest.mark.parametrize("text", ["\\(a " * 1000, "$a" * 2000, "$$a" * 1300, "\\[" * 2000, "\\$" * 2000])
def test_thousands_of_openings_are_read_at_once(text):
    assert len(formulas(text)) <= 1000


def blocks(text):
    return [(leaf.kind, leaf.text) for leaf in parse_leaves(text)[0]]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("$$x$$", "x"),
        ("$$\nx\n$$", "x"),
        ("$$ x\n+ y $$  ", "x\n+ y"),
        ("\\[x\\]", "x"),
        ("\\[\na \\\\\n\\]", "a \\\\"),
        ("\\begin{align*}\na &= b\n\\end{align*}", "\\begin{align*}\na &= b\n\\end{align*}"),
        ("\\begin{cases} a \\end{cases}", "\\begin{cases} a \\end{cases}"),
        ("$$\n- x\n# h\n```\n$$", "- x\n# h\n```"),
        ("$$\n\\begin{aligned}\nx\n\\end{aligned}\n$$", "\\begin{aligned}\nx\n\\end{aligned}"),
    ],
)
def test_formulas_by_themselves(text, latex):
    assert blocks(text) == [("math", latex)]
    assert blocks(f"words\n{text}\nmore") == [("paragraph", "words"), ("math", latex), ("paragraph", "more")]
    containers = "\n".join("  " + line for line in text.split("\n"))
    assert blocks(f"-{containers[1:]}\n- b") == [("math", latex), ("paragraph", "b")]
    quoted = "\n".join("> " + line for line in text.split("\n"))
    assert blocks(quoted) == [("math", latex)]


@pytest.mark.parametrize(
    "text",
    [
        "$$",
        "$$\n$$",
        "$$\na",
        "$$\na\n\nb\n$$",
        "$$a$$ b",
        "$$\na\n$$ b",
        "$$a$$ and $$b$$",
        "\\[\na",
        "\\begin{align}\na",
        "\\begin{itemize}\na\n\\end{itemize}",
        "    $$\n    a\n    $$",
        "\\begin{align}\na\n\\end{align*}",
    ],
)
def test_what_stands_by_itself_and_is_no_formula(text):
    assert "math" not in [kind for kind, _ in blocks(text)]


def test_a_formula_ends_with_what_it_stands_in():
    assert blocks("- $$\n  a\n- b\n  $$") == [("paragraph", "$$\na"), ("paragraph", "b\n$$")]
    assert blocks("> $$\n> a\n\n$$") == [("paragraph", "$$\na"), ("paragraph", "$$")]


@pytest.mark.parametrize("opening", ["\\[\n", "\\begin{align}\n", "$$ a\n", "> \\[\n", "- \\[\n"])
def test_thousands_of_formulas_without_end_are_looked_for_once(opening, monkeypatch):
    marks = []
    is_found = parser.end_mark

    def counted(mark):
        marks.append(mark)
        return is_found(mark)

    monkeypatch.setattr(parser, "end_mark", counted)
    parse_leaves(opening * 500)
    assert len(marks) < 4000
