"""Render formulas: a queue that serves visible ones first, the worker that typesets, and a bounded cache of pixmaps."""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import ceil
from typing import Any

from PySide6.QtCore import QByteArray, QObject, QRectF, QTimer
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QImage, QPainter, QPainterPath, QPixmap
from PySide6.QtSvg import QSvgRenderer

from desktop_agent.markdown.latex import (
    COLOR,
    MARGIN,
    FormulaError,
    LetterOutline,
    MissingLetters,
    TypesetAnswer,
    TypesetFormula,
)
from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure
from desktop_agent.processes.worker_process import WorkerLimits
from ui.transcript.workers import JobQueue

# Milliseconds between two ticks of the queue.
_TICK_MS = 30

# Ticks that a formula must have been queued, on screen and near it, before it is rendered.
_VISIBLE_TICKS, _NEARBY_TICKS = 3, 8

# Ticks until results are announced while more are rendering: each announcement lays out and paints.
_MAX_BATCH = 4

# Jobs handed to the worker: the running one, and one that keeps it from ending.
_MAX_RUNNING = 2

# Waiting formulas; the oldest are dropped.
_MAX_QUEUED = 400

Notify = Callable[[], None]
OnReady = Callable[[], Notify | None]
"""Called when the formula is ready; returns what to call once after all formulas that became ready together."""


@dataclass(slots=True, eq=False)
class _QueuedRender:
    name: "_Key"
    job: Callable[[], "_Result"]
    since: int
    """The tick of the request."""
    tickets: "list[RenderTicket]" = field(default_factory=list["RenderTicket"])
    last_visible: int = 0
    """The tick in which it was last visible; 0 for never."""
    is_running: bool = False
    is_done: bool = False


class RenderTicket:
    """The request of one waiting block for one formula."""

    __slots__ = ("_queue", "_queued", "on_ready")

    def __init__(self, queue: "RenderQueue", queued: _QueuedRender, on_ready: OnReady) -> None:
        self._queue, self._queued, self.on_ready = queue, queued, on_ready

    def mark_visible(self) -> None:
        """Report that the formula is on screen."""
        self._queued = self._queue.mark_visible(self._queued, self)

    def cancel(self) -> None:
        """Stop waiting."""
        self._queue.cancel(self._queued, self)


