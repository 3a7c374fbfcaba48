"""A pseudo-language: each text in brackets and longer, to show which texts are not translated and which do not fit."""

from PySide6.QtCore import QObject, QTranslator

_MORE = " ·lorem·ipsum·dolor·sit·amet·consectetur"
_FORMATS = ("d MMM", "MMMM yyyy")


class PseudoLanguage(QTranslator):
    """Answers every lookup with the source in ⟦…⟧, a third longer."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)

    def isEmpty(self) -> bool:  # noqa: N802  Qt's name
        return False

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str:
        # Strings that only join texts, format dates or name a direction of writing stay as they are.
        is_text = any(letter.isalpha() for letter in source.replace("{0}", "")) and not source.startswith(_FORMATS)
        if not is_text or source.startswith("QT_") or context == "QShortcut":
            return source
        length = max(1, len(source) * 3 // 10)
        return f"⟦{source}{(_MORE * (length // len(_MORE) + 1))[:length]}⟧"
