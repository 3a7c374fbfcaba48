"""What is looked for is found where it is, in every script, and never half a character."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frame.examples import examples
from tests.ui.transcript.random_markdown import markdown
from ui.transcript.find.matches import Query
from ui.transcript.markdown.inline import parse_inline, slice_utf16
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.markdown.text_units import utf16_length


def found(query, text, **options):
    return [slice_utf16(text, *span) for span in Query(query, **options).find_all(text)]


@pytest.mark.parametrize(
    ("query", "text", "parts"),
    [
        ("word", "A Word, sWORDs", ["Word", "WORD"]),
        ("strasse", "Straße STRASSE", ["Straße", "STRASSE"]),
        ("ß", "Strasse Fuß", ["ss", "ß"]),
        ("s", "ß s", ["s"]),
        ("istanbul", "İstanbul ISTANBUL", ["İstanbul", "ISTANBUL"]),
        ("İ", "i İ ı", ["i", "İ"]),
        ("ffi", "o\ufb03ce ffi", ["\ufb03", "ffi"]),
        ("f", "\ufb03", []),
        ("b", "😀a👩‍🚀b", ["b"]),
        ("😀", "a😀b😀", ["😀", "😀"]),
        ("漢", "漢字漢", ["漢", "漢"]),
        ("aa", "aaaaa", ["aa", "aa"]),
        ("two words", "two\u00a0words two\nwords", ["two\u00a0words", "two\nwords"]),
        ("ΣΑΣ", "σας ΣΑΣ", ["σας", "ΣΑΣ"]),
        ("", "anything", []),
    ],
)
def test_case_is_folded_and_places_are_those_of_the_text(query, text, parts):
    assert found(query, text) == parts


def test_case_matters_when_it_is_asked_for():
    assert found("Word", "word Word WORD", match_case=True) == ["Word"]
    assert found("ß", "ss ß", match_case=True) == ["ß"]


@pytest.mark.parametrize(
    ("query", "text", "count"),
    [
        ("cat", "cat concat cats cat_ Cat. cat", 3),
        ("e", "e\u0301 e", 1),
        ("字", "漢字漢", 1),
        ("c++", "c++ c++x", 2),
        ("x = 1", "x = 1; max = 10; x = 1", 2),
    ],
)
def test_whole_words_end_where_words_end(query, text, count):
    assert len(found(query, text, whole_words=True)) == count


def test_what_stands_behind_letters_that_grow_is_where_it_is():
    text = "ßßß😀 target İİ target"
    spans = Query("target").find_all(text)
    assert [text.encode("utf-16-le")[2 * a : 2 * b].decode("utf-16-le") for a, b in spans] == ["target", "target"]


@settings(deadline=None)
@given(st.text(max_size=40), st.text(min_size=1, max_size=4), st.booleans(), st.booleans())
def test_spans_follow_each_other_and_say_what_was_asked(text, words, match_case, whole_words):
    query = Query(words, match_case=match_case, whole_words=whole_words)
    previous_end = 0
    for start, end in query.find_all(text):
        assert previous_end <= start < end <= utf16_length(text)
        part = slice_utf16(text, start, end)
        assert Query(part, match_case=match_case).find_all(part) == [(0, utf16_length(part))]
        previous_end = end
    if not whole_words and match_case:
        assert bool(query.find_all(f"{text}{words}"))


@settings(max_examples=examples(300), deadline=None)
@given(markdown, st.data())
def test_no_word_that_is_shown_is_missed_by_the_cheap_look(text, data):
    leaves, references = parse_leaves(text)
    for leaf in leaves:
        lines = [parse_inline(cell, references).plain() for row in leaf.cells for cell in row]
        lines.append(leaf.text if leaf.kind in {"code", "math"} else parse_inline(leaf.text, references).plain())
        for line in filter(None, lines):
            start = data.draw(st.integers(0, len(line) - 1))
            query = line[start : start + 12]
            assert Query(query).may_match(text), (query, line)
            assert Query(query, match_case=True).may_match(text), (query, line)


def test_the_cheap_look_leaves_out_what_is_certainly_not_there():
    assert not Query("nowhere").may_match("Some **text** with `code` and a [link](https://x.org).")
    assert Query("unbelievable").may_match("un*believ*able")
    assert Query("café").may_match("caf&eacute;")
    assert Query("->").may_match("anything")
