"""Which models each endpoint has: remembered, and saved for the next start and for times without a network."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from desktop_agent.agent.calls.fence import Fault
from desktop_agent.storage.listings_file import ModelListingsFile, SavedListing
from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import AgentError, StorageFailed
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.requests import ModelInfo

_log = logging.getLogger(__name__)

ModelInfos = tuple[ModelInfo, ...]
_MAX_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Listing:
    """`is_saved`: it comes from the file and was not asked for in this run."""

    source: str
    at: datetime
    models: ModelInfos
    is_saved: bool = False


class ModelListings:
    """`ask` gets a listing from its server; `lasting` are the endpoints whose listings may be saved."""

    def __init__(
        self,
        file: ModelListingsFile | None,
        ask: Callable[[Endpoint], Awaitable[ModelInfos]],
        lasting: Callable[[], tuple[Endpoint, ...]],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._file = file
        self._ask = ask
        self._saved_endpoints = lasting
        self._clock = clock
        self._listings: dict[str, _Listing] = {}
        self._requests: dict[str, asyncio.Task[ModelInfos]] = {}
        self._tasks: set[asyncio.Task[ModelInfos]] = set()
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

    async def models(self, endpoint: Endpoint, *, refresh: bool = False) -> ModelInfos:
        """As last listed, also when nobody can be reached now; what is old is asked for again meanwhile.

        With `refresh`, and where nothing is known, the server's answer. Raises ProviderError and what `ask` raises.
        """
        await self.warm_up()
        known = self._listing_of(endpoint)
        if known is None or refresh:
            return await asyncio.shield(self._start_request(endpoint))
        if self._clock() - known.at > _MAX_AGE:
            self._start_request(endpoint)
        return known.models

    def known(self, endpoint: Endpoint) -> ModelInfos:
        """As last listed, without asking anybody."""
        listing = self._listing_of(endpoint)
        return () if listing is None else listing.models

    def refresh(self, endpoint: Endpoint) -> None:
        """Ask in the background, unless it was done in this run and is not old."""
        listing = self._listing_of(endpoint)
        if listing is None or listing.is_saved or self._clock() - listing.at > _MAX_AGE:
            self._start_request(endpoint)

    def forget(self, endpoint_id: str) -> None:
        """What was listed, and what is being asked for now."""
        self._listings.pop(endpoint_id, None)
        self._requests.pop(endpoint_id, None)

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

    def _listing_of(self, endpoint: Endpoint) -> _Listing | None:
        listing = self._listings.get(endpoint.id)
        return listing if listing is not None and listing.source == _source_digest(endpoint) else None

    def _start_request(self, endpoint: Endpoint) -> asyncio.Task[ModelInfos]:
        """One question at a time for each endpoint; who comes later waits for the same answer."""
        task = self._requests.get(endpoint.id)
        if task is None:
            task = asyncio.create_task(self._request(endpoint))
            self._requests[endpoint.id] = task
            self._tasks.add(task)
            task.add_done_callback(self._on_request_end)
        return task

    async def _request(self, endpoint: Endpoint) -> ModelInfos:
        try:
            models = await self._ask(endpoint)
            if self._is_current(endpoint.id):
                before = self._listing_of(endpoint)
                self._listings[endpoint.id] = _Listing(_source_digest(endpoint), self._clock(), models)
                await self._save()
                if before is None or before.models != models:
                    self._notify(endpoint.id)
            return models
        finally:
            if self._is_current(endpoint.id):
                del self._requests[endpoint.id]

    def _is_current(self, endpoint_id: str) -> bool:
        """Whether the running question still counts: a key or an address may have changed meanwhile."""
        return self._requests.get(endpoint_id) is asyncio.current_task()

    def _notify(self, endpoint_id: str) -> None:
        for listener in tuple(self._listeners):
            listener(endpoint_id)

    def _on_request_end(self, task: asyncio.Task[ModelInfos]) -> None:
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
            kept = {
                endpoint.id: listing
                for endpoint in self._saved_endpoints()
                if (listing := self._listing_of(endpoint)) is not None
            }
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


def _source_digest(endpoint: Endpoint) -> str:
    """A digest, because an address may hold something that is nobody's business."""
    typed = [{"models": endpoint.models}] if endpoint.models else []
    about = json.dumps([endpoint.dialect, endpoint.base_url, *endpoint.mirrors, *typed])
    return hashlib.blake2b(about.encode(), digest_size=8).hexdigest()
