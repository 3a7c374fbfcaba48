"""A model that makes the same call again and again."""

from collections.abc import Sequence

from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.tool_calls import is_same_json

# The third identical call in a row asks a person, and so does each that follows it.
REPEATS_BEFORE_ASKING = 3


class DoomLoopDetector:
    """Counts identical calls in a row, over the turns since the person last spoke."""

    def __init__(self, history: Sequence[Message], uses: Sequence[ToolUse]) -> None:
        """`history` may end with the message of these very calls."""
        self._last: ToolUse | None = None
        self._count = 0
        if uses:
            self._scan_history(history, uses)

    def count(self, use: ToolUse) -> int:
        """How many in a row this one makes; asked in call order."""
        self._count = self._count + 1 if self._last is not None and is_same_call(use, self._last) else 1
        self._last = use
        return self._count

    def _scan_history(self, history: Sequence[Message], uses: Sequence[ToolUse]) -> None:
        is_newest = True
        for message in reversed(history):
            if message.role is Role.USER and message.injected_by is None:
                return
            if message.role is not Role.ASSISTANT:
                continue
            earlier = message.tool_uses
            if is_newest and list(earlier) == list(uses):
                earlier = ()
            is_newest = False
            if not self._count_backwards(earlier):
                return

    def _count_backwards(self, earlier: Sequence[ToolUse]) -> bool:
        """Count backwards; False when the row ends."""
        for use in reversed(earlier):
            if self._last is not None and not is_same_call(use, self._last):
                return False
            self._last = use
            self._count += 1
        return True


def is_same_call(one: ToolUse, other: ToolUse) -> bool:
    """Whether tool and arguments are the same, for a server too: 1 is not true."""
    return (one.name, one.malformed) == (other.name, other.malformed) and is_same_json(one.input, other.input)
