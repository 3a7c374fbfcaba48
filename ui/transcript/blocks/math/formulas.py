"""Formulas as pictures: read and drawn in the worker when they come near the screen, kept in bounded caches."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import cast

from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QGuiApplication, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from ui.transcript.blocks.math.breath import yield_gil
from ui.transcript.blocks.math.latex import FormulaError
from ui.transcript.blocks.math.orders import Notify, OnReady, RenderQueue, RenderTicket
from ui.transcript.blocks.math.readable import with_readable_colors
from ui.transcript.blocks.math.typesetting import COLOR, MARGIN, TypesetFormula, typeset
from ui.transcript.workshop import JobQueue

_MAX_CACHED_PIXELS = 8_000_000
_MAX_CACHED_SVG = 6_000_000
"""Characters."""

_MAX_CACHED_ERRORS = 500


@dataclass(frozen=True, slots=True)
class FormulaRequest:
    """How a formula is to be drawn: `size` is one em in pixels, `color` #rrggbb."""

    latex: str
    size: float
    color: str
    display: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RenderedFormula:
    """A formula's measures in pixels with a margin around it, and its picture once that is drawn."""

    width: float
    ascent: float
    descent: float
    margin: float
    picture: QPixmap | None


@dataclass(frozen=True, slots=True, eq=False)
class PendingFormula:
    """A formula that is not drawn yet. Its measures may be known: those of a formula without a picture."""

    ticket: RenderTicket
    formula: RenderedFormula | None


FormulaAnswer = RenderedFormula | FormulaError | PendingFormula
GetFormula = Callable[[FormulaRequest, OnReady], FormulaAnswer]
"""See Formulas.get."""

_Key = tuple[FormulaRequest, float]
_Result = tuple[TypesetFormula | FormulaError, QImage | None]


@dataclass(frozen=True, slots=True)
class MathCallbacks:
    """Whom a block with formulas talks to. `changed` hears that the block must be laid out and painted again."""

    get: GetFormula
    on_changed: Notify


class FormulaCache:
    """Asked for a formula, it answers from its cache, or takes an order."""

    def __init__(self, job_queue: JobQueue) -> None:
        self._render_queue = RenderQueue(job_queue, self._on_rendered)
        self._typeset_formulas: OrderedDict[tuple[str, bool], TypesetFormula | FormulaError] = OrderedDict()
        self._letters = 0
        self._pixmaps: OrderedDict[_Key, RenderedFormula] = OrderedDict()
        self._pixels = 0

    def get(self, request: FormulaRequest, on_ready: OnReady) -> FormulaAnswer:
        """The formula, why there is none, or that it comes; then `on_ready` is called when the answer is another one.

        It comes when it was seen on the screen, or stood beside it for a moment, and its order was not dropped.
        """
        key = (request, max_device_pixel_ratio())
        if found := self._pixmaps.get(key):
            self._pixmaps.move_to_end(key)
            return found
        known = self._typeset_formulas.get((request.latex, request.display))
        if isinstance(known, FormulaError):
            return known
        ticket = self._render_queue.add(key, partial(_render_job, known, *key), on_ready)
        return PendingFormula(ticket, _formula(known, key, None) if known else None)

    def cancel_all(self) -> None:
        """Nobody waits for anything: other rows are shown."""
        self._render_queue.clear()

    def _on_rendered(self, name: Hashable, result: object) -> None:
        self._cache_formula(cast("_Key", name), *cast("_Result", result))

    def _cache_formula(self, key: _Key, read: TypesetFormula | FormulaError, image: QImage | None) -> None:
        name = (key[0].latex, key[0].display)
        if name not in self._typeset_formulas:
            self._typeset_formulas[name] = read
            self._letters += _svg_size(read)
        while (self._letters > _MAX_CACHED_SVG or len(self._typeset_formulas) > _MAX_CACHED_ERRORS) and len(
            self._typeset_formulas
        ) > 1:
            self._letters -= _svg_size(self._typeset_formulas.popitem(last=False)[1])
        if image is None or isinstance(read, FormulaError) or key in self._pixmaps:
            return
        self._pixmaps[key] = _formula(read, key, QPixmap.fromImage(image))
        self._pixels += image.width() * image.height()
        while self._pixels > _MAX_CACHED_PIXELS and len(self._pixmaps) > 1:
            picture = self._pixmaps.popitem(last=False)[1].picture
            self._pixels -= picture.width() * picture.height() if picture else 0


def _svg_size(read: TypesetFormula | FormulaError) -> int:
    return len(read.svg) if isinstance(read, TypesetFormula) else 0


def max_device_pixel_ratio() -> float:
    """Device pixels for each pixel of the sharpest screen: a layout does not know on which one it will be painted."""
    screens = QGuiApplication.screens()
    return max((viewport.devicePixelRatio() for viewport in screens), default=1.0)


def _formula(read: TypesetFormula, key: _Key, picture: QPixmap | None) -> RenderedFormula:
    width, ascent, descent = (pixels / key[1] for pixels in _pixels(read, *key))
    return RenderedFormula(width, ascent, descent, MARGIN * key[0].size, picture)


def _pixels(read: TypesetFormula, request: FormulaRequest, ratio: float) -> tuple[int, int, int]:
    """Width, ascent and descent on the screen. The baseline is between two rows, where that of the text is."""
    scale = request.size * ratio
    return ceil(read.width * scale), ceil(read.ascent * scale), ceil(read.descent * scale)


def _render_job(known: TypesetFormula | None, request: FormulaRequest, ratio: float) -> _Result:
    """In the worker. Never raises: whoever waits would wait for ever."""
    yield_gil()
    read = known or typeset(request.latex, display=request.display)
    try:
        return read, _draw_image(read, request, ratio) if isinstance(read, TypesetFormula) else None
    except (MemoryError, ValueError, RuntimeError):
        return FormulaError("other"), None


def _draw_image(read: TypesetFormula, request: FormulaRequest, ratio: float) -> QImage:
    scale = request.size * ratio
    width, ascent, descent = _pixels(read, request, ratio)
    image = QImage(width, ascent + descent, QImage.Format.Format_ARGB32_Premultiplied)
    if image.isNull():
        raise MemoryError
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    box = QRectF(0, ascent - read.ascent * scale, read.width * scale, (read.ascent + read.descent) * scale)
    svg = with_readable_colors(read.svg.replace(COLOR, request.color), request.color)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, box)
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image
