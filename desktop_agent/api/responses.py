"""Read the answer of a run: as events, block by block, collected, or as structured output of a type."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from desktop_agent.api.conversation import ConversationRunner, OutputType, to_prompt, unbound
from desktop_agent.api.run_events import AsyncCloseable, BlockCollector, RunEvents, error_from_event
from desktop_agent.conversation.answer_builder import add_usage
from desktop_agent.providers.tool_call_builder import ToolCallBuilder
from desktop_agent.types.blocks import Block, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope, ErrorOccurred, Event, RunEnd, RunFinished
from desktop_agent.types.errors import CapabilityMissing, InvalidRequest, OutputInvalid
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import TRUNCATED_STOP_REASONS, ContentDelta, StopReason, ToolArgsDelta, Usage


class BlockReader:
    """Reads the newest run block by block. An error that broke the answer off is raised once, after the last block."""

    def __init__(self, conversation: ConversationRunner) -> None:
        self._conversation = conversation
        self._run: RunEvents | None = None
        self._collector = BlockCollector()
        self._ready = deque[Block]()
        self._has_raised = False

    async def ask(self, prompt: Message | None) -> None:
        """Return when the model begins to answer. Raises what keeps it from that; a cancel stops the run."""
        run = await self._conversation.start_run(prompt)
        self._switch_run(run, goes_on=prompt is None)
        try:
            await run.wait_for_start()
        except asyncio.CancelledError:
            self._conversation.abandon(run)
            raise

    async def next(self) -> Block | None:
        """Return the next finished block; None at the end."""
        run = self._conversation.run
        if run is not self._run:
            self._switch_run(run)
        if run is None:
            return None
        while not self._ready:
            event = await run.next()
            if event is None:
                break
            self._ready.extend(self._collector.feed(event))
        if self._ready:
            return self._ready.popleft()
        if run.error is not None and run.has_begun and not self._has_raised:
            self._has_raised = True
            raise run.error
        return None

    def _switch_run(self, run: RunEvents | None, *, goes_on: bool = False) -> None:
        """Read this run from now on. `goes_on`: the unread blocks of the run before come first."""
        if goes_on and self._run is not None:
            self._ready.extend(block for event in self._run.take_unread() for block in self._collector.feed(event))
        else:
            self._ready.clear()
        self._run, self._has_raised = run, False
        self._collector = BlockCollector()


# The loop has only weak references to its tasks.
_CLOSING_TASKS: set[asyncio.Task[None]] = set()


def abandon_soon(conversation: ConversationRunner, run: RunEvents) -> None:
    """Stop a run that nobody reads; the loop does it next, because a finaliser may run in the middle of anything."""
    if conversation.will_stop(run) and conversation.loop is not None:
        with suppress(RuntimeError):  # the loop is closed
            conversation.loop.call_soon_threadsafe(conversation.abandon, run)


def close_soon(conversation: ConversationRunner) -> None:
    """Stop, and close without waiting. Where the loop is closed nothing is left to close."""
    loop = conversation.loop
    if not conversation.is_open or loop is None:
        return
    conversation.is_closed = True
    if _is_this_loop(loop):
        _start_closing(conversation)
    else:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_start_closing, conversation)


def _start_closing(conversation: ConversationRunner) -> None:
    task = asyncio.ensure_future(_close_despite_cancel(conversation))
    _CLOSING_TASKS.add(task)
    task.add_done_callback(_CLOSING_TASKS.discard)


async def _close_despite_cancel(conversation: ConversationRunner) -> None:
    try:
        await conversation.aclose()
    except asyncio.CancelledError:
        # A loop that ends cancels everything once; what is open is closed all the same.
        await conversation.aclose()


def _is_this_loop(loop: asyncio.AbstractEventLoop | None) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class EventStream(AsyncCloseable, AsyncIterator[Event]):
    """The events of a run, which starts at the first step. Leaving the loop stops it, and so does cancelling a step;
    `aclose` also waits for its end.

    `keep` is the object that the stream belongs to: it must not be collected while somebody reads.
    """

    def __init__(
        self,
        conversation: ConversationRunner,
        prompt: Message | None,
        run: RunEvents | None = None,
        keep: object = None,
    ) -> None:
        self._conversation = conversation
        self._prompt = prompt
        self._run = run
        self._owner = keep
        self._is_over = False

    @property
    def usage_below(self) -> Usage | None:
        """The usage of specialists, whose events are not among these; None when there was none."""
        return None if self._run is None else self._run.usage_below

    async def __anext__(self) -> Event:
        if self._is_over:
            raise StopAsyncIteration
        if self._run is None:
            self._run = await self._conversation.start_run(self._prompt)
        try:
            event = self._run.take_next() or await self._run.next()
        except asyncio.CancelledError:
            # The traceback keeps this stream alive, so that its finaliser would stop the run too late.
            self._conversation.abandon(self._run)
            raise
        if event is None:
            self._is_over = True
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Stop the run if it goes on, and wait until it has ended. Idempotent."""
        self._is_over = True
        if self._run is not None:
            self._conversation.abandon(self._run)
            await self._run.wait_for_end()

    def __del__(self) -> None:
        if self._run is not None and self._run.end is None:
            abandon_soon(self._conversation, self._run)


