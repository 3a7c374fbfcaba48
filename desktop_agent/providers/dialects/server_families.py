"""Which family a server belongs to, what it accepts, and the URLs made from its base URL.

A base URL suggests a family; the model listing may correct it; the user's setting overrides both. server_families.toml
holds the families.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from desktop_agent.data_files import load_table
from desktop_agent.providers.transport.json_codec import text_in
from desktop_agent.types.blocks import MEDIA_TYPES_WITHOUT_GIF, SUPPORTED_MEDIA_TYPES
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.providers import ImageLimits, is_loopback

ReasoningSwitch = Literal["none", "openai", "openrouter", "deepseek", "ollama", "llamacpp", "xai"]
ReasoningReplay = Literal["none", "reasoning_content", "reasoning", "reasoning_details", "parts", "thinking_blocks"]


@dataclass(frozen=True, slots=True)
class ServerQuirks:
    """What one family of servers accepts; the defaults are the old core that every compatible server understands."""

    family: str = "stranger"
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    switch: ReasoningSwitch = "none"  # how reasoning is requested; "none": no documented way
    replay: ReasoningReplay = "none"  # how an assistant message carries its reasoning back
    replay_on_calls_only: bool = False
    extra_content: bool = False  # Google's signatures go back on the calls they came with
    think_tags: bool = False
    image_urls: bool = True
    image_gif: bool = True
    tool_choice: bool = True
    required_word: Literal["required", "any"] = "required"
    call_ids: Literal["any", "forty", "nine"] = "any"
    ask_for_usage: bool = True  # stream_options.include_usage
    top_k: bool = False
    null_content: bool = False  # content null beside tool calls; elsewhere ""
    key_header: Literal["Authorization", "api-key"] = "Authorization"
    cache_key: bool = False
    # What it accepts as response_format; "only_schema": a schema but not "any object". "none": the prompt requests it.
    structured: Literal["schema", "only_schema", "object", "none"] = "none"
    alternates: bool = False  # templates that require user and assistant in turn
    usual_path: str = ""  # added to an address that is only a host

    @property
    def thinking_provider(self) -> str:
        """Return what thinking blocks are marked with, so that one family's never reach another."""
        return "openai-compat" if self.family == "stranger" else f"openai-compat/{self.family}"


_TABLES = load_table(__name__, "server_families.toml")
FAMILIES = {name: ServerQuirks(family=name, **fields) for name, fields in _TABLES["families"].items()}
_FAMILY_BY_HOST: Mapping[str, str] = _TABLES["hosts"]
_VENDOR_HOSTS = (*_FAMILY_BY_HOST, "anthropic.com", "googleapis.com")
_FAMILY_BY_PORT: Mapping[str, str] = _TABLES["ports"]
_FAMILY_BY_LOOPBACK_PORT: Mapping[str, str] = _TABLES["loopback_ports"]
_FAMILY_BY_OWNER: Mapping[str, str] = _TABLES["owners"]


def picture_limits(quirks: ServerQuirks) -> ImageLimits:
    """Return a family's limits for pictures. Undocumented ones are None, but few models read animations.

    OpenAI: 20 MB a picture and 500 in one request, by its older guide.
    """
    is_openai = quirks.family in ("openai", "azure")
    return ImageLimits(
        SUPPORTED_MEDIA_TYPES if quirks.image_gif else MEDIA_TYPES_WITHOUT_GIF,
        max_bytes=20_000_000 if is_openai else None,
        max_count=500 if is_openai else None,
        accepts_animated=False,
        accepts_urls=quirks.image_urls,
    )


def quirks_for_url(base_url: str) -> ServerQuirks:
    """Return the family that the address suggests. Ports that many programs use count on this machine only."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").lower()
    for name, family in _FAMILY_BY_HOST.items():
        if host.endswith(name) if name[0] == "." else host == name:
            return FAMILIES[family]
    family = _FAMILY_BY_PORT.get(str(parts.port))
    if family is None and is_loopback(host):
        family = _FAMILY_BY_LOOPBACK_PORT.get(str(parts.port))
    return FAMILIES[family or "stranger"]


def may_repeat(base_url: str) -> bool:
    """Whether a server at this address may repeat what it sent: any but the vendors' own."""
    host = (urlsplit(base_url).hostname or "").lower()
    return not any(host == name or host.endswith(f".{name.lstrip('.')}") for name in _VENDOR_HOSTS)


def quirks_for_listing(entries: list[dict[str, Any]], guess: ServerQuirks) -> ServerQuirks:
    """Return the family that the listing suggests: it corrects a guess from a port, never a vendor's own host name."""
    if guess.family not in {*_FAMILY_BY_PORT.values(), *_FAMILY_BY_LOOPBACK_PORT.values(), "stranger"}:
        return guess
    owners = [_FAMILY_BY_OWNER.get(text_in(entry, "owned_by")) for entry in entries]
    families = {family for family in owners if family is not None}
    return FAMILIES[families.pop()] if len(families) == 1 else guess


_REMEDY = "Enter the base URL of the API, for example http://127.0.0.1:11434/v1."
_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/responses", "/messages")


def api_root(base_url: str, usual_path: str = "") -> str:
    """Return the base URL without trailing slash, fragment or endpoint; `usual_path` completes a bare host.

    A query (Azure's api-version) is kept. Raises WrongUse with a sentence for what is no address of a server.
    """
    parts = _parse_base_url(base_url)
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    return parts._replace(path=path or usual_path, fragment="").geturl()


def url_under_v1(root: str) -> str | None:
    """Return `root/v1`, where most servers of OpenAI's dialects answer; None if the address ends in /v1 already."""
    parts = urlsplit(root)
    path = parts.path.rstrip("/")
    return None if path.endswith("/v1") else parts._replace(path=f"{path}/v1").geturl()


def join_url(root: str, path: str) -> str:
    """Return `root/path`; a `v1/` that both have is used once, and the root's query goes to the end."""
    parts = urlsplit(root)
    head = parts.path.rstrip("/")
    if path.startswith("v1/") and head.endswith("/v1"):
        path = path.removeprefix("v1/")
    return parts._replace(path=f"{head}/{path}").geturl()


def url_outside_v1(root: str, path: str) -> str:
    """Return an address of the same server outside of its `/v1`."""
    parts = urlsplit(root)
    return parts._replace(path=f"{parts.path.rstrip('/').removesuffix('/v1')}/{path}").geturl()


def _parse_base_url(base_url: str) -> SplitResult:
    text = base_url.strip()
    if not text:
        raise WrongUse("The server's address is empty.", _REMEDY)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise WrongUse(Sentence("“{address}” is not an address.", {"address": text[:200]}), _REMEDY) from None
    if parts.scheme not in ("http", "https"):
        sentence = Sentence("“{address}” does not begin with http:// or https://.", {"address": text[:200]})
        raise WrongUse(sentence, _REMEDY)
    if parts.username is not None or parts.password is not None:
        raise WrongUse("The address holds a user name or password.", "Leave it out, and enter the key as API key.")
    if not parts.hostname or port == 0 or not text.isprintable() or any(space in text for space in " \t"):
        raise WrongUse(Sentence("“{address}” names no server.", {"address": text[:200]}), _REMEDY)
    return parts
