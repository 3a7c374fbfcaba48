"""Provider: one model on one server, asked directly, without tools being run."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import SecretStr

from desktop_agent.agent.model_request import move_answer_pictures
from desktop_agent.api.caller_tools import to_tool, to_tool_spec
from desktop_agent.api.chat_loop import ChatLoopHandle
from desktop_agent.api.conversation import to_prompt
from desktop_agent.api.responses import Response, collect_response
from desktop_agent.api.run_events import AsyncCloseable, BlockCollector
from desktop_agent.api.session_factory import ProviderConnection, connect_provider
from desktop_agent.processes.foreign_code import validate_messages
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Block
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.options import AgentOptions, OptionValues
from desktop_agent.types.provider_events import ContentDelta, Done, ProviderEvent, StopReason, Usage
from desktop_agent.types.providers import (
    CachedPrompt,
    Capabilities,
    Dialect,
    ModelInfo,
    ModelRequest,
    ProviderConfig,
    ProviderState,
    TokenCount,
)
from desktop_agent.types.tool_calls import ToolSpec

_VENDOR_DIALECTS: dict[str, Dialect] = {"anthropic": "anthropic", "gemini": "gemini", "openai": "openai-responses"}
# How the vendors' model names begin, also of models that are newer than this version.
_MODEL_PREFIXES: dict[str, Dialect] = {
    "claude": "anthropic",
    "gemini": "gemini",
    "gemma": "gemini",
    "gpt-": "openai-responses",
    "chatgpt": "openai-responses",
    "codex": "openai-responses",
    "o1": "openai-responses",
    "o3": "openai-responses",
    "o4": "openai-responses",
}
Asked = str | Message | Sequence[Message] | ModelRequest


@dataclass(frozen=True, slots=True)
class ChatDone:
    """The last chunk of `Provider.chat`: why the answer ended, what it used, and all of its visible text."""

    finish_reason: StopReason | None
    usage: Usage | None
    full_content: str


class ProviderStream(AsyncCloseable, AsyncIterator[ProviderEvent]):
    """The events of one answer. A reader that leaves the loop early closes it with `aclose`, or with `async with`.

    One task reads at a time: another one that asks for an event meanwhile gets WrongUse.
    """

    def __init__(self, events: AsyncGenerator[ProviderEvent, None]) -> None:
        self._events = events
        self._reader: asyncio.Task[Any] | None = None
        self._reader_left = asyncio.Event()
        self._closing = asyncio.Lock()
        self._is_closed = False

    async def __anext__(self) -> ProviderEvent:
        if self._reader is not None:
            raise WrongUse("Another task reads this answer already.", "Read it in one task.")
        if self._is_closed:
            raise StopAsyncIteration
        self._reader = reader = asyncio.current_task()
        self._reader_left.clear()
        is_cancelled = False
        try:
            event = await anext(self._events)
            if not self._is_closed:
                return event
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
        finally:
            self._reader = None
            self._reader_left.set()
            if self._is_closed and reader is not None:
                is_cancelled = reader.uncancel() > 0
        if is_cancelled:
            raise asyncio.CancelledError
        # Another task closed it meanwhile: that ends the answer, not this task.
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection, also while another task reads, whose loop then ends. Idempotent."""
        if self._reader is not None and not self._is_closed:
            self._reader.cancel()
        self._is_closed = True
        async with self._closing:
            if self._reader is not None:
                await self._reader_left.wait()
            await self._events.aclose()


class ChatStream(AsyncCloseable, AsyncIterator[ProviderEvent | ChatDone]):
    """One answer, chunk by chunk, or awaited as a whole, also twice or after a part was read.

    A reader that leaves the loop early closes it with `aclose`, or with `async with`.
    """

    def __init__(self, events: ProviderStream) -> None:
        self._events = events
        self._collector = BlockCollector()
        self._blocks: list[Block] = []
        self._text: list[str] = []
        self._is_over = False

    async def __anext__(self) -> ProviderEvent | ChatDone:
        if self._is_over:
            raise StopAsyncIteration
        async for event in self._events:
            self._blocks += self._collector.feed(event)
            if isinstance(event, ContentDelta):
                self._text.append(event.text)
            if not isinstance(event, Done):
                return event
        self._is_over = True
        return ChatDone(self._collector.stop_reason, self._collector.usage, "".join(self._text))

    def __await__(self) -> Generator[Any, None, Response]:
        return self._read_all().__await__()

    async def aclose(self) -> None:
        """Close the connection, also while another task reads, whose loop then ends. Idempotent."""
        await self._events.aclose()

    async def _read_all(self) -> Response:
        async with self._events:
            async for _ in self:
                pass
        self._blocks += self._collector.finish()
        return Response(tuple(self._blocks), self._collector.usage, self._collector.stop_reason)


