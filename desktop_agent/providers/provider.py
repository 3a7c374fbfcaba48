"""The provider interface, the provider of an endpoint, and failover among several addresses of one service.

Only `make_provider` knows which dialects exist; each is imported when it is first needed. Failover tries the next
address only before any content; `AddressHealth` remembers which addresses back off.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.event_batches import EventBatches, ready_events
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
from desktop_agent.types.providers import CachedPrompt, ImageLimits, ModelInfo, ModelRequest, ProviderState, TokenCount


class Provider(Protocol):
    """One model server behind one dialect."""

    @property
    def dialect(self) -> str:
        """The dialect's name, as in an endpoint. Thinking blocks name their provider themselves: see the dialect."""
        ...

    @property
    def state(self) -> ProviderState:
        """Totals, readable at any time."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Send a request, and yield canonical events as they arrive.

        Raises ProviderError or CapabilityMissing: at the first step before any content, later when the stream breaks in
        the middle. Closing the generator closes the connection.
        """
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the server's own listing, completed by the catalogue. Raises ProviderError."""
        ...

    def model_info(self, model: str) -> ModelInfo:
        """Return what is known about a model without a request to the server."""
        ...

    def picture_limits(self, model: str) -> ImageLimits:
        """Return what pictures may be sent to a model."""
        ...

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Return the length of a request: counted by the server if it can, else estimated. Raises ProviderError."""
        ...

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Let the server cache the beginning of this request for the questions that follow.

        Raises CachingNotSupported if the server cannot, and ProviderError.
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
    catalogue: Catalogue | None = None,
) -> Provider:
    """Make a provider for one server. Opens nothing yet.

    Raises WrongUse for an unknown dialect, an invalid address, or a key that no header can carry.
    """
    maker = _provider_class(dialect)
    return maker(base_url=base_url, api_key=api_key, http=http, catalogue=catalogue)


def catalogue_vendor(dialect: str, base_url: str) -> str:
    """Return the vendor in the catalogue for a server's models: the vendor, or the family of a compatible server."""
    if dialect in ("anthropic", "gemini"):
        return dialect
    from desktop_agent.providers.dialects.server_families import quirks_for_url

    try:
        return quirks_for_url(base_url).family
    except ValueError:  # no address at all: reported when it is used
        return ""


def complete_address(dialect: str, base_url: str) -> str:
    """Return the address that is used: OpenAI's dialects complete a bare host of a known family of servers.

    Raises WrongUse for what is no address of a server.
    """
    if dialect in ("anthropic", "gemini"):
        return base_url
    from desktop_agent.providers.dialects.server_families import api_root, quirks_for_url

    root = api_root(base_url)
    return api_root(root, quirks_for_url(root).usual_path)


def address_under_v1(dialect: str, base_url: str) -> str | None:
    """Return where a server of OpenAI's dialects may answer instead; None where there is no such address."""
    if dialect in ("anthropic", "gemini"):
        return None
    from desktop_agent.providers.dialects.server_families import url_under_v1

    return url_under_v1(base_url)


def load_dialects(dialects: Iterable[str]) -> None:
    """Import the dialects, so that the first request does not wait for that; blocks. Raises WrongUse."""
    for dialect in dialects:
        _provider_class(dialect)


def _provider_class(dialect: str) -> Callable[..., Provider]:
    """Import a dialect and return its class. Late: most people use one dialect, and the start is measured."""
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


# Seconds of backoff after the first failure; doubled with each further one, up to the maximum.
INITIAL_BACKOFF = 5.0
MAX_BACKOFF = 300.0


@dataclass(slots=True)
class _Address:
    """One address. `failures` in a row; it backs off `until` then; `probing`: one request tries it again."""

    failures: int = 0
    until: float = 0.0
    probing: bool = False


