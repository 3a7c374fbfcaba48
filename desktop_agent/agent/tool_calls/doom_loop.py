"""The doom loop: an agent that makes the same call again and again."""

from collections.abc import Sequence

from desktop_agent.conversation.history import is_own_prompt
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.tool_calls import is_same_json

# The third identical call in a row asks a person, and so does each that follows it.
REPEATS_BEFORE_ASKING = 3


class DoomLoopDetector:
    """Counts identical calls in a row, over the turns since the person last wrote."""

    def __init__(self, history: Sequence[Message], uses: Sequence[ToolUse]) -> None:
        """Scan the history, which may end with the message of these very calls."""
        self._last: ToolUse | None = None
        self._count = 0
        if uses:
            self._scan_history(history, uses)

    def count(self, use: ToolUse) -> int:
        """Return how many identical calls in a row this one makes; to be called in call order."""
        self._count = self._count + 1 if self._last is not None and is_same_call(use, self._last) else 1
        self._last = use
        return self._count

    def _scan_history(self, history: Sequence[Message], uses: Sequence[ToolUse]) -> None:
        is_newest = True
        for message in reversed(history):
            if is_own_prompt(message):
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
        """Count backwards; return False when the row ends."""
        for use in reversed(earlier):
            if self._last is not None and not is_same_call(use, self._last):
                return False
            self._last = use
            self._count += 1
        return True


def is_same_call(first: ToolUse, second: ToolUse) -> bool:
    """Return whether tool and arguments are the same, as JSON: 1 is not true."""
    return (first.name, first.malformed) == (second.name, second.malformed) and is_same_json(first.input, second.input)


def reason_to_ask(repeats: int) -> Sentence | None:
    """Return why a person is asked about a call that was made so many times in a row; None where they need not be."""
    if repeats < REPEATS_BEFORE_ASKING:
        return None
    return Sentence("The agent made this very call {count} times in a row.", {"count": str(repeats)})
