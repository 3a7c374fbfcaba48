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

from ui.transcript.blocks.colouring.coloured import Code, Slice, Word
from ui.transcript.blocks.colouring.frames import Answer, answered, code_in, framed, received
from ui.transcript.blocks.colouring.growing import coloured_more
from ui.transcript.blocks.colouring.lexing import words_of

MEMORY = 500_000_000
"""Bytes of address space. Usually it takes 24 million; packaged, where Qt comes along unasked, 83 million."""

SLICE_SECONDS = 1.0
"""Of the processor's time, whatever else the machine does. 200,000 characters of any usual language take half of it."""

CODE_SECONDS = 10.0
"""Of the processor's time for all slices of one text."""

_LINES = 100
_FIRST_LINES = 60
"""About a screen."""

_WORDS = 2000


class _Clock:
    """Ends the process by a signal that nothing in it can hear first. Where there is none, the other side looks."""

    def __init__(self) -> None:
        self._left = 0.0

    def begin(self) -> None:
        """A new text."""
        self._left = CODE_SECONDS
        _end_after(SLICE_SECONDS)

    def slice(self) -> None:
        """A new slice of it."""
        self._left -= SLICE_SECONDS - _rest()
        _end_after(max(0.001, min(self._left, SLICE_SECONDS)))

    def end(self) -> None:
        """Nothing is being read."""
        _end_after(0.0)


def _end_after(seconds: float) -> None:
    """Of the processor's time; 0: never."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _rest() -> float:
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
    for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def slices(code: Code) -> Iterator[Slice]:
    """Complete code, the first screen of it first."""
    line, words, count = 0, list[list[Word]](), 0
    for each in words_of(code.text, code.language):
        if len(words) >= (_LINES if line else _FIRST_LINES) or count >= _WORDS:
            yield Slice(line, words, is_last=False)
            line, words, count = line + len(words), [], 0
        words.append(each)
        count += len(each)
    yield Slice(line, words, is_last=True)


def messages(code: Code) -> Iterator[dict[str, Any]]:
    """What is answered. Grammars are foreign code: whatever one raises, the answer is that there is none."""
    found: Iterator[Answer]
    try:
        found = iter((coloured_more(code.text, code.language, code.standing),)) if code.standing else slices(code)
        for each in found:
            yield answered(each)
    except Exception:  # noqa: BLE001  see above
        yield answered(None)


def main() -> int:
    """Until the input is closed; that is also when whoever started this is gone."""
    _confine()
    clock = _Clock()
    while (message := received(sys.stdin.buffer)) is not None:
        clock.begin()
        for each in messages(code_in(message)):
            sys.stdout.buffer.write(framed(each))
            sys.stdout.buffer.flush()
            clock.slice()
        clock.end()
    return 0
