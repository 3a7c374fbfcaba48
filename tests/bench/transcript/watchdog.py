"""Measures the longest turn of the event loop, and what the main thread did in it."""

import gc
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Self

ROOT = Path(__file__).parents[3]
PERIOD = 0.01
PATIENCE = 0.02
"""Both in seconds: how often the watchdog checks, and how long a turn must be to be sampled."""
_DEPTH = 5
_OWN = (str(ROOT / "tests" / "bench"), "<frozen")


class Watchdog:
    """Samples from another thread what the thread that made it is doing. `beat` ends a turn.

    A call into C that does not release the interpreter is sampled when it returns, so the sample shows the call.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.gaps: list[float] = []
        self._stacks: Counter[str] = Counter()
        self._turn: list[str] = []
        self._watched = threading.get_ident()
        self._last = time.perf_counter()
        self._collecting = self._collected = self._collected_longest = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        gc.callbacks.append(self._on_collection)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._on_collection)
        self._end.set()
        self._thread.join()

    def reset(self) -> None:
        """Begin a measurement."""
        self.longest, self.gaps, self._stacks, self._turn = 0.0, [], Counter(), []
        self._collected = self._collected_longest = 0.0
        self._last = time.perf_counter()

    def beat(self) -> None:
        """End a turn."""
        now = time.perf_counter()
        gap, seen, collected = now - self._last, self._turn, self._collected
        self._turn, self._last, self._collected = [], now, 0.0
        self.gaps.append(gap)
        if gap > self.longest:
            self.longest, self._stacks, self._collected_longest = gap, Counter(seen), collected

    @property
    def where(self) -> str:
        """The most frequent stack of the longest turn, innermost call first."""
        collecting = f"; {self._collected_longest * 1000:.0f} ms of it collecting garbage"
        more = collecting if self._collected_longest > self.longest / 10 else ""
        if not self._stacks:
            return f"too short to be sampled{more}"
        stack, times = self._stacks.most_common(1)[0]
        return f"{stack} ({times} of {self._stacks.total()} samples){more}"

    def _on_collection(self, phase: str, _about: dict[str, int]) -> None:
        if phase == "start":
            self._collecting = time.perf_counter()
        else:
            self._collected += time.perf_counter() - self._collecting

    def _watch(self) -> None:
        while not self._end.wait(PERIOD):
            if time.perf_counter() - self._last > PATIENCE:
                frame = sys._current_frames().get(self._watched)  # pyright: ignore[reportPrivateUsage] - the only way to see another thread
                if frame is not None:
                    self._turn.append(stack_of(frame))


def stack_of(frame: FrameType | None) -> str:
    """Return the innermost call, and the calls of our own packages that led to it, without the benchmark's."""
    calls: list[str] = []
    while frame is not None and len(calls) < _DEPTH:
        file = frame.f_code.co_filename
        ours = file.startswith(str(ROOT)) and "/.venv/" not in file
        if not file.startswith(_OWN) and (ours or not calls):
            calls.append(f"{Path(file).name}:{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(calls) or "Qt, or the benchmark itself"
