"""Why there is no diagram, in words, and what to do about it."""

import re

from PySide6.QtCore import QCoreApplication

from ui.look.visible_text import show_hidden
from ui.transcript.blocks.diagram.renderer import MAX_SOURCE_LENGTH, DiagramError, DiagramErrorReason

_MAX_MESSAGE_LENGTH = 300
_ERROR_PREFIX = re.compile(r"^(?:Mermaid rendering failed:|\w*Error:)\s*")


def diagram_error_sentence(error: DiagramError) -> str:
    """For the person."""
    translate = QCoreApplication.translate
    match error.reason:
        case DiagramErrorReason.NOT_INSTALLED:
            words = translate(
                "Transcript",
                "Diagrams are drawn by an optional part that is not installed here. "
                "Install the program with it: {0}. Until then the source is shown.",
            )
            return words.format('pip install "desktop-agent[diagrams]"')
        case DiagramErrorReason.TOO_LONG:
            words = translate("Transcript", "This diagram is too long to be drawn: more than {0} characters.")
            return words.format(f"{MAX_SOURCE_LENGTH:,}")
        case DiagramErrorReason.TOO_SLOW:
            return translate("Transcript", "Drawing took too long and was ended. A smaller diagram may work.")
        case DiagramErrorReason.WRONG:
            words = translate("Transcript", "This diagram cannot be drawn: {0}. Ask for it again, or mend the source.")
            return words.format(_shorten_message(error.message))
        case _:
            return translate("Transcript", "Drawing broke off, perhaps for want of memory. A smaller diagram may work.")


def _shorten_message(words: str) -> str:
    """What the renderer says, without its habits."""
    while (shorter := _ERROR_PREFIX.sub("", words)) != words:
        words = shorter
    # What follows on further lines is a picture of the place, drawn in signs.
    first = words.strip().partition("\n")[0]
    line = " ".join(show_hidden(first[:_MAX_MESSAGE_LENGTH]).split()).rstrip(".:")
    return line or QCoreApplication.translate("Transcript", "its renderer does not say why")
