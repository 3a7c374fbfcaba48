"""The help dialog: the guide, the keyboard shortcuts, the version, and the licences."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QCoreApplication, QItemSelectionModel, QSize, Qt
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListView,
    QListWidget,
    QStackedWidget,
    QWidget,
)

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from resources import resource_path
from ui.bridge.desktop.licences import Component, program_components
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.desktop.updates import UpdateChecks
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.storage import PictureStore
from ui.shell.commands.action import listed_actions, numbered_actions
from ui.shell.desktop.update_notice import release_sentence
from ui.style.accessibility import ChoiceList, choose_toggled_row
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label
from ui.style.layouts import FlowRows, PartFocus, ScrollColumn
from ui.style.list_rows import ResultModel, ResultRow, RowDelegate
from ui.style.text import join_names, join_sentences, translate_sentence
from ui.style.text_display import LogicalOrderText, exact_date
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XL, SPACE_XS, ThemeSource, pixmap
from ui.style.widgets import ComboBox
from ui.transcript.view import TranscriptView

_ICON_SIZE = 56
_MAX_ZOOM = 150


class AboutPage(ScrollColumn):
    """The version, the licence and the folders, as text to select and copy."""

    def __init__(
        self,
        themes: ThemeSource,
        data_folder: Path,
        opener: AddressOpener,
        updates: QWidget,
        show_licences: Callable[[], None],
    ) -> None:
        super().__init__(SPACE_S, trailing=SPACE_S)
        self._themes = themes
        self._drawing = QLabel()
        show_folder = partial(opener.open_folder, data_folder)
        open_folder = button(self.tr("Open folder"), show_folder, name=self.tr("Open the data folder"))
        PartFocus(self, open_folder)
        self.setViewportMargins(SPACE_L, 0, 0, 0)
        layout = self.column
        layout.addLayout(self._head())
        layout.addSpacing(SPACE_L)
        layout.addWidget(updates)
        layout.addSpacing(SPACE_L)
        layout.addWidget(label(self.tr("Data folder"), "strong"))
        layout.addWidget(_selectable(str(data_folder)))
        words = self.tr(
            "Conversations, pictures and settings. Keys are never here; they go into the keyring of your system."
        )
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(open_folder, 0, Qt.AlignmentFlag.AlignLeading)
        layout.addSpacing(SPACE_L)
        layout.addWidget(label(self.tr("Licence"), "strong"))
        licence = self.tr("MIT. You may use, change and pass on this program; it comes without any warranty.")
        layout.addWidget(label(licence, wrap=True))
        licences = button(self.tr("All licences"), show_licences)
        layout.addWidget(licences, 0, Qt.AlignmentFlag.AlignLeading)
        layout.addStretch(1)
        themes.follow(self._apply_theme)

    def _head(self) -> QHBoxLayout:
        version = _selectable(self.tr("Version {0}").format(QCoreApplication.applicationVersion()))
        words = vbox(label(self.tr("Desktop Agent"), "title", wrap=True), version, spacing=SPACE_XS)
        return hbox(self._drawing, words, spacing=SPACE_M, grow=words)

    def _apply_theme(self) -> None:
        # Limited, or the name beside the drawing would be cut.
        part = min(self._themes.zoom, _MAX_ZOOM) / 100
        self._drawing.setPixmap(pixmap("desktop-agent", "#000000", round(_ICON_SIZE * part), 2))


def _selectable(text: str) -> QLabel:
    widget = label(text, wrap=True)
    widget.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return widget


class UpdateSection(QWidget):
    """A line about the newest version, and a button to ask; without an address, only why there is none."""

    def __init__(self, updates: UpdateChecks, opener: AddressOpener) -> None:
        super().__init__()
        self._updates = updates
        self._opener = opener
        self._was_checking = False
        self._state = _selectable("")
        self._about = label(kind="muted", wrap=True)
        self._check = button(self.tr("Check for a new version"), updates.check)
        self._open = button(self.tr("Open its page"), self._open_page)
        buttons = FlowRows((self._check, self._open))
        parts = (label(self.tr("New versions"), "strong"), self._state, self._about, buttons)
        vbox(*parts, parent=self, spacing=SPACE_S, margins=0)
        why_not = updates.source.why_not
        if why_not is None:
            updates.changed.connect(self._refresh)
            self._refresh()
        else:
            self._state.setText(translate_sentence(why_not))
            self._about.hide()
            buttons.hide()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._updates.load()

    def _refresh(self) -> None:
        words = self._words()
        self._state.setText(words)
        self._open.setVisible(self._updates.newer is not None)
        self._open.setToolTip("" if self._updates.newer is None else self._updates.newer.page)
        when = (
            self.tr("“{0}” is asked once a day: Settings → Network.")
            if self._updates.is_daily
            else self.tr("The button asks “{0}”. To ask once a day, turn it on in Settings → Network.")
        )
        nothing_more = self.tr("Nothing is downloaded or installed.")
        self._about.setText(join_sentences((when.format(self._updates.source.host), nothing_more)))
        if self._was_checking and not self._updates.is_checking:
            announce(self, words)
        self._was_checking = self._updates.is_checking

    def _words(self) -> str:
        updates = self._updates
        if updates.is_checking:
            return translate_sentence(Sentence("Asking “{host}”…", {"host": updates.source.host}))
        sentences = [release_sentence(updates.newer)] if updates.newer is not None else []
        if updates.problem is not None:
            sentences.append(updates.problem)
        elif not sentences and updates.answered is not None:
            moment = exact_date(updates.answered, datetime.now(UTC))
            sentences.append(Sentence("This is the newest version, as of {moment}.", {"moment": moment}))
        if not sentences:
            return self.tr("Not checked for a newer version yet.")
        return join_sentences(map(translate_sentence, sentences))

    def _open_page(self) -> None:
        if self._updates.newer is not None:
            self._opener.open_page(self._updates.newer.page)


class ShortcutsPage(QWidget):
    """One row for each action, with its keys at the end."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._rows = ResultModel(self)
        self._list = QListView()
        self._list.setAccessibleName(self.tr("Keyboard shortcuts"))
        _show_in(self._list, self._rows, themes)
        self.setFocusProxy(self._list)
        heading = label(self.tr("Keyboard shortcuts"), "heading")
        vbox(heading, self._list, parent=self, spacing=SPACE_M, margins=(SPACE_L, 0, 0, 0), grow=self._list)

    def show_actions_of(self, window: QWidget) -> None:
        """List the current actions of the window."""
        rows = [_row(action.text(), action.shown_keys) for action in listed_actions(window) if action.keys]
        series = numbered_actions(window)
        if series:
            keys = f"{series[0].shown_keys} … {series[-1].shown_keys}"
            rows.append(_row(self.tr("Conversation 1 to {0} of the list").format(len(series)), keys))
        self._rows.show_rows(rows)


