"""The text of a row between two positions, plain and as it is copied."""

from ui.transcript.blocks.block import WHOLE_TEXT, marker_before, separator_before
from ui.transcript.clipboard import CopyExtract, CopyFormats
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.rows.row import read_block
from ui.transcript.viewport.selection import selection_extracts


def copy_formats_of(extracts):
    """Return the extracts as one message in all formats."""
    forms = CopyFormats()
    for extract in extracts:
        forms.add(extract)
    for _ in forms.join_in_steps():
        pass
    return forms


def markdown_of(row, start=(0, 0), end=None):
    return copy_formats_of(row.extracts(start, end)).markdown


def html_of(row, start=(0, 0), end=None):
    return copy_formats_of(row.extracts(start, end)).html


def plain_of(row, start=(0, 0), end=None):
    parts = []
    previous = row.blocks[start[0] - 1] if 0 < start[0] <= len(row.blocks) else None
    for index in range(start[0], (end[0] if end else len(row.blocks) - 1) + 1):
        first = start[1] if index == start[0] else 0
        stop = end[1] if end and index == end[0] else WHOLE_TEXT[1]
        is_whole = (first, stop) == WHOLE_TEXT
        for block in read_block(row.blocks[index]) if is_whole else row.blocks[index : index + 1]:
            if text := block.plain():
                separator = separator_before(block, previous) if previous and parts else ""
                parts += [separator, marker_before(block) if not first else "", slice_utf16(text, first, stop)]
            previous = block
    return "".join(parts)


def selected_text(selection, rows):
    """Return the selected plain text, without the rows that a copy leaves out; an empty line between rows."""
    parts, texts = [], []
    for step in selection_extracts(selection, rows):
        if isinstance(step, CopyExtract):
            parts += [step.before, step.text]
        elif parts:
            texts.append("".join(parts))
            parts = []
    return "\n\n".join(texts)
