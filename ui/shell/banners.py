"""Banners above the page: errors with a remedy, remarks, undo. In place, never modal."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QVBoxLayout, QWidget

from desktop_agent.types.errors import AgentError, ConversationInUse, RemedyAction, Sentence, join_remedy
from ui.style.boxes import hbox, vbox
from ui.style.controls import IconButton, announce, button, label
from ui.style.layouts import FlowRows, ScrollColumn
from ui.style.text import translate_sentence
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource, pixmap

MAX_BANNERS = 4
UNDO_KEY = "undo"
# Whoever looked away must still find it; WCAG 2.2 (2.2.1) wants at least 20 seconds.
UNDO_MS = 30_000
IN_USE_MS = 20_000


class BannerButton(NamedTuple):
    """A button and its action. Pressing it removes the banner, unless `keeps_banner`."""

    text: str
    command: Callable[[], object]
    keeps_banner: bool = False


class Banner(NamedTuple):
    """The content of a banner. It replaces a shown one with the same key. `duration_ms` is in milliseconds.

    It is hidden over other conversations than that of `conversation_id`, unless that is "".
    """

    key: str
    sentence: Sentence
    remedy: Sentence | None = None
    level: Literal["error", "notice", "remark", "undo"] = "error"
    buttons: tuple[BannerButton, ...] = ()
    duration_ms: int | None = None
    conversation_id: str = ""


class BannerArea(QWidget):
    """A stack of banners, the newest at the end. With more than four, the oldest are hidden until there is room."""

    closed = Signal(str)
    """The key of a banner that the person closed or that expired."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._shown: dict[str, BannerFrame] = {}
        self._conversation_id = ""
        self._remedies: dict[RemedyAction, BannerButton] = {}
        self._newest: BannerFrame | None = None
        # With large text in a low window, banners must leave room for the conversation.
        self._scrolled = ScrollColumn(SPACE_XS, trailing=SPACE_S, most=lambda: self.window().height() * 2 // 5)
        vbox(self._scrolled, parent=self, margins=(SPACE_L, SPACE_M, SPACE_L, 0))
        self._scrolling = QTimer(self, singleShot=True, interval=0)
        """Waits until the layout has placed the new banner."""
        self._scrolling.timeout.connect(self._scroll_to_newest)
        self._scrolled.verticalScrollBar().rangeChanged.connect(self._on_range)
        self.setAccessibleName(self.tr("Messages of the program"))
        self.hide()

    @property
    def keys(self) -> list[str]:
        """The keys in order, also of hidden banners."""
        return list(self._shown)

    def show_banner(self, banner: Banner) -> None:
        """Show a banner and announce it."""
        self.remove(banner.key)
        frame = BannerFrame(self._themes, banner)
        frame.close_pressed.connect(lambda: self._close(banner.key, frame))
        self._shown[banner.key] = frame
        self._scrolled.column.addWidget(frame)
        self._update_visible()
        if self._is_in_current_conversation(frame):
            self._newest = frame
            self._scrolling.start()
            announce(self, frame.words)

    def update_sentence(self, key: str, sentence: Sentence) -> None:
        """Say the same with other figures; a banner that was closed stays closed."""
        if (frame := self._shown.get(key)) is not None:
            frame.show_sentence(sentence)

    def show_conversation(self, conversation_id: str) -> None:
        """Hide the banners of other conversations than this one."""
        self._conversation_id = conversation_id
        self._update_visible()

    def remove_errors(self, conversation_id: str) -> None:
        """Remove the errors of a conversation: it goes on."""
        for key, frame in list(self._shown.items()):
            if frame.banner.conversation_id == conversation_id and frame.banner.level == "error":
                self.remove(key)

    def add_remedy_button(self, action: RemedyAction, text: str, command: Callable[[], object]) -> None:
        """Put a button on every later error with this remedy."""
        self._remedies[action] = BannerButton(text, command)

    def show_error(self, error: AgentError, conversation_id: str = "", *more: BannerButton) -> None:
        """Show an error and its remedy, with more buttons. The same error again replaces the first."""
        buttons = [self._remedies[error.action]] if error.action in self._remedies else []
        buttons += more
        if error.detail:
            detail = error.detail
            buttons.append(BannerButton(self.tr("Copy details"), lambda: _copy_to_clipboard(detail), keeps_banner=True))
        key = f"{conversation_id} {error}".lstrip()
        # The lock may be released at any moment, and only another attempt would show it.
        duration_ms = IN_USE_MS if isinstance(error, ConversationInUse) else None
        self.show_banner(
            Banner(
                key,
                error.sentence,
                error.remedy,
                buttons=tuple(buttons),
                duration_ms=duration_ms,
                conversation_id=conversation_id,
            )
        )

    def show_notice(self, sentence: Sentence, conversation_id: str = "") -> None:
        """Show a sentence that is no error."""
        key = f"{conversation_id} {sentence}".lstrip()
        self.show_banner(Banner(key, sentence, level="notice", conversation_id=conversation_id))

    def show_undo(self, text: str, undo: Callable[[], object], conversation_id: str = "") -> Banner:
        """Say what was done, and offer an undo for a while."""
        buttons = (BannerButton(self.tr("Undo"), undo),)
        sentence = Sentence("{text}", {"text": text})
        offer = Banner(
            UNDO_KEY, sentence, level="undo", buttons=buttons, duration_ms=UNDO_MS, conversation_id=conversation_id
        )
        self.show_banner(offer)
        return offer

    @property
    def offers_undo(self) -> bool:
        """Whether an undo is offered now."""
        frame = self._shown.get(UNDO_KEY)
        return frame is not None and not frame.isHidden()

    def undo_last(self) -> None:
        """Press the button of the undo that is offered; nothing happens without one."""
        if self.offers_undo:
            self._shown[UNDO_KEY].press_first()

    def remove_if_shown(self, banner: Banner) -> None:
        """Remove this banner, unless another has replaced it."""
        frame = self._shown.get(banner.key)
        if frame is not None and frame.banner is banner:
            self.remove(banner.key)

    def remove(self, key: str) -> None:
        """Remove a banner that is no longer true."""
        frame = self._shown.pop(key, None)
        if frame is not None:
            if frame is self._newest:
                self._newest = None
            self._scrolled.column.removeWidget(frame)
            frame.hide()
            frame.deleteLater()
            self._update_visible()

    def clear(self) -> None:
        """Remove all banners."""
        for key in self.keys:
            self.remove(key)

    def _close(self, key: str, frame: "BannerFrame") -> None:
        # A banner's time may end after another one replaced it.
        if self._shown.get(key) is not frame:
            return
        self.remove(key)
        self.closed.emit(key)

    def _update_visible(self) -> None:
        frames = [frame for frame in self._shown.values() if self._is_in_current_conversation(frame)]
        for frame in self._shown.values():
            frame.setVisible(frame in frames[-MAX_BANNERS:])
        self.setVisible(bool(frames))

    def _on_range(self, _least: int, _most: int) -> None:
        self._scrolling.start()

    def _scroll_to_newest(self) -> None:
        """Scroll to the beginning of the newest banner, if there is no room for all."""
        if self._newest is not None:
            self._scrolled.verticalScrollBar().setValue(self._newest.y())

    def _is_in_current_conversation(self, frame: "BannerFrame") -> bool:
        return frame.banner.conversation_id in {"", self._conversation_id}


class BannerFrame(QFrame):
    """The widget of one banner."""

    close_pressed = Signal()

    def __init__(self, themes: ThemeSource, banner: Banner) -> None:
        super().__init__()
        self._themes = themes
        self.banner = banner
        self._icon = QLabel()
        self._sentence = label(translate_sentence(banner.sentence), "strong" if banner.remedy else "", wrap=True)
        self.setProperty("kind", "banner")
        self.setProperty("level", banner.level)
        # Otherwise Qt computes the height for the width of the longest unbreakable word, and the last lines are cut.
        self.setMinimumWidth(SPACE_L)
        self.setAccessibleName(self.words)
        self._build()
        themes.follow(self._draw)
        if banner.duration_ms is not None:
            time_up = QTimer(self, interval=banner.duration_ms)
            time_up.timeout.connect(self._on_time_up)
            time_up.start()

    @property
    def words(self) -> str:
        """The whole text."""
        remedy = self.banner.remedy
        return translate_sentence(self.banner.sentence if remedy is None else join_remedy(self.banner.sentence, remedy))

    def show_sentence(self, sentence: Sentence) -> None:
        """Replace the sentence."""
        self.banner = self.banner._replace(sentence=sentence)
        self._sentence.setText(translate_sentence(sentence))
        self.setAccessibleName(self.words)

    def press_first(self) -> None:
        """Do what its first button does."""
        self._command(self.banner.buttons[0])()

    def _on_time_up(self) -> None:
        # Keep a banner that is under the pointer or has the focus: it is about to be used.
        focused = QApplication.focusWidget()
        if not self.underMouse() and (focused is None or not self.isAncestorOf(focused)):
            self.close_pressed.emit()

    def _build(self) -> None:
        words = vbox(spacing=2)
        # With several lines, the icon and the close button, which is higher than a line, are beside the first.
        is_long = self.banner.remedy is not None
        from PySide6.QtCore import Qt

        top = Qt.AlignmentFlag.AlignTop if is_long else Qt.AlignmentFlag.AlignVCenter
        if is_long:
            words.setContentsMargins(0, SPACE_XS, 0, 0)
            self._icon.setContentsMargins(0, SPACE_XS + 2, 0, 0)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._add_words(words)
        margins = (SPACE_M, SPACE_S, SPACE_S, SPACE_S)
        layout = hbox(self._icon, words, parent=self, spacing=SPACE_S, margins=margins, grow=words)
        layout.setAlignment(self._icon, top)
        close = IconButton(self._themes, "close", self.tr("Close this message"))
        close.clicked.connect(self.close_pressed)
        layout.addWidget(close, 0, top)

    def _add_words(self, words: QVBoxLayout) -> None:
        """Place the buttons beside a short text, or under one with a remedy, which needs the whole width."""
        # Late: no banner is in the first paint.
        from ui.style.widgets import TextWithButtons

        buttons = [button(action.text, self._command(action)) for action in self.banner.buttons]
        if self.banner.remedy is None:
            words.addWidget(TextWithButtons(self._sentence, buttons) if buttons else self._sentence)
            return
        words.addWidget(self._sentence)
        words.addWidget(label(translate_sentence(self.banner.remedy), wrap=True))
        if buttons:
            words.addSpacing(SPACE_XS)
            words.addWidget(FlowRows(buttons))
            words.addSpacing(SPACE_XS)

    def _command(self, action: BannerButton) -> Callable[[], None]:
        def press() -> None:
            if not action.keeps_banner:
                self.close_pressed.emit()
            action.command()

        return press

    def _draw(self) -> None:
        theme = self._themes.theme
        name, colour = {
            "error": ("error", theme.danger),
            "notice": ("warning", theme.warning),
            "remark": ("info", theme.muted),
            "undo": ("undo", theme.muted),
        }[self.banner.level]
        self._icon.setPixmap(pixmap(name, colour, self._themes.scaled(18), 2 if self.devicePixelRatioF() > 1 else 1))


def _copy_to_clipboard(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
