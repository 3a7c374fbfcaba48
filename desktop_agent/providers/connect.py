"""From an endpoint to a provider: the only place that knows which dialects exist."""

from collections.abc import Iterable
from typing import Protocol

from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.provider import Provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.requests import Timeouts


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
    from desktop_agent.providers.dialects.servers import quirks_for_url

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
            from desktop_agent.providers.dialects.openai_chat import OpenAIChat

            return OpenAIChat
        case "openai-responses":
            from desktop_agent.providers.dialects.openai_responses import OpenAIResponses

            return OpenAIResponses
        case "anthropic":
            from desktop_agent.providers.dialects.anthropic import Anthropic

            return Anthropic
        case "gemini":
            from desktop_agent.providers.dialects.gemini import Gemini

            return Gemini
        case _:
            raise WrongUse(
                f"The dialect “{dialect[:60]}” is not known here.",
                "Choose one of: anthropic, gemini, openai-chat, openai-responses.",
            )
