"""Several addresses of one service as one provider: when one is down, the next is asked."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

from desktop_agent.providers.health import AddressHealth
from desktop_agent.providers.provider import Provider
from desktop_agent.vocabulary.errors import (
    AgentError,
    ConnectionFailed,
    Overloaded,
    ProviderError,
    Sentence,
    ServerFailed,
    TimedOut,
)
from desktop_agent.vocabulary.provider_events import AnswerNamed, AnswerStarted, ProviderEvent, UsageUpdate
from desktop_agent.vocabulary.requests import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
    TokenCount,
)

T = TypeVar("T")

# What another address may do better. A refusal of the request, the key or the account would be the same there.
_RETRY_ELSEWHERE = (ConnectionFailed, TimedOut, Overloaded, ServerFailed)
# These say nothing yet: after them the question can still be asked elsewhere.
_BEFORE_CONTENT = (AnswerStarted, AnswerNamed, UsageUpdate)
_MAX_CONVERSATIONS = 1000


class Failover:
    """A provider over several addresses. A conversation stays where it was answered: there its prompt is cached.

    `providers` and `addresses` (base URLs) belong together, the preferred one first. An answer that has begun is never
    asked for again. The first failure of all is followed by an answer, or by the last error.
    """

    def __init__(
        self, providers: tuple[Provider, ...], addresses: tuple[str, ...], health: AddressHealth | None = None
    ) -> None:
        if not providers or len(providers) != len(addresses):
            raise ValueError("as many addresses as providers, and at least one")
        self._providers = providers
        self._names = tuple(_display_address(address) for address in addresses)
        self._health = health or AddressHealth(len(providers))
        self._address_by_conversation: OrderedDict[str, int] = OrderedDict()
        self._listed = 0  # whose listing is the newest

    @property
    def dialect(self) -> str:
        """The same for all."""
        return self._providers[0].dialect

    @property
    def state(self) -> ProviderState:
        """The sums over all addresses, failed attempts included."""
        states = [each.state for each in self._providers]
        times = [each.last_request_time for each in states if each.last_request_time is not None]
        return ProviderState(
            input_tokens=sum(each.input_tokens for each in states),
            output_tokens=sum(each.output_tokens for each in states),
            cached_tokens=sum(each.cached_tokens for each in states),
            request_count=sum(each.request_count for each in states),
            last_request_time=max(times, default=None),
            conversation_turns=sum(each.conversation_turns for each in states),
            metadata={name: value for each in states for name, value in each.metadata.items()},
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and go on to the next address as long as nothing was said. Raises the last one's error."""
        errors: list[ProviderError] = []
        for number in self._health.order(self._last_address(request)):
            events = self._attempt(number, request)
            has_content = False
            try:
                async for event in events:
                    has_content = has_content or not isinstance(event, _BEFORE_CONTENT)
                    yield event
                return
            except _RETRY_ELSEWHERE as error:
                # What may be billed already is not asked for a second time, there or elsewhere.
                if has_content or (isinstance(error, TimedOut) and error.is_after_sending):
                    raise
                errors.append(error)
            finally:
                await events.aclose()
        raise _all_failed(errors)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The listing of the first address that answers. Raises the last one's error."""
        errors: list[ProviderError] = []
        for number in self._health.order():
            try:
                models = await self._track(number, self._providers[number].list_models)
            except _RETRY_ELSEWHERE as error:
                errors.append(error)
            else:
                self._listed = number
                return models
        raise _all_failed(errors)

    def model_info(self, model: str) -> ModelInfo:
        """As the address knows it that was listed last."""
        return self._providers[self._listed].model_info(model)

    def picture_limits(self, model: str) -> ImageLimits:
        """The same for all."""
        return self._providers[self._listed].picture_limits(model)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Counted where the conversation is."""
        number = self._preferred_address(request)
        return await self._track(number, lambda: self._providers[number].count_tokens(request))

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Kept where the conversation is, and the conversation stays there."""
        number = self._preferred_address(request)
        kept = await self._track(number, lambda: self._providers[number].prompt_cache(request, seconds=seconds))
        self._remember(request, number)
        return kept

    async def aclose(self) -> None:
        """Close them all."""
        for provider in self._providers:
            await provider.aclose()

    async def _attempt(self, number: int, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """One address's answer; its health is told how it went."""
        events = self._providers[number].stream(request)
        self._health.request_started(number)
        is_settled = False
        try:
            async for event in events:
                if isinstance(event, AnswerStarted):
                    yield self._with_failover_note(event, number)
                    continue
                if not is_settled and not isinstance(event, _BEFORE_CONTENT):
                    is_settled = True
                    self._health.request_succeeded(number)
                    self._remember(request, number)
                yield event
        except AgentError as error:
            self._record_error(number, error)
            raise
        finally:
            self._health.request_abandoned(number)
            await events.aclose()

    async def _track(self, number: int, ask: Callable[[], Awaitable[T]]) -> T:
        self._health.request_started(number)
        try:
            answer = await ask()
        except AgentError as error:
            self._record_error(number, error)
            raise
        finally:
            self._health.request_abandoned(number)
        self._health.request_succeeded(number)
        return answer

    def _record_error(self, number: int, error: AgentError) -> None:
        """Who refuses is alive; who broke off in the middle may not be."""
        if isinstance(error, _RETRY_ELSEWHERE):
            self._health.request_failed(number, error.retry_after)
        elif isinstance(error, ProviderError) and error.status is not None:
            self._health.request_succeeded(number)

    def _with_failover_note(self, event: AnswerStarted, number: int) -> AnswerStarted:
        if number == 0:
            return event
        values = {"address": self._names[number], "first": self._names[0]}
        note = Sentence("{address} answers instead of {first}.", values)
        return replace(event, adjustments=(*event.adjustments, note))

    def _preferred_address(self, request: ModelRequest) -> int:
        """Where this conversation is; for a new one the best address now."""
        place = self._last_address(request)
        return place if request.conversation_id in self._address_by_conversation else self._health.order(place)[0]

    def _last_address(self, request: ModelRequest) -> int:
        return self._address_by_conversation.get(request.conversation_id or "", 0)

    def _remember(self, request: ModelRequest, number: int) -> None:
        if request.conversation_id:
            self._address_by_conversation[request.conversation_id] = number
            self._address_by_conversation.move_to_end(request.conversation_id)
            if len(self._address_by_conversation) > _MAX_CONVERSATIONS:
                self._address_by_conversation.popitem(last=False)


def _all_failed(errors: list[ProviderError]) -> ProviderError:
    """The last error, saying how many addresses were tried; the others are in its details."""
    last = errors[-1]
    if len(errors) == 1:
        return last
    told = "\n".join(f"{each.kind}: {each.message}" for each in errors[:-1])
    return type(last)(
        f"{last.message} (all {len(errors)} addresses were tried)",
        status=last.status,
        retry_after=last.retry_after,
        retryable=last.retryable,
        request_id=last.request_id,
        detail=f"{last.detail}\n{told}".strip(),
        remedy=last.remedy,
    )


def _display_address(address: str) -> str:
    """Host, port and path: what a person knows a server by, and nothing that an address may hide."""
    parts = urlsplit(address)
    return (parts.netloc.rpartition("@")[2] + parts.path.rstrip("/"))[:100] or address[:100]
