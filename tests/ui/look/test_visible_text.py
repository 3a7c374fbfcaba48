import pytest

from ui.look.visible_text import by_number, deceptive, with_hidden_shown


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


def seen(text, **how):
    hidden = set(deceptive(text, **how))
    return "".join(by_number(char) if at in hidden else char for at, char in enumerate(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm \u202e x", "rm ⟨U+202E⟩ x"),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("a\u200db", "a⟨U+200D⟩b"),
        ("\x1b[31m\x7f", "⟨U+001B⟩[31m⟨U+007F⟩"),
        ("abc\u200fdef", "abc⟨U+200F⟩def"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("a\ufe00b\ufe01", "a⟨U+FE00⟩b⟨U+FE01⟩"),
        ("❤\ufe0f\ufe0f", "❤\ufe0f⟨U+FE0F⟩"),
        ("\u3164x\u2800y", "⟨U+3164⟩x⟨U+2800⟩y"),
        ("\ufffc\u2028", "⟨U+FFFC⟩⟨U+2028⟩"),
        ("می\u200c\u200cخواهم", "می\u200c⟨U+200C⟩خواهم"),
        ("🏴\U000e0067\U000e0062\U000e0041\U000e007f", "🏴⟨U+E0067⟩⟨U+E0062⟩⟨U+E0041⟩⟨U+E007F⟩"),
    ],
)
def test_what_could_deceive_is_seen(text, shown):
    assert seen(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain text\n\ttabbed über 你好 🍜",
        "👨\u200d👩\u200d👧 👩🏽\u200d💻 🏳\ufe0f\u200d🌈 1\ufe0f\u20e3",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "می\u200cخواهم क्\u200dष",
        "สวัส\u200bดี",
        "soft\u00adhyphen no\u00a0break\u3000あ",
        "שלום\u200f!",
        "\u2800⠿\u2800",
        "葛\U000e0100",
    ],
)
def test_what_belongs_to_the_writing_of_people_stays(text):
    assert seen(text) == text


def test_direction_marks_have_no_business_in_code():
    assert seen('x = "שלום\u200f"', is_code=True) == 'x = "שלום⟨U+200F⟩"'