class RenderQueue(QObject):
    """Jobs waiting for the worker. `keep` is called with the name and the result of each job before anything else."""

    def __init__(self, job_queue: JobQueue, keep: Callable[["_Key", "_Result"], None]) -> None:
        super().__init__(job_queue)
        self._job_queue = job_queue
        self._store_result = keep
        self._queued: dict[_Key, _QueuedRender] = {}
        self._ticks = 1
        self._ready_listeners: list[OnReady] = []
        self._notified = 0
        self._timer = QTimer(self, singleShot=True, interval=_TICK_MS)
        self._timer.timeout.connect(self._on_tick)
        job_queue.closing.connect(self._stop)
        self._stopped = False

    def add(self, name: "_Key", job: Callable[[], "_Result"], on_ready: OnReady) -> RenderTicket:
        """Run the job when its turn comes."""
        queued = self._queued.get(name)
        if queued is None:
            queued = self._queued[name] = _QueuedRender(name, job, self._ticks)
            if len(self._queued) > _MAX_QUEUED:
                self._give_up(next(iter(self._queued.values())))
        ticket = RenderTicket(self, queued, on_ready)
        queued.tickets.append(ticket)
        self._start_timer()
        return ticket

    def mark_visible(self, queued: _QueuedRender, ticket: RenderTicket) -> _QueuedRender:
        """Record that a job's result would be visible now; return the entry that the ticket waits for."""
        # Until the results are announced, waiting blocks are painted as before.
        if queued.is_done:
            return queued
        queued = self._queued.setdefault(queued.name, queued)
        if ticket not in queued.tickets:
            queued.tickets.append(ticket)
        queued.last_visible = self._ticks
        self._start_timer()
        return queued

    def cancel(self, queued: _QueuedRender, ticket: RenderTicket) -> None:
        """Remove one ticket, and the job if it was the last one."""
        if ticket in queued.tickets:
            queued.tickets.remove(ticket)
            if not queued.tickets:
                self._give_up(queued)

    def clear(self) -> None:
        """Drop all jobs."""
        for queued in list(self._queued.values()):
            queued.tickets.clear()
            self._give_up(queued)

    def _give_up(self, queued: _QueuedRender) -> None:
        # A running job stays, unless the job queue has not started it yet.
        if not queued.is_running or self._job_queue.cancel(_priority(queued)):
            queued.is_running = False
            self._queued.pop(queued.name, None)

    def _start_timer(self) -> None:
        if not self._timer.isActive() and not self._stopped:
            self._timer.start()

    def _stop(self) -> None:
        self._stopped = True
        self._timer.stop()

    def _on_tick(self) -> None:
        self._ticks += 1
        self._submit_next()
        is_working = any(render.is_running for render in self._queued.values())
        if not is_working or self._ticks - self._notified >= _MAX_BATCH:
            self._notify()
        if self._ready_listeners or any(not render.is_running for render in self._queued.values()):
            self._start_timer()

    def _submit_next(self) -> None:
        free, waiting = _MAX_RUNNING, list[_QueuedRender]()
        for render in self._queued.values():
            # The job queue drops jobs when it gets too many.
            render.is_running = render.is_running and self._job_queue.has(_priority(render))
            free -= render.is_running
            if not render.is_running:
                waiting.append(render)
        # What was visible last is on screen. The sort is stable: earlier requests, which are higher up, stay first.
        waiting.sort(key=lambda render: -render.last_visible)
        for render in waiting[: max(0, free)]:
            if self._ticks - render.since >= (_VISIBLE_TICKS if render.last_visible else _NEARBY_TICKS):
                render.is_running = True
                self._job_queue.submit(_priority(render), render.job, partial(self._on_result, render))

    def _on_result(self, queued: _QueuedRender, result: "_Result") -> None:
        self._queued.pop(queued.name, None)
        queued.is_done = True
        self._store_result(queued.name, result)
        self._ready_listeners += [ticket.on_ready for ticket in queued.tickets]
        queued.tickets.clear()
        self._submit_next()
        if self._ready_listeners:
            self._start_timer()

    def _notify(self) -> None:
        self._notified = self._ticks
        listeners, self._ready_listeners = self._ready_listeners, []
        notifications = dict.fromkeys(on_ready() for on_ready in listeners)
        for notify in notifications:
            if notify:
                notify()


def _priority(queued: _QueuedRender) -> Hashable:
    return "formula", queued.name


# The minimum contrast to the background (WCAG 2.2, 1.4.3).
_MIN_CONTRAST = 4.5
_LIGHT_BACKGROUND, _DARK_BACKGROUND = "#ffffff", "#1c1d20"
_COLOR = re.compile(r'(fill|stroke)="([^"]+)"')
_NO_COLORS = {"none", "transparent"}


def with_readable_colors(svg: str, text: str) -> str:
    """Return the SVG with its colours adjusted to be readable beside text of the colour `text` (#rrggbb)."""
    background = _DARK_BACKGROUND if _luminance(QColor(text)) > 0.4 else _LIGHT_BACKGROUND
    return _COLOR.sub(lambda match: f'{match[1]}="{_readable_color(match[2], background, text)}"', svg)


@lru_cache(maxsize=256)
def _readable_color(name: str, background: str, text: str) -> str:
    if name in _NO_COLORS or name == text:
        return name
    color = QColor.fromString(name)
    if not color.isValid():
        return text
    hue, saturation, lightness = color.hslHueF(), color.hslSaturationF(), color.lightnessF()
    step = 0.04 if background == _DARK_BACKGROUND else -0.04
    while _contrast(color, QColor(background)) < _MIN_CONTRAST and 0 < lightness + step < 1:
        lightness += step
        color = QColor.fromHslF(max(0.0, hue), saturation, lightness)
    return color.name()


def _contrast(first: QColor, second: QColor) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: QColor) -> float:
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# Processor seconds for one formula, and seconds of wall time, which include the start of the worker.
_LIMITS = WorkerLimits(memory=500_000_000, seconds=2.0)
_TIMEOUT = 15.0

