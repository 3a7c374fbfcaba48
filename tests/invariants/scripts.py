"""What a model may say in a random world, and the tools that it may call there."""

import random
from dataclasses import dataclass
from typing import Any

from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import AgentError, ConnectionFailed, QuotaExhausted, Truncated
from desktop_agent.types.provider_events import (
    ContentDelta,
    Done,
    MessageDelta,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)

READ, WRITE, HANG, STUBBORN, BREAK, HELPER = "look", "act", "hang", "stubborn", "break_", "helper"
# A tool that is here more often is called more often.
TOOLS = (READ, READ, WRITE, WRITE, WRITE, HANG, STUBBORN, BREAK, HELPER, HELPER, "nobody")


@dataclass(frozen=True)
class ScriptedAnswer:
    """One answer of the model: pieces of text and thinking, calls, and how it ends."""

    pieces: tuple[Any, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()  # the tool's name, and a word; equal words make equal calls
    repeated_ids: bool = False
    malformed: bool = False
    end: StopReason | None = None
    breaks_with: AgentError | None = None
    tokens: int = 0
    pause: float = 0.0  # seconds between two events; the journal is written meanwhile

    def steps(self, serial: int) -> list[Any]:
        """Return the provider's events, with ids that no other answer uses, unless `repeated_ids`."""
        events: list[Any] = list(self.pieces)
        for position, (name, word) in enumerate(self.calls):
            id_ = f"call_{position}" if self.repeated_ids else f"call_{serial}_{position}"
            malformed = '{"wor' if self.malformed and position == 0 else None
            arguments = {} if malformed else {"task" if name == HELPER else "word": word}
            events.append(ToolUse(id=id_, name=name, input=arguments, malformed=malformed))
        if self.breaks_with is not None:
            return [*events, self.breaks_with]
        if self.tokens:
            events.append(UsageUpdate(Usage(input_tokens=self.tokens, output_tokens=10, cost=0.001)))
        end = self.end or (StopReason.TOOL_USE if self.calls else StopReason.END_TURN)
        return [*events, MessageDelta(end), Done()]


_TEXTS = ("a", "bb", "\U0001f600", "é ab", "b a b")
_THOUGHTS: tuple[tuple[Any, ...], ...] = (
    (ThinkingDelta("hm"), ThinkingBlock("hm", "scripted", {"signature": "c2ln"})),
    (ThinkingDelta("h"), ThinkingDelta("o"), ThinkingBlock("ho", "scripted", {"signature": "bm9j"})),
    (ThinkingBlock("", "scripted", {"data": "cmVkYWN0ZWQ="}),),
)
_ENDS = (StopReason.MAX_TOKENS, StopReason.PAUSE_TURN, StopReason.REFUSAL, StopReason.MALFORMED_TOOL_CALL)
_BREAKS = (QuotaExhausted("empty"), Truncated("cut", retryable=False), ConnectionFailed("gone"))


def answer(chance: random.Random, repeating: float) -> ScriptedAnswer:
    """Return a random answer: mostly text and calls, as models do; now and then anything else.

    `repeating` is the probability that its calls have ids of other answers: some servers count from 0 each time.
    """
    pieces: list[Any] = []
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5))):
        pieces += chance.choice(_THOUGHTS) if chance.random() < 0.3 else [ContentDelta(chance.choice(_TEXTS))]
    # Few words, so that the same call comes three times in a row now and then.
    calls = tuple((chance.choice(TOOLS), chance.choice("aabc")) for _ in range(chance.choice((0, 1, 1, 2, 3, 4))))
    strange = chance.random()
    return ScriptedAnswer(
        pieces=tuple(pieces),
        calls=calls,
        repeated_ids=chance.random() < repeating,
        malformed=chance.random() < 0.1,
        end=chance.choice(_ENDS) if strange < 0.12 else None,
        breaks_with=chance.choice(_BREAKS) if strange > 0.92 else None,
        tokens=chance.choice((0, 100, 100, 1900)),
        pause=chance.choice((0.0, 0.0, 0.0, 0.0, 0.06, 0.2)),
    )


def endless(kind: str, serial: int) -> ScriptedAnswer:
    """Return an answer of a model that never comes to an end by itself."""
    if kind == "pauses":
        return ScriptedAnswer((ContentDelta("."),), end=StopReason.PAUSE_TURN)
    return ScriptedAnswer(calls=((HELPER if kind == "delegates" else READ, str(serial)),))
