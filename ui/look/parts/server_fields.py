"""What a person says about a server: its address, what it speaks, and where else it can be reached."""

from urllib.parse import urlsplit

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QComboBox, QLineEdit, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from desktop_agent.vocabulary.endpoints import Dialect
from ui.look.controls import ComboBox, label
from ui.look.theme import SPACE_XS

_MIRROR_LINES = 3
_MIN_DIALECT_WIDTH, _MAX_DIALECT_WIDTH = 12, 24


def complete_web_address(typed: str) -> str | None:
    """The address of a server as it was typed, completed; None if it is none.

    A bare host on this machine is nearly always plain HTTP; everything else speaks TLS.
    """
    address = typed.strip()
    if "://" not in address:
        local = address.split(":")[0].split("/")[0] in {"localhost", "127.0.0.1"}
        address = f"{'http' if local else 'https'}://{address}"
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    is_plain = parts.username is None and parts.password is None and not set(address) & set(" \t\n")
    return address.rstrip("/") if parts.scheme.lower() in {"http", "https"} and parts.hostname and is_plain else None


def dialect_names() -> dict[Dialect, str]:
    """What the dialects are called, in the order in which they are offered."""
    translate = QCoreApplication.translate
    return {
        "openai-chat": translate("Dialects", "OpenAI Chat Completions"),
        "openai-responses": translate("Dialects", "OpenAI Responses"),
        "anthropic": translate("Dialects", "Anthropic Messages"),
        "gemini": translate("Dialects", "Google Gemini"),
    }


class DialectBox(ComboBox):
    """What a server speaks."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("What the server speaks"))
        self.setToolTip(self.tr("What the server speaks"))
        # A long name gets shorter before it makes the page wider than the window.
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(_MIN_DIALECT_WIDTH)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMaximumWidth(self.fontMetrics().horizontalAdvance("M") * _MAX_DIALECT_WIDTH)
        for dialect, name in dialect_names().items():
            self.addItem(name, dialect)

    @property
    def dialect(self) -> Dialect:
        """The choice."""
        return self.currentData()

    def show_dialect(self, dialect: Dialect) -> None:
        """Another choice."""
        self.setCurrentIndex(self.findData(dialect))


class ModelsField(QLineEdit):
    """Names of models, for a server that does not list any; commas part them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Model, if the server lists none"))
        self.setPlaceholderText(self.tr("Model, if the server lists none"))

    @property
    def models(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys(name for each in self.text().split(",") if (name := each.strip())))

    def show_models(self, models: tuple[str, ...]) -> None:
        """These."""
        self.setText(", ".join(models))


class MirrorsField(QWidget):
    """Further addresses, one a line, and who gets the key."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editor = QPlainTextEdit(tabChangesFocus=True)
        self.editor.setAccessibleName(self.tr("Further addresses"))
        self.editor.setPlaceholderText("https://mirror.example/v1")
        self.editor.setFixedHeight(self.editor.fontMetrics().lineSpacing() * _MIRROR_LINES + 5 * SPACE_XS)
        words = self.tr(
            "Further addresses of the same service, one a line. They are asked when the first does not answer, and "
            "they get the same key."
        )
        self.editor.setAccessibleDescription(words)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self.editor)
        layout.addWidget(label(words, "muted", wrap=True))

    def show_addresses(self, addresses: tuple[str, ...]) -> None:
        """These, one a line."""
        self.editor.setPlainText("\n".join(addresses))

    def addresses(self) -> tuple[tuple[str, ...], str]:
        """The addresses, each once; and the first line that is none, or nothing."""
        found: dict[str, None] = {}
        for line in self.editor.toPlainText().splitlines():
            if line.strip():
                address = complete_web_address(line)
                if address is None:
                    return (), line.strip()
                found[address] = None
        return tuple(found), ""
