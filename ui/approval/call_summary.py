"""The head of the approval dialog: the tool call, the server's description of the tool, the reasons for asking."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QPlainTextEdit, QWidget

from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import Effect, ToolClass, source_words
from ui.approval.dialog_layout import Shrinkable
from ui.approval.guarded_dialog import ignore_enter
from ui.approval.labels import wrapping_label
from ui.approval.untrusted_text import fold_lines
from ui.bridge.permissions import PendingApproval
from ui.style.auto_height_text import AutoHeightText
from ui.style.boxes import hbox, vbox
from ui.style.controls import button, label, set_style_property
from ui.style.layouts import FlowRows
from ui.style.text import escape_mnemonics, join_names, plain_tooltip, show_hidden, strip_bidi_marks, translate_sentence
from ui.style.text_display import isolate_untrusted
from ui.style.theme import SPACE_M, SPACE_S, SPACE_XS, ThemeSource, body_font, pixmap
from ui.style.tool_labels import EFFECT_TAGS, Tag, effect_names, tool_class_label, tool_title
from ui.style.widgets import TextWithButtons

_ICON_SIZE = 16
# Pixels of a button without its text, at 100 % zoom.
_BUTTON_MARGIN = 32


class ReasonNote(QFrame):
    """Why the person is asked, with a button that trusts the sources. Hidden without a reason."""

    trusted = Signal()
    """The person trusts the untrusted content so far."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._icon = QLabel()
        self._text = wrapping_label()
        self._trust = button("", self.trusted.emit)
        ignore_enter(self._trust)
        self._trust.setMinimumWidth(1)
        self._trust_text = ""
        self._sources = wrapping_label(kind="muted")
        self.setProperty("kind", "banner")
        self.setProperty("level", "notice")
        words = vbox(self._text, self._sources, spacing=SPACE_S)
        words.addWidget(self._trust, 0, Qt.AlignmentFlag.AlignLeft)
        layout = hbox(parent=self, spacing=SPACE_S, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_S))
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)
        themes.follow(self._draw_icon)
        self.hide()

    @property
    def accessible_text(self) -> str:
        """The reasons for a screen reader; empty while hidden."""
        shown = [widget.text() for widget in (self._text, self._sources) if widget.text() and not widget.isHidden()]
        return " ".join(shown) if not self.isHidden() else ""

    def show_reasons(self, reasons: Sequence[Sentence], untrusted_sources: Sequence[str]) -> None:
        """Show the reasons; `untrusted_sources` are the sources of untrusted content that can be trusted here."""
        self._text.setText("\n".join(translate_sentence(reason, isolate_untrusted) for reason in reasons))
        sources = (Sentence("{text}", {"text": source_words(name)}) for name in untrusted_sources)
        names = [translate_sentence(source, isolate_untrusted) for source in sources]
        self._sources.setText(self.tr("Outside content from: {0}").format(join_names(names)))
        self._sources.setVisible(len(names) > 1)
        trust = self.tr("Trust {0} in this conversation")
        text = trust.format(names[0] if len(names) == 1 else self.tr("these sources"))
        self._trust_text = text
        self._trust.setAccessibleName(strip_bidi_marks(text))
        self._trust.setVisible(bool(names))
        self._elide_trust_text()
        self.setVisible(bool(reasons))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide_trust_text()

    def _elide_trust_text(self) -> None:
        full_text = self._trust_text
        margins = 2 * SPACE_M + self._icon_size + SPACE_S + self._themes.scaled(_BUTTON_MARGIN)
        shown = self._trust.fontMetrics().elidedText(full_text, Qt.TextElideMode.ElideMiddle, self.width() - margins)
        self._trust.setText(escape_mnemonics(shown))
        self._trust.setToolTip(plain_tooltip(full_text) if shown != full_text else "")

    def _draw_icon(self) -> None:
        ratio = 2 if self.devicePixelRatioF() > 1 else 1
        self._icon.setPixmap(pixmap("warning", self._themes.theme.warning, self._icon_size, ratio))

    @property
    def _icon_size(self) -> int:
        return self._themes.scaled(_ICON_SIZE)


