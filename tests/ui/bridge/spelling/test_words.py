"""Which words of a line are judged, and where they are."""

import pytest

from ui.bridge.spelling.words import is_fence, prose_words


def words(line):
    return [word.text for word in prose_words(line)]


def test_each_word_has_its_place():
    line = "Helo, „wrld“: don’t"
    assert [(line[word.start : word.end], word.text) for word in prose_words(line)] == [
        ("Helo", "Helo"),
        ("wrld", "wrld"),
        ("don’t", "don't"),
    ]


def test_a_word_is_asked_for_as_dictionaries_write_it():
    assert words("u\u0308ber") == ["über"]


@pytest.mark.parametrize(
    ("line", "judged"),
    [
        ("run `teh comand` now", ["run", "now"]),
        ("run ``teh ` comand`` now", ["run", "now"]),
        ("run `teh comand", ["run"]),
        ("see https://exmple.org/teh or www.exmple.org", ["see", "or"]),
        ("write to sombody@exmple.org", ["write", "to"]),
        ("in ~/teh or C:\\teh or src/teh or main.py", ["in", "or", "or", "or"]),
        ("the 3rd utf8 snake_cse camelCse --optn $VARIBLE #tagg", ["the"]),
        ("call fuction() or a[indx] or x=teh or foo::barr", ["call", "or", "or", "or"]),
        ("the HTPP of an A", ["the", "of", "an"]),
        ("用中文写 and ภาษาไทย", ["and"]),
        ("**bold** (and) “so” on-line.", ["bold", "and", "so", "on", "line"]),
        ("हिन्दी здесь", ["हिन्दी", "здесь"]),
    ],
)
def test_only_prose_is_judged(line, judged):
    assert words(line) == judged


def test_fences_begin_and_end_code():
    assert is_fence("```python")
    assert is_fence("  ~~~")
    assert not is_fence("`code`")


def test_an_endless_line_of_backticks_is_read_at_once():
    assert words("` `` ``` " * 5_000 + "word") == ["word"]
