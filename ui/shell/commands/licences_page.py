"""The page of the help that lists what the program is made of, and shows the text of each licence."""

import asyncio

from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QListView, QWidget

from desktop_agent.types.errors import Sentence
from ui.bridge.desktop.licences import Component, program_components
from ui.bridge.event_loop import BackgroundTasks
from ui.style.accessibility import ChoiceList, choose_toggled_row
from ui.style.boxes import vbox
from ui.style.controls import announce, label
from ui.style.list_rows import ResultModel, ResultRow, RowDelegate
from ui.style.text import join_names, translate_sentence
from ui.style.text_display import LogicalOrderText
from ui.style.theme import SPACE_L, SPACE_M, ThemeSource

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
        self._list.setModel(self._rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setAccessibleName(self.tr("Components"))
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self._list.setUniformItemSizes(True)
        self._list.setFrameShape(QFrame.Shape.NoFrame)
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
        self._rows.show_rows([_row(component) for component in components])
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


def _row(component: Component) -> ResultRow:
    text = f"{component.name} {component.version}".strip()
    spoken = join_names(part for part in (text, component.licence) if part)
    return ResultRow(text=text, detail=component.licence, spoken=spoken, tip=spoken, is_choosable=True)
