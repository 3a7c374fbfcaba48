"""The effect of a call before it happens: a heading, and the view for its kind."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from desktop_agent.vocabulary.tool_calls import (
    CommandPreview,
    DiffPreview,
    NetworkPreview,
    PicturePreview,
    Preview,
    TextPreview,
)
from ui.approval.parts.middle import Shrinkable
from ui.approval.parts.wrapped_text import WrappingLabel
from ui.approval.previews.command_view import CommandView
from ui.approval.previews.network_view import NetworkView
from ui.approval.previews.picture_view import PictureView
from ui.approval.previews.text_view import TextView
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource


class PreviewView(QWidget):
    """Hidden where a tool cannot say beforehand what it will do."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._heading = WrappingLabel(kind="strong")
        self._status = WrappingLabel(kind="muted")
        self._status.hide()
        self._reserves_status = False
        self._text = TextView(themes)
        self._command = CommandView(themes)
        self._network = NetworkView(themes)
        self._picture = PictureView()
        self._shown: TextView | CommandView | NetworkView | PictureView = self._text
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._heading)
        layout.addWidget(self._status)
        layout.addSpacing(SPACE_S - SPACE_XS)
        # A stack would be as high as the highest of them.
        self._views = (self._text, self._command, self._network, self._picture)
        for each in self._views:
            layout.addWidget(each)
            each.setVisible(each is self._shown)

    @property
    def heading(self) -> str:
        """What will change, in words."""
        return self._heading.text()

    @property
    def shrinkables(self) -> tuple[Shrinkable, ...]:
        """What can be lower."""
        return (self._picture.shrinkable, self._text.shrinkable)

    @property
    def initial_focus(self) -> QWidget | None:
        """Where reading begins, while there is something to read."""
        return None if self.isHidden() else self._shown.initial_focus

    @property
    def shown_text(self) -> str:
        """What the view says, without numbers and signs."""
        return self._shown.accessible_text

    def set_known_folder(self, folder: str) -> None:
        """It is said elsewhere that calls work there."""
        self._command.known_folder = folder

    def set_reserve_status(self, kept: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Keep a line for `show_waiting`, while arguments are edited: what is below would jump."""
        self._reserves_status = kept
        self._status.setVisible(kept)

    def show_preview(self, preview: Preview | None) -> None:
        """Show this effect; None hides the view."""
        self.setVisible(preview is not None)
        self._status.setText("")
        self._status.setVisible(self._reserves_status)
        if preview is None:
            return
        match preview:
            case DiffPreview():
                self._shown, heading = self._text, self._text.show_diff(preview)
            case CommandPreview():
                self._shown, heading = self._command, self._command.show_command(preview)
            case NetworkPreview():
                self._shown, heading = self._network, self._network.show_request(preview)
            case PicturePreview():
                self._shown, heading = self._picture, self._picture.show_picture(preview)
            case TextPreview():
                self._shown, heading = self._text, self._text.show_text(preview)
        for each in self._views:
            each.setVisible(each is self._shown)
        self._heading.setText(heading)

    def show_waiting(self, *, valid: bool) -> None:
        """The arguments were edited; the effect of the new ones is not known yet, or they cannot be used."""
        checking = self.tr("Updating the preview for the edited arguments…")
        last = self.tr("The edited arguments cannot be used yet; this is the last preview.")
        self._status.setText(checking if valid else last)
        self._status.show()
