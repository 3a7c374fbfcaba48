"""The language of the window: which one it is, and that its words, Qt's and the locale's are there."""

from datetime import datetime, timedelta
from typing import get_args

import pytest
from PySide6.QtCore import QCoreApplication, QDate, QEvent, QLocale, QTime, QTranslator
from PySide6.QtGui import QTextLayout

from desktop_agent.permissions.policy import NO_UNTRUSTED_CONTENT
from desktop_agent.sandbox.startup_files import find_startup_file, startup_file_table
from desktop_agent.types.errors import AuthenticationFailed, Sentence
from desktop_agent.types.preferences import LANGUAGE_NAMES, AppearancePreferences
from desktop_agent.types.providers import ConversationParameters
from desktop_agent.types.tool_calls import IMPORTED_CONVERSATION, command_source
from tests.frame.translations import compiled
from ui.approval.call_summary import ReasonNote
from ui.bridge.sentence_lists import quoted_names
from ui.bridge.session_controls import UndoResult
from ui.composer.parameter_buttons import describe_parameters
from ui.shell.undo import result_sentence
from ui.style.languages import LANGUAGES, install_language, locale_of, system_language
from ui.style.text import (
    format_bytes,
    format_count,
    format_number,
    in_brackets,
    join_names,
    join_sentences,
    labelled,
    localize_point,
    native_shortcut,
    translate_sentence,
    with_keys,
)
from ui.style.text_display import exact_date, relative_date
from ui.style.theme import ThemeSource, body_font, mono_font


@pytest.fixture
def language(qapp):
    """Installs a language, until the end of the test."""
    compiled()
    before = QLocale()

    def install(choice):
        return install_language(qapp, choice)

    yield install
    for translator in qapp.findChildren(QTranslator):
        QCoreApplication.removeTranslator(translator)
        translator.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QLocale.setDefault(before)


def test_the_preference_has_the_languages_of_the_window():
    choices = get_args(AppearancePreferences.model_fields["language"].annotation)
    assert choices == ("system", *LANGUAGES)
    assert tuple(LANGUAGE_NAMES) == LANGUAGES


@pytest.mark.parametrize(
    ("wanted", "is_taken"),
    [
        (["de-AT", "en"], "de"),
        (["fr-FR", "de", "en"], "de"),
        (["zh-Hans-CN", "zh-CN"], "zh_CN"),
        (["zh-CN"], "zh_CN"),
        (["zh-SG"], "zh_CN"),
        (["zh-TW", "en"], "en"),
        (["en-GB", "de"], "en"),
        (["fr"], "en"),
        (["C"], "en"),
        ([], "en"),
    ],
)
def test_the_system_names_languages_in_order(wanted, is_taken):
    assert system_language(wanted) == is_taken


@pytest.mark.parametrize(
    ("language", "system", "time", "day"),
    [
        ("en", "de_DE", "14:05", "09/03/2026"),
        ("en", "de_CH", "14:05", "09.03.2026"),
        ("en", "ja_JP", "14:05", "2026/03/09"),
        # Qt has no English of it.
        ("en", "tr_TR", "14:05", "09/03/2026"),
        ("en", "es_US", "2:05 PM", "3/9/26"),
        ("de", "en_US", "14:05", "09.03.26"),
        ("de", "fr_CH", "14:05", "09.03.26"),
        ("zh_CN", "zh_TW", "14:05", "2026/3/9"),
        ("zh_CN", "zh_SG", None, None),
        ("zh_CN", "de_DE", "14:05", "2026/3/9"),
        ("en", "en_GB", None, None),
        ("en", "C", None, None),
        ("de", "C", "14:05", "09.03.26"),
    ],
)
def test_the_language_decides_words_and_the_systems_region_how_dates_are_written(language, system, time, day):
    region = QLocale.c() if system == "C" else QLocale(system)
    locale, short = locale_of(language, region), QLocale.FormatType.ShortFormat
    if locale is None:
        assert time is None
    else:
        assert locale.language() is QLocale(language).language()
        assert locale.toString(QTime(14, 5), short).replace("\u202f", " ") == time
        assert locale.toString(QDate(2026, 3, 9), short) == day


def test_chinese_has_its_own_colon_and_brackets(language):
    language("zh_CN")
    assert (labelled("名称", "x"), in_brackets("名称", "1")) == ("名称：x", "名称（1）")
    assert with_keys("名称", "Ctrl+K") == "名称（Ctrl+K）"


def test_german_words_sentences_keys_and_dates(language):
    assert language("de") == "de"
    assert QCoreApplication.translate("SendStopButton", "Send") == "Senden"
    error = AuthenticationFailed("wrong key")
    assert translate_sentence(error.sentence) == "Der API-Schlüssel wurde nicht angenommen: wrong key."
    assert translate_sentence(error.whole).endswith(" Prüfen Sie den API-Schlüssel für diesen Anbieter.")
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Abbrechen"
    assert native_shortcut("Ctrl+Return") == "Strg+Enter"
    moment = datetime(2026, 3, 9, 14, 5).astimezone()
    assert exact_date(moment, moment) == "9. März, 14:05"
    assert relative_date(moment, moment + timedelta(days=1)) == "Gestern"
    assert relative_date(moment, moment + timedelta(days=3)) == "Mo."
    assert format_number(1234567) == "1.234.567"
    assert format_count(19_700) == "19,7k"
    assert format_bytes(2_400) == "2,4 KB"


