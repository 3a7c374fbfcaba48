"""The transcript in a real window: streaming, memory, conversations of any length, texts that are meant to break it.

`python -m tests.bench bench_transcript [PART_LENGTH…]` measures some parts only: realtime, streaming, memory,
conversations,
hostile. Every case is a process of its own, which is ended when it takes too long. What costs CPU is measured beside a
plain QTextEdit in the same window that gets the same text, both sides in turn. `python -m tests.bench.transcript CASE
[ARGUMENT…] --profile` shows where the time of one case goes.
"""

from typing import Any

from tests.bench.transcript.parts import PARTS, goals
from tests.bench.transcript.texts import text_of

__all__ = ["DISPLAY", "GOALS", "PARTS", "run", "text_of"]

DISPLAY = True
GOALS = goals()


def run() -> dict[str, Any]:
    """All parts."""
    return {name: part() for name, part in PARTS.items()}
