"""Client, a conversation held in memory; `query` and `run` ask one question without it."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import UnionType
from typing import Any, Unpack, overload

from desktop_agent.api.caller_tools import make_result
from desktop_agent.api.controls import Controls
from desktop_agent.api.conversation import ConversationRunner, InterruptHandle, to_prompt
from desktop_agent.api.responses import (
    BlockReader,
    EventStream,
    Output,
    Response,
    StructuredResponse,
    ask,
    close_soon,
    complete_structured,
)
from desktop_agent.api.run_events import AsyncCloseable
from desktop_agent.conversation.branches import Versions
from desktop_agent.processes.foreign_code import type_name
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Block, ToolResult
from desktop_agent.types.engine_events import Envelope, RunEnd
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.options import AgentOptions, OptionValues
from desktop_agent.types.policies import StopTool

_NOT_CLOSED_WARNING = "A Client was not closed: use `async with`, or await aclose()."


class Client(Controls, AsyncCloseable):
    """A conversation: `async with Client(options) as client`, or close it with `aclose`.

    An error before the model begins to answer is raised by the call that asked. A later one is an event of `stream`,
    and is raised once by `receive` and `complete`, after what came before it. The client stays usable: `continue_` asks
    again with the history as it is. Stop is no error: the streamed text is kept, then comes the end.

    `listener` is called with every event and its place, also with those of specialists, of what the options install,
    and of what happens between runs.

    `policies`, `guards`, `rules`, `queue`, `approvals` and `questions` may be read and changed at any moment, also
    while the model answers. `controls` is all of these and the modes in one.
    """

    def __init__(
        self,
        options: AgentOptions | None = None,
        *,
        listener: Callable[[Envelope], None] | None = None,
        **values: Unpack[OptionValues],
    ) -> None:
        super().__init__(ConversationRunner(to_options(options, values), listener=listener))
        self._reader = BlockReader(self._conversation)
        self.controls = Controls(self._conversation)

    @property
    def options(self) -> AgentOptions:
        """The options that it was made with."""
        return self._conversation.options

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages, oldest first."""
        return self._conversation.history

    @property
    def ended(self) -> RunEnd | None:
        """How the last run ended; None while it goes on, and before the first."""
        return None if self._conversation.run is None else self._conversation.run.end

    async def send(self, prompt: str) -> None:
        """Ask, and return when the model begins to answer; `""` goes on (see `continue_`).

        Raises WrongUse while the model still answers, and what keeps it from answering.
        """
        await self._reader.ask(to_prompt(prompt) if prompt else None)

    async def send_message(self, message: Message) -> None:
        """Ask with a prepared message, with pictures for example. Raises WrongUse for one that is no prompt."""
        if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]  strings come here too
            raise WrongUse("This is not a message.", "Make it with Message.user(…), or give words to send().")
        await self._reader.ask(to_prompt(message))

    async def continue_(self) -> None:
        """Ask again with the history as it is: with the results of calls, after a limit, after an error.

        Where results were added while the rest of the answer still streams, it waits for its end first, and raises what
        broke it off. Raises WrongUse when a call has no result yet, or when there is nothing to go on with.
        """
        await self._reader.ask(None)

    async def receive(self) -> Block | None:
        """Return the next finished block of the answer; None at its end, and again until the next question."""
        return await self._reader.next()

    def stream(self, prompt: str | Message = "") -> EventStream:
        """Ask, and iterate over the events of the answer, RunFinished last. `""` goes on (see `continue_`).

        Leaving the loop, or cancelling a step, stops the run and closes the connection.
        """
        return EventStream(self._conversation, to_prompt(prompt) if prompt else None, keep=self)

    @overload
    async def complete(self, prompt: str | Message = "") -> Response: ...
    @overload
    async def complete(
        self, prompt: str | Message = "", *, output_type: type[Output], output_retries: int = 2
    ) -> StructuredResponse[Output]: ...
    @overload
    async def complete(
        self, prompt: str | Message = "", *, output_type: UnionType, output_retries: int = 2
    ) -> StructuredResponse[Any]: ...
    async def complete(
        self, prompt: str | Message = "", *, output_type: Any = None, output_retries: int = 2
    ) -> Response:
        """Ask, and wait for the whole answer. Raises what broke it off; the rest is in `history`.

        With `output_type` (a pydantic model, a dataclass, a TypedDict, a list or a union of these) the answer is bound
        to its schema where the server can do that, and validated: it is in `output`. An answer that does not fit is
        asked for again, `output_retries` times at most, with the problems; then OutputInvalid is raised. It is raised
        too where the run ended before there was an answer: by Stop, a limit, or calls that wait for results. It says
        which, as `ended` does; without a prompt the next call goes on.
        """
        if output_type is not None:
            return await complete_structured(self._conversation, prompt, output_type, output_retries, self)
        return await ask(self._conversation, to_prompt(prompt) if prompt else None, self)

    def add_tool_result(
        self,
        tool_use_id: str | ToolResult,
        content: object = None,
        is_error: bool = False,  # noqa: FBT001, FBT002 - the ancestors' own shape
    ) -> None:
        """Add the result of a call that the caller ran: text, a JSON value, blocks, or a ToolResult, also by itself.

        It is accepted from the moment the call is handed out, by `receive`, by `stream` or to the listener, until the
        conversation goes on; also when Stop or an error ended the answer meanwhile. Raises UnknownToolCall,
        DuplicateToolResult, StaleToolCall for a call of an older turn, and WrongUse for what is no JSON.
        """
        if isinstance(tool_use_id, ToolResult):
            tool_use_id, content = tool_use_id.tool_use_id, tool_use_id
        self._conversation.add_results(make_result(tool_use_id, content, is_error=is_error))

    def stop_tool(self, tool_use_id: str) -> bool:
        """End one call as cancelled; the run goes on. Returns False when no such call is open."""
        return self._conversation.interrupt(StopTool(tool_use_id))

    def interrupt_handle(self) -> InterruptHandle:
        """Return `interrupt` for other threads and for signal handlers."""
        return InterruptHandle(self._conversation.stop_request)

    async def edit_history(
        self, change: Sequence[Message] | Callable[[tuple[Message, ...]], Sequence[Message]]
    ) -> None:
        """Go on from these messages, or from what the function makes of the history. Raises WrongUse during a run.

        What they replace stays, as another version: `await client.edit_history(client.history[:-1])` and then
        `await client.continue_()` ask for the last answer anew, and `show_version` goes back to the first one.
        """
        await self._conversation.replace_history(change if callable(change) else lambda _: change)

    @property
    def versions(self) -> Mapping[str, Versions]:
        """The versions of messages in the history, by the id of the message in view."""
        session = self._conversation.session
        return {} if session is None else session.branches.versions

    async def show_version(self, message_id: str) -> None:
        """Go on with the version that has this message: the one in which it was seen last, or else the newest.

        Raises WrongUse during a run, and for an unknown one.
        """
        await self._conversation.change_branches(lambda branches: branches.show(message_id))

    async def delete_message(self, message_id: str) -> None:
        """Delete for good a prompt or a whole answer, with all that follows it, in every version.

        The conversation continues with the version before it, else with the next one, else with what is before it.
        Files that tools changed stay as they are. Raises WrongUse during a run, while calls wait for results, and for
        an unknown message; StorageFailed.
        """
        await self._conversation.change_branches(lambda branches: branches.delete(message_id))

    async def clear_history(self) -> None:
        """Stop, wait for the end of the run, and forget everything; the options stay."""
        await self._conversation.clear()

    def get_tool(self, name: str) -> AnyTool | None:
        """Return the tool of exactly this name, or None."""
        return next((tool for tool in self.options.tools if tool.name == name), None)

    async def aclose(self) -> None:
        """Stop, and close all connections. Idempotent."""
        await self._conversation.aclose()

    def __del__(self) -> None:
        # Invalid options leave a client without a conversation.
        if hasattr(self, "_conversation") and self._conversation.is_open:
            close_soon(self._conversation)
            warnings.warn(_NOT_CLOSED_WARNING, ResourceWarning, stacklevel=2)


