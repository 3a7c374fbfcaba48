"""The settings dialog: a page for each section of the preferences, and the tab order through a page."""

from functools import partial
from typing import Any

from pydantic import BaseModel
from PySide6.QtCore import QCoreApplication, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop_agent.types.errors import Sentence
from desktop_agent.types.preferences import LANGUAGE_NAMES, Preferences
from ui.bridge.model_servers import ModelServers
from ui.bridge.settings import Settings, SettingsSources
from ui.forms.form import SETTINGS, Form
from ui.forms.model_fields import add_model_fields, typed_value
from ui.settings.found_histories import FoundHistorySettings
from ui.settings.local_models_page import LocalModelSettings
from ui.settings.mcp_servers.mcp_servers_form import McpServersForm
from ui.settings.modes_form import ModeSettings
from ui.settings.pages import CUSTOM_PAGES, SettingRow, SettingsSearch, page_groups, page_title
from ui.settings.permissions import AuditLogSettings, RuleSettings
from ui.settings.prices_form import PriceSettings
from ui.settings.providers_form import ProviderSettings
from ui.settings.shortcuts_form import ShortcutSettings
from ui.settings.specialists_form import SpecialistSettings
from ui.settings.spelling_page import SpellingSettings
from ui.settings.storage_form import StorageSettings
from ui.settings.usage.usage_page import UsageSettings
from ui.style.accessibility import choose_toggled_row
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.languages import language_in_use, language_of
from ui.style.layouts import FlowRows, FocusFollower, TabOrder
from ui.style.list_rows import RowDelegate, RowRole
from ui.style.server_fields import Status, StatusLine
from ui.style.text import translate_sentence
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XL, ThemeSource
from ui.style.widgets import ComboBox

LIST_WIDTH = 190
NARROW_WIDTH = 700
"""Pixels: a dialog that is less wide has its sections in a menu over the page."""
SIZE = QSize(820, 740)
_ROW_SPACE = 5
"""Pixels above and below each name in the list of pages: all of them fit a dialog of `SIZE`."""


def _keep_in_view(scroll: QScrollArea, row: QWidget, control: QWidget) -> None:
    """Scroll to a row, and again whenever the page has become longer or shorter while its control has the keyboard.

    Until the person scrolls: what they read then stays.
    """
    bar = scroll.verticalScrollBar()

    def scroll_later() -> None:
        # After the layout of a dialog that is not shown yet, or of a page whose content came just now.
        QTimer.singleShot(0, row, partial(scroll.ensureWidgetVisible, row))

    def follow() -> None:
        # In its window, which may not be in front yet.
        if scroll.window().focusWidget() is control:
            scroll_later()
        else:
            stop()

    def stop() -> None:
        bar.rangeChanged.disconnect(follow)
        bar.actionTriggered.disconnect(stop)

    scroll_later()
    bar.rangeChanged.connect(follow)
    bar.actionTriggered.connect(stop)