Output = TypeVar("Output")
_INCOMPLETE_STOP_REASONS = TRUNCATED_STOP_REASONS | {StopReason.REFUSAL, StopReason.MALFORMED_TOOL_CALL}


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to one question. `blocks` are those of all turns in order, results of calls among them.

    `usage` is of all turns together, those of specialists and summaries of older messages among them; a summary that
    came to nothing is only in the cost that `CostUpdated` says. `end` is None for what did not come out of a run.
    `error` is what broke the answer off, after these blocks.
    """

    blocks: tuple[Block, ...]
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    end: RunEnd | None = None
    error: ErrorOccurred | None = None

    @property
    def text(self) -> str:
        """The last text: the visible text after the last result of a call."""
        last = max(
            (position for position, block in enumerate(self.blocks) if isinstance(block, ToolResult)), default=-1
        )
        return "".join(block.text for block in self.blocks[last + 1 :] if isinstance(block, Text))

    @property
    def thinking(self) -> str:
        """The shown reasoning."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, Thinking) and block.text)

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def is_complete(self) -> bool:
        """Whether the model wrote all that it meant to: not cut, filtered, refused or stopped."""
        if self.end is not None:
            return self.end is RunEnd.COMPLETED and self.stop_reason not in _INCOMPLETE_STOP_REASONS
        return self.error is None and self.stop_reason in {StopReason.END_TURN, StopReason.STOP_SEQUENCE}


@dataclass(frozen=True, slots=True)
class StructuredResponse(Response, Generic[Output]):
    """A response with the answer in `output`, as the type that was asked for."""

    output: Output = field(kw_only=True)


async def collect_text(events: AsyncIterable[Event | Envelope | Block]) -> str:
    """Return all visible text of a stream of events or of blocks. Raises the error of an error event."""
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
    """Collect a stream of events. The error of an event is in the response, one that is raised is raised."""
    collector = BlockCollector()
    blocks: list[Block] = []
    end: RunEnd | None = None
    error: ErrorOccurred | None = None
    async with _closing_stream(events):
        async for event in events:
            blocks += collector.feed(event)
            if isinstance(event, RunFinished):
                end = event.reason
            elif isinstance(event, ErrorOccurred):
                error = event
    usage = collector.usage
    if isinstance(events, EventStream):
        usage = add_usage(usage, events.usage_below)
    return Response((*blocks, *collector.finish()), usage, collector.stop_reason, end, error)


@asynccontextmanager
async def _closing_stream(stream: AsyncIterable[Any]) -> AsyncGenerator[None, None]:
    """Close the stream at the end: one that is left early keeps its connection until then."""
    try:
        yield
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


class ToolCallAssembler:
    """Assembles calls from pieces. A piece belongs to a call by index, else by id, else a name opens a new call.

    Empty arguments are `{}`. Arguments that are no JSON object make that call `malformed`, and no other.
    """

    def __init__(self) -> None:
        self._builder = _new_call_builder()

    def add(self, delta: ToolArgsDelta) -> None:
        """Add a piece as the events have it."""
        self._builder.add_fragment(id=delta.id, name=delta.name, arguments=delta.fragment)

    def fragment(
        self,
        *,
        index: int | None = None,
        id: str | None = None,  # noqa: A002 - the wire's own word
        name: str | None = None,
        arguments: Any = None,
    ) -> None:
        """Add a piece as a server sends it; `arguments` is a string to append, or the whole object."""
        self._builder.add_fragment(index=index, id=id, name=name, arguments=arguments)

    def finish(self, *, cut: bool = False) -> tuple[ToolUse, ...]:
        """Return all calls in order, and begin anew. `cut`: the stream broke off, so incomplete calls are left out."""
        calls = tuple(call for _, call in self._builder.end(cut=cut))
        self._builder = _new_call_builder()
        return calls


