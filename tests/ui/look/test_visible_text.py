import pytest

from ui.look.visible_text import with_hidden_shown


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
    ],
)
def test_hidden_characters_are_seen(text, shown):
    assert with_hidden_shown(text) == shown