# Pixels of an em.
_OUTLINE_SIZE = 1000


def typeset(worker: Worker[TypesetAnswer], latex: str, *, display: bool) -> TypesetFormula | FormulaError:
    """Return the formula, or why it cannot be typeset. Letters that its font lacks are those of the system."""
    try:
        answer = worker.ask(latex, display, {})
        if isinstance(answer, MissingLetters):
            answer = worker.ask(latex, display, {char: _outline(char) for char in answer.letters})
    except WorkerFailed as error:
        return FormulaError("slow" if error.failure is WorkerFailure.SLOW else "other")
    return FormulaError("letter", answer.letters) if isinstance(answer, MissingLetters) else answer


def _outline(char: str) -> LetterOutline:
    font = QFont()
    font.setPixelSize(_OUTLINE_SIZE)
    path = QPainterPath()
    path.addText(0, 0, font, char)
    commands: list[Any] = []
    for index in range(path.elementCount()):
        element = path.elementAt(index)
        point = (element.x / _OUTLINE_SIZE, -element.y / _OUTLINE_SIZE)  # pyright: ignore[reportOperatorIssue]
        if element.isMoveTo() or element.isLineTo() or element.isCurveTo():
            commands.append(("M" if element.isMoveTo() else "L" if element.isLineTo() else "C", [point]))
        else:
            commands[-1][1].append(point)
    box = path.boundingRect()
    left, right, lower, upper = (edge / _OUTLINE_SIZE for edge in (box.left(), box.right(), -box.bottom(), -box.top()))
    advance = QFontMetricsF(font).horizontalAdvance(char) / _OUTLINE_SIZE
    return LetterOutline(commands, (left, right, lower, upper), advance)


_MAX_CACHED_PIXELS = 8_000_000
# Characters.
_MAX_CACHED_SVG = 6_000_000

_MAX_CACHED_ERRORS = 500


@dataclass(frozen=True, slots=True)
class FormulaRequest:
    """A formula to render: `size` is one em in pixels, `color` is #rrggbb."""

    latex: str
    size: float
    color: str
    display: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class RenderedFormula:
    """A formula's measures in pixels including its margin, and its pixmap once it is rendered."""

    width: float
    ascent: float
    descent: float
    margin: float
    picture: QPixmap | None


@dataclass(frozen=True, slots=True, eq=False)
class PendingFormula:
    """A formula that is not rendered yet; `formula` has its measures if they are known."""

    ticket: RenderTicket
    formula: RenderedFormula | None


FormulaAnswer = RenderedFormula | FormulaError | PendingFormula
GetFormula = Callable[[FormulaRequest, OnReady], FormulaAnswer]
"""See FormulaCache.get."""

_Key = tuple[FormulaRequest, float]
_Result = tuple[TypesetFormula | FormulaError, QImage | None]


@dataclass(frozen=True, slots=True)
class MathCallbacks:
    """The services of blocks with formulas. `on_changed` asks for layout and repaint."""

    get: GetFormula
    on_changed: Notify


