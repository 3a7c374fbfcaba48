"""Prompt caching on Chat Completions: servers do it by themselves; OpenAI's can be told a little about it.

Source: OpenAI's reference of Chat Completions (prompt_cache_key, prompt_cache_options, prompt_cache_breakpoint).
"""

from typing import Any

from desktop_agent.providers.dialects.openai_models import openai_model_facts
from desktop_agent.providers.dialects.servers import ServerQuirks
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import ModelRequest

_LONG_LIFETIME = {"mode": "explicit", "ttl": "12h"}


def caching_fields(request: ModelRequest, quirks: ServerQuirks, adjustments: list[Sentence]) -> dict[str, Any]:
    """Fields of the body. A key leads one conversation to the same cache."""
    caching = request.config.caching
    if caching.enabled and caching.lifetime == "long" and not _takes_options(request, quirks):
        values = {"model": request.model}
        adjustments.append(Sentence("How long prompts of “{model}” are kept cannot be chosen.", values))
    if not quirks.cache_key:
        return {}
    if not caching.enabled:
        # No breakpoint is named, so none is written; older models cannot be told.
        return {"prompt_cache_options": {"mode": "explicit"}} if _takes_options(request, quirks) else {}
    return {"prompt_cache_key": request.conversation_id} if request.conversation_id else {}


def with_cache_breakpoints(
    messages: list[dict[str, Any]], request: ModelRequest, quirks: ServerQuirks
) -> list[dict[str, Any]]:
    """The long lifetime is asked for at places: behind the instructions, and behind the newest question."""
    caching = request.config.caching
    if not (caching.enabled and caching.lifetime == "long" and _takes_options(request, quirks)):
        return messages
    marked = list(messages)
    questions = [place for place, message in enumerate(messages) if message["role"] == "user"]
    first = [0] if messages and messages[0]["role"] in ("system", "developer") else []
    for place in (*first, *questions[-1:]):
        marked[place] = {**messages[place], "content": _with_breakpoint(messages[place]["content"])}
    return marked


def _with_breakpoint(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [*parts[:-1], {**parts[-1], "prompt_cache_breakpoint": _LONG_LIFETIME}]


def _takes_options(request: ModelRequest, quirks: ServerQuirks) -> bool:
    facts = openai_model_facts(request.model) if quirks.cache_key else None
    return facts is not None and facts.cache_options