class AddressHealth:
    """Addresses by number. One that failed backs off; after that one request at a time tries it again."""

    def __init__(self, count: int, clock: Callable[[], float] = monotonic) -> None:
        self._addresses = [_Address() for _ in range(count)]
        self._clock = clock

    def order(self, preferred: int = 0) -> tuple[int, ...]:
        """Return all addresses, best first: the preferred one, then as listed; those backing off last, soonest first.

        None is omitted: if all of them back off, the person's own attempt is still made.
        """
        now = self._clock()
        listed = sorted(range(len(self._addresses)), key=lambda number: (number != preferred, number))
        resting = [number for number in listed if self._is_backing_off(number, now)]
        ready = [number for number in listed if number not in resting]
        return (*ready, *sorted(resting, key=lambda number: self._addresses[number].until))

    def request_started(self, number: int) -> None:
        """Record that a request is sent; `request_succeeded`, `request_failed` or `request_abandoned` must follow."""
        address = self._addresses[number]
        address.probing = address.failures > 0

    def request_succeeded(self, number: int) -> None:
        """Record that the address answered, even if with a refusal."""
        self._addresses[number] = _Address()

    def request_failed(self, number: int, hint: float | None = None) -> None:
        """Record that it did not answer or failed; `hint` is the server's own waiting time, in seconds."""
        address = self._addresses[number]
        address.failures += 1
        address.probing = False
        backoff = min(INITIAL_BACKOFF * 2 ** min(address.failures - 1, 16), MAX_BACKOFF)
        address.until = self._clock() + max(backoff, min(hint or 0.0, MAX_BACKOFF))

    def request_abandoned(self, number: int) -> None:
        """Record that the request was given up before it had a result."""
        self._addresses[number].probing = False

    def _is_backing_off(self, number: int, now: float) -> bool:
        address = self._addresses[number]
        return address.failures > 0 and (address.probing or now < address.until)


T = TypeVar("T")

# Errors that another address may not have. It would refuse the request, key or account, too.
_RETRY_ELSEWHERE = (ConnectionFailed, TimedOut, Overloaded, ServerFailed)
# No content yet: after these the request can still be sent elsewhere.
_BEFORE_CONTENT = (AnswerStarted, AnswerNamed, UsageUpdate)
_MAX_CONVERSATIONS = 1000


