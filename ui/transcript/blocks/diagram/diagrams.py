"""Diagrams as pictures: drawn one after the other beside everything else, kept in a bounded cache."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, QPixmap

from ui.look.theme import Theme
from ui.transcript.blocks.diagram.renderer import (
    DiagramError,
    DiagramErrorReason,
    DiagramRenderer,
    DiagramRequest,
    find_renderer,
)
from ui.transcript.pictures import InMemoryImage
from ui.transcript.workshop import JobQueue

_MAX_CACHED_PIXELS = 32_000_000
_MAX_CACHED_ERRORS = 200


@dataclass(frozen=True, slots=True, eq=False)
class RenderedDiagram:
    """A picture, `scale` pixels for each of its own, and the file that it was made of."""

    picture: QPixmap
    scale: float
    image: InMemoryImage

    @property
    def size(self) -> QSize:
        """Its own."""
        return QSize(round(self.picture.width() / self.scale), round(self.picture.height() / self.scale))


@dataclass(slots=True, eq=False)
class _RenderAttempt:
    """One try at a sketch: what is asked for again after it was stopped is another one."""

    request: DiagramRequest
    is_stopped: bool = False


class DiagramCache:
    """Asked for a diagram, it answers from its cache, or later through the callback."""

    def __init__(self, renderer: DiagramRenderer | None = None) -> None:
        self._renderer = renderer
        self._job_queue = JobQueue()
        self._cache: OrderedDict[DiagramRequest, RenderedDiagram] = OrderedDict()
        self._pixels = 0
        self._errors: OrderedDict[DiagramRequest, DiagramError] = OrderedDict()
        self._attempts: dict[DiagramRequest, _RenderAttempt] = {}

    def get(self, request: DiagramRequest) -> RenderedDiagram | DiagramError | None:
        """What is there already, or why it could not be drawn."""
        found = self._cache.get(request)
        if found:
            self._cache.move_to_end(request)
        return found or self._errors.get(request)

    def draw(self, request: DiagramRequest, then: Callable[[RenderedDiagram | DiagramError], None]) -> None:
        """Draw it, and hand it to `then`; the same source in other colours or at another size is stopped."""
        if self._renderer is None:
            self._renderer = find_renderer()
        renderer = self._renderer
        for other in [each for each in self._attempts if each.source == request.source and each != request]:
            self.stop(other)
        renderer.resume(request)
        attempt = self._attempts.setdefault(request, _RenderAttempt(request))

        def arrived(result: tuple[bytes, QImage] | DiagramError) -> None:
            if self._attempts.get(request) is attempt:
                del self._attempts[request]
            if isinstance(result, DiagramError):
                then(self._cache_error(attempt, result))
            else:
                then(self._cache_diagram(request, *result))

        self._job_queue.submit(attempt, lambda: _render_job(renderer, attempt), arrived)

    def stop(self, request: DiagramRequest) -> None:
        """End what is being drawn; whoever waits for it is told."""
        if attempt := self._attempts.pop(request, None):
            attempt.is_stopped = True
        if self._renderer:
            self._renderer.stop(request)

    def close(self) -> None:
        """End everything; waits for the process that was ended."""
        if self._renderer:
            self._renderer.close()
        self._job_queue.close()

    def _cache_error(self, attempt: _RenderAttempt, error: DiagramError) -> DiagramError:
        if attempt.is_stopped or error.reason is DiagramErrorReason.STOPPED:
            return DiagramError(DiagramErrorReason.STOPPED)
        self._errors[attempt.request] = error
        while len(self._errors) > _MAX_CACHED_ERRORS:
            self._errors.popitem(last=False)
        return error

    def _cache_diagram(self, request: DiagramRequest, data: bytes, image: QImage) -> RenderedDiagram:
        made = RenderedDiagram(
            QPixmap.fromImage(image), request.scale, InMemoryImage(f"diagram {hash(request)}", "", data)
        )
        self._errors.pop(request, None)
        if request not in self._cache:
            self._cache[request] = made
            self._pixels += image.width() * image.height()
        while self._pixels > _MAX_CACHED_PIXELS and len(self._cache) > 1:
            old = self._cache.popitem(last=False)[1].picture
            self._pixels -= old.width() * old.height()
        return made


def make_request(source: str, theme: Theme, scale: float) -> DiagramRequest:
    """In the colours of a theme, by the names that Mermaid's theme "base" has for them."""
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
    """In the worker."""
    if attempt.is_stopped:
        return DiagramError(DiagramErrorReason.STOPPED)
    found = renderer.draw(attempt.request)
    if isinstance(found, DiagramError):
        return found
    image = QImage.fromData(found)
    return DiagramError(DiagramErrorReason.BROKE) if image.isNull() else (found, image)