class FormulaCache:
    """Formulas in a bounded cache; missing ones are queued."""

    def __init__(self, job_queue: JobQueue) -> None:
        task = "desktop_agent.markdown.typesetting:typeset"
        self.worker = Worker(task, list[TypesetAnswer], _LIMITS, timeout=_TIMEOUT, attempts=2)
        job_queue.closing.connect(self.worker.close)
        self._job_queue = job_queue
        self._render_queue = RenderQueue(job_queue, self._cache_formula)
        self._typeset_formulas: OrderedDict[tuple[str, bool], TypesetFormula | FormulaError] = OrderedDict()
        self._svg_length = 0
        self._pixmaps: OrderedDict[_Key, RenderedFormula] = OrderedDict()
        self._pixels = 0

    def get(self, request: FormulaRequest, on_ready: OnReady) -> FormulaAnswer:
        """Return the formula, its error, or a ticket. `on_ready` is called when a ticket's formula is ready.

        It is rendered once it was visible, or near the viewport for a moment, unless its ticket is cancelled.
        """
        key = (request, max_device_pixel_ratio())
        if formula := self._pixmaps.get(key):
            self._pixmaps.move_to_end(key)
            return formula
        known = self._typeset_formulas.get((request.latex, request.display))
        if isinstance(known, FormulaError):
            return known
        if known is None and self.worker.pid is None:
            # Starting takes about as long as formulas wait before they are rendered.
            self._job_queue.submit("start of the typesetter", self.worker.start, lambda _: None)
        ticket = self._render_queue.add(key, partial(_render_job, self.worker, known, *key), on_ready)
        return PendingFormula(ticket, _formula(known, key, None) if known else None)

    def cancel_all(self) -> None:
        """Cancel all requests, because other rows are shown."""
        self._render_queue.clear()

    def _cache_formula(self, key: _Key, result: _Result) -> None:
        typeset_formula, image = result
        name = (key[0].latex, key[0].display)
        if name not in self._typeset_formulas:
            self._typeset_formulas[name] = typeset_formula
            self._svg_length += _svg_size(typeset_formula)
        formulas = self._typeset_formulas
        while (self._svg_length > _MAX_CACHED_SVG or len(formulas) > _MAX_CACHED_ERRORS) and len(formulas) > 1:
            self._svg_length -= _svg_size(formulas.popitem(last=False)[1])
        if image is None or isinstance(typeset_formula, FormulaError) or key in self._pixmaps:
            return
        self._pixmaps[key] = _formula(typeset_formula, key, QPixmap.fromImage(image))
        self._pixels += image.width() * image.height()
        while self._pixels > _MAX_CACHED_PIXELS and len(self._pixmaps) > 1:
            picture = self._pixmaps.popitem(last=False)[1].picture
            self._pixels -= picture.width() * picture.height() if picture else 0


def _svg_size(typeset_formula: TypesetFormula | FormulaError) -> int:
    return len(typeset_formula.svg) if isinstance(typeset_formula, TypesetFormula) else 0


def max_device_pixel_ratio() -> float:
    """Return the highest device pixel ratio of all screens: a layout does not know its screen."""
    screens = QGuiApplication.screens()
    return max((screen.devicePixelRatio() for screen in screens), default=1.0)


def _formula(typeset_formula: TypesetFormula, key: _Key, picture: QPixmap | None) -> RenderedFormula:
    width, ascent, descent = (pixels / key[1] for pixels in _pixels(typeset_formula, *key))
    return RenderedFormula(width, ascent, descent, MARGIN * key[0].size, picture)


def _pixels(typeset_formula: TypesetFormula, request: FormulaRequest, ratio: float) -> tuple[int, int, int]:
    """Return width, ascent and descent in device pixels. The baseline is between two rows, as that of the text."""
    scale, formula = request.size * ratio, typeset_formula
    return ceil(formula.width * scale), ceil(formula.ascent * scale), ceil(formula.descent * scale)


def _render_job(
    worker: Worker[TypesetAnswer], known: TypesetFormula | None, request: FormulaRequest, ratio: float
) -> _Result:
    """Run in the worker thread. Never raises, or its ticket would wait for ever."""
    typeset_formula = known or typeset(worker, request.latex, display=request.display)
    if isinstance(typeset_formula, FormulaError):
        return typeset_formula, None
    try:
        return typeset_formula, _draw_image(typeset_formula, request, ratio)
    except (MemoryError, ValueError, RuntimeError):
        return FormulaError("other"), None


def _draw_image(typeset_formula: TypesetFormula, request: FormulaRequest, ratio: float) -> QImage:
    scale = request.size * ratio
    width, ascent, descent = _pixels(typeset_formula, request, ratio)
    image = QImage(width, ascent + descent, QImage.Format.Format_ARGB32_Premultiplied)
    if image.isNull():
        raise MemoryError
    image.fill(0)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    box = QRectF(
        0,
        ascent - typeset_formula.ascent * scale,
        typeset_formula.width * scale,
        (typeset_formula.ascent + typeset_formula.descent) * scale,
    )
    svg = with_readable_colors(typeset_formula.svg.replace(COLOR, request.color), request.color)
    QSvgRenderer(QByteArray(svg.encode())).render(painter, box)
    painter.end()
    image.setDevicePixelRatio(ratio)
    return image