class SettingsDialog(QDialog):
    """The settings, shown with `open()` or `show()`. Changes take effect at once."""

    about_requested = Signal()
    restart_requested = Signal()

    _can_restart = False

    def __init__(self, themes: ThemeSource, sources: SettingsSources, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        settings, servers, mcp_servers, disk, library, tasks = sources
        self._themes = themes
        self._sources = sources
        self._preferences = settings.preferences
        self._forms: dict[str, Form] = {}
        self.providers = ProviderSettings(themes, servers, tasks)
        self.prices = PriceSettings(themes, settings)
        self.modes = ModeSettings()
        self.specialists = SpecialistSettings()
        self.mcp_servers = McpServersForm(themes, mcp_servers)
        self.rules = RuleSettings(themes, settings.rules, sources.conversation_id)
        self.decisions = AuditLogSettings(themes, settings.rules)
        self.shortcuts = ShortcutSettings(themes)
        self.histories = FoundHistorySettings(library.found)
        self.storage = StorageSettings(themes, self._create_form("storage"), disk, tasks)
        self.spelling = SpellingSettings(self._create_form("spelling", ("check",)))
        local_form = self._create_form("local", ("idle_minutes", "context_tokens"))
        self.local = LocalModelSettings(themes, local_form, servers.local)
        self.usage = UsageSettings(themes, self._create_form("usage"), settings.usage)
        self._problem = StatusLine(themes)
        self._restart = button(self.tr("Restart now"), self.restart_requested.emit)
        self._scrolls: dict[str, QScrollArea] = {}
        self._rows: list[str] = []
        """The page of each row; of a heading, ""."""
        self._search = SettingsSearch(themes, self.shortcuts.entries)
        self._list, self._menu, self._side = QListWidget(), ComboBox(), QWidget()
        self._middle = QHBoxLayout()
        self._column = QVBoxLayout(self)
        self._pages = QStackedWidget()
        self._build(themes)
        self._add_pages()
        self._forms["appearance"].rows["language"].add_below(self._restart)
        self._fill_list()
        themes.follow(self._update_layout)
        self.modes.changed.connect(partial(self._change_preference, "modes", "defined"))
        self.specialists.changed.connect(partial(self._change_preference, "specialists", "defined"))
        self.shortcuts.keys_changed.connect(partial(self._change_preference, "shortcuts", "keys"))
        self._show(settings.preferences, None)
        self._connect(settings, servers)

    def _connect(self, settings: Settings, servers: ModelServers) -> None:
        settings.changed.connect(self.set_preferences)
        settings.prices_changed.connect(self.prices.refresh)
        # The model picker shows prices too.
        settings.prices_changed.connect(servers.refresh_models)
        settings.tools.found.connect(self.modes.show_tools)
        settings.tools.found.connect(self.specialists.show_tools)
        servers.models_changed.connect(self.specialists.show_models)
        servers.models_changed.connect(self.prices.refresh)
        servers.local.ready.connect(self._on_model_ready)
        self.providers.local_requested.connect(partial(self.show_page, "local"))

    def refresh(self) -> None:
        """Show what is so now on all pages."""
        for page in (self.providers, self.prices, self.rules, self.mcp_servers, self.storage, self.usage):
            page.refresh()
        self._sources.settings.tools.find(self._sources.conversation_id())
        self._sources.servers.refresh_models()
        self._sources.library.found.find()

    def _on_model_ready(self) -> None:
        # Loading may take minutes: the person may be on another page by then.
        if self.local.isVisible():
            self.hide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._update_layout()

    def done(self, result: int) -> None:
        """Close, clear the search and focus the list, so that later typing changes no setting."""
        super().done(result)
        self._search.field.clear()
        (self._menu if self._list.isHidden() else self._list).setFocus()

    def set_preferences(self, preferences: Preferences) -> None:
        """Show the preferences that changed, without a signal. Other fields stay: the person may be typing there."""
        previous, self._preferences = self._preferences, preferences
        self.show_problem("")
        self._show(preferences, previous)

    def _show(self, preferences: Preferences, previous: Preferences | None) -> None:
        for name, form in self._forms.items():
            old: dict[str, Any] = {} if previous is None else dict(getattr(previous, name))
            new: dict[str, Any] = dict(getattr(preferences, name))
            form.show_values({field: new[field] for field in new if field not in old or new[field] != old[field]})
        self.providers.show_endpoints(preferences.providers.endpoints)
        self.modes.show_items(preferences.modes.defined)
        self.specialists.show_items(preferences.specialists.defined)
        self.histories.show_shown(preferences.histories.shown)
        self._show_language_note()

    def offer_tray(self, *, has_tray: bool) -> None:
        """Offer to close to the tray if there is one."""
        self._forms["chat"].show_field("close_to_tray", is_shown=has_tray)

    def offer_autostart(self, *, is_offered: bool, why_not: Sentence | None) -> None:
        """Offer to start with the computer; if that is impossible, show why."""
        self._forms["chat"].show_field("start_with_computer", is_shown=is_offered)
        self._offer("chat", "start_with_computer", why_not)

    def offer_restart(self, *, is_possible: bool) -> None:
        """Set whether the program can start again by itself, which another language needs."""
        self._can_restart = is_possible
        self._show_language_note()

    def offer_updates(self, *, why_not: Sentence | None) -> None:
        """Offer to look for new versions; if that is impossible, show why."""
        self._offer("network", "check_for_updates", why_not)

    def _offer(self, page: str, field: str, why_not: Sentence | None) -> None:
        row = self._forms[page].rows[field]
        row.control.widget.setEnabled(why_not is None)
        row.show_warning("" if why_not is None else translate_sentence(why_not))

    def show_quick_ask_keys(self, *, is_possible: bool, problem: str, note: str) -> None:
        """Show whether global keys are possible for the quick question, and the state of the chosen ones."""
        row = self._forms["chat"].rows["quick_ask_keys"]
        row.control.widget.setEnabled(is_possible)
        row.show_warning(problem)
        row.show_note(note)

    def show_problem(self, problem: Sentence | str) -> None:
        """Show a problem that is about none of the cards; "" hides it."""
        self._problem.show_state(Status.ERROR, problem)

    def show_page(self, page: str) -> None:
        """Show the page of a section of the preferences, or "rules", "decisions" or "storage"."""
        self._list.setCurrentRow(self._rows.index(page))

    def show_field(self, page: str, field: str) -> None:
        """Show the page and focus the control of one field, or an action among the shortcuts."""
        self.show_page(page)
        if page == "shortcuts":
            self.shortcuts.choose(field)
            return
        row, scroll = self._forms[page].rows[field], self._pages.currentWidget()
        row.initial_focus.setFocus(Qt.FocusReason.ShortcutFocusReason)
        if isinstance(scroll, QScrollArea):
            _keep_in_view(scroll, row, row.initial_focus)

    def _on_field_changed(self, section: str, name: str) -> None:
        row = self._forms[section].rows[name]
        if not row.problem:
            values: BaseModel = getattr(self._preferences, section)
            self._change_preference(section, name, typed_value(type(values), name, row.value))

    def _show_language_note(self) -> None:
        """Offer the restart that another language needs, or ask the person to restart."""
        row = self._forms["appearance"].rows["language"]
        language = language_of(row.value)
        words = self.tr("Close Desktop Agent and start it again to see it in this language: {0}.")
        is_other = language != language_in_use()
        row.show_note(words.format(LANGUAGE_NAMES[language]) if is_other and not self._can_restart else "")
        self._restart.setVisible(is_other and self._can_restart)

    def _change_preference(self, section: str, name: str, value: Any) -> None:
        self._preferences = self._preferences.with_changes(section, **{name: value})
        self._show_language_note()
        self._sources.settings.change(self._preferences)

    def _create_form(self, name: str, fields: tuple[str, ...] = ()) -> Form:
        form = self._forms[name] = Form(SETTINGS)
        section: BaseModel = getattr(self._preferences, name)
        add_model_fields(form, type(section), fields)
        form.changed.connect(partial(self._on_field_changed, name))
        return form

    def _add_pages(self) -> None:
        self._add_page("providers", self.providers)
        self._add_page("local", self.local)
        self._add_page("spelling", self.spelling)
        self._add_page("modes", self.modes)
        self._add_page("rules", self.rules)
        self._add_page("decisions", self.decisions)
        self._add_page("mcp", self.mcp_servers)
        self._add_page("specialists", self.specialists)
        for name in type(self._preferences).model_fields:
            if name not in CUSTOM_PAGES and name not in self._forms:
                self._add_page(name, self._create_form(name), self.prices if name == "models" else None)
        self._add_page("shortcuts", self.shortcuts)
        self._add_page("histories", self.histories)
        self._add_page("storage", self.storage)
        self._add_page("usage", self.usage)

    def _add_page(self, name: str, content: QWidget, below: QWidget | None = None) -> None:
        page, scroll, title = QWidget(), QScrollArea(), page_title(name)
        # Add the page first and its content last: Qt restyles all children whenever a widget's parent changes.
        self._pages.addWidget(scroll)
        scroll.setWidget(page)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        page.setAutoFillBackground(False)
        scroll.viewport().setAutoFillBackground(False)
        layout = vbox(label(title, "heading"), parent=page, spacing=SPACE_M, margins=(SPACE_L, 0, SPACE_L, SPACE_L))
        layout.addWidget(content, 0 if isinstance(content, Form) else 1)
        if isinstance(content, Form):
            layout.addSpacing(SPACE_L)
            layout.addWidget(below or QWidget(), 1)
        FocusFollower(scroll)
        TabOrder(self._list, page)
        self._scrolls[name] = scroll

    def _fill_list(self) -> None:
        for heading, pages in page_groups():
            item = QListWidgetItem(heading, self._list)
            item.setFlags(Qt.ItemFlag.NoItemFlags)
            item.setData(RowRole.HEADING, True)
            self._list.addItems([page_title(page) for page in pages])
            self._rows += ["", *pages]
        self._list.setCurrentRow(1)

    def _on_page_selected(self, row: int) -> None:
        if not self._rows[row]:
            return
        self._pages.setCurrentWidget(self._scrolls[self._rows[row]])
        self._menu.setCurrentIndex(row)
        if self._rows[row] == "decisions":
            self._sources.settings.rules.read_newest()

    def _on_found(self, row: SettingRow) -> None:
        if row.field:
            self.show_field(row.page, row.field)
        else:
            self.show_page(row.page)
        if self.width() < self._narrow_width:
            # The results would hide the page.
            self._search.field.clear()

    @property
    def _narrow_width(self) -> int:
        return self._themes.scaled(NARROW_WIDTH)

    def _update_layout(self) -> None:
        part = self._themes.zoom / 100
        is_narrow, is_searched = self.width() < self._narrow_width, self._search.is_used
        width = round(LIST_WIDTH * part)
        self._side.setMinimumWidth(0 if is_narrow else width)
        self._side.setMaximumWidth(max(self.width(), width) if is_narrow else width)
        self._list.setVisible(not is_narrow and not is_searched)
        self._menu.setVisible(is_narrow and not is_searched)
        self._pages.setVisible(not (is_narrow and is_searched))
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._middle.setDirection(down if is_narrow else across)
        edge = SPACE_M if is_narrow else SPACE_XL
        self._column.setContentsMargins(edge, edge, edge, SPACE_M if is_narrow else SPACE_L)

    def _build(self, themes: ThemeSource) -> None:
        self.setWindowTitle(self.tr("Settings"))
        self.setAccessibleName(self.tr("Settings"))
        self.resize((SIZE * (themes.zoom / 100)).boundedTo(self.screen().availableSize() * 0.9))
        self._list.setAccessibleName(self.tr("Sections"))
        self._list.setItemDelegate(RowDelegate(themes, self._list, _ROW_SPACE))
        self._list.setMouseTracking(True)
        self._list.currentRowChanged.connect(self._on_page_selected)
        self._search.chosen.connect(self._on_found)
        self._search.used.connect(self._update_layout)
        QShortcut(QKeySequence.StandardKey.Find, self, self._search.start)
        choose_toggled_row(self._list, self._list.setCurrentIndex)
        self._menu.setModel(self._list.model())
        self._menu.setItemDelegate(RowDelegate(themes, self._menu.view()))
        self._menu.setAccessibleName(self.tr("Section"))
        self._menu.activated.connect(self._list.setCurrentRow)
        self._middle.setSpacing(SPACE_M)
        vbox(self._search, self._menu, self._list, parent=self._side, spacing=SPACE_S, margins=0)
        self._middle.addWidget(self._side)
        self._middle.addWidget(self._pages, 1)
        # People look for the version in the settings first.
        words = self.tr("About · version {0}").format(QCoreApplication.applicationVersion())
        about = button(words, self.about_requested.emit, "quiet")
        foot = FlowRows((about, button(self.tr("Close"), self.accept)), apart=about, trailing=True)
        self._column.setSpacing(SPACE_L)
        self._column.addLayout(self._middle, 1)
        self._column.addWidget(self._problem)
        self._column.addWidget(foot)
        # Not the search, so that arrow keys move through the pages at once.
        self._list.setFocus()
