"""What the headless commands write to a terminal, and the codes that they end with."""

import os
import re
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import TextIO

DONE, ERROR, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
BROKEN_PIPE = 141
"""The exit code of shells for a program that SIGPIPE ended because its reader left."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def use_utf8() -> None:
    """Write UTF-8 to the standard streams, whatever the system's encoding is; lone surrogates become escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def escape_controls(text: str) -> str:
    """Return the text with terminal and bidirectional controls as escapes; tabs and line breaks stay."""
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def write_remark(text: str) -> None:
    """Write one line to standard error, if it can be written."""
    try:
        sys.stderr.write(escape_controls(text) + "\n")
        sys.stderr.flush()
    except OSError:
        discard_output(sys.stderr)


def write_output(text: str) -> None:
    """Write to standard output. Raises SystemExit where its reader left, or where it cannot be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        discard_output(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(BROKEN_PIPE) from None
        write_remark(f"The output cannot be written: {error.strerror}.")
        raise SystemExit(ERROR) from None


def discard_output(stream: TextIO) -> None:
    """Redirect what is still buffered: writing it when Python ends would be another error, and another exit code."""
    with suppress(OSError, ValueError):  # it may be no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
