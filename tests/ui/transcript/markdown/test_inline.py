"""Runs of styled text, and how open markup is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.transcript.markdown.inline import SpanStyle, parse_image_only, parse_inline, slice_utf16
from ui.transcript.markdown.open_blocks import close_open_inline
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.markdown.text_units import utf16_length


def styled(text, references=None):
    line = parse_inline(text, references)
    return line.text, [(slice_utf16(line.text, s.start, s.start + s.length), s.style, s.href) for s in line.spans]


def test_styles_and_offsets_in_utf16_units():
    text, spans = styled("😀 **b** *i* ~~s~~ `c` 漢")
    assert text == "😀 b i s c 漢"
    assert spans == [
        ("b", SpanStyle.BOLD, ""),
        ("i", SpanStyle.ITALIC, ""),
        ("s", SpanStyle.STRIKE, ""),
        ("c", SpanStyle.CODE, ""),
    ]


@pytest.mark.parametrize(
    "target", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "//host/x", "x.md"]
)
def test_only_web_and_mail_links_lead_anywhere(target):
    text, spans = styled(f"[a]({target}) b")
    assert all(not href for _, _, href in spans)
    assert "a" in text


def test_links_of_all_forms():
    _, references = parse_leaves("[r]: https://r.org")
    text, spans = styled("[x](http://x.org) <https://y.org> https://z.org/a, [r] [m](mailto:a@b.c)", references)
    assert text == "x https://y.org https://z.org/a, r m"
    assert [href for _, _, href in spans] == [
        "http://x.org",
        "https://y.org",
        "https://z.org/a",
        "https://r.org",
        "mailto:a@b.c",
    ]


def test_a_remote_picture_is_named_not_fetched():
    image = parse_image_only("![a chart](https://x.org/c.png)")
    assert (image.label, image.target) == ("a chart", "https://x.org/c.png")
    assert parse_image_only("![a](b) and text") is None
    text, spans = styled("see ![a chart](https://x.org/c.png) here")
    assert text == "see [a chart] here"
    assert spans == [("[a chart]", SpanStyle.IMAGE | SpanStyle.LINK, "https://x.org/c.png")]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a **b", "a **b**"),
        ("a **b *c", "a **b *c***"),
        ("a **", "a "),
        ("a *", "a "),
        ("a `c", "a `c`"),
        ("a `", "a "),
        ("a ``x`y", "a ``x`y``"),
        ("see [the doc](https://x.o", "see the doc"),
        ("see [the do", "see the do"),
        ("2 * 3 is", "2 * 3 is"),
        ("snake_case_name", "snake_case_name"),
        ("**b** and *c*", "**b** and *c*"),
        (r"a \*b", r"a \*b"),
        ("~~gone", "~~gone~~"),
    ],
)
def test_open_markup_is_shown_as_if_it_were_closed(written, shown):
    assert close_open_inline(written) == shown


@given(st.text(st.one_of(st.characters(), st.sampled_from("\ud83d\ude00\U0010ffff\uffff"))))
def test_only_what_is_beyond_the_first_plane_is_two_units(text):
    assert utf16_length(text) == sum(1 + (char > "\uffff") for char in text)


def test_lengths_and_slices_count_utf16_units():
    assert utf16_length("a😀b") == 4
    assert utf16_length("\ud83d漢") == 2
    assert slice_utf16("a😀b", 1, 3) == "😀"
    assert slice_utf16("a😀b", 3, 9) == "b"


def test_hidden_characters_are_spelled_out_and_ordinary_ones_stay():
    assert styled("a\u202eb `c\u200bd` **e\u2066**") == (
        "a⟨U+202E⟩b c⟨U+200B⟩d e⟨U+2066⟩",
        [
            ("⟨U+202E⟩", SpanStyle.HIDDEN, ""),
            ("c", SpanStyle.CODE, ""),
            ("⟨U+200B⟩", SpanStyle.CODE | SpanStyle.HIDDEN, ""),
            ("d", SpanStyle.CODE, ""),
            ("e", SpanStyle.BOLD, ""),
            ("⟨U+2066⟩", SpanStyle.BOLD | SpanStyle.HIDDEN, ""),
        ],
    )
    assert parse_inline("👨\u200d👩\u200d👧 می\u200cخواهم").spans == ()
    assert parse_inline("numbered &#x202e; too").text == "numbered ⟨U+202E⟩ too"
    assert parse_inline("\u202e" + "long " * 1000).text.startswith("⟨U+202E⟩long")


def test_our_own_signs_are_not_taken_for_hidden_ones():
    assert styled("a\n$x$ \ufffc\u2028") == (
        "a\u2028\ufffc ⟨U+FFFC⟩⟨U+2028⟩",
        [("\ufffc", SpanStyle.MATH, ""), ("⟨U+FFFC⟩⟨U+2028⟩", SpanStyle.HIDDEN, "")],
    )


def test_a_reference_leads_to_its_footnote_where_there_is_one():
    _, references = parse_leaves("[^a]: note")
    assert styled("word[^a] [^b]", references) == ("word[a] [^b]", [("[a]", SpanStyle.FOOTNOTE, "#fn:a")])


def test_two_links_to_one_place_that_touch_are_two():
    _, spans = styled("[a](https://x.org)[b](https://x.org)")
    assert [words for words, _, _ in spans] == ["a", "b"]


def test_a_picture_is_named_by_the_words_of_its_description():
    assert styled("![**a** `b` $x$](c)")[0] == "[a b x]"
    assert parse_image_only("![**a** b](https://x.org/c.png)").label == "a b"
