from functools import partial

import pytest
from pydantic import BaseModel, Field, SecretStr
from PySide6.QtCore import QCoreApplication, QEvent, QPoint, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSlider,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QLabel,
    QLineEdit,
    QListView,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from desktop_agent.types.errors import Sentence
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import CLOUD_PROVIDERS, LOCAL_SERVERS
from desktop_agent.types.spending import UsageFigures, UsageReport, UsageRow
from tests.ui.settings.sources import recorded_sources
from ui.forms.key_field import KeyField
from ui.forms.model_fields import control_for
from ui.settings.settings_dialog import CUSTOM_PAGES, SettingsDialog
from ui.settings.shortcuts_form import Shortcut
from ui.style.server_fields import Status
from ui.style.theme import ThemeSource

OPENAI = next(provider for provider in CLOUD_PROVIDERS if provider.id == "openai")
WITH_SERVERS = Preferences(providers=ProviderPreferences(endpoints=(LOCAL_SERVERS[0], OPENAI)))


class Driver:
    def __init__(self, qtbot, preferences=WITH_SERVERS):
        self.bot = qtbot
        sources = recorded_sources(preferences)
        self.changes, self.facts = [], []
        sources.settings.change = self.changes.append
        for name in ("replace_key", "remove_key", "test", "remove", "edit"):
            setattr(sources.servers, name, partial(self.note, name))
        self.dialog = SettingsDialog(ThemeSource(), sources)
        qtbot.addWidget(self.dialog)
        self.dialog.providers.connect_requested.connect(partial(self.note, "connect"))
        self.dialog.show()

    def note(self, *fact, session_only=False):
        self.facts.append((*fact, "session_only") if session_only else fact)

    def part(self, kind, name):
        return next(widget for widget in self.dialog.findChildren(kind) if widget.accessibleName() == name)

    def click(self, name):
        self.bot.mouseClick(self.part(QPushButton, name), Qt.MouseButton.LeftButton)

    @property
    def words(self):
        return [label.text() for label in self.dialog.findChildren(QLabel) if label.isVisible()]


@pytest.fixture
def driver(qtbot):
    return Driver(qtbot)


def test_numbers_have_their_units_and_a_word_stands_for_none(driver):
    def shown_value(section, name):
        return driver.dialog._forms[section].rows[name].control.widget.text()

    assert shown_value("network", "connect_timeout") == "10 s"
    assert shown_value("network", "headers_timeout") == "Automatic"
    assert shown_value("appearance", "zoom") == "100 %"
    assert shown_value("appearance", "text_size") == "10.5 pt"


def search_results(driver):
    rows = driver.dialog._search.rows
    return [(rows.row(number).text, rows.row(number).under) for number in range(rows.rowCount())]


def test_a_search_finds_pages_and_settings_and_leads_to_the_control(driver):
    driver.dialog.activateWindow()
    field, sections = driver.part(QLineEdit, "Search settings"), driver.part(QListWidget, "Sections")
    driver.bot.waitUntil(sections.hasFocus)
    driver.bot.waitUntil(lambda: driver.dialog._search.height() == field.height())
    driver.bot.keyClick(sections, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    driver.bot.waitUntil(field.hasFocus)
    driver.bot.keyClicks(field, "language")
    assert not sections.isVisible()
    assert search_results(driver)[:1] == [("Language", "Appearance")]
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    assert driver.dialog._rows[sections.currentRow()] == "appearance"
    driver.bot.waitUntil(driver.part(QComboBox, "Language").hasFocus)
    # The next one that was found is one click away.
    assert search_results(driver)[:1] == [("Language", "Appearance")]
    field.setFocus()
    driver.bot.keyClick(field, Qt.Key.Key_Escape)
    assert (field.text(), sections.isVisible(), driver.dialog.isVisible()) == ("", True, True)
    driver.bot.keyClicks(field, "qqq")
    assert search_results(driver) == [("Nothing found.", "")]
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    driver.bot.keyClick(field, Qt.Key.Key_Escape)
    driver.bot.keyClick(field, Qt.Key.Key_Escape)
    assert not driver.dialog.isVisible()


def test_a_search_finds_the_actions_and_leads_to_their_keys(driver):
    actions = (
        Shortcut("new", "New conversation", "Ctrl+N", "Ctrl+N"),
        Shortcut("copy-answer", "Copy last answer", "Ctrl+Alt+C", "Ctrl+Alt+C"),
    )
    driver.dialog.shortcuts.show_shortcuts(actions)
    driver.dialog.activateWindow()
    field = driver.part(QLineEdit, "Search settings")
    driver.part(QLineEdit, "Search shortcuts").setText("new")
    field.setText("copy")
    assert search_results(driver)[0] == ("Copy last answer", "Keyboard shortcuts")
    field.setText("ctrl+alt+c")
    assert search_results(driver) == [("Copy last answer", "Keyboard shortcuts")]
    field.setFocus()
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    driver.bot.waitUntil(driver.part(QListView, "Shortcuts").hasFocus)
    assert "Copy last answer" in driver.words
    assert driver.part(KeyField, "Keys of “Copy last answer”").isVisible()


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("theme", ["Theme"]),
        ("language", ["Language", "Languages of your messages"]),
        ("permissions", ["Modes", "Rules", "Decisions"]),
        ("api", ["Providers and keys"]),
        ("deutsch", ["Language"]),
        ("german", ["Language"]),
        ("compact", ["Storage", "Density"]),
        ("budget", ["Usage", "Specialists", "Dollars for a day"]),
    ],
)
def test_what_a_search_finds_has_the_word_and_titles_come_first(driver, typed, titles):
    driver.part(QLineEdit, "Search settings").setText(typed)
    assert [title for title, _ in search_results(driver)][: len(titles)] == titles


