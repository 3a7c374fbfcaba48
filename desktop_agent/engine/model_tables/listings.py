"""Which models each endpoint has: remembered, and saved for the next start and for times without a network."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from desktop_agent.agent.calls.fence import Fault
from desktop_agent.storage.listings_file import ListingsFile, SavedListing
from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import AgentError, StorageFailed
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.requests import ModelInfo

_log = logging.getLogger(__name__)

Models = tuple[ModelInfo, ...]
_OLD = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Listing:
    """`is_saved`: it comes from the file and was not asked for in this run."""

    source: str
    at: datetime
    models: Models
    is_saved: bool = False


class Listings:
    """`ask` gets a listing from its server; `lasting` are the endpoints whose listings may be saved."""

    def __init__(
        self,
        file: ListingsFile | None,
        ask: Callable[[Endpoint], Awaitable[Models]],
        lasting: Callable[[], tuple[Endpoint, ...]],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._file = file
        self._ask = ask
        self._lasting = lasting
        self._clock = clock
        self._listings: dict[str, _Listing] = {}
        self._asking: dict[str, asyncio.Task[Models]] = {}
        self._tasks: set[asyncio.Task[Models]] = set()
        self._loading = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._is_loaded = file is None
        self._listeners: list[Callable[[str], None]] = []

    def on_change(self, listener: Callable[[str], None]) -> None:
        """Be told by its id when an endpoint's models were asked for and are others than before."""
        self._listeners.append(listener)

    async def warm_up(self) -> None:
        """Read the file, once, in a thread."""
        async with self._loading:
            if self._is_loaded or self._file is None:
                return
            for endpoint_id, saved in (await self._file.load()).items():
                listing = _Listing(saved.source, saved.at, saved.models, is_saved=True)
                self._listings.setdefault(endpoint_id, listing)
            self._is_loaded = True

    async def models(self, endpoint: Endpoint, *, refresh: bool = False) -> Models:
        """As last listed, also when nobody can be reached now; what is old is asked for again meanwhile.

        With `refresh`, and where nothing is known, the server's answer. Raises ProviderError and what `ask` raises.
        """
        await self.warm_up()
        known = self._of(endpoint)
        if known is None or refresh:
            return await asyncio.shield(self._started(endpoint))
        if self._clock() - known.at > _OLD:
            self._started(endpoint)
        return known.models

    def known(self, endpoint: Endpoint) -> Models:
        """As last listed, without asking anybody."""
        listing = self._of(endpoint)
        return () if listing is None else listing.models

    def refresh(self, endpoint: Endpoint) -> None:
        """Ask in the background, unless it was done in this run and is not old."""
        listing = self._of(endpoint)
        if listing is None or listing.is_saved or self._clock() - listing.at > _OLD:
            self._started(endpoint)

    def forget(self, endpoint_id: str) -> None:
        """What was listed, and what is being asked for now."""
        self._listings.pop(endpoint_id, None)
        self._asking.pop(endpoint_id, None)

    def forget_prices(self, endpoint_id: str) -> None:
        """They came from a table that has changed; those of the server itself come back with its next listing."""
        listing = self._listings.get(endpoint_id)
        if listing is not None:
            models = tuple(replace(model, price=None) for model in listing.models)
            self._listings[endpoint_id] = replace(listing, models=models, is_saved=True)

    async def close(self) -> None:
        """Stop asking."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _of(self, endpoint: Endpoint) -> _Listing | None:
        listing = self._listings.get(endpoint.id)
        return listing if listing is not None and listing.source == _source(endpoint) else None

    def _started(self, endpoint: Endpoint) -> asyncio.Task[Models]:
        """One question at a time for each endpoint; who comes later waits for the same answer."""
        task = self._asking.get(endpoint.id)
        if task is None:
            task = asyncio.create_task(self._asked(endpoint))
            self._asking[endpoint.id] = task
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        return task

    async def _asked(self, endpoint: Endpoint) -> Models:
        try:
            models = await self._ask(endpoint)
            if self._is_current(endpoint.id):
                before = self._of(endpoint)
                self._listings[endpoint.id] = _Listing(_source(endpoint), self._clock(), models)
                await self._save()
                if before is None or before.models != models:
                    self._tell(endpoint.id)
            return models
        finally:
            if self._is_current(endpoint.id):
                del self._asking[endpoint.id]

    def _is_current(self, endpoint_id: str) -> bool:
        """Whether the running question still counts: a key or an address may have changed meanwhile."""
        return self._asking.get(endpoint_id) is asyncio.current_task()

    def _tell(self, endpoint_id: str) -> None:
        for listener in tuple(self._listeners):
            listener(endpoint_id)

    def _ended(self, task: asyncio.Task[Models]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, AgentError):
            _log.info("a server's models could not be listed: %s", error.kind)
        elif error is not None:
            _log.error("listing a server's models failed: %s", Fault(error).trace)

    async def _save(self) -> None:
        """Prices stay out: they come from the tables of models, which may be newer or the person's own."""
        if self._file is None:
            return
        async with self._saving:
            kept = {endpoint.id: listing for endpoint in self._lasting() if (listing := self._of(endpoint)) is not None}
            saved = {
                endpoint_id: SavedListing(
                    listing.source, listing.at, tuple(replace(model, price=None) for model in listing.models)
                )
                for endpoint_id, listing in kept.items()
            }
            try:
                await self._file.save(saved)
            except StorageFailed as error:
                _log.warning("the listings could not be saved: %s", error.kind)


def _source(endpoint: Endpoint) -> str:
    """A digest, because an address may hold something that is nobody's business."""
    typed = [{"models": endpoint.models}] if endpoint.models else []
    about = json.dumps([endpoint.dialect, endpoint.base_url, *endpoint.mirrors, *typed])
    return hashlib.blake2b(about.encode(), digest_size=8).hexdigest()
