"""Render Mermaid diagrams in worker processes with limits, and keep them as pixmaps in a bounded cache."""

import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage, QPixmap

from ui.style.theme import Theme
from ui.transcript.blocks.image_store import InMemoryImage
from ui.transcript.workers import JobQueue, worker_command, worker_environment, worker_folder

MAX_SOURCE_LENGTH = 50_000
"""Characters of source."""

TIMEOUT = 30.0
"""Seconds."""

_MAX_ANSWER_BYTES = 32_000_000


class DiagramErrorReason(StrEnum):
    """Why there is no diagram."""

    NOT_INSTALLED = "not installed"
    TOO_LONG = "too long"
    TOO_SLOW = "too slow"
    WRONG = "wrong"
    BROKE = "broke"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class DiagramError:
    """Why, and in the renderer's own words where the source is wrong."""

    reason: DiagramErrorReason
    message: str = ""


@dataclass(frozen=True, slots=True)
class DiagramRequest:
    """What is to be drawn: `colors` by the renderer's names, `scale` in pixels for each of its own."""

    source: str
    colors: tuple[tuple[str, str | bool], ...]
    scale: float


@dataclass(slots=True)
class DiagramRenderer:
    """Draws in the thread that calls it; `stop` ends what is being drawn, from any thread.

    `python` is None where the interpreter has no renderer: this one has it when the extra "diagrams" is installed.
    """

    python: str | None = None
    timeout: float = TIMEOUT
    _running: dict[DiagramRequest, "subprocess.Popen[bytes]"] = field(
        default_factory=dict["DiagramRequest", "subprocess.Popen[bytes]"]
    )
    _stopped: set[DiagramRequest] = field(default_factory=set["DiagramRequest"])
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def draw(self, request: DiagramRequest) -> bytes | DiagramError:
        """The PNG. Takes about a second."""
        if self.python is None:
            return DiagramError(DiagramErrorReason.NOT_INSTALLED)
        if len(request.source) > MAX_SOURCE_LENGTH:
            return DiagramError(DiagramErrorReason.TOO_LONG)
        try:
            child = self._start(request, self.python)
        except OSError as error:
            return DiagramError(DiagramErrorReason.BROKE, str(error))
        if child is None:
            return DiagramError(DiagramErrorReason.STOPPED)
        late = threading.Timer(self.timeout, child.kill)
        late.start()
        try:
            answer = _exchange(child, request)
        finally:
            is_late = not late.is_alive()
            late.cancel()
            child.kill()
            child.wait()
            late.join()
            with self._lock:
                self._running.pop(request, None)
                was_stopped = request in self._stopped or self._closed
                self._stopped.discard(request)
        if was_stopped:
            return DiagramError(DiagramErrorReason.STOPPED)
        return DiagramError(DiagramErrorReason.TOO_SLOW) if is_late else _decode_answer(answer)

    def stop(self, request: DiagramRequest) -> None:
        """Nobody wants it any more."""
        with self._lock:
            self._stopped.add(request)
            if child := self._running.get(request):
                child.kill()

    def resume(self, request: DiagramRequest) -> None:
        """It is wanted again, whatever was said before."""
        with self._lock:
            self._stopped.discard(request)

    def close(self) -> None:
        """Nothing is drawn any more."""
        with self._lock:
            self._closed = True
            for child in self._running.values():
                child.kill()

    def _start(self, request: DiagramRequest, python: str) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._closed or request in self._stopped:
                self._stopped.discard(request)
                return None
            child = self._running[request] = subprocess.Popen(  # noqa: S603  our own program, without a shell
                worker_command("diagram", python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=worker_environment(),
                cwd=worker_folder(),
            )
            return child


def find_renderer() -> DiagramRenderer:
    """With the renderer of this interpreter, if it has one. A frozen program has one when it was packaged with it."""
    has_one = find_spec("mermaidx") is not None
    return DiagramRenderer(sys.executable if has_one else None)


def _exchange(child: "subprocess.Popen[bytes]", request: DiagramRequest) -> bytes:
    wanted = {"source": request.source, "colors": dict(request.colors), "scale": request.scale}
    if child.stdin is None or child.stdout is None:
        return b""
    with child.stdin, child.stdout:
        try:
            child.stdin.write(json.dumps(wanted).encode())
            child.stdin.close()
            return child.stdout.read(_MAX_ANSWER_BYTES + 1)
        except OSError:
            return b""


def _decode_answer(answer: bytes) -> bytes | DiagramError:
    word, _, rest = answer.partition(b"\n")
    if word == b"ok" and rest.startswith(b"\x89PNG") and len(answer) <= _MAX_ANSWER_BYTES:
        return rest
    if word == b"no":
        return DiagramError(DiagramErrorReason.WRONG, rest.decode("utf-8", "replace"))
    return DiagramError(DiagramErrorReason.BROKE)


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
