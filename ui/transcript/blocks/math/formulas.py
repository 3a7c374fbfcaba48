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

from ui.transcript.blocks.math.breath import breathe
from ui.transcript.blocks.math.latex import Problem
from ui.transcript.blocks.math.orders import Hear, Order, Orders, Told
from ui.transcript.blocks.math.readable import readable
from ui.transcript.blocks.math.typesetting import COLOR, MARGIN, Typeset, typeset
from ui.transcript.workshop import Workshop

_KEPT_PIXELS = 8_000_000
_KEPT_SVG = 6_000_000
"""Characters."""

_KEPT_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class Shape:
    """How a formula is to be drawn: `size` is one em in pixels, `color` #rrggbb."""

    latex: str
    size: float
    color: str
    display: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A formula's measures in pixels with a margin around it, and its picture once that is drawn."""

    width: float
    ascent: float
    descent: float
    margin: float
    picture: QPixmap | None


@dataclass(frozen=True, slots=True, eq=False)
class Coming:
    """A formula that is not drawn yet. Its measures may be known: those of a formula without a picture."""

    order: Order
    formula: Formula | None


Answer = Formula | Problem | Coming
Get = Callable[[Shape, Hear], Answer]
"""See Formulas.get."""

_Key = tuple[Shape, float]
_Result = tuple[Typeset | Problem, QImage | None]


@dataclass(frozen=True, slots=True)
class MathHost:
    """Whom a block with formulas talks to. `changed` hears that the block must be laid out and painted again."""

    get: Get
    changed: Told


class Formulas:
    """Asked for a formula, it answers from its cache, or takes an order."""

    def __init__(self, workshop: Workshop) -> None:
        self._orders = Orders(workshop, self._take)
        self._read: OrderedDict[tuple[str, bool], Typeset | Problem] = OrderedDict()
        self._letters = 0
        self._drawn: OrderedDict[_Key, Formula] = OrderedDict()
        self._pixels = 0

    def get(self, shape: Shape, hear: Hear) -> Answer:
        """The formula, why there is none, or that it comes; then `hear` is called when the answer is another one.

        It comes when it was seen on the screen, or stood beside it for a moment, and its order was not dropped.
        """
        key = (shape, sharpest())
        if found := self._drawn.get(key):
            self._drawn.move_to_end(key)
            return found
        known = self._read.get((shape.latex, shape.display))
        if isinstance(known, Problem):
            return known
        order = self._orders.add(key, partial(_work, known, *key), hear)
        return Coming(order, _formula(known, key, None) if known else None)

    def forget_orders(self) -> None:
        """Nobody waits for anything: other rows are shown."""
        self._orders.clear()

    def _take(self, name: Hashable, result: object) -> None:
        self._keep(cast("_Key", name), *cast("_Result", result))

    def _keep(self, key: _Key, read: Typeset | Problem, image: QImage | None) -> None:
        name = (key[0].latex, key[0].display)
        if name not in self._read:
            self._read[name] = read
            self._letters += _letters(read)
        while (self._letters > _KEPT_SVG or len(self._read) > _KEPT_PROBLEMS) and len(self._read) > 1:
            self._letters -= _letters(self._read.popitem(last=False)[1])
        if image is None or isinstance(read, Problem) or key in self._drawn:
            return
        self._drawn[key] = _formula(read, key, QPixmap.fromImage(image))
        self._pixels += image.width() * image.height()
        while self._pixels > _KEPT_PIXELS and len(self._drawn) > 1:
            picture = self._drawn.popitem(last=False)[1].picture
            self._pixels -= picture.width() * picture.height() if picture else 0


def _letters(read: Typeset | Problem) -> int:
    return len(read.svg) if isinstance(read, Typeset) else 0


def sharpest() -> float:
    """Device pixels for each pixel of the sharpest screen: a layout does not know on which one it will be painted."""
    screens = QGuiApplication.screens()
    return max((screen.devicePixelRatio() for screen in screens), default=1.0)


def _formula(read: Typeset, key: _Key, picture: QPixmap | None) -> Formula:
    width, ascent, descent = (pixels / key[1] for pixels in _pixels(read, *key))
    return Formula(width, ascent, descent, MARGIN * key[0].size, picture)


def _pixels(read: Typeset, shape: Shape, ratio: float) -> tuple[int, int, int]:
    """Width, ascent and descent on the screen. The baseline is between two rows, where that of the text is."""
    scale = shape.size * ratio
    return ceil(read.width * scale), ceil(read.ascent * scale), ceil(read.descent * scale)


def _work(known: Typeset | None, shape: Shape, ratio: float) -> _Result:
    """In the worker. Never raises: whoever waits would wait for ever."""
    breathe()
    read = known or typeset(shape.latex, display=shape.display)
    try:
        return read, _drawn(read, shape, ratio) if isinstance(read, Typeset) else None
    except (MemoryError, ValueError, RuntimeError):
        return Problem("other"), None


def _drawn(read: Typeset, shape: Shape, ratio: float) -> QImage:
    scale = shape.size * ratio
    width, ascent, descent = _pixels(read, shape, ratio)
    image = QImage(width, ascent + descent, QImage.Format.Format_ARGB32_Premultiplied)
    if image.isNull():
        raise MemoryError
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    box = QRectF(0, ascent - read.ascent * scale, read.width * scale, (read.ascent + read.descent) * scale)
    svg = readable(read.svg.replace(COLOR, shape.color), shape.color)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, box)
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image
