"""SIGTERM, SIGINT and SIGHUP while there is no loop yet that could hear them."""

import signal
from types import FrameType


class EarlySignals:
    """Remembers that one came. Python's own answer would break an import off, or end a slot that goes on behind it."""

    def __init__(self) -> None:
        self.received = False
        """Whether the system or the terminal has asked the program to end."""
        # Windows has no SIGHUP.
        for number in (signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.received = True
