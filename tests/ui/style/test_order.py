import pytest
from PySide6.QtGui import QTextLayout

from desktop_agent.types.errors import Sentence, ServerFailed
from tests.ui.drawn_order import from_left
from ui.style.text import strip_bidi_marks, translate_sentence
from ui.style.text_display import (
    LEFT_TO_RIGHT_MARK,
    bidi_mark_positions,
    displayed_positions,
    in_logical_order,
    isolate,
    isolate_untrusted,
)


def drawn(text):
    layout = QTextLayout(LEFT_TO_RIGHT_MARK + text)
    layout.beginLayout()
    layout.createLine().setLineWidth(10_000)
    layout.endLayout()
    return from_left(layout)


LINES = ["mv א ב", "cat א > ב", "cp א/ס ב; ls", "echo 1 א 2 ב 3", "\u0665 \u0666 > ل", "a 'א' && b \"ב\"", "א=ב -- ג"]


@pytest.mark.parametrize("line", LINES)
def test_what_stands_first_is_drawn_first(qapp, line):
    assert drawn(in_logical_order(line)) == line.replace(" ", "")


def test_a_word_reads_as_its_language_does(qapp):
    assert drawn(in_logical_order("rm שלום")) == "rm" + "שלום"[::-1]


@pytest.mark.parametrize("line", [*LINES, "plain", "é 😀", "שָׁלוֹם x"])
def test_without_the_marks_it_is_the_text_again(line):
    assert strip_bidi_marks(in_logical_order(line)) == line
    assert strip_bidi_marks(isolate(line)) == line


def test_what_turns_nothing_has_no_marks():
    assert in_logical_order("mv é 漢 😀") == isolate("mv é 漢 😀") == "mv é 漢 😀"


def test_places_are_found_again_in_qts_units():
    text = "😀 א rm ב"
    marked = in_logical_order(text).encode("utf-16-le")
    for start, end in ((0, 1), (2, 3), (4, 6), (7, 8)):
        first, last = displayed_positions(text, [start, end])
        part = marked[2 * first : 2 * last].decode("utf-16-le")
        assert strip_bidi_marks(part) == text[start:end]
    found = marked.decode("utf-16-le")
    assert [marked[2 * at : 2 * at + 2].decode("utf-16-le") for at in bidi_mark_positions(text)] == [
        each for each in found if each in "\u2067\u2069"
    ]


def test_what_is_filled_in_turns_nothing_around_it(qapp):
    inner = Sentence("in {folder}", {"folder": "/א/ב"})
    sentence = Sentence("Runs {line} {where}", {"line": "mv ג ד", "where": inner})
    assert drawn(translate_sentence(sentence, isolate_untrusted)) == "Runsmvגדin/א/ב"
    assert strip_bidi_marks(translate_sentence(sentence, isolate_untrusted)) == "Runs mv ג ד in /א/ב"
    assert drawn(f"א {isolate('mv ג > ד')} ב")[1:-1] == "mvג>ד"


def test_marks_of_others_are_seen():
    assert isolate_untrusted("a\u2066ב") == "\u2066a⟨U+2066⟩\u2067ב\u2069\u2069"


def test_what_a_server_wrote_hides_nothing_in_a_sentence_and_keeps_its_emoji(qapp):
    error = ServerFailed("\u202eyek ruoy\x1b ❤️ 1\u00a0€")
    assert translate_sentence(error.sentence) == "The model server reported: ⟨U+202E⟩yek ruoy⟨U+001B⟩ ❤️ 1\u00a0€."


def test_line_ends_of_windows_hide_nothing_and_a_lone_return_does(qapp):
    for said, shown in (("Bad Gateway\r\nTry later", "Bad Gateway\nTry later"), ("a\rb é\r\nc", "a⟨U+000D⟩b é\nc")):
        assert translate_sentence(ServerFailed(said).sentence) == f"The model server reported: {shown}."