class Failover:
    """A provider over several addresses. A conversation stays at the address that answered: its prompt is cached there.

    `providers` and `addresses` (base URLs) belong together, the preferred one first. An answer that has begun is never
    requested again. After all failures the last error is raised.
    """

    def __init__(
        self, providers: tuple[Provider, ...], addresses: tuple[str, ...], health: AddressHealth | None = None
    ) -> None:
        self._providers = providers
        self._names = tuple(_display_address(address) for address in addresses)
        self._health = health or AddressHealth(len(providers))
        self._address_by_conversation: OrderedDict[str, int] = OrderedDict()
        self._listed = 0  # the address with the newest listing

    @property
    def dialect(self) -> str:
        return self._providers[0].dialect

    @property
    def state(self) -> ProviderState:
        """Return the sums over all addresses, failed attempts included."""
        states = [provider.state for provider in self._providers]
        times = [state.last_request_time for state in states if state.last_request_time is not None]
        return ProviderState(
            input_tokens=sum(state.input_tokens for state in states),
            output_tokens=sum(state.output_tokens for state in states),
            cached_tokens=sum(state.cached_tokens for state in states),
            request_count=sum(state.request_count for state in states),
            last_request_time=max(times, default=None),
            conversation_turns=sum(state.conversation_turns for state in states),
            metadata={name: value for state in states for name, value in state.metadata.items()},
        )

    def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Try one address after another as long as there is no content. Raises the last address's error."""
        return EventBatches(self._batches(request))

    async def _batches(self, request: ModelRequest) -> AsyncGenerator[Sequence[ProviderEvent], None]:
        errors: list[ProviderError] = []
        for number in self._health.order(self._last_address(request)):
            has_content = False
            try:
                async with aclosing(self._attempt(number, request)) as batches:
                    async for batch in batches:
                        has_content = has_content or _has_content(batch)
                        yield batch
                return
            except _RETRY_ELSEWHERE as error:
                # What may be billed already is not sent again, to this address or another.
                if has_content or (isinstance(error, TimedOut) and error.is_after_sending):
                    raise
                errors.append(error)
        raise _all_failed(errors)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the listing of the first address that answers. Raises the last address's error."""
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
        """Return what is known at the address that was listed last."""
        return self._providers[self._listed].model_info(model)

    def picture_limits(self, model: str) -> ImageLimits:
        """Return the limits, which are the same for all addresses."""
        return self._providers[self._listed].picture_limits(model)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Count at the address of the conversation."""
        number = self._preferred_address(request)
        return await self._track(number, lambda: self._providers[number].count_tokens(request))

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Cache at the address of the conversation; the conversation stays there."""
        number = self._preferred_address(request)
        prompt = await self._track(number, lambda: self._providers[number].prompt_cache(request, seconds=seconds))
        self._remember(request, number)
        return prompt

    async def aclose(self) -> None:
        """Close all providers."""
        for provider in self._providers:
            await provider.aclose()

    async def _attempt(self, number: int, request: ModelRequest) -> AsyncGenerator[Sequence[ProviderEvent], None]:
        has_begun = False
        async with aclosing(self._providers[number].stream(request)) as events:
            with self._watching(number):
                take_ready = ready_events(events)
                async for event in events:
                    if isinstance(event, AnswerStarted):
                        yield (self._with_failover_note(event, number),)
                        continue
                    batch = [event, *take_ready()]
                    if not has_begun and _has_content(batch):
                        has_begun = True
                        self._health.request_succeeded(number)
                        self._remember(request, number)
                    yield batch

    async def _track(self, number: int, send: Callable[[], Awaitable[T]]) -> T:
        with self._watching(number):
            answer = await send()
        self._health.request_succeeded(number)
        return answer

    @contextmanager
    def _watching(self, number: int) -> Generator[None, None, None]:
        """Record how a request ends: a server that refuses works; one that breaks off in the middle may not."""
        self._health.request_started(number)
        try:
            yield
        except AgentError as error:
            if isinstance(error, _RETRY_ELSEWHERE):
                self._health.request_failed(number, error.retry_after)
            elif isinstance(error, ProviderError) and error.status is not None:
                self._health.request_succeeded(number)
            raise
        finally:
            self._health.request_abandoned(number)

    def _with_failover_note(self, event: AnswerStarted, number: int) -> AnswerStarted:
        if number == 0:
            return event
        values = {"address": self._names[number], "first": self._names[0]}
        note = Sentence("{address} answers instead of {first}.", values)
        return replace(event, adjustments=(*event.adjustments, note))

    def _preferred_address(self, request: ModelRequest) -> int:
        number = self._last_address(request)
        return number if request.conversation_id in self._address_by_conversation else self._health.order(number)[0]

    def _last_address(self, request: ModelRequest) -> int:
        return self._address_by_conversation.get(request.conversation_id or "", 0)

    def _remember(self, request: ModelRequest, number: int) -> None:
        if request.conversation_id:
            self._address_by_conversation[request.conversation_id] = number
            self._address_by_conversation.move_to_end(request.conversation_id)
            if len(self._address_by_conversation) > _MAX_CONVERSATIONS:
                self._address_by_conversation.popitem(last=False)


def _has_content(batch: Sequence[ProviderEvent]) -> bool:
    return not all(isinstance(event, _BEFORE_CONTENT) for event in batch)


def _all_failed(errors: list[ProviderError]) -> ProviderError:
    """Return the last error with the number of addresses that were tried; the others are in its details."""
    last = errors[-1]
    if len(errors) == 1:
        return last
    others = "\n".join(f"{error.kind}: {error.message}" for error in errors[:-1])
    values = {"why": last.cause, "count": str(len(errors))}
    return type(last)(
        Sentence("{why} (all {count} addresses were tried)", values),
        status=last.status,
        retry_after=last.retry_after,
        retryable=last.retryable,
        request_id=last.request_id,
        detail=f"{last.detail}\n{others}".strip(),
        remedy=last.remedy,
    )


def _display_address(address: str) -> str:
    """Return host, port and path, by which a person knows a server, without any user name or password."""
    parts = urlsplit(address)
    return (parts.netloc.rpartition("@")[2] + parts.path.rstrip("/"))[:100] or address[:100]
