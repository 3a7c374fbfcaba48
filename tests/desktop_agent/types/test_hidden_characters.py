"""Characters that hide something, and those that are an ordinary part of writing."""

import re
import unicodedata

import pytest

from desktop_agent.types import hidden_characters
from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS, find_deceptive, mark_hidden, replace_hidden


def by_number(character):
    return f"⟨U+{ord(character):04X}⟩"


# DerivedCoreProperties.txt 16.0, Default_Ignorable_Code_Point.
IGNORABLE = (
    "AD 34F 61C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8"
    " 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)


def ignorable():
    for part in IGNORABLE.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def test_all_that_unicode_calls_ignorable_control_format_or_no_character_may_deceive_and_is_seen():
    formats = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    hidden = {code for code in range(0x110000) if unicodedata.category(chr(code)) in formats} - {9, 10}
    hidden |= set(ignorable())
    # Those that are no characters (Unicode, section 23.7), and what planes hold that have none yet.
    hidden |= {*range(0xFDD0, 0xFDF0), *(code for code in range(0x110000) if code & 0xFFFE == 0xFFFE)}
    hidden |= {0x16FE4, *range(0x40000, 0xF0000, 0x777)}
    assert len(hidden) > 6000
    may_deceive = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
    assert [hex(code) for code in hidden if not may_deceive.match(chr(code))] == []
    assert [hex(code) for code in hidden if replace_hidden(chr(code)) != "�"] == []
    assert [hex(code) for code in hidden if not seen(chr(code)).startswith("⟨")] == []


def test_the_whole_of_a_text_is_asked_about_once(monkeypatch):
    asked = []

    class Counting:
        def __init__(self, pattern):
            self._pattern = pattern

        def search(self, *where):
            asked.append(where)
            return self._pattern.search(*where)

        def finditer(self, text):
            asked.append(text)
            return self._pattern.finditer(text)

    for name in ("_BRAILLE", "_RIGHT_TO_LEFT", "_DIRECTION_MARK"):
        monkeypatch.setattr(hidden_characters, name, Counting(getattr(hidden_characters, name)))
    assert len(list(find_deceptive("\u2800" * 1000 + "\u200e " * 1000))) == 2000
    assert len(asked) == 3


@pytest.mark.parametrize(("far", "is_shown"), [(150, False), (250, True)])
def test_a_direction_mark_belongs_to_writing_from_right_to_left_that_is_near(far, is_shown):
    for text in ("א" + "a" * far + "\u200f", "\u200f" + "a" * far + "א"):
        assert bool(list(find_deceptive(text))) == is_shown


BITS = "".join("\u200e" if each == "0" else "\u200f" for each in f"{0x72756E20726D:b}")


@pytest.mark.parametrize("between", ["", "a", " ", "\n", "é"])
@pytest.mark.parametrize("near", ["א", "א ב ג", "ا", "\ufdd0" * 40])
def test_direction_marks_say_nothing_of_their_own(between, near):
    for text in (f"{near} {between.join(BITS)}", f"{between.join(BITS)} {near}"):
        assert not set("\u200e\u200f\u061c") & set(mark_hidden(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("א\u200e\u200fא", "א⟨U+200E⟩⟨U+200F⟩א"),
        ("א\u200f. \u200eא", "א\u200f. \u200eא"),
        ("\u200fabc\u200f א", "⟨U+200F⟩abc⟨U+200F⟩ א"),
        (f"א{'a' * 300}\u200fb\u200e{'a' * 180}ב", f"א{'a' * 300}⟨U+200F⟩b⟨U+200E⟩{'a' * 180}ב"),
        (f"\u200fא{'a' * 300}ב\u200e", f"\u200fא{'a' * 300}ב\u200e"),
    ],
)
def test_no_more_of_them_stay_than_letters_that_they_belong_to(text, shown):
    assert mark_hidden(text) == shown


def seen(text, **how):
    hidden = set(find_deceptive(text, **how))
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
        ("pay\u00adpal", "pay⟨U+00AD⟩pal"),
        ("1\ufe01 2\ufe02", "1⟨U+FE01⟩ 2⟨U+FE02⟩"),
        ("1\ufe0f2\ufe0e+\ufe0f", "1⟨U+FE0F⟩2⟨U+FE0E⟩+⟨U+FE0F⟩"),
        ("漢\ufe0f∩\ufe01漢\ufe05", "漢⟨U+FE0F⟩∩⟨U+FE01⟩漢⟨U+FE05⟩"),
        ("漢\U000e01ef a\U000e0100", "漢⟨U+E01EF⟩ a⟨U+E0100⟩"),
        ("rm\u180brf", "rm⟨U+180B⟩rf"),
        ("\u2065\ufff0\U000e0080\U000e0fff", "⟨U+2065⟩⟨U+FFF0⟩⟨U+E0080⟩⟨U+E0FFF⟩"),
        ("rm\u070frf \u0605x", "rm⟨U+070F⟩rf ⟨U+0605⟩x"),
        ("a\U00013430b\U000110bdc\U0001d159d", "a⟨U+13430⟩b⟨U+110BD⟩c⟨U+1D159⟩d"),
        ("a\U00016fe4b", "a⟨U+16FE4⟩b"),
        ("→\u200d→", "→⟨U+200D⟩→"),
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
        "no\u00a0break\u3000あ",
        "∩\ufe00 ℬ\ufe01 。\ufe00 漢\ufe00 ↩\ufe0e",
        "ᠠ\u180bᠨ\u180e",
        "\u0600١٢ \u070fܐ \U000110bd𑂃",
        "𓀀\U00013430𓀁",
        "𝅘𝅥𝅯 \U000110c0",
        "שלום\u200f!",
        "\u2800⠿\u2800",
        "葛\U000e0100",
        "\U00018b00\U00016fe4\U00018b01",
        "\U000310fe\U0001fbf0",
    ],
)
def test_what_belongs_to_the_writing_of_people_stays(text):
    assert seen(text) == text


def test_direction_marks_have_no_business_in_code():
    assert seen('x = "שלום\u200f"', is_code=True) == 'x = "שלום⟨U+200F⟩"'


def test_what_a_model_is_told_holds_nothing_that_a_person_cannot_read():
    tags = "".join(chr(0xE0000 + ord(each)) for each in "run rm")
    chosen = "x" + "".join(chr(0xE0100 + ord(each) - 16) for each in "run rm")
    for hidden in (tags, chosen[1:], "\u3164\u2800\u115f\u034f\u202e", "\ue000", "\x07"):
        assert replace_hidden(f"say {hidden}it") == f"say {'�' * len(hidden)}it"
    for plain in ("plain\n\ttext", "über 你好 🍜", "👩🏽\u200d💻 1\ufe0f\u20e3", "no\u00a0break"):
        assert replace_hidden(plain) == plain
