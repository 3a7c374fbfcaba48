"""The frame of the conversation's screen: what is seen of it before there is a conversation."""

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from ui.composer.composer import Composer
from ui.look.controls import ElidedLabel
from ui.look.parts.scrolled_column import ScrolledColumn
from ui.look.theme import SPACE_L, SPACE_M, SPACE_S, ThemeSource

if TYPE_CHECKING:
    from desktop_agent.conversation.picture_intake import TakenPicture
    from ui.composer.offers.chip_row import Attached
    from ui.shell.usage_meter import UsageMeter

# Less of a title says nothing; the figures beside it get shorter first.
TITLE_WIDTH = 110
LEAST_READ = 120
"""Pixels."""


class PageFrame(QWidget):
    """Heading, room for what is read, and the composer. ConversationPage fills it.

    What is sent before that is kept.
    """

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._early: list[tuple[str, list[Attached]]] = []
        self.title = _Title()
        self.composer = Composer(themes, _take, opens_focused=True)
        self._said: QWidget | None = None
        self._figures: UsageMeter | None = None
        self._before: list[QWidget] = []
        self._settle = QTimer(self, singleShot=True, interval=0)
        self._heading = QHBoxLayout()
        self._written = ScrolledColumn(0, trailing=SPACE_S, most=self._most_of_writing)
        self._writing = self._written.column
        self._column = QVBoxLayout(self)
        self._room = QScrollArea()
        self._build()
        themes.changed.connect(self._fit)
        self.composer.send_requested.connect(self._keep)

    def fill(self, figures: "UsageMeter", find_bar: QWidget, transcript: QWidget, *above: QWidget) -> None:
        """Figures into the heading, a bar over what is read, what is read, and what stands over the composer."""
        self._heading.addWidget(figures)
        self._figures = figures
        self._fit_heading()
        at = self._column.indexOf(self._room)
        self._column.removeWidget(self._room)
        self._room.deleteLater()
        self._column.insertWidget(at, find_bar)
        self._column.insertWidget(at + 1, transcript, 1)
        for at, each in enumerate(above):
            self._writing.insertWidget(at, each)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._show_focused)
        _put_in_order([self.title, figures, find_bar, transcript, *above, self.composer])

    def event(self, event: QEvent) -> bool:
        """There is more or less room for the figures."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Resize}:
            self._fit_heading()
        return super().event(event)

    def put_first(self, button: QWidget) -> None:
        """Put a button before the title."""
        self._heading.insertWidget(0, button)
        self._before.append(button)

    def take_over(self) -> list[tuple[str, "list[Attached]"]]:
        """What was sent before somebody was there to send it. From now on it goes to whoever asks this."""
        self.composer.send_requested.disconnect(self._keep)
        early, self._early = self._early, []
        return early

    def hand_back(self) -> None:
        """Nobody will ever send it: what was sent stands in the composer, from now on at once."""
        for text, attached in self.take_over():
            self.composer.give_back(text, attached)
        self.composer.send_requested.connect(self.composer.give_back)

    @property
    def has_words(self) -> bool:
        """Whether something was written, attached or sent that is kept nowhere else."""
        composer = self.composer
        return bool(self._early or composer.draft()[0] or composer.attachments.chips)

    def _keep(self, text: str, attached: "list[Attached]") -> None:
        self._early.append((text, attached))

    def _build(self) -> None:
        heading = self._heading
        heading.setContentsMargins(SPACE_L, SPACE_M, SPACE_L, SPACE_S)
        heading.setSpacing(SPACE_M)
        self.title.setProperty("kind", "strong")
        # A title in another direction stands where all titles stand, not among the figures at the other end.
        self.title.setAlignment(Qt.AlignmentFlag.AlignAbsolute | Qt.AlignmentFlag.AlignLeft)
        heading.addWidget(self.title, 1)
        self._room.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        centred = QHBoxLayout()
        # What is read stands beside a scroll bar, and what is written right below it.
        bar = self._room.verticalScrollBar().sizeHint().width()
        centred.setContentsMargins(SPACE_L, 0, SPACE_L + bar, SPACE_L)
        self._writing.addWidget(self.composer)
        self._written.verticalScrollBar().rangeChanged.connect(self._show_composer)
        self._settle.timeout.connect(self._show_composer)
        self.composer.said.connect(self._show_said)
        self.composer.editor.textChanged.connect(self._forget_said)
        centred.addStretch(1)
        centred.addWidget(self._written, 1000)
        centred.addStretch(1)
        column = self._column
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(heading)
        column.addWidget(self._room, 1)
        column.addLayout(centred)
        self._fit()

    def _fit(self) -> None:
        """The composer, and what stands over it, are as wide as what is read above. Larger text needs a wider title."""
        self.title.setMinimumWidth(TITLE_WIDTH * self._themes.zoom // 100)
        self._fit_heading()
        self._written.setMaximumWidth(self._themes.reading_width + 2 * SPACE_L)

    def _fit_heading(self) -> None:
        """The figures leave the title what it needs at least; what they do not show is the title's too."""
        if self._figures is None:
            return
        edges, gap = self._heading.contentsMargins(), self._heading.spacing()
        others = (each for each in self._before if not each.isHidden())
        taken = self.title.minimumWidth() + gap + sum(each.sizeHint().width() + gap for each in others)
        self._figures.set_room(self.width() - edges.left() - edges.right() - taken)

    def _most_of_writing(self) -> int:
        """Pixels of height: the conversation keeps the rest, and a low window with large text scrolls here."""
        return max(self.height() - self._heading.sizeHint().height() - LEAST_READ, LEAST_READ)

    def _show_composer(self) -> None:
        """The end of it, where one writes; or the beginning of what it said last, until one goes on writing."""
        bar, said = self._written.verticalScrollBar(), self._said
        if said is None or not said.isVisible():
            bar.setValue(bar.maximum())
        else:
            bar.setValue(bar.value() + said.mapTo(self._written.viewport(), QPoint(0, 0)).y())

    def _show_said(self, said: QWidget) -> None:
        self._said = said
        # It gets its place when all has been laid out again.
        self._settle.start()

    def _forget_said(self) -> None:
        if self._said is not None:
            self._said = None
            self._show_composer()

    def _show_focused(self, _before: QWidget | None, now: QWidget | None) -> None:
        if now is not None and self._written.isAncestorOf(now):
            self._written.ensureWidgetVisible(now, 0, SPACE_S)


class _Title(ElidedLabel):
    double_clicked = Signal()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        super().mouseDoubleClickEvent(event)
        self.double_clicked.emit()


async def _take(data: bytes, name: str) -> "TakenPicture":
    # Late: nothing is attached to the window when it is drawn for the first time.
    from desktop_agent.conversation.picture_intake import take

    return await take(data, name)


def _put_in_order(parts: list[QWidget]) -> None:
    """What was added last stands where it is seen, for the Tab key and for assistive technology."""
    for each in parts:
        each.raise_()
    found = (each for part in parts for each in (part, *part.findChildren(QWidget)))
    for before, after in pairwise(each for each in found if _takes_focus(each, parts[0].window())):
        QWidget.setTabOrder(before, after)


def _takes_focus(widget: QWidget, window: QWidget) -> bool:
    # Not a popup of its own, and none that hands its focus on: Qt would take it for that other one.
    has_policy = widget.focusPolicy() != Qt.FocusPolicy.NoFocus
    return has_policy and widget.focusProxy() is None and widget.window() is window