@pytest.mark.parametrize("width", [820, 360])
def test_a_dialog_that_is_opened_again_shows_all_pages_and_types_into_no_setting(driver, width):
    driver.dialog.resize(width, 700)
    field = driver.part(QLineEdit, "Search settings")
    field.setText("tokens for a day")
    driver.dialog.show_field("usage", "tokens_per_day")
    driver.dialog.reject()
    driver.dialog.show()
    pages = driver.part(QListWidget, "Sections") if width > 700 else driver.part(QComboBox, "Section")
    assert (field.text(), pages.isVisible()) == ("", True)
    assert driver.dialog.focusWidget() is pages
    assert driver.dialog._rows[driver.part(QListWidget, "Sections").currentRow()] == "usage"


@pytest.mark.parametrize("is_scrolled", [False, True])
def test_a_setting_that_was_found_stays_in_view_when_the_page_above_it_grows_until_one_scrolls(driver, is_scrolled):
    def is_in_view():
        scroll, row = driver.dialog._pages.currentWidget(), driver.dialog._forms["usage"].rows["tokens_per_month"]
        top = row.mapTo(scroll.viewport(), QPoint(0, 0)).y()
        return top >= 0 and top + row.height() <= scroll.viewport().height()

    driver.dialog.resize(820, 500)
    driver.dialog.show_field("usage", "tokens_per_month")
    driver.bot.waitUntil(is_in_view)
    bar = driver.dialog._pages.currentWidget().verticalScrollBar()
    if is_scrolled:
        bar.triggerAction(QAbstractSlider.SliderAction.SliderToMinimum)
    before = bar.value()
    figures = UsageFigures(answers=1, tokens=7, input_tokens=7)
    rows = tuple(UsageRow(f"2026-03-{day:02}", figures) for day in range(1, 20))
    driver.dialog.usage.show_report(UsageReport("day", rows))
    assert driver.dialog.usage._table.isVisible()
    # What it shows is longer by now; the page is laid out next.
    for _ in range(5):
        QCoreApplication.processEvents()
    assert is_in_view() != is_scrolled
    assert (bar.value() == before) == is_scrolled


def test_in_a_narrow_dialog_what_is_found_is_in_place_of_the_page(driver):
    driver.dialog.resize(360, 700)
    field, menu = driver.part(QLineEdit, "Search settings"), driver.part(QComboBox, "Section")
    driver.bot.keyClicks(field, "storage")
    assert not menu.isVisible()
    assert not driver.dialog._pages.isVisible()
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    assert (field.text(), menu.isVisible(), menu.currentText()) == ("", True, "Storage")
    assert driver.dialog._pages.isVisible()