def _new_call_builder() -> ToolCallBuilder:
    return ToolCallBuilder("", lambda: f"call_{secrets.token_hex(8)}")


_RETRY_PROMPT = "The answer does not fit. {problems} Answer again, with the whole JSON and nothing else."
INJECTED_BY = "output_type"
MAX_PROBLEMS = 5
_UNFINISHED_REASONS = {
    RunEnd.CANCELLED: ("The run was stopped before there was an answer.", "Ask again when you want one."),
    RunEnd.ABORTED: ("The run was ended before there was an answer.", "Ask again."),
    RunEnd.LIMIT: ("A limit ended the run before there was an answer.", "Go on without a prompt, or raise the limit."),
    RunEnd.AWAITING_RESULTS: (
        "Calls wait for their results before there is an answer.",
        "Give them with add_tool_result(), and go on without a prompt.",
    ),
}
_SCHEMA_REFUSED_STATUSES = (400, 422)


async def complete_structured(
    conversation: ConversationRunner, prompt: str | Message, output_type: Any, retries: int, owner: object
) -> StructuredResponse[Any]:
    """Ask until an answer fits. Raises WrongUse for what is no type, OutputInvalid, and what breaks an answer off.

    Where the run ended before there was an answer, OutputInvalid says how.
    """
    output = OutputType(output_type)
    conversation.bind_answers = output.bind
    try:
        response = await _ask_with_fallback(conversation, to_prompt(prompt) if prompt else None, output, owner)
        for remaining in range(retries, -1, -1):
            problems = ""
            try:
                return _parse_response(response, output)
            except ValidationError as error:
                problems = _describe_problems(error)
            if not remaining or response.end is not RunEnd.COMPLETED:
                break
            retry = Message.user(_RETRY_PROMPT.format(problems=problems)).model_copy(
                update={"injected_by": INJECTED_BY}
            )
            used, response = response.usage, await ask(conversation, retry, owner)
            response = replace(response, usage=add_usage(used, response.usage))
        if response.end is not None and response.end in _UNFINISHED_REASONS:
            sentence, remedy = _UNFINISHED_REASONS[response.end]
            raise OutputInvalid(sentence, remedy, detail=response.text)
        raise OutputInvalid(
            f"The answer does not fit the type that was asked for ({output.name}).", detail=response.text
        )
    finally:
        conversation.bind_answers = unbound


async def _ask_with_fallback(
    conversation: ConversationRunner, prompt: Message | None, output: OutputType, owner: object
) -> Response:
    try:
        return await ask(conversation, prompt, owner)
    except (CapabilityMissing, InvalidRequest) as error:
        if isinstance(error, InvalidRequest) and error.status not in _SCHEMA_REFUSED_STATUSES:
            raise
    # The prompt is in the history: only the way of binding the answer changes. Few servers say that the schema is
    # what they refuse.
    conversation.bind_answers = output.describe
    return await ask(conversation, None, owner)


async def ask(conversation: ConversationRunner, prompt: Message | None, owner: object) -> Response:
    """Ask, and wait for the whole answer. Raises what broke it off. `owner`: `keep` of EventStream."""
    response = await collect_response(EventStream(conversation, prompt, keep=owner))
    if response.error is not None and conversation.run is not None and conversation.run.error is not None:
        raise conversation.run.error
    return response


def _parse_response(response: Response, output_type: OutputType) -> StructuredResponse[Any]:
    """Raises ValidationError."""
    output = output_type.parse(response.text)
    return StructuredResponse(
        response.blocks, response.usage, response.stop_reason, response.end, response.error, output=output
    )


def _describe_problems(error: ValidationError) -> str:
    problems = error.errors(include_input=False, include_url=False)[:MAX_PROBLEMS]
    return " ".join(f"{'.'.join(map(str, problem['loc'])) or 'answer'}: {problem['msg']}." for problem in problems)
