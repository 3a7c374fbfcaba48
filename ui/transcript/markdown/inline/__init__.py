"""The inline half of Markdown: one line of styled runs. Offsets count UTF-16 units, as Qt's layouts do."""

from ui.transcript.markdown.inline.lines import LINE_BREAK, OBJECT, Line, RemoteImage, Span, SpanStyle, slice_utf16
from ui.transcript.markdown.inline.links import link_tooltip
from ui.transcript.markdown.inline.reading import parse_image_only, parse_inline
from ui.transcript.markdown.units import utf16_length

__all__ = [
    "LINE_BREAK",
    "OBJECT",
    "Line",
    "RemoteImage",
    "Span",
    "SpanStyle",
    "link_tooltip",
    "parse_image_only",
    "parse_inline",
    "slice_utf16",
    "utf16_length",
]
