"""From an event that tells of an error back to the error, so that a face can raise it."""

from collections import deque
from collections.abc import AsyncGenerator

from desktop_agent.providers.provider import Provider
from desktop_agent.vocabulary.engine_events import ErrorOccurred
from desktop_agent.vocabulary.errors import AgentError, ProviderError
from desktop_agent.vocabulary.provider_events import ProviderEvent
from desktop_agent.vocabulary.requests import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
    TokenCount,
)


class FailureRecordingProvider:
    """A provider that remembers what its last answer failed with: an event does not say all that the error knows."""

    def __init__(self, provider: Provider) -> None:
        self.failure: AgentError | None = None
        self._provider = provider

    @property
    def dialect(self) -> str:
        """Its own."""
        return self._provider.dialect

    @property
    def state(self) -> ProviderState:
        """Its own."""
        return self._provider.state

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask. Raises what it raises."""
        self.failure = None
        events = self._provider.stream(request)
        try:
            async for event in events:
                yield event
        except AgentError as error:
            self.failure = error
            raise
        finally:
            await events.aclose()

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Its own."""
        return await self._provider.list_models()

    def model_info(self, model: str) -> ModelInfo:
        """Its own."""
        return self._provider.model_info(model)

    def picture_limits(self, model: str) -> ImageLimits:
        """Its own."""
        return self._provider.picture_limits(model)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Its own."""
        return await self._provider.count_tokens(request)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Its own."""
        return await self._provider.prompt_cache(request, seconds=seconds)

    async def aclose(self) -> None:
        """Close it."""
        await self._provider.aclose()


def error_from_event(event: ErrorOccurred, failure: AgentError | None = None) -> AgentError:
    """The error behind the event: `failure` where it is that one, else one of the same kind that says the same."""
    if failure is not None and (failure.kind, failure.sentence) == (event.kind, event.sentence):
        return failure.with_traceback(None)
    kind = _error_class(event.kind)
    if issubclass(kind, ProviderError):
        return kind(event.message, detail=event.detail, remedy=event.remedy)
    return kind(event.sentence, event.remedy, detail=event.detail)


def _error_class(kind: str) -> type[AgentError]:
    """The one nearest to the root: those below it may say more than is known."""
    waiting = deque[type[AgentError]]([AgentError])
    while waiting:
        candidate = waiting.popleft()
        if candidate.kind == kind:
            return candidate
        waiting.extend(candidate.__subclasses__())
    return AgentError
