"""The process that reads code: one text after the other from its input, until that is closed.

Some grammars need for ever with some texts, and the regular expressions of Python hear nothing meanwhile. So the
system ends this process when a slice takes longer than it may.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ui.transcript.blocks.colouring.coloured import HighlightRequest, HighlightSlice, StyledWord
from ui.transcript.blocks.colouring.frames import (
    HighlightAnswer,
    decode_request,
    encode_answer,
    encode_frame,
    read_frame,
)
from ui.transcript.blocks.colouring.growing import highlight_more_lines
from ui.transcript.blocks.colouring.lexing import iter_highlighted_lines

MEMORY_LIMIT = 500_000_000
"""Bytes of address space. Usually it takes 24 million; packaged, where Qt comes along unasked, 83 million."""

SLICE_SECONDS = 1.0
"""Of the processor's time, whatever else the machine does. 200,000 characters of any usual language take half of it."""

TEXT_SECONDS = 10.0
"""Of the processor's time for all slices of one text."""

_LINES = 100
_FIRST_LINES = 60
"""About a screen."""

_WORDS = 2000


class _CpuClock:
    """Ends the process by a signal that nothing in it can hear first. Where there is none, the other side looks."""

    def __init__(self) -> None:
        self._left = 0.0

    def begin_text(self) -> None:
        """A new text."""
        self._left = TEXT_SECONDS
        _set_cpu_limit(SLICE_SECONDS)

    def begin_slice(self) -> None:
        """A new slice of it."""
        self._left -= SLICE_SECONDS - _cpu_seconds_left()
        _set_cpu_limit(max(0.001, min(self._left, SLICE_SECONDS)))

    def finish(self) -> None:
        """Nothing is being read."""
        _set_cpu_limit(0.0)


def _set_cpu_limit(seconds: float) -> None:
    """Of the processor's time; 0: never."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _cpu_seconds_left() -> float:
    return SLICE_SECONDS if sys.platform == "win32" else signal.getitimer(signal.ITIMER_PROF)[0]


def _confine() -> None:
    """Behind everything else, and not all of the memory."""
    # Ctrl-C in a terminal is for the program above, which closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError):
        os.nice(5)
    for limit, most in ((resource.RLIMIT_AS, MEMORY_LIMIT), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def highlight_slices(code: HighlightRequest) -> Iterator[HighlightSlice]:
    """Complete code, the first screen of it first."""
    line, words, count = 0, list[list[StyledWord]](), 0
    for each in iter_highlighted_lines(code.text, code.language):
        if len(words) >= (_LINES if line else _FIRST_LINES) or count >= _WORDS:
            yield HighlightSlice(line, words, is_last=False)
            line, words, count = line + len(words), [], 0
        words.append(each)
        count += len(each)
    yield HighlightSlice(line, words, is_last=True)


def answers_to(code: HighlightRequest) -> Iterator[dict[str, Any]]:
    """What is answered. Grammars are foreign code: whatever one raises, the answer is that there is none."""
    found: Iterator[HighlightAnswer]
    try:
        found = (
            iter((highlight_more_lines(code.text, code.language, code.lexer_state),))
            if code.lexer_state
            else highlight_slices(code)
        )
        for each in found:
            yield encode_answer(each)
    except Exception:  # noqa: BLE001  see above
        yield encode_answer(None)


def main() -> int:
    """Until the input is closed; that is also when whoever started this is gone."""
    _confine()
    clock = _CpuClock()
    while (message := read_frame(sys.stdin.buffer)) is not None:
        clock.begin_text()
        for each in answers_to(decode_request(message)):
            sys.stdout.buffer.write(encode_frame(each))
            sys.stdout.buffer.flush()
            clock.begin_slice()
        clock.finish()
    return 0
