"""Notices above the message editor: the agent requests another mode, or the message overflows the context window."""

import math

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QWidget

from desktop_agent.types.permissions import Mode
from ui.style.boxes import hbox, vbox
from ui.style.controls import announce, button, label
from ui.style.layouts import FlowRows
from ui.style.pickers import mode_title
from ui.style.text import format_number
from ui.style.theme import SPACE_M, SPACE_S
from ui.style.widgets import TextWithButtons


class ModeRequestBar(QFrame):
    """The agent's request for another mode. Hidden without one."""

    accepted = Signal(str)
    """The mode's name."""
    refused = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._requested_name = ""
        self._request_label = label(wrap=True)
        self._accept_button = button("", lambda: self.accepted.emit(self._requested_name))
        self._refuse_button = button("", self.refused.emit)
        self.setProperty("kind", "card")
        self.setAccessibleName(self.tr("The agent asks for another mode"))
        row = TextWithButtons(self._request_label, (self._accept_button, self._refuse_button))
        hbox(row, parent=self, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_S))
        self.hide()

    def show_request(self, requested: Mode | None, current: Mode) -> None:
        """Show the requested mode, if any, and offer to keep the current one."""
        name = requested.name if requested is not None else ""
        is_new = bool(name) and name != self._requested_name
        self._requested_name = name
        if requested is not None:
            words = self.tr("The agent asks for the mode “{0}”. It changes at its next step unless you object.")
            self._request_label.setText(words.format(mode_title(requested)))
            for control, text in (
                (self._accept_button, self.tr("Change now")),
                (self._refuse_button, self.tr("Keep “{0}”").format(mode_title(current))),
            ):
                control.setText(text.replace("&", "&&"))
                control.setAccessibleName(text)
        self.setVisible(bool(name))
        if is_new:
            announce(self, self._request_label.text())


class ContextOverflowNotice(QWidget):
    """By how many tokens the message is too long, and what to do about it. Hidden while it fits."""

    summary_requested = Signal()
    model_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._words = label(kind="warning", wrap=True)
        # Short: large text in a narrow window leaves no more room, and the sentence above says the rest.
        summarise, choose = self.tr("Summarise older messages"), self.tr("Choose another model")
        self._summarise = button(self.tr("Summarise"), self.summary_requested.emit, "edge-link", summarise)
        self._choose = button(self.tr("Another model"), self.model_requested.emit, "edge-link", choose)
        buttons = FlowRows((self._summarise, self._choose), gap=SPACE_M)
        vbox(self._words, buttons, parent=self, spacing=0, margins=(SPACE_S, 0, SPACE_S, 0))
        self.hide()

    def show_overflow(self, over: int, window: int, *, can_summarise: bool) -> None:
        """Show that `over` tokens more than the model's `window` would be sent; hide for 0 or less."""
        self._summarise.setVisible(can_summarise)
        # The buttons below end the sentence.
        words = self.tr("About {0} tokens over the model's limit of {1}. Shorten your message, or:")
        # An estimate: two significant figures are known.
        rounded = round(over, 1 - int(math.log10(over))) if over > 0 else 0
        text = words.format(format_number(rounded), format_number(window)) if over > 0 else ""
        if text and self.isHidden():
            announce(self, text)
        self._words.setText(text)
        self.setVisible(bool(text))
