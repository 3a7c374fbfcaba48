"""One diagram from source to PNG: a child process with a limit on everything, that can be ended at any moment."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec

from ui.transcript.child_start import worker_command, worker_environment, worker_folder

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
