"""The window of the help: three pages beside a list of them."""

from pathlib import Path
from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QDialog,
    QHBoxLayout,
    QListWidget,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message, Role
from resources import resource_path
from ui.bridge.opening import AddressOpener
from ui.bridge.pictures import PictureStore
from ui.look.controls import ComboBox, announce, button, label
from ui.look.rows import RowDelegate
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_L, SPACE_M, SPACE_XL, ThemeSource
from ui.shell.help.about_page import AboutPage
from ui.shell.help.shortcuts_page import ShortcutsPage
from ui.transcript.view import TranscriptView

Page = Literal["guide", "shortcuts", "about"]
DIALOG_SIZE = QSize(900, 700)
LIST_WIDTH = 190
NARROW_WIDTH = 640
"""Pixels at 100 % zoom: a window that is less wide has its pages in a menu over them."""


class HelpDialog(QDialog):
    """It blocks nothing, so that one can read and try. Show it with `show()`."""

    def __init__(self, themes: ThemeSource, pictures: PictureStore, data_folder: Path, window: QWidget) -> None:
        super().__init__(window)
        self._themes = themes
        self._window = window
        self.guide = TranscriptView(themes, pictures)
        self._shortcuts = ShortcutsPage(themes)
        opener = AddressOpener(self)
        self._problem = label(kind="error", wrap=True)
        self._about = AboutPage(themes, data_folder, opener)
        self._page_widgets: dict[Page, QWidget] = {}
        self._list = QListWidget()
        self._menu = ComboBox()
        self._middle = QHBoxLayout()
        self._pages = QStackedWidget()
        self._column = QVBoxLayout(self)
        self._add("guide", self.tr("Guide"), self.guide)
        self._add("shortcuts", self.tr("Keyboard shortcuts"), self._shortcuts)
        self._add("about", self.tr("About"), self._about)
        self._build()
        text = resource_path("guide.md").read_text(encoding="utf-8")
        self.guide.set_transcript(Transcript([Message(role=Role.ASSISTANT, blocks=(Text(text=text),))]))
        self.guide.scroller.to_start()
        # Nothing arrives here that one could jump to.
        self.guide.scroller.following_changed.disconnect(self.guide.jump_button.setHidden)
        self.guide.jump_button.hide()
        self.guide.link_activated.connect(opener.open_link)
        opener.failed.connect(self._show_problem)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    def turn_to(self, page: Page) -> None:
        """Show a page, with what the window can do by now."""
        self._shortcuts.show_actions_of(self._window)
        self._list.setCurrentRow(list(self._page_widgets).index(page))
        self._page_widgets[page].setFocus()
        self._problem.hide()

    def _show_problem(self, sentence: Sentence) -> None:
        self._problem.setText(translate_sentence(sentence))
        self._problem.show()
        announce(self, translate_sentence(sentence))

    def _add(self, page: Page, title: str, content: QWidget) -> None:
        self._page_widgets[page] = content
        self._pages.addWidget(content)
        self._list.addItem(title)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width."""
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
        self._list.currentRowChanged.connect(self._menu.setCurrentIndex)
        self._menu.setModel(self._list.model())
        self._menu.setAccessibleName(self.tr("Page"))
        self._menu.activated.connect(self._list.setCurrentRow)
        self._middle.setSpacing(SPACE_M)
        for each in (self._menu, self._list):
            self._middle.addWidget(each)
        self._middle.addWidget(self._pages, 1)
        foot = QHBoxLayout()
        foot.addStretch(1)
        foot.addWidget(button(self.tr("Close"), self.accept))
        self._column.setSpacing(SPACE_L)
        self._column.addLayout(self._middle, 1)
        self._problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._problem.hide()
        self._column.addWidget(self._problem)
        self._column.addLayout(foot)
