"""What every dialect offers to the floors above."""

from collections.abc import AsyncGenerator
from typing import Protocol

from desktop_agent.vocabulary.provider_events import ProviderEvent
from desktop_agent.vocabulary.requests import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
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