_DESCRIPTION_ROWS = (2, 4)


class ServerDescription(QFrame):
    """What the MCP server says about its tool. Hidden for tools of the program."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self._intro = wrapping_label(kind="small")
        self.text = AutoHeightText(*_DESCRIPTION_ROWS, self.tr("The server's own words"))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        vbox(self._intro, self.text, parent=self, spacing=SPACE_XS, margins=(0, SPACE_XS, 0, 0))
        themes.follow(self._apply_theme)
        self.hide()

    @property
    def accessible_text(self) -> str:
        """The whole text for a screen reader; empty while hidden."""
        return "" if self.isHidden() else f"{self._intro.text()} {self.text.toPlainText()}"

    def show_description(self, server: str, says: str) -> None:
        """Show what the server says; an empty `server` hides it."""
        self.setVisible(bool(server))
        words = self.tr("A tool of the server “{0}”. The server's description (not verified):")
        self._intro.setText(words.format(show_hidden(server)))
        self.text.setPlainText(fold_lines(show_hidden(says)))

    def _apply_theme(self) -> None:
        self.text.setFont(body_font(self._themes.zoom, 0.92))


class CallHeader(QWidget):
    """The head of the approval dialog: who asks, the tool and its tags. `beside` is placed at its end."""

    def __init__(self, themes: ThemeSource, beside: QWidget) -> None:
        super().__init__()
        self._agent = wrapping_label(kind="muted")
        self._tool = wrapping_label(kind="heading")
        self._tags = [label() for _ in range(1 + len(Effect))]
        for tag in self._tags:
            tag.setProperty("tag", "caution")
        self._folder = wrapping_label(kind="small")
        self._undo = wrapping_label(kind="small")
        self._server = ServerDescription(themes)
        self.shrinkable: Shrinkable = self._server.text
        top = QWidget()
        vbox(self._agent, self._tool, parent=top, spacing=SPACE_XS, margins=0)
        head, tags = TextWithButtons(top, (beside,)), FlowRows(self._tags, gap=SPACE_XS)
        vbox(head, tags, self._folder, self._undo, self._server, parent=self, spacing=SPACE_XS, margins=0)

    @property
    def accessible_text(self) -> str:
        """The whole header for a screen reader."""
        labels = (self._agent, self._tool, *self._tags, self._folder, self._undo)
        shown = [label.text() for label in labels if not label.isHidden()]
        return ". ".join(filter(None, (*shown, self._server.accessible_text)))

    def show_call(self, call: PendingApproval) -> None:
        """Describe this call."""
        path = " → ".join(isolate_untrusted(name) for name in call.agent_path)
        self._agent.setText(
            self.tr("The agent {0} asks to use").format(path) if path else self.tr("The assistant asks to use")
        )
        title = tool_title(call.tool)
        self._tool.setText(isolate_untrusted(title))
        # The titles of two tools of a server may be the same.
        self._tool.setToolTip(plain_tooltip(call.tool) if title != call.tool else "")
        self._server.show_description(call.server, call.server_description)
        self._folder.setVisible(bool(call.workspace))
        self._folder.setText(self.tr("In the folder {0}").format(isolate_untrusted(call.workspace)))
        # A read-only tool leaves nothing to undo, whatever its effects.
        is_reading = call.tool_class is ToolClass.READ_ONLY
        self._undo.setVisible(call.undoable is not None and not is_reading)
        words = self.tr("This call can be undone.")
        self._undo.setText(words if call.undoable else self.tr("This call cannot be undone."))
        tags = self._tag_names(call)
        for index, tag in enumerate(self._tags):
            tag.setVisible(index < len(tags))
            if index < len(tags):
                set_style_property(tag, "tag", tags[index][1])
                tag.setText(tags[index][0])

    def _tag_names(self, call: PendingApproval) -> list[tuple[str, Tag]]:
        names = effect_names()
        shown = [effect for effect in Effect if effect in call.effects]
        return [tool_class_label(call.tool_class), *[(names[effect], EFFECT_TAGS[effect]) for effect in shown]]
