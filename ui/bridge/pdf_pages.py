"""A PDF whose pages are filled from the top with parts of rich text, small enough not to block the window."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import cast

from PySide6.QtCore import QIODevice, QLocale, QMarginsF, QRectF, QSaveFile, Qt
from PySide6.QtGui import (
    QAbstractTextDocumentLayout,
    QColor,
    QFont,
    QPageLayout,
    QPageSize,
    QPainter,
    QPalette,
    QPdfWriter,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextTable,
)

from desktop_agent.exchange.print_export import PRINT_STYLE, PrintedPart
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.hidden_characters import mark_hidden

_DPI = 600
# In millimetres; the number of the page is below the text.
_MARGINS = QMarginsF(20, 18, 20, 24)
_TEXT_POINTS = 10
_FOOT_POINTS = 8
_GAP = _DPI // 9
"""Above a turn, in dots; within one it is a third of that."""
_FAMILIES = ["Noto Sans", "DejaVu Sans", "sans-serif"]
# CLDR 46, supplemental/paperSize: these territories use US Letter.
_LETTER = frozenset(["BZ", "CA", "CL", "CO", "CR", "GT", "MX", "NI", "PA", "PH", "PR", "SV", "US", "VE"])


def page_size(locale: QLocale) -> QPageSize:
    """Return A4, or Letter in territories that use it."""
    is_letter = QLocale.territoryToCode(locale.territory()) in _LETTER
    return QPageSize(QPageSize.PageSizeId.Letter if is_letter else QPageSize.PageSizeId.A4)


@contextmanager
def open_pdf(path: Path, title: str) -> Generator["PdfPages"]:
    """Open a PDF, which gets its name only when it is complete. Raises StorageFailed if it cannot be written."""
    file = QSaveFile(str(path))
    if not file.open(QIODevice.OpenModeFlag.WriteOnly):
        raise StorageFailed(
            Sentence("“{path}” cannot be written.", {"path": mark_hidden(str(path))}),
            "Choose another folder, or change its rights.",
            detail=file.errorString(),
        )
    pages = PdfPages(file, mark_hidden(title), page_size(QLocale.system()))
    try:
        yield pages
        pages.finish()
    except BaseException:
        pages.abandon()
        file.cancelWriting()
        raise
    if not file.commit():
        raise StorageFailed(
            Sentence("“{path}” could not be written to its end.", {"path": mark_hidden(str(path))}),
            "Check the disk and its free space.",
            detail=file.errorString(),
        )


class PdfPages:
    """Writes one PDF into a device that is open."""

    def __init__(self, device: QIODevice, title: str, size: QPageSize) -> None:
        self._writer = QPdfWriter(device)
        self._writer.setResolution(_DPI)
        self._writer.setPageLayout(
            QPageLayout(size, QPageLayout.Orientation.Portrait, _MARGINS, QPageLayout.Unit.Millimeter)
        )
        self._writer.setTitle(title)
        self._title = title
        self._painter = QPainter()
        self._painter.begin(self._writer)
        self._width, self._height = self._writer.width(), self._writer.height()
        self._y = 0.0
        self._page = 1

    def add(self, part: PrintedPart) -> None:
        """Place the part below the earlier ones; what does not fit continues on the next page."""
        document = self._layout(part.html)
        height = document.size().height()
        if self._y and not part.continues:
            self._y += _GAP if part.begins_turn else _GAP / 3
        top = 0.0
        while top < height:
            room = self._height - self._y
            bottom = height if height - top <= room else _last_line_end(document, top, top + room)
            if bottom is None and self._y:
                self._next_page()
                continue
            # A line that is higher than a page is cut.
            bottom = bottom or top + room
            self._draw(document, top, bottom)
            self._y += bottom - top
            top = bottom
            if top < height:
                self._next_page()

    def finish(self) -> None:
        """End the last page. The device knows errors of writing."""
        self._draw_foot()
        self._painter.end()

    def abandon(self) -> None:
        """Stop painting; the file is not complete."""
        if self._painter.isActive():
            self._painter.end()

    def _layout(self, html: str) -> QTextDocument:
        document = QTextDocument()
        document.setUndoRedoEnabled(False)
        document.documentLayout().setPaintDevice(self._writer)
        document.setDefaultFont(_font(_TEXT_POINTS))
        document.setDocumentMargin(0)
        document.setDefaultStyleSheet(PRINT_STYLE)
        document.setHtml(html)
        document.setTextWidth(self._width)
        return document

    def _draw(self, document: QTextDocument, top: float, bottom: float) -> None:
        painter, context = self._painter, QAbstractTextDocumentLayout.PaintContext()
        context.palette = _light_palette()
        area = QRectF(0, top, self._width, bottom - top)
        context.clip = area
        painter.save()
        painter.translate(0, self._y - top)
        painter.setClipRect(area)
        document.documentLayout().draw(painter, context)
        painter.restore()

    def _next_page(self) -> None:
        self._draw_foot()
        self._writer.newPage()
        self._page += 1
        self._y = 0.0

    def _draw_foot(self) -> None:
        painter = self._painter
        painter.save()
        painter.setFont(_font(_FOOT_POINTS))
        painter.setPen(QColor("#65645f"))
        metrics = painter.fontMetrics()
        number = QLocale().toString(self._page)
        area = QRectF(0, self._height + metrics.height(), self._width, 2 * metrics.height())
        painter.drawText(area, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop), number)
        room = self._width - 4 * metrics.horizontalAdvance(number)
        title = metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, int(room))
        painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop), title)
        painter.restore()


def _font(points: int) -> QFont:
    font = QFont(_FAMILIES, points)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return font


@lru_cache(maxsize=1)
def _light_palette() -> QPalette:
    """Return a light palette: the window may be dark, paper is not."""
    palette = QPalette(QColor("#ffffff"))
    palette.setColor(QPalette.ColorRole.Text, QColor("#1d1d1b"))
    return palette


def _last_line_end(document: QTextDocument, top: float, limit: float) -> float | None:
    """Return the lowest position between `top` and `limit` that cuts no line and follows no heading, or None."""
    lines = [line for line in _lines(document) if line[1] > top]
    ends = sorted({end for _, end, is_heading in lines if not is_heading and top < end <= limit}, reverse=True)
    return next((end for end in ends if not any(first < end - 1 and end + 1 < last for first, last, _ in lines)), None)


def _lines(document: QTextDocument) -> Iterator[tuple[float, float, bool]]:
    """Yield top and bottom of each line, and whether it is of a heading, or of the space below one."""
    layout, block, is_heading = document.documentLayout(), document.begin(), False
    while block.isValid():
        top = layout.blockBoundingRect(block).top()
        lines = block.layout()
        if block.text().strip():
            is_heading = block.blockFormat().headingLevel() > 0 or _is_card_head(block)
        for index in range(lines.lineCount()):
            line = lines.lineAt(index)
            begin = top + line.y()
            yield begin, begin + line.height(), is_heading
        block = block.next()


def _is_card_head(block: QTextBlock) -> bool:
    """Return whether the block is in the frame that only the head of a tool call has."""
    table = cast("QTextTable | None", QTextCursor(block).currentTable())
    return table is not None and table.rows() == 1 and table.format().border() > 0