def _row(text: str, keys: str) -> ResultRow:
    return ResultRow(text=text, detail=keys, spoken=f"{text}, {keys}", is_choosable=True)


def _show_in(view: QListView, rows: ResultModel, themes: ThemeSource) -> None:
    view.setModel(rows)
    view.setItemDelegate(RowDelegate(themes, view))
    view.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
    view.setUniformItemSizes(True)
    view.setFrameShape(QFrame.Shape.NoFrame)


_LIST_SHARE, _TEXT_SHARE = 2, 3


class LicencesPage(QWidget):
    """The components in a list, and below it the licence of the chosen one. Read when the page is first shown."""

    def __init__(self, themes: ThemeSource, tasks: BackgroundTasks) -> None:
        super().__init__()
        self._tasks = tasks
        self._components: list[Component] = []
        self._is_read = False
        self._rows = ResultModel(self)
        self._list = ChoiceList()
        self._list.setAccessibleName(self.tr("Components"))
        _show_in(self._list, self._rows, themes)
        self._list.selectionModel().currentChanged.connect(self._show_text)
        choose_toggled_row(self._list, self._list.setCurrentIndex)
        self._text = LogicalOrderText()
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        # Licences are written from left to right.
        self._text.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self._text.setAccessibleName(self.tr("Text of the licence"))
        self._problem = label(kind="error", wrap=True)
        self._problem.hide()
        self.setFocusProxy(self._list)
        heading = label(self.tr("Licences"), "heading")
        words = label(self.tr("The components of this program, and their licences."), "muted", wrap=True)
        parts = (heading, words, self._problem, self._list, self._text)
        layout = vbox(*parts, parent=self, spacing=SPACE_M, margins=(SPACE_L, 0, 0, 0))
        layout.setStretchFactor(self._list, _LIST_SHARE)
        layout.setStretchFactor(self._text, _TEXT_SHARE)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._is_read:
            self._is_read = True
            self._tasks.start(self._read())

    async def _read(self) -> None:
        try:
            components = await asyncio.to_thread(program_components)
        except (OSError, ValueError):
            sentence = Sentence("The list of licences is damaged. Install the program again.")
            self._problem.setText(translate_sentence(sentence))
            self._problem.show()
            announce(self, translate_sentence(sentence))
            return
        self._components = components
        self._rows.show_rows([_component_row(component) for component in components])
        first = self._rows.index(0, 0)
        self._list.selectionModel().setCurrentIndex(first, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def _show_text(self) -> None:
        index = self._list.currentIndex()
        if not index.isValid():
            return
        component = self._components[index.row()]
        # A component may have no text: its name is better than an empty field.
        self._text.setPlainText(component.text or component.licence or component.name)
        self._text.setAccessibleName(self.tr("Licence of {0}").format(component.name))


def _component_row(component: Component) -> ResultRow:
    text = f"{component.name} {component.version}".strip()
    spoken = join_names(part for part in (text, component.licence) if part)
    return ResultRow(text=text, detail=component.licence, spoken=spoken, tip=spoken, is_choosable=True)


HelpPage = Literal["guide", "shortcuts", "about", "licences"]
DIALOG_SIZE = QSize(900, 700)
LIST_WIDTH = 190
NARROW_WIDTH = 640
"""Pixels at 100 % zoom: a narrower window lists its pages in a combo box above them."""


class HelpDialog(QDialog):
    """Not modal, so that the person can try what the guide says. Show it with `show()`."""

    def __init__(
        self,
        themes: ThemeSource,
        pictures: PictureStore,
        data_folder: Path,
        tasks: BackgroundTasks,
        updates: UpdateChecks,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._window = window
        self.guide = TranscriptView(themes, pictures)
        self._shortcuts = ShortcutsPage(themes)
        opener = AddressOpener(self)
        self._problem = label(kind="error", wrap=True)
        self._about = AboutPage(
            themes, data_folder, opener, UpdateSection(updates, opener), lambda: self.turn_to("licences")
        )
        self._page_widgets: dict[HelpPage, QWidget] = {}
        self._list = QListWidget()
        self._menu = ComboBox()
        self._pages = QStackedWidget()
        self._add("guide", self.tr("Guide"), self.guide)
        self._add("shortcuts", self.tr("Keyboard shortcuts"), self._shortcuts)
        self._add("about", self.tr("About"), self._about)
        self._add("licences", self.tr("Licences"), LicencesPage(themes, tasks))
        # After the pages are filled: the Tab key follows the order in which widgets come into the dialog.
        self._middle = hbox(self._menu, self._list, self._pages, spacing=SPACE_M, grow=self._pages)
        foot = hbox(button(self.tr("Close"), self.accept), start_stretch=True)
        self._column = vbox(self._middle, self._problem, foot, parent=self, spacing=SPACE_L, grow=self._middle)
        self._build()
        guide = Text(text=self._guide_path().read_text(encoding="utf-8"))
        self.guide.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(guide,))]))
        self.guide.scroller.scroll_to_start()
        # The guide does not grow, so no jump button is needed.
        self.guide.scroller.offers_jump = False
        self.guide.jump_button.hide()
        self.guide.link_activated.connect(opener.open_link)
        opener.failed.connect(self._show_problem)
        themes.follow(self._apply_theme)

    def turn_to(self, page: HelpPage) -> None:
        """Show a page, with the window's current actions."""
        self._shortcuts.show_actions_of(self._window)
        self._list.setCurrentRow(list(self._page_widgets).index(page))
        self._page_widgets[page].setFocus()
        self._problem.hide()

    def _guide_path(self) -> Path:
        """Return the guide in the language of the window, whose translation names the file, or else the English one."""
        try:
            return resource_path(self.tr("guide.md"))
        except FileNotFoundError:
            return resource_path("guide.md")

    def _show_problem(self, sentence: Sentence) -> None:
        self._problem.setText(translate_sentence(sentence))
        self._problem.show()
        announce(self, translate_sentence(sentence))

    def _add(self, page: HelpPage, title: str, content: QWidget) -> None:
        self._page_widgets[page] = content
        self._pages.addWidget(content)
        self._list.addItem(title)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._apply_theme()

    def _apply_theme(self) -> None:
        part = self._themes.zoom / 100
        is_narrow = self.width() < NARROW_WIDTH * part
        self._list.setFixedWidth(round(LIST_WIDTH * part))
        self._list.setVisible(not is_narrow)
        self._menu.setVisible(is_narrow)
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        self._middle.setDirection(down if is_narrow else across)
        margin = SPACE_M if is_narrow else SPACE_XL
        self._column.setContentsMargins(margin, margin, margin, SPACE_M if is_narrow else SPACE_L)

    def _build(self) -> None:
        self.setWindowTitle(self.tr("Help"))
        self.setAccessibleName(self.tr("Help"))
        self.resize((DIALOG_SIZE * (self._themes.zoom / 100)).boundedTo(self.screen().availableSize() * 0.9))
        self.guide.setAccessibleName(self.tr("Guide"))
        self._list.setAccessibleName(self.tr("Pages"))
        self._list.setItemDelegate(RowDelegate(self._themes, self._list))
        self._list.setMouseTracking(True)
        self._list.currentRowChanged.connect(self._pages.setCurrentIndex)
        choose_toggled_row(self._list, self._list.setCurrentIndex)
        self._list.currentRowChanged.connect(self._menu.setCurrentIndex)
        self._menu.setModel(self._list.model())
        self._menu.setAccessibleName(self.tr("Page"))
        self._menu.activated.connect(self._list.setCurrentRow)
        self._problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._problem.hide()
