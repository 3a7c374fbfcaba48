"""Render Mermaid diagrams in worker processes with limits, and cache them as pixmaps."""

import sys
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, QPixmap

from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure, worker_command
from desktop_agent.processes.worker_process import WorkerLimits
from ui.style.theme import Theme
from ui.transcript.blocks.diagram_worker import DiagramAnswer
from ui.transcript.blocks.image_store import InMemoryImage
from ui.transcript.workers import JobQueue

MAX_SOURCE_LENGTH = 50_000
"""The maximum number of characters."""

TIMEOUT = 30.0
"""Seconds."""

# The memory limit is for address space, of which about a tenth is used.
_LIMITS = WorkerLimits(memory=1_500_000_000, seconds=40.0)


class DiagramErrorReason(StrEnum):
    """Why a diagram was not rendered."""

    NOT_INSTALLED = "not installed"
    TOO_LONG = "too long"
    TOO_SLOW = "too slow"
    WRONG = "wrong"
    BROKE = "broke"
    STOPPED = "stopped"


_REASONS = {
    WorkerFailure.SLOW: DiagramErrorReason.TOO_SLOW,
    WorkerFailure.STOPPED: DiagramErrorReason.STOPPED,
}


@dataclass(frozen=True, slots=True)
class DiagramError:
    """The reason, and the message of the renderer if the source is wrong."""

    reason: DiagramErrorReason
    message: str = ""


@dataclass(frozen=True, slots=True)
class DiagramRequest:
    """A diagram to render: colours by Mermaid's names, `scale` in pixels per diagram unit."""

    source: str
    colors: tuple[tuple[str, str | bool], ...]
    scale: float


@dataclass(slots=True)
class DiagramRenderer:
    """Renders in the calling thread, in a worker that another thread may close.

    `python` is None if the interpreter has no renderer, which the extra "diagrams" installs.
    """

    python: str | None = None
    timeout: float = TIMEOUT

    def make_worker(self) -> Worker[DiagramAnswer]:
        """Return a worker for one diagram alone: its process takes 100 MB."""
        task, command = "ui.transcript.blocks.diagram_worker:draw", [self.python or "", *worker_command()[1:]]
        return Worker(task, list[DiagramAnswer], _LIMITS, timeout=self.timeout, command=command)

    def draw(self, request: DiagramRequest, worker: Worker[DiagramAnswer]) -> bytes | DiagramError:
        """Return the PNG. Takes about a second."""
        if self.python is None:
            return DiagramError(DiagramErrorReason.NOT_INSTALLED)
        if len(request.source) > MAX_SOURCE_LENGTH:
            return DiagramError(DiagramErrorReason.TOO_LONG)
        try:
            answer = worker.ask(request.source, dict(request.colors), request.scale)
            png = b64decode(answer.png)
        except WorkerFailed as error:
            return DiagramError(_REASONS.get(error.failure, DiagramErrorReason.BROKE))
        except ValueError:
            return DiagramError(DiagramErrorReason.BROKE)
        finally:
            worker.close()
        return png if png.startswith(b"\x89PNG") else DiagramError(DiagramErrorReason.WRONG, answer.error)


def find_renderer() -> DiagramRenderer:
    """Return a renderer for this interpreter. A frozen program has one if it was packaged with it."""
    has_one = find_spec("mermaidx") is not None
    return DiagramRenderer(sys.executable if has_one else None)


_MAX_CACHED_PIXELS = 32_000_000
_MAX_CACHED_ERRORS = 200


@dataclass(frozen=True, slots=True, eq=False)
class RenderedDiagram:
    """A rendered diagram, its scale in pixels per diagram unit, and the file it was decoded from."""

    picture: QPixmap
    scale: float
    image: InMemoryImage

    @property
    def size(self) -> QSize:
        """Return the size in diagram units."""
        return QSize(round(self.picture.width() / self.scale), round(self.picture.height() / self.scale))


@dataclass(slots=True, eq=False)
class _RenderAttempt:
    """One attempt at a request: a repeated request after a stop is another attempt."""

    request: DiagramRequest
    worker: Worker[DiagramAnswer]
    is_stopped: bool = False

    def stop(self) -> None:
        """Stop rendering, or do not start."""
        self.is_stopped = True
        self.worker.close()


