import unicodedata

import pytest

from ui.style.text import code_point_text, show_hidden


def test_controls_and_formats_are_written_out():
    formats = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    hidden = {code for code in range(0x110000) if unicodedata.category(chr(code)) in formats} - {9, 10}
    assert len(hidden) > 2000
    assert [hex(code) for code in hidden if show_hidden(chr(code)) != code_point_text(chr(code))] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text\n\ttabbed", "plain text\n\ttabbed"),
        ("rm \u202e x", "rm ⟨U+202E⟩ x"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("\x1b[31m", "⟨U+001B⟩[31m"),
        ("a\u00a0b\u3164c", "a⟨U+00A0⟩b⟨U+3164⟩c"),
        ("line\r\nend", "line⟨CR⟩\nend"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("half\ud800", "half⟨U+D800⟩"),
        ("über 你好 🍜", "über 你好 🍜"),
        ("ệ שָׁלֹ֑ום", "ệ שָׁלֹ֑ום"),
        ("e\u0301\u0301\u0301\u0301\u0301\u0302x", "e\u0301\u0301\u0301\u0301⟨U+0301⟩⟨U+0302⟩x"),
    ],
)
def test_hidden_characters_are_seen(text, shown):
    assert show_hidden(text) == shown
