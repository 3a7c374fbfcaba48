"""A request to the network: whom it reaches stands first and largest."""

from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import NetworkPreview
from ui.approval.hosts import describe_host
from ui.approval.parts.wrapped_text import WrappingLabel
from ui.approval.previews.code_view import CodeView
from ui.approval.visible_text import fold_lines
from ui.look.controls import label
from ui.look.theme import SPACE_S, ThemeSource
from ui.look.visible_text import show_hidden
from ui.look.written.order import isolate_untrusted

MAX_ADDRESS_ROWS = 6


class NetworkView(QWidget):
    """`show_request` answers with the heading above it."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._method = label()
        self._method.setProperty("tag", "risk")
        self._host = WrappingLabel(kind="heading")
        self._address = CodeView(themes, self.tr("Address"), MAX_ADDRESS_ROWS, MAX_ADDRESS_ROWS)
        self._address.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._note = WrappingLabel(kind="muted")
        top = QHBoxLayout()
        top.setSpacing(SPACE_S)
        top.addWidget(self._method)
        top.addWidget(self._host, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addLayout(top)
        layout.addWidget(self._address)
        layout.addWidget(self._note)

    @property
    def initial_focus(self) -> QWidget:
        """Where reading begins."""
        return self._address

    @property
    def accessible_text(self) -> str:
        """All that it says, for a screen reader."""
        parts = (self._method.text(), self._host.text(), self._address.text, self._note.text())
        return "\n".join(filter(None, parts))

    def show_request(self, preview: NetworkPreview) -> str:
        """This request."""
        self._method.setText(show_hidden(preview.method))
        self._host.setText(describe_host(preview.host))
        self._address.show_lines([], [fold_lines(show_hidden(preview.url))])
        self._note.setText(isolate_untrusted(preview.note))
        self._note.setVisible(bool(preview.note))
        return self.tr("Network request")