class DiagramCache:
    """Diagrams in a bounded cache; missing ones are rendered in a worker."""

    def __init__(self) -> None:
        self._renderer = find_renderer()
        self._job_queue = JobQueue()
        self._cache: OrderedDict[DiagramRequest, RenderedDiagram] = OrderedDict()
        self._pixels = 0
        self._errors: OrderedDict[DiagramRequest, DiagramError] = OrderedDict()
        self._attempts: dict[DiagramRequest, _RenderAttempt] = {}

    def get(self, request: DiagramRequest) -> RenderedDiagram | DiagramError | None:
        """Return a cached diagram, or the error of the last attempt."""
        diagram = self._cache.get(request)
        if diagram:
            self._cache.move_to_end(request)
        return diagram or self._errors.get(request)

    def draw(self, request: DiagramRequest, then: Callable[[RenderedDiagram | DiagramError], None]) -> None:
        """Render a diagram and pass it to `then`. Requests of the same source in other colours or sizes are stopped."""
        for outdated in [
            pending for pending in self._attempts if pending.source == request.source and pending != request
        ]:
            self.stop(outdated)
        renderer = self._renderer
        attempt = self._attempts.setdefault(request, _RenderAttempt(request, renderer.make_worker()))

        def on_rendered(result: tuple[bytes, QImage] | DiagramError) -> None:
            if self._attempts.get(request) is attempt:
                del self._attempts[request]
            if isinstance(result, DiagramError):
                then(self._cache_error(attempt, result))
            else:
                then(self._cache_diagram(request, *result))

        self._job_queue.submit(attempt, lambda: _render_job(renderer, attempt), on_rendered)

    def stop(self, request: DiagramRequest) -> None:
        """Stop rendering; callbacks get the reason STOPPED."""
        if attempt := self._attempts.pop(request, None):
            attempt.stop()

    def close(self) -> None:
        """Stop everything and wait for the process to end."""
        for attempt in self._attempts.values():
            attempt.stop()
        self._job_queue.close()

    def _cache_error(self, attempt: _RenderAttempt, error: DiagramError) -> DiagramError:
        if attempt.is_stopped or error.reason is DiagramErrorReason.STOPPED:
            return DiagramError(DiagramErrorReason.STOPPED)
        self._errors[attempt.request] = error
        while len(self._errors) > _MAX_CACHED_ERRORS:
            self._errors.popitem(last=False)
        return error

    def _cache_diagram(self, request: DiagramRequest, data: bytes, image: QImage) -> RenderedDiagram:
        diagram = RenderedDiagram(
            QPixmap.fromImage(image), request.scale, InMemoryImage(f"diagram {hash(request)}", "", data)
        )
        self._errors.pop(request, None)
        if request not in self._cache:
            self._cache[request] = diagram
            self._pixels += image.width() * image.height()
        while self._pixels > _MAX_CACHED_PIXELS and len(self._cache) > 1:
            old = self._cache.popitem(last=False)[1].picture
            self._pixels -= old.width() * old.height()
        return diagram


def make_request(source: str, theme: Theme, scale: float) -> DiagramRequest:
    """Return a request with the theme's colours, by their names in Mermaid's theme "base"."""
    colors: dict[str, str | bool] = {
        "darkMode": theme.is_dark,
        "background": theme.code_background,
        "primaryColor": theme.user_bubble,
        "primaryTextColor": theme.text,
        "primaryBorderColor": theme.accent,
        "secondaryColor": theme.hover,
        "secondaryTextColor": theme.text,
        "tertiaryColor": theme.surface,
        "tertiaryTextColor": theme.text,
        "tertiaryBorderColor": theme.border,
        "lineColor": theme.muted,
        "textColor": theme.text,
        "titleColor": theme.text,
        "noteBkgColor": theme.warning_background,
        "noteTextColor": theme.text,
        "noteBorderColor": theme.border,
        "edgeLabelBackground": theme.code_background,
        "clusterBkg": theme.surface,
        "clusterBorder": theme.border,
        "fontSize": "15px",
    }
    return DiagramRequest(source, tuple(colors.items()), scale)


def _render_job(renderer: DiagramRenderer, attempt: _RenderAttempt) -> tuple[bytes, QImage] | DiagramError:
    if attempt.is_stopped:
        return DiagramError(DiagramErrorReason.STOPPED)
    result = renderer.draw(attempt.request, attempt.worker)
    if isinstance(result, DiagramError):
        return result
    image = QImage.fromData(result)
    return DiagramError(DiagramErrorReason.BROKE) if image.isNull() else (result, image)
