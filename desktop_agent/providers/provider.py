"""The provider interface, how a provider is made for an endpoint, and failover among several addresses of one service.

`make_provider` is the only place that knows which dialects exist; each is imported when it is first asked for.
Failover asks the
next address only before anything of an answer was said; `AddressHealth` remembers which addresses back off.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import (
    AgentError,
    ConnectionFailed,
    Overloaded,
    ProviderError,
    Sentence,
    ServerFailed,
    TimedOut,
    WrongUse,
)
from desktop_agent.types.provider_events import AnswerNamed, AnswerStarted, ProviderEvent, UsageUpdate
from desktop_agent.types.providers import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
    Timeouts,
    TokenCount,
)


class Provider(Protocol):
    """One model server behind one dialect."""

    @property
    def dialect(self) -> str:
        """The dialect's name, as in an endpoint. Thinking blocks name their provider themselves: see the dialect."""
        ...

    @property
    def state(self) -> ProviderState:
        """Totals, readable at any moment."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and yield canonical events as they arrive.

        Raises ProviderError or CapabilityMissing: from the first step when nothing was said yet, later when the
        stream broke in the middle. Closing the generator closes the connection.
        """
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The server's own listing, filled up with what is known besides. Raises ProviderError."""
        ...

    def model_info(self, model: str) -> ModelInfo:
        """What is known about a model without asking anybody."""
        ...

    def picture_limits(self, model: str) -> ImageLimits:
        """What may be sent of pictures."""
        ...

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """How long a request is: counted by the server where it can, else estimated. Raises ProviderError."""
        ...

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Have the server keep the beginning of this request ready for the questions to come.

        Raises CachingNotSupported where this cannot be asked for, and ProviderError.
        """
        ...

    async def aclose(self) -> None:
        """Close what this provider opened."""
        ...


def make_provider(
    dialect: str,
    base_url: str,
    api_key: SecretStr | None,
    http: HttpClient,
    listing_timeouts: Timeouts | None = None,
    catalogue: Catalogue | None = None,
) -> Provider:
    """A provider for one server. Opens nothing yet.

    Raises WrongUse for a dialect that does not exist here, an address that is none, or a key that cannot be one.
    """
    maker = _provider_class(dialect)
    return maker(base_url=base_url, api_key=api_key, http=http, catalogue=catalogue, listing_timeouts=listing_timeouts)


def catalogue_vendor(dialect: str, base_url: str) -> str:
    """Whose row of the catalogue holds for a server's models: the vendor, or the family of a compatible server."""
    if dialect in ("anthropic", "gemini"):
        return dialect
    from desktop_agent.providers.dialects.server_families import quirks_for_url

    try:
        return quirks_for_url(base_url).family
    except ValueError:  # no address at all: said in words when it is used
        return ""


def load_dialects(dialects: Iterable[str]) -> None:
    """Import what speaks them, so that the first request does not wait for it; blocks. Raises WrongUse."""
    for dialect in dialects:
        _provider_class(dialect)


class _ProviderFactory(Protocol):
    def __call__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None,
        http: HttpClient,
        catalogue: Catalogue | None,
        listing_timeouts: Timeouts | None,
    ) -> Provider: ...


def _provider_class(dialect: str) -> _ProviderFactory:
    """Imported late: most people use one dialect, and the start is measured."""
    match dialect:
        case "openai-chat":
            from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat

            return OpenAIChat
        case "openai-responses":
            from desktop_agent.providers.dialects.openai_responses.adapter import OpenAIResponses

            return OpenAIResponses
        case "anthropic":
            from desktop_agent.providers.dialects.anthropic.adapter import Anthropic

            return Anthropic
        case "gemini":
            from desktop_agent.providers.dialects.gemini.adapter import Gemini

            return Gemini
        case _:
            raise WrongUse(
                f"The dialect “{dialect[:60]}” is not known here.",
                "Choose one of: anthropic, gemini, openai-chat, openai-responses.",
            )


# Seconds that an address rests after its first failure; doubled with each further one, up to the longest.
INITIAL_BACKOFF = 5.0
MAX_BACKOFF = 300.0


@dataclass(slots=True)
class _Address:
    """`failures` in a row; `until` when it rests; `probing` while one request finds out whether it is well again."""

    failures: int = 0
    until: float = 0.0
    probing: bool = False


class AddressHealth:
    """Addresses by number. One that failed rests; after its rest one request at a time tries it again."""

    def __init__(self, count: int, clock: Callable[[], float] = monotonic) -> None:
        self._addresses = [_Address() for _ in range(count)]
        self._clock = clock

    def order(self, preferred: int = 0) -> tuple[int, ...]:
        """All addresses, best first: the preferred one, then as listed; those that rest come last, soonest first.

        None is left out: with all of them at rest the person's own attempt is still made.
        """
        now = self._clock()
        listed = sorted(range(len(self._addresses)), key=lambda number: (number != preferred, number))
        resting = [number for number in listed if self._is_backing_off(number, now)]
        ready = [number for number in listed if number not in resting]
        return (*ready, *sorted(resting, key=lambda number: self._addresses[number].until))

    def request_started(self, number: int) -> None:
        """A request goes there now; it must be followed by `succeeded`, `failed` or `left`."""
        address = self._addresses[number]
        address.probing = address.failures > 0

    def request_succeeded(self, number: int) -> None:
        """It answered, be it with a refusal."""
        self._addresses[number] = _Address()

    def request_failed(self, number: int, hint: float | None = None) -> None:
        """It did not answer, or is out of order; `hint` is the server's own wish for rest, in seconds."""
        address = self._addresses[number]
        address.failures += 1
        address.probing = False
        rest = min(INITIAL_BACKOFF * 2 ** min(address.failures - 1, 16), MAX_BACKOFF)
        address.until = self._clock() + max(rest, min(hint or 0.0, MAX_BACKOFF))

    def request_abandoned(self, number: int) -> None:
        """The request was given up before anything was learnt."""
        self._addresses[number].probing = False

    def _is_backing_off(self, number: int, now: float) -> bool:
        address = self._addresses[number]
        return address.failures > 0 and (address.probing or now < address.until)


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
