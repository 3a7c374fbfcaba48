"""Why there is no diagram, in words, and what to do about it."""

import re

from PySide6.QtCore import QCoreApplication

from ui.look.visible_text import with_hidden_shown
from ui.transcript.blocks.diagram.renderer import LONGEST, NoDiagram, Reason

_LONGEST_WORDS = 300
_BORING = re.compile(r"^(?:Mermaid rendering failed:|\w*Error:)\s*")


def sentence_of(problem: NoDiagram) -> str:
    """For the person."""
    translate = QCoreApplication.translate
    match problem.reason:
        case Reason.NOT_INSTALLED:
            words = translate(
                "Transcript",
                "Diagrams are drawn by an optional part that is not installed here. "
                "Install the program with it: {0}. Until then the source is shown.",
            )
            return words.format('pip install "desktop-agent[diagrams]"')
        case Reason.TOO_LONG:
            words = translate("Transcript", "This diagram is too long to be drawn: more than {0} characters.")
            return words.format(f"{LONGEST:,}")
        case Reason.TOO_SLOW:
            return translate("Transcript", "Drawing took too long and was ended. A smaller diagram may work.")
        case Reason.WRONG:
            words = translate("Transcript", "This diagram cannot be drawn: {0}. Ask for it again, or mend the source.")
            return words.format(_short(problem.words))
        case _:
            return translate("Transcript", "Drawing broke off, perhaps for want of memory. A smaller diagram may work.")


def _short(words: str) -> str:
    """What the renderer says, without its habits."""
    while (shorter := _BORING.sub("", words)) != words:
        words = shorter
    # What follows on further lines is a picture of the place, drawn in signs.
    first = words.strip().partition("\n")[0]
    line = " ".join(with_hidden_shown(first[:_LONGEST_WORDS]).split()).rstrip(".:")
    return line or QCoreApplication.translate("Transcript", "its renderer does not say why")