def to_options(options: AgentOptions | None, values: OptionValues) -> AgentOptions:
    """Return these options with these values, or new ones. Raises WrongUse."""
    if options is None:
        return AgentOptions(**values)
    if not isinstance(options, AgentOptions):  # pyright: ignore[reportUnnecessaryIsInstance]  a model's name comes here too
        raise WrongUse(f"These are not options but {type_name(options)}.", "Make them with AgentOptions(model=…).")
    return options.with_values(**values) if values else options


class BlockStream(AsyncCloseable, AsyncIterator[Block]):
    """Asks at the first step; closes everything after the last block, or when the loop is left and the stream dropped.

    A reader that leaves the loop early and keeps the stream closes it: `async with query(…) as blocks`, or `aclose`.
    """

    def __init__(self, prompt: Message, options: AgentOptions) -> None:
        self._prompt = prompt
        self._conversation = ConversationRunner(options)
        self._reader = BlockReader(self._conversation)
        self._is_over = False

    async def __anext__(self) -> Block:
        if self._is_over:
            raise StopAsyncIteration
        try:
            if self._conversation.run is None:
                await self._reader.ask(self._prompt)
            block = await self._reader.next()
        except BaseException:
            await self.aclose()
            raise
        if block is None:
            await self.aclose()
            raise StopAsyncIteration
        return block

    async def aclose(self) -> None:
        """Stop, and close the connection. Idempotent."""
        self._is_over = True
        await self._conversation.aclose()

    def __del__(self) -> None:
        close_soon(self._conversation)


