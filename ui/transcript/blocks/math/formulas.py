"""Render formulas in the worker thread: a render queue that serves what is visible first, and a bounded cache of
pixmaps.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import ceil
from typing import Any, cast

from PySide6.QtCore import QByteArray, QObject, QRectF, QTimer
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from ui.transcript.blocks.math.gil_yield import yield_gil
from ui.transcript.blocks.math.latex import FormulaError
from ui.transcript.blocks.math.typesetting import COLOR, MARGIN, TypesetFormula, typeset
from ui.transcript.workers import JobQueue

_TICK_MS = 30
"""Milliseconds between two looks at what waits."""

_VISIBLE_TICKS, _NEARBY_TICKS = 3, 8
"""Beats that a formula must have been asked for, on the screen and beside it, before it is drawn."""

_MAX_BATCH = 4
"""Beats until what came is told while more is being drawn: each telling lays out and paints."""

_MAX_RUNNING = 2
"""Jobs in the worker's hands: the one at hand, and one that keeps it from ending."""

_MAX_QUEUED = 400
"""Formulas that wait; the oldest are given up."""

Notify = Callable[[], None]
OnReady = Callable[[], Notify | None]
"""Hears that the formula is there; answers who must be told after all that came at once, each of them once."""


@dataclass(slots=True, eq=False)
class _QueuedRender:
    name: Hashable
    job: Callable[[], Any]
    since: int
    """The beat in which it was asked for."""
    tickets: "list[RenderTicket]" = field(default_factory=list["RenderTicket"])
    last_visible: int = 0
    """The beat in which it was last seen on the screen; 0 for never."""
    is_running: bool = False
    is_done: bool = False


class RenderTicket:
    """Of one who waits for one formula."""

    __slots__ = ("_orders", "_wanted", "on_ready")

    def __init__(self, tickets: "RenderQueue", wanted: _QueuedRender, on_ready: OnReady) -> None:
        self._orders, self._wanted, self.on_ready = tickets, wanted, on_ready

    def mark_visible(self) -> None:
        """It would stand on the screen."""
        self._wanted = self._orders.mark_visible(self._wanted, self)

    def cancel(self) -> None:
        """Nobody waits for it here any more."""
        self._orders.cancel(self._wanted, self)


