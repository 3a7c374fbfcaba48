"""The words of the transcript in the person's language."""

from PySide6.QtCore import QCoreApplication


def tr(text: str) -> str:
    """Return a text of the transcript in the person's language."""
    return QCoreApplication.translate("Transcript", text)
