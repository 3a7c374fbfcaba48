"""The inline half of Markdown: one line of styled runs. Offsets count UTF-16 units, as Qt's layouts do."""

from ui.transcript.markdown.inline.lines import LINE_BREAK, OBJECT, Line, RemoteImage, Span, Style, cut
from ui.transcript.markdown.inline.links import tip_of
from ui.transcript.markdown.inline.reading import inline, only_image
from ui.transcript.markdown.units import units

__all__ = [
    "LINE_BREAK",
    "OBJECT",
    "Line",
    "RemoteImage",
    "Span",
    "Style",
    "cut",
    "inline",
    "only_image",
    "tip_of",
    "units",
]
