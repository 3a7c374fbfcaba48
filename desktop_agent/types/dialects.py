"""Wire dialects, vendors' addresses and names of environment variables. Loaded before the window: no pydantic."""

from typing import Literal

Dialect = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
BASE_URL_VARIABLE = "DESKTOP_AGENT_BASE_URL"
API_KEY_VARIABLE = "DESKTOP_AGENT_API_KEY"
MODEL_VARIABLE = "DESKTOP_AGENT_MODEL"
VENDOR_BASE_URLS: dict[Dialect, str] = {
    "openai-chat": "https://api.openai.com/v1",
    "openai-responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
