"""The files of translations: finished entries are whole, and the project's command updates them."""

import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QTranslator

from resources import resource_path
from tests.frame.translations import compiled, script
from ui.style.text import show_hidden

ts_file, source_strings, translations = script("ts_file"), script("source_strings"), script("translations")
SourceString, Translation = source_strings.SourceString, ts_file.Translation
LANGUAGES = sorted(ts_file.LANGUAGES)


@cache
def source_texts() -> list[Any]:
    """All strings of the source; collecting them parses every module."""
    return source_strings.source_strings()


@cache
def saved(language: str) -> Any:
    return ts_file.read_ts(ts_file.ts_path(language))


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_finished_is_whole(language: str) -> None:
    """Placeholders, forms of numbers and ellipses as in the source, and nothing empty."""
    catalog = saved(language)
    finished = {string: each for string, each in catalog.items() if each.finished}
    assert len(finished) > 2_000
    wrong = {string.text: ts_file.problems(string, each, language) for string, each in finished.items()}
    assert {text: found for text, found in wrong.items() if found} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_has_a_space_that_is_spelled_out_on_the_screen(language: str) -> None:
    """A sentence may quote others, so screens spell out hidden characters in it, also no-break spaces."""
    sentences = (each for string, each in saved(language).items() if string.context == "Sentence")
    assert [form for each in sentences for form in each.forms if show_hidden(form) != form] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_file_is_as_linguist_writes_it(language: str, tmp_path: Path) -> None:
    path = ts_file.ts_path(language)
    root = ElementTree.parse(path).getroot()
    assert (root.tag, root.get("language"), root.get("sourcelanguage")) == ("TS", language, "en")
    ts_file.write_ts(tmp_path / "again.ts", language, ts_file.read_ts(path))
    assert (tmp_path / "again.ts").read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_qt_answers_with_what_the_file_says(language: str) -> None:
    (path,) = (each for each in compiled() if each.stem.endswith(f"_{language}"))
    translator = QTranslator()
    assert translator.load(str(path))
    catalog = saved(language)
    answers = {
        string: translator.translate(string.context, string.text, string.comment)
        for string, each in catalog.items()
        if each.finished and not string.numerus
    }
    assert {string: answer for string, answer in answers.items() if answer != catalog[string].forms[0]} == {}


