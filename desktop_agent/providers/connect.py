"""From an endpoint to a provider: the only place that knows which dialects exist."""

from collections.abc import Callable

from pydantic import SecretStr

from desktop_agent.providers.dialects.openai_chat import OpenAIChat
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
) -> Provider:
    """A provider for one server. Opens nothing yet.

    Raises WrongUse for a dialect that does not exist here, an address that is none, or a key that cannot be one.
    """
    maker = _MAKERS.get(dialect)
    if maker is None:
        known = ", ".join(sorted(_MAKERS))
        raise WrongUse(f"The dialect “{dialect[:60]}” is not known here.", f"Choose one of: {known}.")
    return maker(base_url, api_key, http, listing_timeouts)


def _openai_chat(
    base_url: str, api_key: SecretStr | None, http: HttpClient, listing_timeouts: Timeouts | None
) -> Provider:
    return OpenAIChat(base_url=base_url, api_key=api_key, http=http, listing_timeouts=listing_timeouts)


_Maker = Callable[[str, SecretStr | None, HttpClient, Timeouts | None], Provider]
_MAKERS: dict[str, _Maker] = {"openai-chat": _openai_chat}
