"""Tab goes through a page as it is read."""

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QLineEdit, QPushButton, QScrollArea, QVBoxLayout, QWidget

from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.permissions import Mode, Rule, RuleEffect
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import ModePreferences, Preferences, SpecialistPreferences
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
        for each in (self.pages, page, self.close_button):
            layout.addWidget(each)

    def stops(self, bot):
        """Where Tab stops, from the list of pages around to it."""
        self.pages.setFocus()
        found = []
        for _ in range(10):
            bot.keyClick(self.focusWidget(), Qt.Key.Key_Tab)
            if self.focusWidget() is self.pages:
                return found
            found.append(self.focusWidget().text())
        return found


@pytest.fixture
def dialog(qtbot):
    made = Dialog()
    qtbot.addWidget(made)
    with qtbot.waitExposed(made):
        made.show()
    return made


def card(*words):
    made = QWidget()
    layout = QVBoxLayout(made)
    for each in words:
        layout.addWidget(QPushButton(each))
    return made


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
    kept = Preferences(modes=ModePreferences(defined=(MODE,)), specialists=SpecialistPreferences(defined=(SPECIALIST,)))
    made = SettingsDialog(ThemeSource(), kept)
    qtbot.addWidget(made)
    made.mcp_servers.show_servers((SERVER,))
    made.rules.dry_run.show_tools(("read_file",))
    made.show()
    return made


def chain(dialog):
    """Whatever Tab could stop at on the page that is shown, in order, by name."""
    found, each = [], dialog._list.nextInFocusChain()
    while each is not dialog._list:
        stops = each.focusPolicy() & Qt.FocusPolicy.TabFocus and each.focusProxy() is None and each.isEnabled()
        # The search is before the list, where the walk begins.
        if each.isVisible() and stops and each is not dialog._search.field:
            found.append(each.accessibleName() or each.text())
        each = each.nextInFocusChain()
    return found


def begin_nothing(settings):
    del settings


def edit_a_server(settings):
    settings.show_page("mcp")
    settings.mcp_servers.edit("files")


def edit_a_rule_of_a_mode(settings):
    settings.show_page("modes")
    settings.modes.edit("careful")
    settings.modes._editor._rules._open_editor(RULE)


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
