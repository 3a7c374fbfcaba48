"""The transcript in a real window: streaming, memory, conversations of any length, hostile texts.

`python -m tests.bench bench_transcript [PART_LENGTH…]` measures only some parts: realtime, streaming, memory,
conversations, hostile. Every case runs in a separate process, which is ended when it takes too long. CPU time is
compared with that of a plain QTextEdit in the same window that gets the same text, both sides in turn.
`python -m tests.bench.transcript CASE [ARGUMENT…] --profile` shows where a case spends its time.
"""

from typing import Any

from tests.bench.transcript.parts import PARTS, goals
from tests.bench.transcript.texts import text_of

__all__ = ["DISPLAY", "GOALS", "PARTS", "run", "text_of"]

DISPLAY = True
GOALS = goals()


def run() -> dict[str, Any]:
    """Return the figures of all parts."""
    return {name: part() for name, part in PARTS.items()}
