"""The page of spelling: a box for each language that has a dictionary, and what is said where there is none."""

import pytest
from PySide6.QtWidgets import QCheckBox, QLabel

from desktop_agent.types.preferences import Preferences, SpellingPreferences
from tests.ui.settings.sources import recorded_sources
from ui.settings.settings_dialog import SettingsDialog
from ui.style.theme import ThemeSource

NAMES = {"de_AT": "Österreichisches Deutsch", "en_US": "American English (United States)", "xx": "xx"}


class Driver:
    def __init__(self, qtbot):
        sources = recorded_sources()
        self.dialog = SettingsDialog(ThemeSource(), sources)
        qtbot.addWidget(self.dialog)
        self.changes = []
        sources.settings.change = lambda changed: self.changes.append(changed.spelling)
        self.dialog.show_page("spelling")
        self.dialog.show()

    def box(self, language):
        return next(box for box in self.dialog.findChildren(QCheckBox) if box.accessibleName() == NAMES[language])

    def show(self, *languages):
        self.dialog.set_preferences(Preferences(spelling=SpellingPreferences(languages=languages)))

    @property
    def checked(self):
        return {language for language in NAMES if self.box(language).isChecked()}

    @property
    def words(self):
        return " ".join(label.text() for label in self.dialog.findChildren(QLabel) if label.isVisible())


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_it_begins_with_what_was_saved(qtbot):
    saved = SpellingPreferences(check=False, languages=("de_AT",), words="Qt")
    dialog = SettingsDialog(ThemeSource(), recorded_sources(Preferences(spelling=saved)))
    qtbot.addWidget(dialog)
    assert dialog._forms["spelling"].values == saved.model_dump()


def test_the_language_of_the_system_is_used_until_others_are_chosen(driver):
    driver.dialog.spelling.show_languages([*NAMES], "en_US", "/data/hunspell")
    assert driver.checked == {"en_US"}
    driver.box("de_AT").click()
    assert driver.changes[-1].languages == ("de_AT", "en_US")
    driver.show("de_AT", "en_US")
    driver.box("en_US").click()
    assert driver.changes[-1].languages == ("de_AT",)


def test_a_language_whose_dictionary_is_gone_stays_chosen(driver):
    driver.show("fr_FR", "xx")
    driver.dialog.spelling.show_languages([*NAMES], "en_US", "/data/hunspell")
    assert driver.checked == {"xx"}
    driver.box("en_US").click()
    assert set(driver.changes[-1].languages) == {"en_US", "xx", "fr_FR"}


def test_the_page_says_what_is_missing(driver):
    driver.dialog.spelling.show_languages([], "", "")
    assert "the library for it is missing" in driver.words
    assert "into" not in driver.words
    driver.dialog.spelling.show_languages([], "", "/data/hunspell")
    assert "No dictionary was found" in driver.words
    assert "into /data/hunspell." in driver.words
    driver.dialog.spelling.show_languages([*NAMES], "", "/data/hunspell")
    assert "no dictionary for the language of your system" in driver.words
    assert driver.checked == set()
    driver.dialog.spelling.show_languages([*NAMES], "xx", "/data/hunspell")
    assert "of your system." not in driver.words.replace("the language of your system is used.", "")
