"""Prompts that the server keeps ready for a while: cachedContents (ai.google.dev/api/caching).

A request that begins exactly with a kept prompt names it and leaves that beginning out. What is kept costs money by
the hour, so it is deleted when something longer takes its place, and at the end. Implicit caching needs nothing of
this: there equal beginnings are enough.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any

from desktop_agent.providers.dialects.prefix import PrefixDigest
from desktop_agent.providers.transport.failures import not_a_model_server_error
from desktop_agent.providers.transport.json_text import dumps, is_object, loads, object_in
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import (
    AgentError,
    CachingNotSupported,
    InvalidRequest,
    NotFound,
    PermissionRefused,
    ProviderError,
)
from desktop_agent.vocabulary.requests import CachedPrompt

Exchange = Callable[[str, str, bytes | None], Awaitable[bytes]]
# docs.cloud.google.com, Gemini 4 Argon: only implicit caching.
_IMPLICIT_ONLY = ("gemini-4-argon",)
_PREFIX_FIELDS = ("systemInstruction", "tools", "toolConfig")
# A prompt this close to its end, in seconds, is not relied on.
_EXPIRY_MARGIN = 5.0
# Nobody waits longer for deletions when the program closes, in seconds.
_CLOSE_TIMEOUT = 3.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedPrefix:
    """One kept prompt: the server's name for it, how many contents it holds, and when it is gone (monotonic clock)."""

    name: str
    model: str
    size: int
    digest: str
    until: float


class PromptCaches:
    """The prompts that one provider had kept. `ask(method, path, body)` talks with the server."""

    def __init__(self, ask: Exchange) -> None:
        self._ask = ask
        self._kept: list[CachedPrefix] = []
        self._busy = asyncio.Lock()

    def shortened(self, model: str, fields: JsonObject) -> tuple[JsonObject, CachedPrefix | None]:
        """The same request with the longest kept prompt in place of its beginning, and which one that is."""
        if "cachedContent" in fields:
            return fields, None
        kept = max(self._matching(model, fields), key=lambda each: each.size, default=None)
        # Contents must not be empty.
        if kept is None or kept.size >= len(fields["contents"]):
            return fields, None
        rest = {name: value for name, value in fields.items() if name not in _PREFIX_FIELDS}
        return {**rest, "contents": fields["contents"][kept.size :], "cachedContent": kept.name}, kept

    def forget(self, kept: CachedPrefix) -> None:
        """The server does not have it any more."""
        with suppress(ValueError):
            self._kept.remove(kept)

    async def create(self, model: str, fields: JsonObject, size: int, seconds: int) -> CachedPrompt:
        """Have the first contents and what stands above them kept, or kept longer.

        Raises CachingNotSupported and ProviderError.
        """
        if model.startswith(_IMPLICIT_ONLY):
            raise CachingNotSupported(f"{model} keeps prompts by itself; it cannot be asked to.")
        above = {name: fields[name] for name in _PREFIX_FIELDS if name in fields}
        if not size and not above:
            raise CachingNotSupported("Nothing stands before the question, so there is nothing to keep.")
        async with self._busy:
            known = self._matching(model, fields)
            same = next((each for each in known if each.size == size), None)
            found = await self._renew(same, seconds) if same is not None else None
            if found is None:
                kept_contents = {"contents": fields["contents"][:size]} if size else {}
                path = model if "/" in model else f"models/{model}"
                body = {"model": path, **kept_contents, **above, "ttl": f"{seconds}s"}
                found = await self._ask("POST", "cachedContents", dumps(body))
            prompt = _parse_cached_prompt(found)
            digest = _digest(model, fields, size)
            self._kept = [each for each in self._kept if each not in known]
            self._kept.append(CachedPrefix(prompt.name or "", model, size, digest, monotonic() + seconds))
            await self._delete_all([each for each in known if each.name != prompt.name])
        return prompt

    async def aclose(self) -> None:
        """Delete what is kept. Raises nothing, and waits for a few seconds only."""
        kept, self._kept = [each for each in self._kept if each.until > monotonic()], []
        await self._delete_all(kept)

    def _matching(self, model: str, fields: JsonObject) -> list[CachedPrefix]:
        """Those alive that the request begins with."""
        self._kept = [each for each in self._kept if each.until > monotonic()]
        return [
            each
            for each in self._kept
            if each.model == model
            and each.until - _EXPIRY_MARGIN > monotonic()
            and each.size <= len(fields["contents"])
            and each.digest == _digest(model, fields, each.size)
        ]

    async def _renew(self, kept: CachedPrefix, seconds: int) -> bytes | None:
        """Its new description, or None where the server does not have it any more."""
        try:
            return await self._ask("PATCH", kept.name, dumps({"ttl": f"{seconds}s"}))
        except (InvalidRequest, NotFound, PermissionRefused):
            self.forget(kept)
            return None

    async def _delete_all(self, kept: list[CachedPrefix]) -> None:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await asyncio.gather(*(self._delete(each) for each in kept))
        except TimeoutError:
            _log.info("the server did not delete %d kept prompts in time; they end by themselves", len(kept))

    async def _delete(self, kept: CachedPrefix) -> None:
        try:
            await self._ask("DELETE", kept.name, None)
        except AgentError as error:
            _log.info("a kept prompt was not deleted (%s); it ends by itself", error.kind)


def is_cache_missing(error: ProviderError) -> bool:
    """Whether a request may have been refused because its kept prompt is no longer there: an expired one is reported
    as missing, as not permitted, or as a bad argument."""
    return isinstance(error, (InvalidRequest, NotFound, PermissionRefused)) and error.status in (400, 403, 404)


def _digest(model: str, fields: JsonObject, size: int) -> str:
    digest = PrefixDigest(model)
    for name in _PREFIX_FIELDS:
        digest.add(fields.get(name))
    for content in fields["contents"][:size]:
        digest.add(content)
    return digest.value


def _parse_cached_prompt(body: bytes) -> CachedPrompt:
    try:
        data = loads(body)
    except ValueError:
        data = None
    read: JsonObject = data if is_object(data) else {}
    name, tokens = read.get("name"), object_in(read, "usageMetadata").get("totalTokenCount")
    if not isinstance(name, str) or not name.startswith("cachedContents/"):
        raise not_a_model_server_error({}, body[:200].decode("utf-8", "replace"))
    return CachedPrompt(name, tokens if type(tokens) is int else None, _parse_time(read.get("expireTime")))


def _parse_time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