KEYS = re.compile(r"\b(?:Ctrl|Alt|Shift|F\d|Up|Down|Left|Right|Del|Delete|End)\b(?:\+\w+)*")
GERMAN_KEYS = {"Strg": "Ctrl", "Umschalt": "Shift", "Hoch": "Up", "Runter": "Down", "Links": "Left", "Rechts": "Right"}
GERMAN_KEYS |= {"Entf": "Del", "Ende": "End"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_guide_says_the_same_in_each_language(language: str) -> None:
    """The guides have equal outlines and keys, and call buttons and pages as the window does."""
    english = resource_path("guide.md").read_text(encoding="utf-8")
    catalog = saved(language)
    names: dict[str, set[str]] = {}
    for string, each in catalog.items():
        names.setdefault(string.text, set()).add(each.forms[0])
    (file,) = names["guide.md"]
    text = resource_path(file).read_text(encoding="utf-8")
    assert _outline(text) == _outline(english)
    if language == "de":
        text_of_keys = re.sub("|".join(GERMAN_KEYS), lambda found: GERMAN_KEYS[found[0]], text)
    else:
        text_of_keys = text
    assert _keys(text_of_keys) == _keys(english)
    # One bold beginning of a sentence reads like the name of the editor.
    names.pop("Write a message")
    shown = [name for name in re.findall(r"\*{1,2}([^*]+)\*{1,2}", english) if name in names]
    assert len(shown) > 10
    assert [name for name in shown if not any(form in text for form in names[name])] == []


def _outline(text: str) -> list[str]:
    return [found[0] for line in text.splitlines() if (found := re.match(r"#+ |- |\d+\. |\|", line))]


def _keys(text: str) -> set[str]:
    return {found.replace("Delete", "Del") for found in KEYS.findall(text)}


def test_accelerators_of_one_menu_differ() -> None:
    """Those of the transcript; Chinese ones stand in brackets behind the words."""
    for language in LANGUAGES:
        catalog = saved(language)
        pairs = {string.text: each.forms[0] for string, each in catalog.items() if string.context == "Transcript"}
        with_keys = {text: form for text, form in pairs.items() if "&" in text}
        assert len(with_keys) > 12
        keys = [form[form.index("&") + 1].casefold() for form in with_keys.values()]
        assert len(keys) == len(set(keys)), (language, with_keys)


def test_every_kind_of_string_is_found() -> None:
    found = set(source_texts())
    assert len(found) > 2_000
    for string in (
        SourceString("SendStopButton", "Send"),  # tr
        SourceString("Transcript", "Copied."),  # a function of another module that calls translate
        SourceString("ConversationMenu", "Pin"),  # translate, with a context from a variable
        SourceString("ToolLabels", "Only reads"),  # a function of its module that calls translate
        SourceString("dates", "{0} {1}", "a date and a time of day"),  # with a comment
        SourceString("QuestionCard", "The agent asks (%n more wait)", numerus=True),  # with a number
        SourceString("Sentence", "The API key was not accepted: {message}"),  # a class of errors
        SourceString("Sentence", "There is nothing to export."),  # a sentence of the runtime
        SourceString("Preferences", "Prompt caching"),  # the title of a declared setting
        SourceString("Preferences", "Comfortable"),  # one of its choices
        SourceString("Preferences", "The server's default"),  # a hint of the form
    ):
        assert string in found, string
    # Names of languages are the same in every language.
    assert not {each for each in found if each.text in {"Deutsch", "Zh_cn"}}


def test_what_is_new_comes_in_unfinished_and_what_is_gone_goes() -> None:
    old = {
        SourceString("A", "Send"): Translation(("Senden",)),
        SourceString("A", "Old"): Translation(("Alt",)),
    }
    strings = [SourceString("A", "Send"), SourceString("B", "Send"), SourceString("B", "%n new", numerus=True)]
    assert translations.merge(strings, old, "de") == {
        SourceString("A", "Send"): Translation(("Senden",)),
        SourceString("B", "Send"): Translation(("Senden",), finished=False),
        SourceString("B", "%n new", numerus=True): Translation(("", ""), finished=False),
    }


@pytest.mark.parametrize(
    ("text", "forms", "numerus"),
    [
        ("Save {name}", ("Speichern",), False),
        ("Save {name}", ("{nane} speichern",), False),
        ("Save", (" ",), False),
        ("%n new", ("%n neu",), True),
        ("Save as…", ("Speichern unter",), False),
    ],
)
def test_a_seeded_fault_is_found(text: str, forms: tuple[str, ...], numerus: bool) -> None:
    assert ts_file.problems(SourceString("A", text, numerus=numerus), Translation(forms), "de")


def test_the_check_says_how_much_has_no_translation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["translations.py", "--check"])
    monkeypatch.setattr(translations, "source_strings", source_texts)
    code = translations.main()
    said = capsys.readouterr().out
    lines = [line for line in said.splitlines() if not line.startswith("    ")]
    assert [line.split(":")[0] for line in lines] == list(ts_file.LANGUAGES)
    lacks = sum(int(line.split(", ")[1].split()[0]) for line in lines)
    assert code == (1 if lacks else 0), said


def test_the_check_counts_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["translations.py", "--check"])
    monkeypatch.setattr(translations, "source_strings", lambda: [SourceString("Nowhere", "Words of no screen")])
    assert translations.main() == 1
    assert "1 strings, 1 without translation" in capsys.readouterr().out
