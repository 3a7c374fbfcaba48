"""The colours of a whole text, read here and not in the child."""

from ui.transcript.blocks.colouring.coloured import Word
from ui.transcript.blocks.colouring.lexing import words_of


def words_by_line(text: str, language: str) -> list[list[Word]]:
    """Nothing for an unknown language."""
    return list(words_of(text, language))
