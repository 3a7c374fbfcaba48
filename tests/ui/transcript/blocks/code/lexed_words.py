"""The colours of a whole text, read here and not in the child."""

from ui.transcript.blocks.code.highlighter_protocol import StyledWord
from ui.transcript.blocks.code.highlighter_worker import iter_highlighted_lines


def words_by_line(text: str, language: str) -> list[list[StyledWord]]:
    """Return the styled words of each line; none for an unknown language."""
    return list(iter_highlighted_lines(text, language))
