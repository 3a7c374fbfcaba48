"""Long lines broken where they can be seen to be, so that what is approved is what was read."""

FOLD_WIDTH = 1000
FOLD_MARK = "\n↪ "


def folded(text: str, width: int = FOLD_WIDTH) -> str:
    """The whole text, with very long lines broken and marked: Qt lays out a line of megabytes for seconds."""
    if len(text) <= width:
        return text
    return "\n".join(_folded_line(line, width) for line in text.split("\n"))


def _folded_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return FOLD_MARK.join(line[start : start + width] for start in range(0, len(line), width))
