"""The frame of the conversation's screen: what is seen of it before there is a conversation."""

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from ui.composer.composer import Composer
from ui.look.controls import ElidedLabel
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_L, SPACE_M, SPACE_S, ThemeSource

if TYPE_CHECKING:
    from desktop_agent.conversation.picture_intake import ImportedPicture
    from ui.composer.offers.chip_row import Attachment
    from ui.shell.usage_meter import UsageMeter

# Less of a title says nothing; the figures beside it get shorter first.
TITLE_WIDTH = 110
MIN_READING_HEIGHT = 120
"""Pixels."""


class PageFrame(QWidget):
    """Heading, room for what is read, and the composer. ConversationPage fills it.

    What is sent before that is kept.
    """

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._early: list[tuple[str, list[Attachment]]] = []
        self.title = _Title()
        self.composer = Composer(themes, _take_picture, opens_focused=True)
        self._notice: QWidget | None = None
        self._usage_meter: UsageMeter | None = None
        self._before: list[QWidget] = []
        self._layout_timer = QTimer(self, singleShot=True, interval=0)
        self._heading = QHBoxLayout()
        self._composer_scroll = ScrollColumn(0, trailing=SPACE_S, most=self._max_composer_height)
        self._composer_column = self._composer_scroll.column
        self._column = QVBoxLayout(self)
        self._room = QScrollArea()
        self._build()
        themes.changed.connect(self._fit)
        self.composer.send_requested.connect(self._hold_early_message)

    def set_content(self, figures: "UsageMeter", find_bar: QWidget, transcript: QWidget, *above: QWidget) -> None:
        """Figures into the heading, a bar over what is read, what is read, and what stands over the composer."""
        self._heading.addWidget(figures)
        self._usage_meter = figures
        self._fit_heading()
        at = self._column.indexOf(self._room)
        self._column.removeWidget(self._room)
        self._room.deleteLater()
        self._column.insertWidget(at, find_bar)
        self._column.insertWidget(at + 1, transcript, 1)
        for at, each in enumerate(above):
            self._composer_column.insertWidget(at, each)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._show_focused)
        _set_tab_order([self.title, figures, find_bar, transcript, *above, self.composer])

    def event(self, event: QEvent) -> bool:
        """There is more or less room for the figures."""
        if event.type() in {QEvent.Type.LayoutRequest, QEvent.Type.Resize}:
            self._fit_heading()
        return super().event(event)

    def add_before_title(self, button: QWidget) -> None:
        """Put a button before the title."""
        self._heading.insertWidget(0, button)
        self._before.append(button)

    def take_early_messages(self) -> list[tuple[str, "list[Attachment]"]]:
        """What was sent before somebody was there to send it. From now on it goes to whoever asks this."""
        self.composer.send_requested.disconnect(self._hold_early_message)
        early, self._early = self._early, []
        return early

    def hand_back(self) -> None:
        """Nobody will ever send it: what was sent stands in the composer, from now on at once."""
        for text, attached in self.take_early_messages():
            self.composer.restore_message(text, attached)
        self.composer.send_requested.connect(self.composer.restore_message)

    @property
    def has_unsaved_text(self) -> bool:
        """Whether something was written, attached or sent that is kept nowhere else."""
        composer = self.composer
        return bool(self._early or composer.draft()[0] or composer.attachments.chips)

    def _hold_early_message(self, text: str, attached: "list[Attachment]") -> None:
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
        self._composer_column.addWidget(self.composer)
        self._composer_scroll.verticalScrollBar().rangeChanged.connect(self._show_composer)
        self._layout_timer.timeout.connect(self._show_composer)
        self.composer.notice_shown.connect(self._show_notice)
        self.composer.editor.textChanged.connect(self._clear_notice)
        centred.addStretch(1)
        centred.addWidget(self._composer_scroll, 1000)
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
        self._composer_scroll.setMaximumWidth(self._themes.reading_width + 2 * SPACE_L)

    def _fit_heading(self) -> None:
        """The figures leave the title what it needs at least; what they do not show is the title's too."""
        if self._usage_meter is None:
            return
        edges, gap = self._heading.contentsMargins(), self._heading.spacing()
        others = (each for each in self._before if not each.isHidden())
        taken = self.title.minimumWidth() + gap + sum(each.sizeHint().width() + gap for each in others)
        self._usage_meter.set_room(self.width() - edges.left() - edges.right() - taken)

    def _max_composer_height(self) -> int:
        """Pixels of height: the conversation keeps the rest, and a low window with large text scrolls here."""
        return max(self.height() - self._heading.sizeHint().height() - MIN_READING_HEIGHT, MIN_READING_HEIGHT)

    def _show_composer(self) -> None:
        """The end of it, where one writes; or the beginning of what it said last, until one goes on writing."""
        bar, said = self._composer_scroll.verticalScrollBar(), self._notice
        if said is None or not said.isVisible():
            bar.setValue(bar.maximum())
        else:
            bar.setValue(bar.value() + said.mapTo(self._composer_scroll.viewport(), QPoint(0, 0)).y())

    def _show_notice(self, said: QWidget) -> None:
        self._notice = said
        # It gets its place when all has been laid out again.
        self._layout_timer.start()

    def _clear_notice(self) -> None:
        if self._notice is not None:
            self._notice = None
            self._show_composer()

    def _show_focused(self, _before: QWidget | None, now: QWidget | None) -> None:
        if now is not None and self._composer_scroll.isAncestorOf(now):
            self._composer_scroll.ensureWidgetVisible(now, 0, SPACE_S)


class _Title(ElidedLabel):
    double_clicked = Signal()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        super().mouseDoubleClickEvent(event)
        self.double_clicked.emit()


async def _take_picture(data: bytes, name: str) -> "ImportedPicture":
    # Late: nothing is attached to the window when it is drawn for the first time.
    from desktop_agent.conversation.picture_intake import import_picture_async

    return await import_picture_async(data, name)


def _set_tab_order(parts: list[QWidget]) -> None:
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