def query(prompt: str | Message, options: AgentOptions | None = None, **values: Unpack[OptionValues]) -> BlockStream:
    """Return the blocks of the answer, each as soon as it is finished; with tools that run here, their results too.

    `values` are options that override those in `options`. An error is raised by the step that meets it, after all
    blocks before it. Leaving the loop ends the run and closes the connection; `aclose` does so and waits. Raises
    WrongUse for options that do not fit together.
    """
    return BlockStream(to_prompt(prompt), to_options(options, values))


@overload
def run(
    prompt: str | Message,
    options: AgentOptions | None = None,
    *,
    output_type: type[Output],
    **values: Unpack[OptionValues],
) -> StructuredResponse[Output]: ...
@overload
def run(
    prompt: str | Message,
    options: AgentOptions | None = None,
    *,
    output_type: UnionType,
    **values: Unpack[OptionValues],
) -> StructuredResponse[Any]: ...
@overload
def run(prompt: str | Message, options: AgentOptions | None = None, **values: Unpack[OptionValues]) -> Response: ...
def run(
    prompt: str | Message,
    options: AgentOptions | None = None,
    *,
    output_type: Any = None,
    **values: Unpack[OptionValues],
) -> Response:
    """Ask, and wait for the whole answer, tools of the runtime included. For programs without asyncio.

    `values` are options that override those in `options`. With `output_type` (see Client.complete) the answer is in
    `output`. Ctrl+C stops the run. Raises what broke the answer off, and WrongUse where an event loop runs already.
    """
    chosen = to_options(options, values)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_complete(prompt, chosen, output_type))
    raise WrongUse("An event loop runs here already.", "Use `async with Client(…)` and await complete().")


async def _complete(prompt: str | Message, options: AgentOptions, output_type: Any) -> Response:
    async with Client(options) as client:
        if output_type is None:
            return await client.complete(prompt)
        return await client.complete(prompt, output_type=output_type)
