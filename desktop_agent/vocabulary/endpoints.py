"""Where models are served: an endpoint is one address, its dialect, and whether it wants a key."""

import ipaddress
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.servers.dialects import Dialect

EndpointKind = Literal["local", "cloud", "custom", "demo"]


def is_loopback(host: str) -> bool:
    """Whether the host is this machine itself: localhost, its sub-names (RFC 6761), 127.0.0.0/8 and ::1."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Endpoint(BaseModel):
    """One server as the person knows it. The key is not here: it lies in the keyring under `id`.

    `has_key` says whether one was put there; None is not known: a preset, or saved by a version that did not say it.
    `mirrors` are further addresses of the same service, which get the same key: they are asked when the first fails.
    `models` are names that the person typed, for a server that does not list its models.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    title: str
    dialect: Dialect = "openai-chat"
    base_url: str
    mirrors: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    kind: EndpointKind = "custom"
    needs_key: bool = False
    has_key: bool | None = None
    key_page: str | None = None

    @property
    def origins(self) -> frozenset[str]:
        """Scheme, host and port of every address: a key that was given for these goes to no other."""
        return frozenset(_origin(each) for each in (self.base_url, *self.mirrors))

    @property
    def may_have_key(self) -> bool:
        """Whether the keyring is to be asked for its key: asking opens windows of the system where it is locked.

        Servers of this machine want none unless they were given one.
        """
        if self.has_key is not None:
            return self.needs_key or self.has_key
        addresses = (self.base_url, *self.mirrors)
        return self.needs_key or not all(is_loopback(urlsplit(each).hostname or "") for each in addresses)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    port = parts.port or {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{parts.hostname or ''}:{port}"


LOCAL_SERVERS: tuple[Endpoint, ...] = (
    Endpoint(id="ollama", title="Ollama", base_url="http://127.0.0.1:11434/v1", kind="local"),
    Endpoint(id="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", kind="local"),
    Endpoint(id="llamacpp", title="llama.cpp", base_url="http://127.0.0.1:8080/v1", kind="local"),
    Endpoint(id="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", kind="local"),
)


def _cloud_endpoint(id_: str, title: str, base_url: str, key_page: str, dialect: Dialect = "openai-chat") -> Endpoint:
    return Endpoint(
        id=id_, title=title, dialect=dialect, base_url=base_url, kind="cloud", needs_key=True, key_page=key_page
    )


CLOUD_PROVIDERS: tuple[Endpoint, ...] = (
    _cloud_endpoint(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        "https://platform.claude.com/settings/keys",
        "anthropic",
    ),
    _cloud_endpoint(
        "openai", "OpenAI", "https://api.openai.com/v1", "https://platform.openai.com/api-keys", "openai-responses"
    ),
    _cloud_endpoint(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com",
        "https://aistudio.google.com/apikey",
        "gemini",
    ),
    _cloud_endpoint("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "https://openrouter.ai/settings/keys"),
    _cloud_endpoint("deepseek", "DeepSeek", "https://api.deepseek.com", "https://platform.deepseek.com/api_keys"),
    _cloud_endpoint("groq", "Groq", "https://api.groq.com/openai/v1", "https://console.groq.com/keys"),
    _cloud_endpoint("mistral", "Mistral", "https://api.mistral.ai/v1", "https://console.mistral.ai/api-keys"),
    _cloud_endpoint("xai", "xAI", "https://api.x.ai/v1", "https://console.x.ai"),
)
