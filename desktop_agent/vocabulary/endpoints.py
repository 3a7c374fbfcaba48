"""Where models are served: an endpoint is one address, its dialect, and whether it wants a key."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Dialect = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
Kind = Literal["local", "cloud", "custom", "demo"]


class Endpoint(BaseModel):
    """One server as the person knows it. The key is not here: it lies in the keyring under `id`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    title: str
    dialect: Dialect = "openai-chat"
    base_url: str
    kind: Kind = "custom"
    needs_key: bool = False
    key_page: str | None = None


LOCAL_SERVERS: tuple[Endpoint, ...] = (
    Endpoint(id="ollama", title="Ollama", base_url="http://127.0.0.1:11434/v1", kind="local"),
    Endpoint(id="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", kind="local"),
    Endpoint(id="llamacpp", title="llama.cpp", base_url="http://127.0.0.1:8080/v1", kind="local"),
    Endpoint(id="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", kind="local"),
)


def _cloud(id_: str, title: str, base_url: str, key_page: str) -> Endpoint:
    return Endpoint(id=id_, title=title, base_url=base_url, kind="cloud", needs_key=True, key_page=key_page)


CLOUD_PROVIDERS: tuple[Endpoint, ...] = (
    _cloud("openai", "OpenAI", "https://api.openai.com/v1", "https://platform.openai.com/api-keys"),
    _cloud("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "https://openrouter.ai/settings/keys"),
    _cloud("deepseek", "DeepSeek", "https://api.deepseek.com", "https://platform.deepseek.com/api_keys"),
    _cloud("groq", "Groq", "https://api.groq.com/openai/v1", "https://console.groq.com/keys"),
    _cloud("mistral", "Mistral", "https://api.mistral.ai/v1", "https://console.mistral.ai/api-keys"),
    _cloud("xai", "xAI", "https://api.x.ai/v1", "https://console.x.ai"),
)
