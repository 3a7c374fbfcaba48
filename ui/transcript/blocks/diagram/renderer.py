"""One diagram from source to PNG: a child process with a limit on everything, that can be ended at any moment."""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec

from ui.transcript.child_start import child_command, child_environment, child_folder

LONGEST = 50_000
"""Characters of source."""

PATIENCE = 30.0
"""Seconds."""

_MOST_BYTES = 32_000_000


class Reason(StrEnum):
    """Why there is no diagram."""

    NOT_INSTALLED = "not installed"
    TOO_LONG = "too long"
    TOO_SLOW = "too slow"
    WRONG = "wrong"
    BROKE = "broke"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class NoDiagram:
    """Why, and in the renderer's own words where the source is wrong."""

    reason: Reason
    words: str = ""


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is to be drawn: `colors` by the renderer's names, `scale` in pixels for each of its own."""

    source: str
    colors: tuple[tuple[str, str | bool], ...]
    scale: float


@dataclass(slots=True)
class Renderer:
    """Draws in the thread that calls it; `stop` ends what is being drawn, from any thread.

    `python` is None where the interpreter has no renderer: this one has it when the extra "diagrams" is installed.
    """

    python: str | None = None
    patience: float = PATIENCE
    _running: dict[Sketch, "subprocess.Popen[bytes]"] = field(default_factory=dict["Sketch", "subprocess.Popen[bytes]"])
    _stopped: set[Sketch] = field(default_factory=set["Sketch"])
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def draw(self, sketch: Sketch) -> bytes | NoDiagram:
        """The PNG. Takes about a second."""
        if self.python is None:
            return NoDiagram(Reason.NOT_INSTALLED)
        if len(sketch.source) > LONGEST:
            return NoDiagram(Reason.TOO_LONG)
        try:
            child = self._start(sketch, self.python)
        except OSError as error:
            return NoDiagram(Reason.BROKE, str(error))
        if child is None:
            return NoDiagram(Reason.STOPPED)
        late = threading.Timer(self.patience, child.kill)
        late.start()
        try:
            answer = _exchange(child, sketch)
        finally:
            is_late = not late.is_alive()
            late.cancel()
            child.kill()
            child.wait()
            late.join()
            with self._lock:
                self._running.pop(sketch, None)
                was_stopped = sketch in self._stopped or self._closed
                self._stopped.discard(sketch)
        if was_stopped:
            return NoDiagram(Reason.STOPPED)
        return NoDiagram(Reason.TOO_SLOW) if is_late else _read(answer)

    def stop(self, sketch: Sketch) -> None:
        """Nobody wants it any more."""
        with self._lock:
            self._stopped.add(sketch)
            if child := self._running.get(sketch):
                child.kill()

    def wanted(self, sketch: Sketch) -> None:
        """It is wanted again, whatever was said before."""
        with self._lock:
            self._stopped.discard(sketch)

    def close(self) -> None:
        """Nothing is drawn any more."""
        with self._lock:
            self._closed = True
            for child in self._running.values():
                child.kill()

    def _start(self, sketch: Sketch, python: str) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._closed or sketch in self._stopped:
                self._stopped.discard(sketch)
                return None
            child = self._running[sketch] = subprocess.Popen(  # noqa: S603  our own program, without a shell
                child_command("diagram", python),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                cwd=child_folder(),
            )
            return child


def installed() -> Renderer:
    """With the renderer of this interpreter, if it has one. A frozen program has one when it was packaged with it."""
    has_one = find_spec("mermaidx") is not None
    return Renderer(sys.executable if has_one else None)


def _exchange(child: "subprocess.Popen[bytes]", sketch: Sketch) -> bytes:
    wanted = {"source": sketch.source, "colors": dict(sketch.colors), "scale": sketch.scale}
    if child.stdin is None or child.stdout is None:
        return b""
    with child.stdin, child.stdout:
        try:
            child.stdin.write(json.dumps(wanted).encode())
            child.stdin.close()
            return child.stdout.read(_MOST_BYTES + 1)
        except OSError:
            return b""


def _read(answer: bytes) -> bytes | NoDiagram:
    word, _, rest = answer.partition(b"\n")
    if word == b"ok" and rest.startswith(b"\x89PNG") and len(answer) <= _MOST_BYTES:
        return rest
    if word == b"no":
        return NoDiagram(Reason.WRONG, rest.decode("utf-8", "replace"))
    return NoDiagram(Reason.BROKE)
