"""How much memory a piece of work took at most, beside the size of what it worked on. Linux only; elsewhere nothing."""

from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fuzz.judge import Fault

FREE = 24 * 1024 * 1024
"""Bytes that any stream may take: caches, arenas and the noise of the allocator."""
TIMES = 40
"""Bytes per byte of the stream: parsed JSON, in events, in text, and again in the test."""

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class Watermark:
    """Watches the block it surrounds. Raises Fault at its end when too much was used."""

    def __init__(self, size: int) -> None:
        self.over_size = 0.0
        self._size = size
        self._before = 0

    def __enter__(self) -> Self:
        if _RESET.exists():
            _RESET.write_text("5")  # the peak is what is used now (proc(5))
            self._before = _peak()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if not self._before or error is not None:
            return
        used = _peak() - self._before
        if used > FREE:
            self.over_size = used / max(1, self._size)
        if used > FREE + TIMES * self._size:
            raise Fault(f"{used // 1024} KB were used for a stream of {self._size // 1024} KB")


def _peak() -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
