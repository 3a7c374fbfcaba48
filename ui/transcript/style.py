"""The fonts, measures and colours that the transcript is drawn with, for one theme at one zoom; those of highlighted
code too.
"""

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QPainter, QPen, QPixmap, QTextCharFormat

from ui.style.style_sheet import mix_colours
from ui.style.theme import BODY_SIZE, ReadingStyle, Theme, body_font, mono_font, pixmap
from ui.transcript.markdown.inline import SpanStyle

_HEADING_SIZES = {1: 1.55, 2: 1.3, 3: 1.14, 4: 1.0, 5: 1.0, 6: 0.95}

_COMPACT_FACTOR = 0.55
"""The part of the gaps between blocks and messages that a compact view keeps."""


class RenderStyle:
    """Fonts, measures and colours for one theme, zoom and reading style; a change of any makes a new one.

    Larger text is a zoom of its own: everything in the transcript grows with its text.
    """

    def __init__(self, theme: Theme, zoom: int, reading: ReadingStyle | None = None) -> None:
        self.theme = theme
        self.reading = reading = reading or ReadingStyle()
        self._zoom = scale = zoom * reading.size / BODY_SIZE
        self._pixels: dict[float, int] = {}
        self.body = body_font(scale, family=reading.font)
        self.small = body_font(scale, 0.9, reading.font)
        self.strong = QFont(self.body)
        self.strong.setWeight(QFont.Weight.DemiBold)
        self.mono = mono_font(scale, 0.92)
        self.line = self._line_of(self.body, 1.12)
        metrics = QFontMetricsF(self.mono)
        self.mono_line = self._line_of(self.mono, 1.2)
        self.mono_advance = metrics.horizontalAdvance("0")
        self.mono_is_even = QFontInfo(self.mono).fixedPitch()
        self.advance = QFontMetricsF(self.body).averageCharWidth()
        self.reading_width = self.px(reading.line_width)
        self._colors: dict[str, QColor] = {}
        self._formats: dict[tuple[int, str], QTextCharFormat] = {}
        self._headings: dict[int, QFont] = {}

    def px(self, pixels: float) -> int:
        """Scale a measure for 100 % zoom to this zoom."""
        scaled = self._pixels.get(pixels)
        if scaled is None:
            scaled = self._pixels[pixels] = max(1, round(pixels * self._zoom / 100))
        return scaled

    def gap(self, pixels: float) -> int:
        """Scale a gap between blocks or messages; a compact view makes it smaller."""
        return self.px(pixels * _COMPACT_FACTOR if self.reading.is_compact else pixels)

    def color(self, name: str) -> QColor:
        """Return a colour of the theme by its field's name, or any #rrggbb."""
        color = self._colors.get(name)
        if color is None:
            color = self._colors[name] = QColor(name if name.startswith("#") else getattr(self.theme, name))
        return color

    def faded(self, name: str, opacity: float) -> QColor:
        """Return a colour of the theme with an opacity from 0 to 1."""
        color = QColor(self.color(name))
        color.setAlphaF(opacity)
        return color

    def heading(self, level: int) -> QFont:
        """Return the font of a heading of level 1 to 6."""
        font = self._headings.get(level)
        if font is None:
            font = body_font(self._zoom, _HEADING_SIZES[level], self.reading.font)
            font.setWeight(QFont.Weight.DemiBold)
            self._headings[level] = font
        return font

    def line_of(self, font: QFont) -> int:
        """Return the distance of baselines that reads well in this font."""
        return self.line if font is self.body else self._line_of(font, 1.08)

    def icon(self, name: str, color: str, size: int, ratio: float) -> QPixmap:
        """Return an icon in a colour of the theme. `size` is for 100 % zoom."""
        return pixmap(name, self.color(color).name(), self.px(size), max(1, round(ratio)))

    def paint_box(
        self, painter: QPainter, box: QRect | QRectF, radius: float, fill: str = "", border: str = "", width: float = 1
    ) -> None:
        """Paint a rounded box in colours of the theme, without what has no colour."""
        painter.setPen(QPen(self.color(border), width) if border else Qt.PenStyle.NoPen)
        painter.setBrush(self.color(fill) if fill else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(QRectF(box), radius, radius)

    def draw_text(
        self,
        painter: QPainter,
        box: QRect,
        text: str,
        color: str = "text",
        font: QFont | None = None,
        *,
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideNone,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignVCenter,
    ) -> None:
        """Draw text in a colour of the theme, in the small font or another, and elided where it does not fit."""
        font = font or self.small
        if elide is not Qt.TextElideMode.ElideNone:
            text = QFontMetricsF(font).elidedText(text, elide, box.width())
        painter.setFont(font)
        painter.setPen(self.color(color))
        # The neighbours of the text are placed from the left, even in a right-to-left window.
        painter.drawText(box, align | Qt.AlignmentFlag.AlignAbsolute, text)

    def format(self, style: int, base: QFont) -> QTextCharFormat:
        """Return the format of a run of this style in text of the base font; shared, never changed."""
        key = (style, base.key())
        text_format = self._formats.get(key)
        if text_format is None:
            text_format = self._formats[key] = self._make_format(style, base)
        return text_format

    def _make_format(self, style: int, base: QFont) -> QTextCharFormat:
        font = QFont(base)
        if style & SpanStyle.CODE:
            font = QFont(self.mono)
            font.setPointSizeF(base.pointSizeF() * 0.92)
        if style & SpanStyle.BOLD:
            font.setWeight(QFont.Weight.Bold)
        font.setItalic(bool(style & SpanStyle.ITALIC) or base.italic())
        font.setStrikeOut(bool(style & SpanStyle.STRIKE))
        text_format = QTextCharFormat()
        text_format.setFont(font)
        if style & SpanStyle.LINK:
            text_format.setForeground(self.color("link"))
            text_format.setFontUnderline(True)
            text_format.setUnderlineColor(self.faded("link", 0.45))
        elif style & SpanStyle.IMAGE:
            text_format.setForeground(self.color("muted"))
        return text_format

    def _line_of(self, font: QFont, factor: float) -> int:
        if self.reading.is_compact:
            factor = 1 + (factor - 1) * 0.2
        metrics = QFontMetricsF(font)
        min_height = font.pointSizeF() * 1.34 * (1.04 if self.reading.is_compact else 1.18)
        return round(max(metrics.height(), min_height) * factor)


SYNTAX_COLORS = {
    False: {
        "comment": "#6a6a63",
        "keyword": "#8a2fa8",
        "function": "#1a55b8",
        "builtin": "#0b6a73",
        "string": "#2b6e21",
        "number": "#9a4a06",
    },
    True: {
        "comment": "#8f9299",
        "keyword": "#d6a0f0",
        "function": "#8fb8ff",
        "builtin": "#7fd0d6",
        "string": "#a8d08d",
        "number": "#f0b080",
    },
}


BOLD = "bold"
"""A kind of its own, or a prefix of a colour's name, with a space between."""

# Each has a contrast of 4.5:1 on the code background of its theme, and no two are easily confused.
TERMINAL_COLORS = {
    False: {
        "red": "#b3261e",
        "green": "#266e15",
        "yellow": "#7a5200",
        "blue": "#1a55b8",
        "magenta": "#8a2fa8",
        "cyan": "#006e88",
        "grey": "#6a6a63",
    },
    True: {
        "red": "#ff8f86",
        "green": "#84d865",
        "yellow": "#f2c86a",
        "blue": "#86aaff",
        "magenta": "#f19af0",
        "cyan": "#48d0f2",
        "grey": "#8f9299",
    },
}


def word_colors(theme: Theme) -> dict[str, str]:
    """Return the colours of syntax and of terminals; nearer to the text's with strong contrast."""
    colors = {**SYNTAX_COLORS[theme.is_dark], **TERMINAL_COLORS[theme.is_dark]}
    return {name: mix_colours(color, theme.text, 0.4) for name, color in colors.items()} if theme.outline else colors


class WordFormats(dict[str, QTextCharFormat]):
    """The format of each kind of highlighted word."""

    def __init__(self, style: RenderStyle) -> None:
        super().__init__()
        self._colors = word_colors(style.theme)

    def __missing__(self, kind: str) -> QTextCharFormat:
        text_format = self[kind] = QTextCharFormat()
        weight, _, color = kind.rpartition(" ")
        if BOLD in {weight, color}:
            text_format.setFontWeight(QFont.Weight.Bold)
        if value := self._colors.get(color):
            text_format.setForeground(QColor(value))
        return text_format