def test_pages_stand_under_headings_and_each_once(driver):
    sections = driver.part(QListWidget, "Sections")
    names = [name for name in driver.dialog._rows if name]
    assert sorted(names) == sorted({*Preferences.model_fields, "rules", "decisions"})
    assert sections.item(0).text() == "Connections"
    assert sections.verticalScrollBar().maximum() == 0, "not all pages are seen at once"
    sections.setFocus()
    for key, page in ((Qt.Key.Key_Down, "local"), (Qt.Key.Key_Down, "models"), (Qt.Key.Key_Down, "chat")):
        driver.bot.keyClick(sections, key)
        assert driver.dialog._rows[sections.currentRow()] == page
    driver.bot.keyClick(sections, Qt.Key.Key_Home)
    assert driver.dialog._rows[sections.currentRow()] in names


def test_what_a_test_says_does_not_move_its_button(driver):
    test = driver.part(QPushButton, "Test OpenAI")
    position = test.mapTo(driver.dialog, test.rect().topLeft())
    driver.dialog.providers.show_state("openai", Status.ERROR, "It does not answer.")
    driver.bot.waitUntil(lambda: "It does not answer." in driver.words)
    driver.bot.wait(20)
    assert test.mapTo(driver.dialog, test.rect().topLeft()) == position


def test_a_test_that_completes_the_address_leaves_the_keyboard_and_what_is_written(driver):
    providers, bare = driver.dialog.providers, OPENAI.model_copy(update={"base_url": "https://models.example"})
    completed = bare.model_copy(update={"base_url": "https://models.example/v1"})
    driver.dialog.show_page("providers")
    driver.dialog.activateWindow()
    providers.show_endpoints([bare])
    driver.bot.wait(1)
    driver.part(QPushButton, "Test OpenAI").setFocus()
    providers.show_endpoints([completed])
    assert driver.part(QPushButton, "Test OpenAI").hasFocus()
    assert driver.part(QLabel, completed.base_url)
    providers.show_endpoints([bare])
    driver.bot.wait(1)
    driver.click("Edit OpenAI")
    title, address = driver.part(QLineEdit, "Title of OpenAI"), driver.part(QLineEdit, "Address of OpenAI")
    driver.bot.keyClicks(title, "Mine")
    providers.show_endpoints([completed])
    assert (title.text(), address.text()) == ("Mine", completed.base_url)
    driver.click("Save OpenAI")
    assert driver.facts[-1] == ("edit", completed.model_copy(update={"title": "Mine"}))
    # What is written is the address of this very server now.
    providers.show_endpoints([bare])
    driver.bot.wait(1)
    driver.click("Edit OpenAI")
    driver.part(QLineEdit, "Address of OpenAI").setText(completed.base_url)
    driver.click("Save OpenAI")
    providers.show_endpoints([completed])
    fields = providers.findChildren(QLineEdit)
    assert "Address of OpenAI" not in [field.accessibleName() for field in fields if field.isVisibleTo(providers)]