def test_what_came_from_outside_is_named_in_the_language_of_the_window(language, qtbot):
    language("de")
    content = NO_UNTRUSTED_CONTENT.with_source(command_source("example.org", "1"))
    assert translate_sentence(content.suspension.why).startswith("Inhalte von einem Befehl mit Zugriff auf example.org")
    content = content.with_source(IMPORTED_CONVERSATION)
    assert translate_sentence(content.suspension.why).startswith("Inhalte von einer importierten Unterhaltung und")
    note = ReasonNote(ThemeSource())
    qtbot.addWidget(note)
    note.show_reasons((content.suspension.why,), [source.name for source in content.sources])
    assert note.accessible_text.endswith(
        "Inhalte von: einem Befehl mit Zugriff auf example.org, einer importierten Unterhaltung"
    )


def test_numbers_have_their_forms(language):
    source = "The agent asks (%n more wait)"
    language("de")
    asked = [QCoreApplication.translate("QuestionCard", source, "", count) for count in (1, 2)]
    assert asked == ["Der Agent fragt (1 weitere wartet)", "Der Agent fragt (2 weitere warten)"]


def test_chinese_joins_sentences_without_a_space(language):
    assert language("zh_CN") == "zh_CN"
    both = AuthenticationFailed("401").whole
    assert translate_sentence(both) == "API 密钥未被接受：401。请检查此提供商的 API 密钥。"
    assert translate_sentence(Sentence("{what} {remedy}", {"what": "甲。", "remedy": "乙。"})) == "甲。乙。"


@pytest.mark.parametrize(("choice", "listed"), [("en", "“A”, “B”, …"), ("de", "„A“, „B“, …"), ("zh_CN", "“A”、“B”、…")])
def test_names_in_a_sentence_have_the_quotation_marks_and_commas_of_the_language(language, choice, listed):
    language(choice)
    assert translate_sentence(quoted_names(["A", "B"], "…")) == listed


@pytest.mark.parametrize(
    ("choice", "names", "sentences"), [("en", "a, b", "A. B."), ("de", "a, b", "A. B."), ("zh_CN", "a、b", "A.B.")]
)
def test_names_and_sentences_stand_beside_each_other_as_the_language_has_it(language, choice, names, sentences):
    language(choice)
    assert join_names(["a", "b"]) == names
    assert join_names([]) == ""
    assert join_sentences(["A.", "", "B."]) == sentences


def test_a_report_of_an_undo_names_files_as_the_language_lists_them(language):
    language("zh_CN")
    result = UndoResult(files=("a", "b", "c", "d"))
    assert "a、b、c、… (4)" in translate_sentence(result_sentence(result, is_redo=False))


def test_english_loads_nothing(language, qapp):
    assert language("en") == "en"
    assert qapp.findChildren(QTranslator) == []
    assert format_number(1234567) == "1,234,567"


@pytest.mark.parametrize("font", [body_font, mono_font])
def test_chinese_is_written_in_the_shapes_of_china(language, font):
    def family_of(letter):
        layout = QTextLayout(letter, font())
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        return layout.glyphRuns()[0].rawFont().familyName()

    latin = family_of("a")
    language("zh_CN")
    assert "CJK SC" in family_of("直")
    assert family_of("a") == latin


def test_a_warning_about_a_startup_file_is_wholly_in_the_language(language):
    language("de")
    workflow = find_startup_file(".github/workflows/ci.yml")
    assert workflow is not None
    assert translate_sentence(workflow.sentence("ci.yml")) == (
        "Der Inhalt von „ci.yml“ wird ohne jede Abschottung ausgeführt: von GitHub, sobald jemand die Datei pusht."
    )
    for each in startup_file_table():
        english = each.sentence("x")
        assert translate_sentence(english.values["when"]) != each.when, each.when


def test_a_warning_in_chinese_says_first_when_and_no_word_twice(language):
    language("zh_CN")
    told = [translate_sentence(entry.sentence("x")) for entry in startup_file_table()]
    assert [words for words in told if "在在" in words] == []
    assert "打开此文件夹时，“x”中的内容会由 VS Code 运行，且完全不受隔离。" in told


@pytest.mark.parametrize(("choice", "shown"), [("en", "0.25"), ("de", "0,25"), ("zh_CN", "0.25")])
def test_a_number_to_edit_has_the_decimal_point_of_the_language(language, choice, shown):
    language(choice)
    assert localize_point("0.25") == shown
    parameters = ConversationParameters(temperature=0.25)
    assert describe_parameters(parameters)[0].endswith(shown)
