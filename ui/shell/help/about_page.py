"""What the program is: its version, its licence, and where it keeps what it is told."""

from pathlib import Path

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout

from ui.bridge.opening import AddressOpener
from ui.look.controls import button, label
from ui.look.icons import pixmap
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, ThemeSource

_ICON_SIZE = 56
_MOST_ZOOM = 150


class AboutPage(ScrollColumn):
    """Its texts can be selected and copied."""

    def __init__(self, themes: ThemeSource, data_folder: Path, opener: AddressOpener) -> None:
        super().__init__(SPACE_S, trailing=SPACE_S)
        self._themes = themes
        self._data_folder = data_folder
        self._opener = opener
        self._drawing = QLabel()
        self._open = button(self.tr("Open folder"), self._open_folder, name=self.tr("Open the data folder"))
        self.setFocusProxy(self._open)
        self.setViewportMargins(SPACE_L, 0, 0, 0)
        layout = self.column
        layout.addLayout(self._head())
        layout.addSpacing(SPACE_L)
        layout.addWidget(label(self.tr("Data folder"), "strong"))
        layout.addWidget(_selectable(str(data_folder)))
        words = self.tr(
            "Conversations, pictures and settings. Keys are never here; they go into the keyring of your system."
        )
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(self._open, 0, Qt.AlignmentFlag.AlignLeading)
        layout.addSpacing(SPACE_L)
        layout.addWidget(label(self.tr("Licence"), "strong"))
        licence = self.tr("MIT. You may use, change and pass on this program; it comes without any warranty.")
        layout.addWidget(label(licence, wrap=True))
        layout.addStretch(1)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()

    def _head(self) -> QHBoxLayout:
        words = QVBoxLayout()
        words.setSpacing(SPACE_XS)
        version = QCoreApplication.applicationVersion()
        words.addWidget(label(self.tr("Desktop Agent"), "title", wrap=True))
        words.addWidget(_selectable(self.tr("Version {0}").format(version)))
        head = QHBoxLayout()
        head.setSpacing(SPACE_M)
        head.addWidget(self._drawing)
        head.addLayout(words, 1)
        return head

    def _open_folder(self) -> None:
        self._opener.open_folder(self._data_folder)

    def _apply_theme(self) -> None:
        # No larger than that, or the name beside it would be cut.
        part = min(self._themes.zoom, _MOST_ZOOM) / 100
        self._drawing.setPixmap(pixmap("desktop-agent", "#000000", round(_ICON_SIZE * part), 2))


def _selectable(text: str) -> QLabel:
    made = label(text, wrap=True)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made
