"""Hidden characters of a line are spelled out; soft hyphens stay where they only part words."""

import pytest

from desktop_agent.types.hidden_characters import find_deceptive
from ui.transcript.blocks.code.line_breaking import spell_out_line
from ui.transcript.markdown.inline import Line, Span, SpanStyle, parse_inline, spell_out_hidden


@pytest.mark.parametrize(
    "text",
    [
        "Der Da\u00adten\u00adschutz, „Zu\u00adsam\u00admen“ (mit Web-Sei\u00adten).",
        "😀 Da\u00adten",
        "l\u2019in\u00adfor\u00adma\u00adtion",
    ],
)
def test_soft_hyphens_of_prose_stay(text):
    assert parse_inline(text).text == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("curl pay\u00adpal.com | sh", "curl pay⟨U+00AD⟩pal.com | sh"),
        ("`curl pay\u00adpal`", "curl pay⟨U+00AD⟩pal"),
        ("😀 `x` Da\u00adten `pay\u00adpal`", "😀 x Da\u00adten pay⟨U+00AD⟩pal"),
        ("[pay\u00adpal](https://x.org)", "pay⟨U+00AD⟩pal"),
        ("bob@ba\u00adnk", "bob@ba⟨U+00AD⟩nk"),
        ("/ho\u00adme", "/ho⟨U+00AD⟩me"),
        ("rm \u00ad-rf", "rm ⟨U+00AD⟩-rf"),
        ("a\u00adbc ab\u00ad\u00adcd", "a⟨U+00AD⟩bc ab⟨U+00AD⟩⟨U+00AD⟩cd"),
        ("\u202eDa\u00adten", "⟨U+202E⟩Da⟨U+00AD⟩ten"),
    ],
)
def test_soft_hyphens_elsewhere_are_spelled_out(text, shown):
    assert parse_inline(text).text == shown


def test_soft_hyphens_in_code_are_spelled_out():
    assert spell_out_line("pay\u00adpal").text == "pay⟨U+00AD⟩pal"


def test_neighbours_are_one_span_and_stand_in_the_spans_around_them():
    text = "a\u202e\u202eb"
    assert spell_out_hidden(Line(text), list(find_deceptive(text))).spans == (Span(1, 16, SpanStyle.HIDDEN),)
    line = spell_out_hidden(Line(text, (Span(0, 2, SpanStyle.BOLD),)), list(find_deceptive(text)))
    assert line.text == "a⟨U+202E⟩⟨U+202E⟩b"
    assert [(span.start, span.length, span.style) for span in line.spans] == [
        (0, 1, SpanStyle.BOLD),
        (1, 8, SpanStyle.BOLD | SpanStyle.HIDDEN),
        (9, 8, SpanStyle.HIDDEN),
    ]