class Provider(AsyncCloseable):
    """Made with `Provider.create`, closed with `async with` or `aclose`.

    It asks once: nothing is repeated and no tool is run. What the server or the model cannot do is a typed error before
    any request (CapabilityMissing), or an adjustment that AnswerStarted names.
    """

    def __init__(self, options: AgentOptions, connection: ProviderConnection) -> None:
        self._options = options
        self._connection = connection
        self._provider = connection.provider

    @classmethod
    async def create(
        cls,
        model: str,
        key: str | SecretStr | None = None,
        *,
        dialect: Dialect | None = None,
        base_url: str = "",
        config: ProviderConfig | None = None,
        system_prompt: str | None = None,
        provider: object = None,
    ) -> "Provider":
        """Return a provider; nothing is opened yet. Without `dialect` and `base_url` the model's name decides the
        vendor.

        Without a key, DESKTOP_AGENT_API_KEY counts where `dialect` or `base_url` says who is asked. `provider` is an
        object to ask instead of a server. Raises WrongUse for a model without a known vendor.
        """
        if dialect is None and not base_url and provider is None:
            dialect = await _find_dialect(model)
            # The key of the environment may be another vendor's.
            key = key or ""
        # A vendor's key must not go to the address that the environment happens to name.
        values: OptionValues = {"model": model, "api_key": key, "base_url": base_url, "system_prompt": system_prompt}
        values["provider"] = provider
        if dialect is not None:
            values["dialect"] = dialect
        if config is not None:
            values["config"] = config
        options = AgentOptions(**values)
        return cls(options, await connect_provider(options))

    @property
    def model(self) -> str:
        return self._options.model

    @property
    def config(self) -> ProviderConfig:
        """How the model is asked."""
        return self._options.run_config

    @property
    def capabilities(self) -> Capabilities:
        """What is known about the model; `list_models` may add to it."""
        return self._provider.model_info(self.model).capabilities

    def state(self) -> ProviderState:
        """Return a copy of the totals so far, also while a stream runs."""
        state = self._provider.state
        return replace(state, metadata=dict(state.metadata))

    def request(self, asked: Asked, tools: Sequence[AnyTool | ToolSpec] = ()) -> ModelRequest:
        """Return a request to this model with this configuration; a ModelRequest is returned as it is.

        Pictures of answers go with the prompt after them, where the server takes none in answers.

        Raises WrongUse for what is no question or no tool, and for tools beside a ModelRequest.
        """
        if isinstance(asked, ModelRequest):
            if tools:
                raise WrongUse("A ModelRequest has its own tools.", "Make it with these tools.")
            return asked
        if isinstance(asked, str):
            asked = to_prompt(asked)
        messages = validate_messages((asked,) if isinstance(asked, Message) else asked)
        if not messages:
            raise WrongUse("The question is empty.", "Give at least one message.")
        messages = tuple(move_answer_pictures(messages, self._provider.picture_limits(self.model)))
        return ModelRequest(self.model, messages, tuple(map(to_tool_spec, tools)), config=self.config)

    def chat(self, prompt: str | Message) -> "ChatStream":
        """Ask one prompt without a history.

        `async for chunk in provider.chat(…)` gives the events as they come and ChatDone last; `await` waits for the
        whole answer. Both raise ProviderError and CapabilityMissing.
        """
        return ChatStream(self.stream(prompt))

    def stream(self, asked: Asked, tools: Sequence[AnyTool | ToolSpec] = ()) -> ProviderStream:
        """Return the events of the answer. Closing it closes the connection. Raises ProviderError and
        CapabilityMissing.
        """
        return ProviderStream(self._provider.stream(self.request(asked, tools)))

    async def complete(self, asked: Asked, tools: Sequence[AnyTool | ToolSpec] = ()) -> Response:
        """Return the whole answer. Raises ProviderError and CapabilityMissing."""
        return await collect_response(self.stream(asked, tools))

    def chat_loop(self, history: Sequence[Message], tools: Sequence[AnyTool | ToolSpec] = ()) -> ChatLoopHandle:
        """Return a loop in which the caller runs the calls. `history` ends with what is to be answered."""
        options = self._options.model_copy(
            update={
                "provider": self._provider,
                "tools": tuple(to_tool(tool) for tool in tools),
                "auto_execute_tools": False,
            }
        )
        return ChatLoopHandle(options, history)

    async def prompt_cache(
        self, asked: Asked, tools: Sequence[AnyTool | ToolSpec] = (), *, seconds: int = 300
    ) -> CachedPrompt:
        """Have the server cache the beginning of this question. Raises CachingNotSupported and ProviderError."""
        return await self._provider.prompt_cache(self.request(asked, tools), seconds=seconds)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the server's models. Raises ProviderError."""
        return await self._provider.list_models()

    async def count_tokens(self, asked: Asked, tools: Sequence[AnyTool | ToolSpec] = ()) -> TokenCount:
        """Return the length of a question: counted by the server where it can, else estimated. Raises ProviderError."""
        return await self._provider.count_tokens(self.request(asked, tools))

    async def aclose(self) -> None:
        """Close all connections. Idempotent."""
        await self._connection.aclose()


async def _find_dialect(model: str) -> Dialect:
    """Return the vendor's dialect by the prefix of the model's name, else by the catalogue. Raises WrongUse."""
    for prefix, dialect in _MODEL_PREFIXES.items():
        if model.removeprefix("models/").startswith(prefix):
            return dialect
    catalogue = Catalogue(shipped=True)
    await catalogue.warm_up()
    for vendor, dialect in _VENDOR_DIALECTS.items():
        if catalogue.find(vendor, model) is not None:
            return dialect
    raise WrongUse(f"Who serves “{model[:60]}” is not known here.", "Give dialect or base_url.")