class RenderQueue(QObject):
    """`keep` is given the name and the result of each job before anybody hears of it."""

    def __init__(self, job_queue: JobQueue, keep: Callable[[Hashable, Any], None]) -> None:
        super().__init__(job_queue)
        self._job_queue = job_queue
        self._store_result = keep
        self._wanted: dict[Hashable, _QueuedRender] = {}
        self._ticks = 1
        self._ready_listeners: list[OnReady] = []
        self._notified = 0
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self._on_tick)
        job_queue.closing.connect(self._stop)
        self._stopped = False

    def add(self, name: Hashable, job: Callable[[], Any], on_ready: OnReady) -> RenderTicket:
        """Let the job be done when its turn comes."""
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = self._wanted[name] = _QueuedRender(name, job, self._ticks)
            if len(self._wanted) > _MAX_QUEUED:
                self._give_up(next(iter(self._wanted.values())))
        ticket = RenderTicket(self, wanted, on_ready)
        wanted.tickets.append(ticket)
        self._wake()
        return ticket

    def mark_visible(self, wanted: _QueuedRender, ticket: RenderTicket) -> _QueuedRender:
        """It would stand on the screen now; answers under what it waits."""
        # Until those who wait are told, what they have is painted as before.
        if wanted.is_done:
            return wanted
        wanted = self._wanted.setdefault(wanted.name, wanted)
        if ticket not in wanted.tickets:
            wanted.tickets.append(ticket)
        wanted.last_visible = self._ticks
        self._wake()
        return wanted

    def cancel(self, wanted: _QueuedRender, ticket: RenderTicket) -> None:
        """One of those who wait does not any more."""
        if ticket in wanted.tickets:
            wanted.tickets.remove(ticket)
            if not wanted.tickets:
                self._give_up(wanted)

    def clear(self) -> None:
        """Nobody waits for anything."""
        for wanted in list(self._wanted.values()):
            wanted.tickets.clear()
            self._give_up(wanted)

    def _give_up(self, wanted: _QueuedRender) -> None:
        # What is being drawn is kept all the same.
        if not wanted.is_running or self._job_queue.cancel(_priority(wanted)):
            wanted.is_running = False
            self._wanted.pop(wanted.name, None)

    def _wake(self) -> None:
        if not self._timer.isActive() and not self._stopped:
            self._timer.start()

    def _stop(self) -> None:
        self._stopped = True
        self._timer.stop()

    def _on_tick(self) -> None:
        self._ticks += 1
        self._submit_next()
        works = any(each.is_running for each in self._wanted.values())
        if not works or self._ticks - self._notified >= _MAX_BATCH:
            self._notify()
        if self._ready_listeners or any(not each.is_running for each in self._wanted.values()):
            self._wake()

    def _submit_next(self) -> None:
        """Hand the worker what is next."""
        free, waiting = _MAX_RUNNING, list[_QueuedRender]()
        for each in self._wanted.values():
            # The worker gives jobs up when it is given far too many.
            each.is_running = each.is_running and self._job_queue.has(_priority(each))
            free -= each.is_running
            if not each.is_running:
                waiting.append(each)
        # Those seen last stand on the screen; among them, and among all others, those asked for first are above.
        waiting.sort(key=lambda each: -each.last_visible)
        for each in waiting[: max(0, free)]:
            if self._ticks - each.since >= (_VISIBLE_TICKS if each.last_visible else _NEARBY_TICKS):
                each.is_running = True
                self._job_queue.submit(_priority(each), each.job, partial(self._on_result, each))

    def _on_result(self, wanted: _QueuedRender, result: Any) -> None:
        self._wanted.pop(wanted.name, None)
        wanted.is_done = True
        self._store_result(wanted.name, result)
        self._ready_listeners += [ticket.on_ready for ticket in wanted.tickets]
        wanted.tickets.clear()
        self._submit_next()
        if self._ready_listeners:
            self._wake()

    def _notify(self) -> None:
        self._notified = self._ticks
        hearing, self._ready_listeners = self._ready_listeners, []
        told = dict.fromkeys(on_ready() for on_ready in hearing)
        for notify in told:
            if notify:
                notify()


def _priority(wanted: _QueuedRender) -> Hashable:
    return "formula", wanted.name


_MIN_CONTRAST = 4.5
"""Contrast to the background (WCAG 2.2, 1.4.3)."""

_LIGHT_BACKGROUND, _DARK_BACKGROUND = "#ffffff", "#1c1d20"
_COLOR = re.compile(r'(fill|stroke)="([^"]+)"')
_NO_COLORS = {"none", "transparent"}


def with_readable_colors(svg: str, text: str) -> str:
    """The drawing with each colour as light or dark as it must be beside text of the colour `text` (#rrggbb)."""
    paper = _DARK_BACKGROUND if _luminance(QColor(text)) > 0.4 else _LIGHT_BACKGROUND
    return _COLOR.sub(lambda found: f'{found[1]}="{_readable_color(found[2], paper, text)}"', svg)


@lru_cache(maxsize=256)
def _readable_color(name: str, paper: str, text: str) -> str:
    if name in _NO_COLORS or name == text:
        return name
    color = QColor.fromString(name)
    if not color.isValid():
        return text
    hue, saturation, lightness = color.hslHueF(), color.hslSaturationF(), color.lightnessF()
    step = 0.04 if paper == _DARK_BACKGROUND else -0.04
    while _contrast(color, QColor(paper)) < _MIN_CONTRAST and 0 < lightness + step < 1:
        lightness += step
        color = QColor.fromHslF(max(0.0, hue), saturation, lightness)
    return color.name()


def _contrast(one: QColor, other: QColor) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: QColor) -> float:
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


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
