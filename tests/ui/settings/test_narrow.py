"""With large letters or long words in a narrow window the settings need no scrolling sideways, and nothing is cut."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QListWidget, QPushButton, QRadioButton, QScrollArea, QWidget

from desktop_agent.storage.backups.backup import Backup, StoredCounts
from desktop_agent.storage.backups.migration_copies import MigrationCopy
from desktop_agent.types.mcp import HttpConnection, McpServer, StdioConnection
from desktop_agent.types.permissions import Mode, Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import ModePreferences, Preferences, SpecialistPreferences
from desktop_agent.types.providers import Endpoint
from tests.frame.selection import few
from tests.ui.settings.sources import recorded_sources
from ui.settings.settings_dialog import SettingsDialog
from ui.style.controls import ElidedLabel
from ui.style.style_sheet import apply_theme
from ui.style.theme import ThemeSource

RULE = Rule(effect=RuleEffect.DENY, tool="fetch_page", scope=RuleScope.ALWAYS, origin="a mode")
MODE = Mode(name="careful", title="Careful", rules=(RULE,))
SPECIALIST = Specialist(name="reviewer", description="Reads code", system_prompt="You review.", tools=("read_file",))
SERVERS = (
    McpServer(id="files", title="Files", connection=StdioConnection(command="npx", args=("a",), secret_env=("KEY",))),
    McpServer(id="web", title="Web", connection=HttpConnection(url="https://a.example/mcp", sign_in=True)),
)


def sideways(page):
    """Return how far a page scrolls sideways."""
    area = page.parentWidget()
    while not isinstance(area, QScrollArea):
        area = area.parentWidget()
    return area.horizontalScrollBar().maximum()


def test_nothing_scrolls_sideways(qtbot, qapp):
    font, palette, themes = qapp.font(), qapp.palette(), ThemeSource()
    themes.use(themes.theme, 150)
    apply_theme(qapp, themes)
    preferences = Preferences(
        modes=ModePreferences(defined=(MODE,)), specialists=SpecialistPreferences(defined=(SPECIALIST,))
    )
    dialog = SettingsDialog(themes, recorded_sources(preferences))
    qtbot.addWidget(dialog)
    dialog.resize(820, 700)
    dialog.mcp_servers.show_servers(SERVERS)
    dialog.show()
    servers, modes, specialists = dialog.mcp_servers, dialog.modes, dialog.specialists

    def settled(page):
        qtbot.wait(20)
        assert dialog.width() == 820
        return sideways(page)

    try:
        dialog.show_page("mcp")
        assert settled(servers) == 0
        for server in SERVERS:
            servers.edit(server.id)
            assert settled(servers) == 0
            servers._editor.cancelled.emit()
        dialog.show_page("modes")
        assert settled(modes) == 0
        modes.edit("careful")
        assert settled(modes) == 0
        modes.editor._rules._open_editor(RULE)
        assert settled(modes) == 0
        dialog.show_page("specialists")
        assert settled(specialists) == 0
        specialists.edit("reviewer")
        assert settled(specialists) == 0
    finally:
        qapp.setStyleSheet("")
        qapp.setFont(font)
        qapp.setPalette(palette)


@pytest.mark.parametrize("title", ["A gateway at work for everybody (OpenAI Chat Completions)", "x" * 80])
def test_a_long_title_of_a_server_is_read_whole_in_a_narrow_window(qtbot, title):
    dialog = SettingsDialog(ThemeSource(), recorded_sources())
    qtbot.addWidget(dialog)
    dialog.resize(360, 700)
    dialog.providers.show_endpoints((Endpoint(id="a", title=title, base_url="https://a.example/a/long/address/v1"),))
    dialog.show_page("providers")
    dialog.show()
    shown = next(part for part in dialog.providers.findChildren(QLabel) if part.text() == title)
    # Laid out once more when the bar for scrolling down appears.
    qtbot.waitUntil(lambda: sideways(dialog.providers) == 0 and shown.height() >= shown.heightForWidth(shown.width()))


def test_a_rule_with_a_long_word_needs_no_scrolling_sideways_in_a_narrow_window(qtbot):
    mode = MODE.model_copy(update={"rules": (RULE.model_copy(update={"tool": "x" * 80}),)})
    dialog = SettingsDialog(ThemeSource(), recorded_sources(Preferences(modes=ModePreferences(defined=(mode,)))))
    qtbot.addWidget(dialog)
    dialog.resize(360, 700)
    dialog.show_page("modes")
    dialog.modes.edit("careful")
    dialog.show()
    qtbot.waitUntil(lambda: sideways(dialog.modes) == 0)


def test_the_buttons_of_an_mcp_server_need_no_row_each(long_words, qtbot):
    long_words.show_page("mcp")
    long_words.resize(360, 700)
    qtbot.waitUntil(lambda: sideways(long_words.mcp_servers) == 0)
    card = long_words.mcp_servers.card("files")
    rows = {part.mapTo(card, part.rect().topLeft()).y() for part in card.findChildren(QPushButton) if part.isVisible()}
    assert len(rows) <= 3


class Longer(QTranslator):
    """A translator that lengthens words by four letters for each ten, as in German."""

    def isEmpty(self):  # noqa: N802 - Qt's name
        return False

    def translate(self, context, text, disambiguation=None, n=-1):
        del context, disambiguation, n
        return " ".join(
            word + "ungslich"[: round(len(word) * 0.4)] if word.isalpha() else word for word in text.split(" ")
        )


def cut(dialog):
    """Return the texts on the shown page with too little room, and the areas on it that scroll sideways."""
    page = dialog._pages.currentWidget().widget()
    kinds = (QLabel, QPushButton, QCheckBox, QRadioButton)
    shown = [widget for widget in page.findChildren(QWidget) if isinstance(widget, kinds) and widget.isVisible()]
    too_low = [
        label for label in shown if isinstance(label, QLabel) and label.height() < label.heightForWidth(label.width())
    ]
    unwrapped = [part for part in shown if not isinstance(part, ElidedLabel) and not getattr(part, "wordWrap", bool)()]
    too_narrow = [part for part in unwrapped if part.text() and part.width() < part.sizeHint().width()]
    scrolled = [area for area in page.findChildren(QScrollArea) if area.horizontalScrollBar().maximum()]
    return [part.text() for part in too_low + too_narrow] + scrolled


@pytest.fixture
def long_words(qtbot, qapp):
    """Return the settings in a language of long words."""
    font, palette, themes, longer = qapp.font(), qapp.palette(), ThemeSource(), Longer()
    qapp.installTranslator(longer)
    apply_theme(qapp, themes)
    preferences = Preferences(
        modes=ModePreferences(defined=(MODE,)), specialists=SpecialistPreferences(defined=(SPECIALIST,))
    )
    dialog = SettingsDialog(themes, recorded_sources(preferences))
    qtbot.addWidget(dialog)
    dialog.mcp_servers.show_servers(SERVERS)
    dialog.rules.dry_run.show_tools(("read_file",))
    dialog.show()
    yield dialog
    qapp.removeTranslator(longer)
    qapp.setStyleSheet("")
    qapp.setFont(font)
    qapp.setPalette(palette)


def begin_nothing(dialog):
    del dialog


def edit_a_server(dialog):
    dialog.mcp_servers.edit("web")


def import_servers(dialog):
    dialog.mcp_servers.start_import()


def edit_a_rule(dialog):
    dialog.modes.edit("careful")
    dialog.modes.editor._rules._open_editor(RULE)


def edit_a_specialist(dialog):
    dialog.specialists.edit("reviewer")


@pytest.mark.parametrize("begin", [begin_nothing, edit_a_server, import_servers, edit_a_rule, edit_a_specialist])
@pytest.mark.parametrize("width", few([480, 560, 640, 720], 1, "the narrowest is the hardest"))
def test_long_words_have_room_in_a_narrow_window(qtbot, long_words, width, begin):
    dialog = long_words
    begin(dialog)
    dialog.resize(width, 700)
    for row in range(dialog._list.count()):
        dialog._list.setCurrentRow(row)
        area = dialog._pages.currentWidget()
        qtbot.waitUntil(lambda area=area: area.horizontalScrollBar().maximum() == 0 and cut(dialog) == [])
    assert dialog.width() == width


def test_spelling_backups_and_copies_have_room_in_the_narrowest_window(qtbot, long_words):
    dialog, moment, counts = long_words, datetime(2026, 3, 1, tzinfo=UTC), StoredCounts(1, 0, 2)
    dialog.spelling.show_languages(["de_DE", "en_US"], "en_US", "/data/hunspell")
    dialog.storage.show_backups([Backup(Path("/data/backups/a"), moment, counts, 2000)])
    dialog.storage._copies.show_copies([MigrationCopy(Path("/data/a"), moment, 9, "", counts, 2000)])
    dialog.resize(300, 640)
    for page in ("spelling", "storage"):
        dialog.show_page(page)
        area = dialog._pages.currentWidget()
        qtbot.waitUntil(lambda area=area: area.horizontalScrollBar().maximum() == 0 and cut(dialog) == [])


def test_a_narrow_dialog_has_its_sections_in_a_menu(qtbot, long_words):
    dialog = long_words
    menu = next(menu for menu in dialog.findChildren(QComboBox) if menu.accessibleName().startswith("Section"))
    sections = dialog.findChild(QListWidget)
    dialog.resize(820, 700)
    assert (menu.isVisible(), sections.isVisible()) == (False, True)
    dialog.resize(500, 700)
    assert (menu.isVisible(), sections.isVisible()) == (True, False)
    assert menu.currentText() == sections.currentItem().text()
    dialog.show_page("modes")
    assert menu.currentText().startswith("Modes")
    menu.setFocus()
    qtbot.keyClicks(menu, "Rules")
    assert sections.currentItem().text().startswith("Rules")
    assert dialog.rules.isVisible()
