"""Why a formula is shown as its source, in words."""

from PySide6.QtCore import QCoreApplication

from ui.look.visible_text import show_hidden
from ui.transcript.blocks.math.latex import FormulaError


def formula_error_sentence(problem: FormulaError) -> str:
    """A sentence for the person."""
    words = {
        "long": QCoreApplication.translate("Transcript", "This formula is too long to be drawn."),
        "deep": QCoreApplication.translate("Transcript", "This formula is nested too deeply to be drawn."),
        "slow": QCoreApplication.translate("Transcript", "This formula takes too long to be drawn."),
        "large": QCoreApplication.translate("Transcript", "This formula is too large to be drawn."),
        "wide": QCoreApplication.translate("Transcript", "This formula is too wide for its line."),
        "empty": QCoreApplication.translate("Transcript", "There is nothing to be drawn in this formula."),
        "unknown": QCoreApplication.translate("Transcript", "This formula cannot be drawn: {0} is not known."),
        "letter": QCoreApplication.translate("Transcript", "This formula cannot be drawn: it has the letter {0}."),
        "twice": QCoreApplication.translate(
            "Transcript", "This formula cannot be drawn: two superscripts or two subscripts follow each other."
        ),
        "unclosed": QCoreApplication.translate(
            "Transcript", "This formula cannot be drawn: something in it is opened and not closed, or the reverse."
        ),
        "missing": QCoreApplication.translate(
            "Transcript", "This formula cannot be drawn: something in it is missing."
        ),
        "other": QCoreApplication.translate("Transcript", "This formula cannot be drawn."),
    }[problem.cause]
    return words.format(show_hidden(problem.detail))
