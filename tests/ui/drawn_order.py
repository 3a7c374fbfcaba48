"""In which order letters stand on the screen, whatever their order in the text is."""

_MARKS = "\u200e\u2066\u2067\u2069"


def from_left(layout, text=None):
    """The letters of a layout, row by row, without blanks and marks. The layout of a block does not know its text."""
    text = layout.text() if text is None else text
    assert all(ord(each) < 0x10000 for each in text)
    found = []
    for at in range(layout.lineCount()):
        line = layout.lineAt(at)
        for index in range(line.textStart(), min(line.textStart() + line.textLength(), len(text))):
            if text[index] in _MARKS or text[index].isspace():
                continue
            left = min(run.boundingRect().left() for run in line.glyphRuns(index, 1))
            found.append((at, left, text[index]))
    return "".join(letter for _, _, letter in sorted(found))


def rows_of(field):
    """The same of each line of a text field."""
    field.grab()
    blocks = [field.document().findBlockByNumber(at) for at in range(field.document().blockCount())]
    return [from_left(each.layout(), each.text()) for each in blocks]
