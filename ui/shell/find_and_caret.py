"""The find bar and caret browsing of a transcript."""

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QLineEdit, QWidget
from shiboken6 import isValid

from desktop_agent.types.errors import Sentence
from ui.shell.banners import Banner, BannerArea
from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, ToolButton, announce, label, set_style_property
from ui.style.text import plain_tooltip
from ui.style.theme import SPACE_L, SPACE_S, SPACE_XS, ThemeSource
from ui.transcript.find.finder import Finder, FindStatus
from ui.transcript.find.matches import Query
from ui.transcript.find.searchable_text import selected_query
from ui.transcript.view import TranscriptView

EXPLANATION_MS = 12_000
_ANNOUNCE_MS = 500
"""Milliseconds without typing after which the count is announced."""

_NARROW_FIELD = 190
"""Pixels."""

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class FindBar(QFrame):
    """The find bar, hidden until it is opened. Closing it returns the focus."""

    closed = Signal()

    def __init__(self, themes: ThemeSource, finder: Finder, fallback: QWidget) -> None:
        super().__init__()
        self._finder = finder
        self._fallback = fallback
        self._previous_focus: QWidget | None = None
        self._status = FindStatus()
        self._announce_timer = QTimer(self, singleShot=True, interval=_ANNOUNCE_MS)
        self._announce_timer.timeout.connect(self._announce_count)
        self._field = _FindField()
        self._below = label(kind="small")
        self._case = _toggle_button(self.tr("Aa"), self.tr("Match case"))
        self._words = _toggle_button(self.tr("|ab|"), self.tr("Whole words"))
        self._previous = IconButton(themes, "chevron-up", self.tr("Previous match"))
        self._next = IconButton(themes, "chevron-down", self.tr("Next match"))
        self._close = IconButton(themes, "close", self.tr("Close find bar"))
        self._build()
        self._connect()
        self.hide()

    def open(self, words: str = "") -> None:
        """Show and focus the bar; search for this text, or again for the last one."""
        focused = QApplication.focusWidget()
        if focused is not None and not self.isAncestorOf(focused):
            self._previous_focus = focused
        self.show()
        if words:
            self._field.setText(words)
        self._field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._field.selectAll()
        self._find()

    def open_at(self, words: str, row: int) -> None:
        """Open with these words; the first match in this row of the transcript or below becomes the current one."""
        self.open(words)
        self._finder.search_from(self._query(), row)

    def step(self, by: int) -> None:
        """Go to the next or previous match; open the bar first."""
        if self.isHidden():
            self.open()
        elif self._field.text():
            self._announce_timer.stop()
            self._finder.step(by)
            self._announce_count()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._close_bar()
        elif event.key() in _ENTER and self._field.hasFocus():
            self.step(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_count()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._announce_timer.stop()

    def _build(self) -> None:
        self.setAccessibleName(self.tr("Find in conversation"))
        self.setProperty("kind", "find")
        self._field.setAccessibleName(self.tr("Find in conversation"))
        self._field.setPlaceholderText(self.tr("Find in conversation"))
        buttons = (self._previous, self._next, self._case, self._words, self._close)
        row = hbox(self._field, *buttons, spacing=SPACE_XS, grow=self._field)
        vbox(row, self._below, parent=self, spacing=SPACE_XS, margins=(SPACE_L, 0, SPACE_L, SPACE_S))

    def _connect(self) -> None:
        self._field.textChanged.connect(self._on_typed)
        self._case.toggled.connect(self._on_typed)
        self._words.toggled.connect(self._on_typed)
        self._previous.clicked.connect(lambda: self.step(-1))
        self._next.clicked.connect(lambda: self.step(1))
        self._close.clicked.connect(self._close_bar)
        self._finder.status_changed.connect(self._on_found)

    def _on_typed(self) -> None:
        if not self.isHidden():
            self._find()
            self._announce_timer.start()

    def _find(self) -> None:
        self._finder.search(self._query())
        self._on_found(self._status if self._field.text() else FindStatus())

    def _query(self) -> Query:
        return Query(self._field.text(), match_case=self._case.isChecked(), whole_words=self._words.isChecked())

    def _on_found(self, status: FindStatus) -> None:
        self._status = status
        self._show_count()
        self._previous.setEnabled(status.total > 0)
        self._next.setEnabled(status.total > 0)

    def _show_count(self) -> None:
        """Place the count at the end of the field, or below it if the field is too narrow for both."""
        nothing = bool(self._field.text()) and self._status.complete and not self._status.total
        words = self._sentence()
        is_below = self._field.width() < _NARROW_FIELD
        self._field.show_count("" if is_below else words, nothing=nothing)
        self._field.setAccessibleDescription(words)
        self._below.setText(words)
        set_style_property(self._below, "kind", "error" if nothing else "small")
        self._below.setVisible(is_below and bool(words))

    def _sentence(self) -> str:
        status, number = self._status, self.locale().toString
        if not self._field.text():
            return ""
        if status.total and not status.complete:
            return self.tr("{0} so far").format(number(status.total))
        if status.total:
            return self.tr("{0} of {1}").format(number(status.current), number(status.total))
        return self.tr("No matches") if status.complete else ""

    def _announce_count(self) -> None:
        if words := self._sentence():
            announce(self._field, words)

    def _close_bar(self) -> None:
        target = self._previous_focus
        had_focus = self.isAncestorOf(QApplication.focusWidget() or self._fallback)
        self.hide()
        self._finder.stop()
        if had_focus:
            if target is None or not isValid(target) or not target.isVisible() or not target.isEnabled():
                target = self._fallback
            target.setFocus(Qt.FocusReason.OtherFocusReason)
        self._previous_focus = None
        self.closed.emit()


class _FindField(QLineEdit):
    """The search field with the count at its end."""

    def __init__(self) -> None:
        super().__init__()
        self._count: QLabel = label(kind="small")
        self._count.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._count.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        hbox(self._count, parent=self, margins=(SPACE_S, 0, SPACE_S, 0), start_stretch=True)
        self.setMinimumWidth(60)

    def show_count(self, words: str, *, nothing: bool) -> None:
        """Reserve room for the count after the text."""
        self._count.setText(words)
        set_style_property(self._count, "kind", "error" if nothing else "small")
        room = self._count.sizeHint().width() + SPACE_S if words else 0
        # Qt does not mirror the margins.
        self.setTextMargins(room if self.isRightToLeft() else 0, 0, 0 if self.isRightToLeft() else room, 0)


def _toggle_button(text: str, name: str) -> ToolButton:
    button = ToolButton()
    button.setText(text)
    button.setCheckable(True)
    button.setAccessibleName(name)
    button.setToolTip(plain_tooltip(name))
    button.setProperty("kind", "quiet")
    button.setProperty("square", "true")
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button


class TranscriptNavigation(QObject):
    """The find and caret actions of the window."""

    def __init__(self, themes: ThemeSource, transcript: TranscriptView, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._transcript = transcript
        self._banners = banners
        self._caret_is_explained = False
        self.find_bar = FindBar(themes, transcript.finder, transcript)
        transcript.find_requested.connect(self.find)
        transcript.caret.toggled.connect(self._on_caret)

    def find(self) -> None:
        """Open the find bar, with the selected text if there is any."""
        self.find_bar.open(selected_query(self._transcript.row_viewport))

    def show_message(self, row: int, words: str) -> None:
        """Scroll to a row of the transcript, and find these words from there on, if there are any."""
        self._transcript.scroller.scroll_to_row(row)
        if words:
            self.find_bar.open_at(words, row)

    def toggle_caret(self) -> None:
        """Turn caret browsing on or off."""
        self._transcript.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._transcript.caret.toggle()

    def _on_caret(self, is_on: bool) -> None:  # noqa: FBT001 - a slot
        """Announce it; the first time, show a banner that says how to turn it off."""
        on = self.tr("Caret browsing is on. F7 or Esc turns it off.")
        off = self.tr("Caret browsing is off.")
        if is_on and not self._caret_is_explained:
            self._caret_is_explained = True
            sentence = Sentence("{text}", {"text": on})
            self._banners.show_banner(Banner("caret", sentence, level="remark", duration_ms=EXPLANATION_MS))
        else:
            announce(self._transcript, on if is_on else off)
