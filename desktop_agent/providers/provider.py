"""What every dialect offers to the floors above."""

from collections.abc import AsyncGenerator
from typing import Protocol

from desktop_agent.vocabulary.provider_events import ProviderEvent
from desktop_agent.vocabulary.requests import ModelInfo, ModelRequest, ProviderState


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
        """The server's own listing, with capabilities where it tells them. Raises ProviderError."""
        ...

    async def aclose(self) -> None:
        """Close what this provider opened."""
        ...
