"""A line written down again is the same line, and harmless HTML."""

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.markdown.parser import FOOTNOTES_KEY
from tests.frame.examples import examples
from ui.transcript.markdown import serializer as written_module
from ui.transcript.markdown.inline import OBJECT, Line, SpanStyle, make_slicer, parse_inline, slice_utf16
from ui.transcript.markdown.serializer import line_to_html, line_to_markdown
from ui.transcript.markdown.text_units import utf16_length

NOTES = {FOOTNOTES_KEY: {"1": True}}
ATOMS = (
    "a", "b", "word", " ", "  ", "\n", "*", "**", "_", "__", "~~", "`", "``", "[", "](https://x.org)", "](u)", "]", "!",
    "![", "<", "<https://y.org>", "https://z.org/a", "&amp;", "&", "\\", "$x^2$", "$", "\\(a\\)", "$$b$$", "[^1]", "é",
    "漢", "😀", "\u202e", "\u200b", ".", ",", "(", ")", "- ", "1. ", "# ", "> ", "~", "|", "'", '"', "\\*", "\u00a0",
    "&#32;", "\t", "https://", "mailto:a@b.c", "](mailto:a@b.c)", "[google.com](https://evil.com)", "שלום",
)  # fmt: skip
texts = st.lists(st.sampled_from(ATOMS), max_size=14).map("".join)


def has_words(line):
    """Whether all formulas have words: Markdown cannot express formulas of signs alone between other formulas."""
    return all(any(char.isalnum() for char in span.source) and "\n" not in span.source for span in line.formulas())


# One text in some ten thousand of such signs says what Markdown cannot say again: emphasis that ends in a line break.
@settings(derandomize=True, max_examples=examples(400), deadline=None)
@given(texts)
def test_read_again_it_is_the_same_line(text):
    line = parse_inline(text, NOTES)
    if has_words(line):
        assert parse_inline(line_to_markdown(line), NOTES) == line


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words, snake_case and 2 * 3", r"plain words, snake_case and 2 \* 3"),
        ("**bold *both*** and ~~gone~~", "**bold *both*** and ~~gone~~"),
        ("`a` ``b`c``", "`a` ``b`c``"),
        ("[x](https://x.org) https://y.org", "[x](<https://x.org>) https://y.org"),
        ("[google.com](https://evil.com)", "[google.com](<https://evil.com>)"),
        ("$x^2$ a\\(y\\)b $$z$$", "$x^2$ a\\(y\\)b $$z$$"),
        ("a[^1]", "a[^1]"),
        ("a\u202eb", "a\u202eb"),
        ("one  \ntwo", "one\ntwo"),
        (r"\# no heading", r"\# no heading"),
        (r"1\. no item", r"1\. no item"),
    ],
)
def test_it_is_written_as_a_person_would(text, written):
    assert line_to_markdown(parse_inline(text, NOTES)) == written


def test_a_part_keeps_what_it_is():
    line = parse_inline("one **two three** [four](https://x.org)")
    assert line_to_markdown(line, 6, 13) == "**o three**"
    assert line_to_markdown(line, 8, 16) == "**three** [fo](<https://x.org>)"
    assert line_to_markdown(line, 0, 3) == "one"


class Reader(HTMLParser):
    """A parser that fails on anything but the few allowed elements, and collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.open = "", []

    def handle_starttag(self, tag, attrs):
        assert tag in {"strong", "em", "s", "code", "a", "sup", "br"}
        assert all(name == "href" and value.startswith(("https://", "http://", "mailto:")) for name, value in attrs)
        if tag == "br":
            self.words += "\n"
        else:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


@given(texts | st.text(max_size=40))
def test_html_says_what_the_line_says_in_a_few_elements(text):
    line = parse_inline(text, NOTES)
    reader = Reader()
    reader.feed(line_to_html(line))
    reader.close()
    assert not reader.open
    assert reader.words == line.plain()


def test_html_of_a_part():
    line = parse_inline("a **b < c** [d](https://x.org/?a=1&b=2)")
    expected = 'a <strong>b &lt; c</strong> <a href="https://x.org/?a=1&amp;b=2">d</a>'
    assert line_to_html(line) == expected
    assert line_to_html(line, 2, 3) == "<strong>b</strong>"


@given(texts)
def test_places_of_the_line_and_of_its_plain_text_belong_together(text):
    line = parse_inline(text, NOTES)
    plain = line.plain()
    assert line.to_plain(utf16_length(line.text)) == utf16_length(plain)
    for offset in range(utf16_length(line.text) + 1):
        assert line.from_plain(line.to_plain(offset)) == offset
    for span in line.formulas():
        source = slice_utf16(plain, line.to_plain(span.start), line.to_plain(span.start + 1))
        assert source.strip("$") == span.source.strip("$") or span.source in source


def test_a_formula_is_one_character_and_its_source_when_copied():
    line = parse_inline("so $x^2$ is $$y$$")
    assert line.text == f"so {OBJECT} is {OBJECT}"
    assert [(span.style, span.source) for span in line.spans] == [
        (SpanStyle.MATH, "x^2"),
        (SpanStyle.MATH | SpanStyle.DISPLAY, "y"),
    ]
    assert line.plain() == "so $x^2$ is $$y$$"
    assert line.from_plain(5) == 4
    assert Line("plain").plain() == "plain"


@given(st.text("ab漢😀", max_size=12), st.integers(0, 16), st.integers(0, 16))
def test_a_slice_counts_units(text, start, end):
    raw = text.encode("utf-16-le")[start * 2 : end * 2]
    assert make_slicer(text)(start, end) == slice_utf16(text, start, end) == raw.decode("utf-16-le", "ignore")


@pytest.mark.parametrize("char", ["\u2029", "\u202e", "\U000e0041"])
def test_a_text_of_many_parts_is_looked_at_once(monkeypatch, char):
    line = parse_inline(f"a{char}" * 500, NOTES)
    assert len(line.spans) == 500
    texts = []
    monkeypatch.setattr(written_module, "make_slicer", lambda text: texts.append(text) or make_slicer(text))
    assert line_to_markdown(line) == f"a{char}" * 500
    assert line_to_html(line).count("a⟨U+") == 500
    assert texts == [line.text] * 2