def test_the_ring_around_a_row_is_for_who_comes_by_keys(driver):
    rows = driver.part(QListWidget, "Sections")
    driver.dialog.activateWindow()
    rows.setFocus()
    driver.bot.waitUntil(rows.hasFocus)

    def has_ring():
        picture = rows.viewport().grab(rows.visualRect(rows.currentIndex())).toImage()
        inks = {picture.pixelColor(x, picture.height() // 2).name() for x in range(6)}
        return ThemeSource().theme.accent in inks

    assert has_ring()
    third = rows.visualRect(rows.model().index(2, 0)).center()
    driver.bot.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=third)
    assert rows.currentRow() == 2
    assert not has_ring()
    driver.bot.keyClick(rows, Qt.Key.Key_Down)
    assert has_ring()


def test_what_a_page_without_decisions_says_stands_at_its_top(driver):
    driver.dialog.show_page("decisions")
    driver.dialog.show()
    decisions = driver.dialog.decisions
    driver.bot.waitUntil(lambda: decisions._none.isVisible() and decisions._none.y() > 0)
    assert decisions._none.geometry().top() < 100


def test_every_declared_preference_has_a_control_with_its_words(driver):
    for section_name, section in Preferences():
        if section_name in CUSTOM_PAGES:
            continue
        for name, field in type(section).model_fields.items():
            if (section_name, name) == ("spelling", "languages"):
                continue  # boxes, which come when the dictionaries are known: test_spelling_page.py
            controls = [
                widget
                for kind in (QComboBox, QCheckBox, QSpinBox, QDoubleSpinBox, QPlainTextEdit, QLineEdit)
                for widget in driver.dialog.findChildren(kind)
                if widget.accessibleName() == field.title
            ]
            assert len(controls) == 1, field.title
            assert controls[0].accessibleDescription() == field.description


def test_the_sections_are_pages(driver):
    assert driver.dialog.accessibleName() == "Settings"
    sections = driver.part(QListWidget, "Sections")
    names = [sections.item(i).text() for i in range(sections.count())]
    assert names == [
        *("Connections", "Providers and keys", "Model files", "Models"),
        *("General", "Chat", "Appearance", "Spelling", "Keyboard shortcuts", "Network"),
        *("Tools and safety", "Modes", "Rules", "Decisions", "MCP servers", "Specialists"),
        *("Data", "Other assistants", "Storage", "Usage"),
    ]
    sections.setCurrentRow(names.index("Chat"))
    assert driver.part(QCheckBox, "Enter sends").isVisible()
    assert not driver.part(QComboBox, "Theme").isVisible()


def test_each_kind_of_control_changes_its_preference(driver):
    theme = driver.part(QComboBox, "Theme")
    theme.setCurrentIndex(2)
    theme.activated.emit(2)
    driver.part(QSpinBox, "Zoom").setValue(150)
    driver.part(QCheckBox, "Enter sends").click()
    driver.part(QDoubleSpinBox, "Silence").setValue(12.5)
    last = driver.changes[-1]
    assert (last.appearance.theme, last.appearance.zoom) == ("dark", 150)
    assert last.chat.enter_sends is False
    assert last.network.idle_timeout == 12.5
    assert last.providers == WITH_SERVERS.providers
    assert Preferences.model_validate(last.model_dump()) == last


def test_a_font_is_chosen_from_those_that_are_installed(driver):
    fonts = driver.part(QComboBox, "Font")
    assert (fonts.currentText(), fonts.currentData()) == ("System font", "")
    assert fonts.maxVisibleItems() == 14
    fonts.setCurrentIndex(fonts.count() - 1)
    fonts.activated.emit(fonts.count() - 1)
    chosen = driver.changes[-1].appearance.font
    assert chosen
    assert chosen in QFontDatabase.families()
    appearance = driver.changes[-1].appearance.model_copy(update={"font": "Nobody Sans"})
    driver.dialog.set_preferences(driver.changes[-1].model_copy(update={"appearance": appearance}))
    assert fonts.currentText() == "Nobody Sans (not installed)"


def test_text_is_reported_after_a_pause(driver):
    driver.part(QPlainTextEdit, "Instructions").setPlainText("Be brief.")
    driver.bot.waitUntil(lambda: bool(driver.changes))
    assert driver.changes[-1].chat.system_prompt == "Be brief."


def test_text_is_reported_at_once_when_the_dialog_is_closed(driver):
    driver.dialog.show_page("chat")
    driver.part(QPlainTextEdit, "Instructions").setPlainText("Be brief.")
    assert driver.changes == []
    driver.dialog.reject()
    assert [change.chat.system_prompt for change in driver.changes] == ["Be brief."]


def test_a_field_for_keys_that_is_left_as_it_was_reports_nothing(driver):
    field = driver.part(KeyField, "Keys for a quick question")
    driver.dialog.show_field("chat", "quick_ask_keys")
    line = field.findChild(QLineEdit)
    assert line.placeholderText() == "Press keys"
    for _ in range(2):
        QTest.keyClick(field, Qt.Key.Key_Tab)
        assert not field.hasFocus()
        assert line.placeholderText() == "Press keys"
        field.setFocus()
    assert driver.changes == []


def test_bounds_hold(driver):
    zoom = driver.part(QSpinBox, "Zoom")
    assert (zoom.minimum(), zoom.maximum()) == (50, 300)
    wait = driver.part(QDoubleSpinBox, "Connection")
    assert (wait.minimum(), wait.maximum()) == (0.1, 120)


def test_what_comes_from_outside_is_shown_and_not_reported(driver):
    new = Preferences.model_validate({"appearance": {"theme": "light", "zoom": 80}, "chat": {"system_prompt": "x"}})
    driver.dialog.set_preferences(new)
    driver.bot.wait(600)
    assert driver.changes == []
    assert driver.part(QComboBox, "Theme").currentText() == "Light"
    assert driver.part(QSpinBox, "Zoom").value() == 80
    assert driver.part(QPlainTextEdit, "Instructions").toPlainText() == "x"


def test_what_a_newer_version_wrote_is_kept(qtbot):
    driver = Driver(qtbot, Preferences.model_validate({"chat": {"from_the_future": 1}, "later": {"x": 2}}))
    driver.part(QCheckBox, "Enter sends").click()
    dumped = driver.changes[-1].model_dump()
    assert dumped["chat"]["from_the_future"] == 1
    assert dumped["later"] == {"x": 2}


def test_a_preference_without_a_control_is_an_error():
    class Odd(BaseModel):
        thing: bytes = Field(default=b"", title="Thing")

    with pytest.raises(TypeError, match="bytes"):
        control_for(Odd.model_fields["thing"])


def test_servers_say_where_their_keys_are(driver):
    driver.dialog.show_page("providers")
    driver.dialog.providers.show_keyring("SecretService Keyring")
    driver.dialog.providers.show_keys(["openai"])
    assert "Keys are kept in your system's keyring (Secret Service)." in driver.words
    assert [words for words in driver.words if words in {"Key set", "No key"}] == ["No key", "Key set"]
    assert driver.part(QPushButton, "Remove key of Ollama").isHidden()


def test_keys_and_servers_are_changed_by_the_shell(driver):
    driver.dialog.show_page("providers")
    driver.dialog.providers.show_keys(["openai"])
    driver.click("Change key of OpenAI")
    field = driver.part(QLineEdit, "API key for OpenAI")
    driver.bot.keyClicks(field, "new")
    driver.bot.keyClick(field, Qt.Key.Key_Return)
    driver.dialog.providers.show_state("openai", Status.OK, Sentence("Connected."))
    assert "Connected." in driver.words
    assert (field.text(), field.isVisible()) == ("", False)
    removals = (
        ("Remove key of OpenAI", "Really remove the key of OpenAI"),
        ("Remove server OpenAI", "Really remove server OpenAI"),
    )
    for name in ("Test OpenAI", *removals[0], *removals[1], "Connect a model…"):
        driver.click(name)
    assert driver.facts == [
        ("replace_key", "openai", SecretStr("new")),
        ("test", "openai"),
        ("remove_key", "openai"),
        ("remove", "openai"),
        ("connect",),
    ]
    assert driver.changes == []


@pytest.mark.parametrize("what", ["server OpenAI", "the key of OpenAI"])
def test_a_removal_is_asked_about_and_escape_keeps_all(driver, what):
    driver.dialog.show_page("providers")
    driver.dialog.providers.show_keys(["openai"])
    button = driver.part(QPushButton, f"Remove {what.removeprefix('the ')}")
    driver.click(button.accessibleName())
    assert any("“OpenAI”" in words and "key" in words for words in driver.words)
    keep = driver.dialog.focusWidget()
    assert keep.accessibleName() == f"Keep {what}"
    driver.bot.keyClick(keep, Qt.Key.Key_Escape)
    assert driver.dialog.isVisible()
    assert driver.facts == []
    assert driver.dialog.focusWidget() is button


def test_a_key_that_the_keyring_does_not_take_can_stay_in_memory(driver):
    driver.dialog.show_page("providers")
    driver.click("Change key of OpenAI")
    driver.bot.keyClicks(driver.part(QLineEdit, "API key for OpenAI"), "new")
    driver.dialog.providers.show_state("openai", Status.NO_KEYRING, "The keyring is locked.")
    name = "Keep it in memory until the program is closed"
    links = [button for button in driver.dialog.findChildren(QPushButton) if button.accessibleName() == name]
    (link,) = (link for link in links if link.isVisible())
    driver.bot.mouseClick(link, Qt.MouseButton.LeftButton)
    assert driver.facts == [("replace_key", "openai", SecretStr("new"), "session_only")]
    driver.dialog.providers.show_state("openai", Status.OK, "Connected.")
    assert not link.isVisible()


def test_a_key_that_nobody_took_is_gone_when_the_settings_are_opened_again(driver):
    driver.dialog.show_page("providers")
    driver.click("Change key of OpenAI")
    field = driver.part(QLineEdit, "API key for OpenAI")
    for state in (Status.ERROR, Status.NO_KEYRING):
        driver.bot.keyClicks(field, "wrong")
        driver.dialog.providers.show_state("openai", state, "Not taken.")
        driver.dialog.close()
        driver.dialog.show()
        assert (field.isVisible(), field.text()) == (True, "")
        links = [button for button in driver.dialog.findChildren(QPushButton) if button.text() == "Keep it in memory"]
        assert not any(link.isVisible() for link in links)


@pytest.mark.parametrize("name", ["Test OpenAI", "API key for OpenAI"])
def test_the_keyboard_is_where_it_was_after_a_test_unless_the_person_moved_it(driver, name):
    driver.dialog.show_page("providers")
    driver.click("Change key of OpenAI")
    show_state, other_button = driver.dialog.providers.show_state, driver.part(QPushButton, "Change key of OpenAI")
    control = next(
        widget
        for widget in driver.dialog.findChildren(QWidget)
        if widget.accessibleName() == name and widget.isVisible()
    )
    for is_moved in (False, True):
        control.setFocus()
        show_state("openai", Status.BUSY, "Asking…")
        assert (driver.dialog.focusWidget() is control) == control.isEnabled()
        if is_moved:
            other_button.setFocus()
        show_state("openai", Status.ERROR, "Refused.")
        assert driver.dialog.focusWidget() is (other_button if is_moved else control)


def test_a_removed_server_leaves_the_list(driver):
    driver.dialog.show_page("providers")
    driver.dialog.set_preferences(Preferences())
    assert "No server is connected yet." in driver.words
    driver.dialog.providers.show_state("openai", Status.ERROR, "too late")
    assert "too late" not in driver.words


def test_what_is_written_about_a_server_stays_while_others_change(driver):
    driver.dialog.show_page("providers")
    driver.dialog.providers.show_keys([])
    driver.click("Edit OpenAI")
    driver.click("Change key of OpenAI")
    title, key = driver.part(QLineEdit, "Title of OpenAI"), driver.part(QLineEdit, "API key for OpenAI")
    title.setText("Work")
    key.setText("sk-1")
    renamed = LOCAL_SERVERS[0].model_copy(update={"title": "At home"})
    with_key = OPENAI.model_copy(update={"has_key": True})
    for endpoints in ((renamed, OPENAI), (OPENAI, renamed), (OPENAI,), (with_key,)):
        driver.dialog.set_preferences(Preferences(providers=ProviderPreferences(endpoints=endpoints)))
        driver.bot.waitUntil(lambda: title.isVisible() and key.isVisible())
        assert (title.text(), key.text()) == ("Work", "sk-1")
        names = [
            button.accessibleName() for button in buttons(driver) if button.text() == "Test" and button.isVisible()
        ]
        assert names == [f"Test {endpoint.title}" for endpoint in endpoints]


class TestEditing:
    """A server in use gets another title, address, dialect or mirrors."""

    @pytest.fixture
    def driver(self, qtbot):
        driver = Driver(qtbot)
        driver.dialog.show_page("providers")
        driver.dialog.providers.show_keys(["openai"])
        driver.click("Edit OpenAI")
        return driver

    def edited(self, driver):
        driver.click("Save OpenAI")
        return [changed for name, changed in driver.facts if name == "edit"]

    @staticmethod
    def warned(driver):
        return any("is not sent to other addresses" in words for words in driver.words)

    def test_the_key_stays_where_the_host_stays(self, driver):
        driver.part(QLineEdit, "Title of OpenAI").setText("Work")
        driver.part(QLineEdit, "Address of OpenAI").setText("https://api.openai.com/v2/")
        driver.part(QComboBox, "API of OpenAI").setCurrentIndex(0)
        assert not self.warned(driver)
        (changed,) = self.edited(driver)
        changes = {"title": "Work", "base_url": "https://api.openai.com/v2", "dialect": "openai-chat"}
        assert changed == OPENAI.model_copy(update=changes)
        driver.dialog.set_preferences(Preferences(providers=ProviderPreferences(endpoints=(changed,))))
        driver.bot.waitUntil(lambda: "Key set" in driver.words)
        assert driver.part(QLineEdit, "API key for Work").isHidden()

    @pytest.mark.parametrize(
        ("address", "mirrors"),
        [
            ("https://api.openai.example/v1", ""),
            ("http://api.openai.com/v1", ""),
            ("https://api.openai.com:8443/v1", ""),
            ("https://api.openai.com/v1", "https://mirror.example/v1"),
        ],
    )
    def test_a_key_is_not_for_another_host(self, driver, address, mirrors):
        driver.part(QLineEdit, "Address of OpenAI").setText(address)
        driver.part(QPlainTextEdit, "Further addresses of OpenAI").setPlainText(mirrors)
        assert self.warned(driver)
        (changed,) = self.edited(driver)
        assert (changed.base_url, changed.mirrors) == (address, (mirrors,) if mirrors else ())
        driver.dialog.set_preferences(Preferences(providers=ProviderPreferences(endpoints=(changed,))))
        driver.bot.waitUntil(lambda: "No key" in driver.words)
        assert any("Enter the key for this one" in words for words in driver.words)
        fields = [field for field in driver.dialog.providers.findChildren(QLineEdit) if field.isVisible()]
        assert [field.accessibleName() for field in fields] == ["API key for OpenAI"]

    def test_without_a_key_there_is_nothing_to_warn_about(self, driver):
        driver.dialog.providers.show_keys([])
        driver.part(QLineEdit, "Address of OpenAI").setText("https://elsewhere.example")
        assert not self.warned(driver)

    def test_what_is_no_address_is_not_saved(self, driver):
        driver.part(QLineEdit, "Address of OpenAI").setText("ftp://x")
        assert self.edited(driver) == []
        assert any("“ftp://x” is not a web address" in words for words in driver.words)

    def test_nothing_changed_or_escape_leaves_it(self, driver):
        assert self.edited(driver) == []
        assert not any(button.accessibleName() == "Save OpenAI" and button.isVisible() for button in buttons(driver))
        driver.click("Edit OpenAI")
        field = driver.part(QLineEdit, "Title of OpenAI")
        field.setText("Other")
        driver.bot.keyClick(field, Qt.Key.Key_Escape)
        assert driver.dialog.isVisible()
        assert driver.facts == []


def buttons(driver):
    return driver.dialog.findChildren(QPushButton)


@pytest.mark.parametrize("is_touched", [False, True])
def test_a_number_that_is_typed_stays_while_others_change(qtbot, is_touched):
    driver = Driver(qtbot)
    driver.dialog.show_page("network")
    box = driver.part(QDoubleSpinBox, "Silence")
    if is_touched:
        box.setValue(200)
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "3")
    preferences = driver.dialog._preferences
    zoomed = preferences.model_copy(update={"appearance": preferences.appearance.model_copy(update={"zoom": 110})})
    driver.dialog.set_preferences(zoomed)
    assert driver.part(QSpinBox, "Zoom").value() == 110
    qtbot.keyClicks(box, "0")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert driver.changes[-1].network.idle_timeout == 30


def test_another_language_says_that_it_needs_a_new_start(qtbot):
    driver = Driver(qtbot)
    driver.dialog.show_page("appearance")
    box = driver.part(QComboBox, "Language")
    box.setCurrentIndex(box.findData("de"))
    note = "Close Desktop Agent and start it again to see it in this language: Deutsch."
    assert note in driver.words
    assert driver.changes[-1].appearance.language == "de"
    driver.dialog.set_preferences(driver.changes[-1])
    assert note in driver.words
    restart = next(button for button in driver.dialog.findChildren(QPushButton) if button.text() == "Restart now")
    assert not restart.isVisible()
    driver.dialog.offer_restart(is_possible=True)
    assert note not in driver.words, "the button says it"
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    box.setFocus()
    QTest.keyClick(box, Qt.Key.Key_Tab)
    assert driver.dialog.focusWidget() is restart
    with qtbot.waitSignal(driver.dialog.restart_requested):
        qtbot.mouseClick(restart, Qt.MouseButton.LeftButton)
    box.setCurrentIndex(box.findData("en"))
    assert note not in driver.words
    assert not restart.isVisible()
