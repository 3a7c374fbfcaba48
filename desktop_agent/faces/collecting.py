"""From a stream of pieces to the whole: texts, answers, calls."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from desktop_agent.faces.backing.failures import error_from_event
from desktop_agent.faces.backing.finished_blocks import BlockCollector, add_usage
from desktop_agent.faces.backing.streaming import EventStream
from desktop_agent.providers.call_builder import ToolCallBuilder
from desktop_agent.vocabulary.blocks import Block, Text, Thinking, ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import Envelope, ErrorOccurred, Event, RunEnd, RunFinished
from desktop_agent.vocabulary.provider_events import TRUNCATED_STOP_REASONS, ContentDelta, StopReason, ToolArgsDelta
from desktop_agent.vocabulary.usage import Usage

Output = TypeVar("Output")
_INCOMPLETE_STOP_REASONS = TRUNCATED_STOP_REASONS | {StopReason.REFUSAL, StopReason.MALFORMED_TOOL_CALL}


@dataclass(frozen=True, slots=True)
class Response:
    """What came of one question. `blocks` are those of all turns in order, results of calls among them.

    `usage` is of all turns together, those of specialists among them. `end` is None for what did not come out of a run.
    `error` is what broke it off: what came before is here.
    """

    blocks: tuple[Block, ...]
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    end: RunEnd | None = None
    error: ErrorOccurred | None = None

    @property
    def text(self) -> str:
        """What was said last: the visible text behind the last result of a call."""
        last = max((at for at, block in enumerate(self.blocks) if isinstance(block, ToolResult)), default=-1)
        return "".join(block.text for block in self.blocks[last + 1 :] if isinstance(block, Text))

    @property
    def thinking(self) -> str:
        """What was shown of the reasoning."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, Thinking) and block.text)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def is_complete(self) -> bool:
        """Whether the model said all that it meant to say: not cut, filtered, refused or stopped."""
        if self.end is not None:
            return self.end is RunEnd.COMPLETED and self.stop_reason not in _INCOMPLETE_STOP_REASONS
        return self.error is None and self.stop_reason in {StopReason.END_TURN, StopReason.STOP_SEQUENCE}


@dataclass(frozen=True, slots=True)
class StructuredResponse(Response, Generic[Output]):
    """A response with the answer as the type that was asked for."""

    output: Output = field(kw_only=True)


async def collect_text(events: AsyncIterable[Event | Envelope | Block]) -> str:
    """All visible text of a stream of events or of blocks. Raises the error that an event tells of."""
    pieces: list[str] = []
    async with _closing_stream(events):
        async for item in events:
            event = item.event if isinstance(item, Envelope) else item
            if isinstance(event, ContentDelta | Text):
                pieces.append(event.text)
            elif isinstance(event, ErrorOccurred):
                raise error_from_event(event)
    return "".join(pieces)


async def collect_response(events: AsyncIterable[Event]) -> Response:
    """Everything of a stream of events. An error that is an event is in the response, one that is raised is raised."""
    finished = BlockCollector()
    blocks: list[Block] = []
    end: RunEnd | None = None
    error: ErrorOccurred | None = None
    async with _closing_stream(events):
        async for event in events:
            blocks += finished.feed(event)
            if isinstance(event, RunFinished):
                end = event.reason
            elif isinstance(event, ErrorOccurred):
                error = event
    usage = finished.usage
    if isinstance(events, EventStream):
        usage = add_usage(usage, events.usage_below)
    return Response((*blocks, *finished.finish()), usage, finished.stop_reason, end, error)


@asynccontextmanager
async def _closing_stream(stream: AsyncIterable[Any]) -> AsyncGenerator[None, None]:
    """A stream that is left early keeps its connection until it is closed."""
    try:
        yield
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


class ToolCallAssembler:
    """Whole calls from pieces. Whose piece it is: by index, else by id, else a name opens a call.

    Empty arguments are `{}`. Arguments that are no JSON object make that call `malformed`, and no other.
    """

    def __init__(self) -> None:
        self._builder = _new_call_builder()

    def add(self, delta: ToolArgsDelta) -> None:
        """Take one piece as the events show it."""
        self._builder.add_fragment(id=delta.id, name=delta.name, arguments=delta.fragment)

    def fragment(
        self,
        *,
        index: int | None = None,
        id: str | None = None,  # noqa: A002 - the wire's own word
        name: str | None = None,
        arguments: Any = None,
    ) -> None:
        """Take one piece as a server sends it; `arguments` is a string to append, or the whole object."""
        self._builder.add_fragment(index=index, id=id, name=name, arguments=arguments)

    def finish(self, *, cut: bool = False) -> tuple[ToolUse, ...]:
        """All calls in order, and begin anew. `cut`: the stream broke off, so calls that are not whole are left out."""
        calls = tuple(call for _, call in self._builder.end(cut=cut))
        self._builder = _new_call_builder()
        return calls


def _new_call_builder() -> ToolCallBuilder:
    return ToolCallBuilder("", lambda: f"call_{secrets.token_hex(8)}")
