"""Tab goes through a page as it is read."""

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QLineEdit, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.permissions import Mode, Rule, RuleEffect
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import ModePreferences, Preferences, SpecialistPreferences
from tests.ui.settings.sources import recorded_sources
from ui.settings.settings_dialog import SettingsDialog
from ui.style.layouts import FlowRows, TabOrder
from ui.style.theme import ThemeSource

RULE = Rule(effect=RuleEffect.DENY, tool="fetch_page")
MODE = Mode(name="careful", title="Careful", rules=(RULE,))
SPECIALIST = Specialist(name="reviewer", description="Reads code", system_prompt="You review.")
SERVER = McpServer(id="files", title="Files", connection=StdioConnection(command="npx"))


class Dialog(QWidget):
    """A list of pages, a page with a foot, and a button under all of it."""

    def __init__(self):
        super().__init__()
        self.pages, self.add, self.close_button = QLineEdit(), QPushButton("Add"), QPushButton("Close")
        page = QWidget()
        self.column = QVBoxLayout(page)
        self.column.addWidget(self.add)
        TabOrder(self.pages, page)
        layout = QVBoxLayout(self)
        for widget in (self.pages, page, self.close_button):
            layout.addWidget(widget)

    def stops(self, bot):
        """Return where Tab stops, from the list of pages around to it."""
        self.pages.setFocus()
        names = []
        for _ in range(10):
            bot.keyClick(self.focusWidget(), Qt.Key.Key_Tab)
            if self.focusWidget() is self.pages:
                return names
            names.append(self.focusWidget().text())
        return names


@pytest.fixture
def dialog(qtbot):
    new_dialog = Dialog()
    qtbot.addWidget(new_dialog)
    with qtbot.waitExposed(new_dialog):
        new_dialog.show()
    return new_dialog


def card(*words):
    card_widget = QWidget()
    layout = QVBoxLayout(card_widget)
    for text in words:
        layout.addWidget(QPushButton(text))
    return card_widget


def test_cards_that_come_later_stand_where_they_are_seen(dialog, qtbot):
    dialog.column.insertWidget(0, card("Second", "Third"))
    dialog.column.insertWidget(0, card("First"))

    qtbot.waitUntil(lambda: dialog.stops(qtbot) == ["First", "Second", "Third", "Add", "Close"])


def test_controls_in_rows_that_wrap_stand_where_they_are_seen(dialog, qtbot):
    first = card("First")
    first.layout().addWidget(FlowRows((QPushButton("Second"), card("Third"))))
    dialog.column.insertWidget(0, first)

    qtbot.waitUntil(lambda: dialog.stops(qtbot) == ["First", "Second", "Third", "Add", "Close"])


def test_what_comes_into_a_card_stands_in_it(dialog, qtbot):
    first = card("First")
    dialog.column.insertWidget(0, first)
    dialog.column.insertWidget(1, card("Third"))
    scroll = QScrollArea()
    scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    scroll.setWidget(card("Second"))
    first.layout().addWidget(scroll)
    scroll.show()

    qtbot.waitUntil(lambda: dialog.stops(qtbot) == ["First", "Second", "Third", "Add", "Close"])


@pytest.fixture
def settings(qtbot):
    preferences = Preferences(
        modes=ModePreferences(defined=(MODE,)), specialists=SpecialistPreferences(defined=(SPECIALIST,))
    )
    settings_dialog = SettingsDialog(ThemeSource(), recorded_sources(preferences))
    qtbot.addWidget(settings_dialog)
    settings_dialog.mcp_servers.show_servers((SERVER,))
    settings_dialog.rules.dry_run.show_tools(("read_file",))
    settings_dialog.show()
    return settings_dialog


def chain(dialog):
    """Return the names of all that Tab could stop at on the page shown, in order."""
    names, widget = [], dialog._list.nextInFocusChain()
    while widget is not dialog._list:
        is_stop = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None and widget.isEnabled()
        # The search is before the list, where the walk begins.
        if widget.isVisible() and is_stop and widget is not dialog._search.field:
            names.append(widget.accessibleName() or widget.text())
        widget = widget.nextInFocusChain()
    return names


def begin_nothing(settings):
    del settings


def edit_a_server(settings):
    settings.show_page("mcp")
    settings.mcp_servers.edit("files")


def edit_a_rule_of_a_mode(settings):
    settings.show_page("modes")
    settings.modes.edit("careful")
    settings.modes.editor._rules._open_editor(RULE)


def edit_a_specialist(settings):
    settings.show_page("specialists")
    settings.specialists.edit("reviewer")


@pytest.mark.parametrize("begin", [begin_nothing, edit_a_server, edit_a_rule_of_a_mode, edit_a_specialist])
def test_close_is_last_on_every_page_of_the_settings(settings, qtbot, begin):
    begin(settings)
    for row in range(settings._list.count()):
        settings._list.setCurrentRow(row)
        qtbot.waitUntil(lambda: chain(settings)[-1] == "Close")


def test_a_card_is_walked_from_its_head_to_its_foot(settings, qtbot):
    settings.show_page("mcp")
    names = [
        "Use Files",
        "Test Files",
        "Show the tools of Files",
        "Show the log of Files",
        "Edit Files",
        "Remove Files",
    ]
    qtbot.waitUntil(lambda: chain(settings)[: len(names)] == names)
    settings.show_page("modes")
    about = f"About · version {QCoreApplication.applicationVersion()}"
    names = ["Edit Careful", "Copy Careful", "Remove Careful", "Add mode…", about, "Close"]
    qtbot.waitUntil(lambda: chain(settings)[-len(names) :] == names)
