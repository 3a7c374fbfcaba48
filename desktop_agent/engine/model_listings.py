"""Models that servers list, saved between starts, and the person's own table `models.toml`."""

import asyncio
import hashlib
import json
import logging
import tomllib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.processes.foreign_code import Fault
from desktop_agent.processes.listeners import Listeners
from desktop_agent.storage.files import file_error, make_private_folder, write_atomically
from desktop_agent.types.errors import AgentError, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import now
from desktop_agent.types.providers import Endpoint, ModelInfo

if TYPE_CHECKING:
    from desktop_agent.providers.catalogue.tables import ModelTable, TableError


_log = logging.getLogger(__name__)

_LISTINGS_FILE = "listings.json"


@dataclass(frozen=True, slots=True)
class Listing:
    """One server's models. `source` identifies the server, as another one may take over its id; `at` in UTC."""

    source: str
    at: AwareDatetime
    models: tuple[ModelInfo, ...]


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    listings: dict[str, Listing]


class ModelListingsFile:
    """The file of listings. They can be asked for again, so a damaged file is ignored silently."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _LISTINGS_FILE

    async def load(self) -> dict[str, Listing]:
        """Return the listings by endpoint; none from a file that is missing, damaged or of another version."""
        return await asyncio.to_thread(self._load)

    async def save(self, listings: dict[str, Listing]) -> None:
        """Write the file atomically. Raises StorageFailed."""
        await asyncio.to_thread(self._save, listings)

    def _load(self) -> dict[str, Listing]:
        try:
            return _Content.model_validate_json(self.path.read_bytes()).listings
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError, RecursionError):
            _log.info("the saved listings cannot be read and are ignored")
            return {}

    def _save(self, listings: dict[str, Listing]) -> None:
        try:
            make_private_folder(self.path.parent, within=self.path.parent)
            write_atomically(self.path, _listings_json(_Content(listings=listings)))
        except OSError as error:
            raise file_error(error, self.path) from error


def _listings_json(content: _Content) -> bytes:
    try:
        return content.model_dump_json(exclude_none=True).encode()
    except PydanticSerializationError:
        # A lone surrogate in a name: no file can hold it, but the other names are worth saving.
        plain = content.model_dump(exclude_none=True)
        return json.dumps(plain, ensure_ascii=False, default=to_jsonable_python).encode(errors="replace")


ModelInfos = tuple[ModelInfo, ...]
_MAX_AGE = timedelta(days=1)


class ModelListings:
    """The listings of all endpoints. `ask` requests one from its server; only those in `saved_endpoints` are saved."""

    def __init__(
        self,
        file: ModelListingsFile | None,
        ask: Callable[[Endpoint], Awaitable[ModelInfos]],
        saved_endpoints: Callable[[], tuple[Endpoint, ...]],
        clock: Callable[[], datetime] = now,
    ) -> None:
        self._file = file
        self._ask = ask
        self._saved_endpoints = saved_endpoints
        self._clock = clock
        self._listings: dict[str, Listing] = {}
        self._outdated: set[str] = set()
        """Endpoints whose listing comes from the file, or lost its prices, and was not refreshed since."""
        self._requests: dict[str, asyncio.Task[ModelInfos]] = {}
        self._tasks: set[asyncio.Task[ModelInfos]] = set()
        self._loading = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._is_loaded = file is None
        self._changed = Listeners[[str]]()
        self.on_change = self._changed.add
        """Call a listener with an endpoint's id when a refresh brought other models than before."""

    async def warm_up(self) -> None:
        """Read the file, once, in a thread."""
        async with self._loading:
            if self._is_loaded or self._file is None:
                return
            saved = await self._file.load()
            self._outdated |= saved.keys() - self._listings.keys()
            self._listings = {**saved, **self._listings}
            self._is_loaded = True

    async def models(self, endpoint: Endpoint, *, refresh: bool = False) -> ModelInfos:
        """Return the models as last listed, also while the server is down; an old listing is refreshed meanwhile.

        With `refresh`, and where nothing is known, wait for the server. Raises ProviderError and what `ask` raises, and
        WrongUse if this is closed meanwhile.
        """
        await self.warm_up()
        known = self._listing_of(endpoint)
        if known is None or refresh:
            return await self._wait_for(self._start_request(endpoint))
        if self._clock() - known.at > _MAX_AGE:
            self._start_request(endpoint)
        return known.models

    def known(self, endpoint: Endpoint) -> ModelInfos:
        """Return the models as last listed, without asking a server."""
        listing = self._listing_of(endpoint)
        return () if listing is None else listing.models

    def refresh(self, endpoint: Endpoint) -> None:
        """Refresh in the background, unless that was done recently in this run."""
        listing = self._listing_of(endpoint)
        if listing is None or endpoint.id in self._outdated or self._clock() - listing.at > _MAX_AGE:
            self._start_request(endpoint)

    def forget(self, endpoint_id: str) -> None:
        """Forget the listing and cancel its pending request."""
        self._listings.pop(endpoint_id, None)
        self._requests.pop(endpoint_id, None)

    def forget_prices(self, endpoint_id: str) -> None:
        """Forget prices: they came from a table that has changed; the server's own come back with its next listing."""
        listing = self._listings.get(endpoint_id)
        if listing is not None:
            self._listings[endpoint_id] = _without_prices(listing)
            self._outdated.add(endpoint_id)

    async def close(self) -> None:
        """Cancel all pending requests."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @staticmethod
    async def _wait_for(request: asyncio.Task[ModelInfos]) -> ModelInfos:
        """Wait for a request that others may wait for too."""
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if request.cancelled() and task is not None and not task.cancelling():
                # `close` cancelled the request, not the caller that waits for it.
                raise WrongUse("This was closed before the server answered.") from None
            raise

    def _listing_of(self, endpoint: Endpoint) -> Listing | None:
        listing = self._listings.get(endpoint.id)
        return listing if listing is not None and listing.source == _source_digest(endpoint) else None

    def _start_request(self, endpoint: Endpoint) -> asyncio.Task[ModelInfos]:
        """Start or join the request of this endpoint: one at a time for each."""
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
                self._listings[endpoint.id] = Listing(_source_digest(endpoint), self._clock(), models)
                self._outdated.discard(endpoint.id)
                await self._save()
                if before is None or before.models != models:
                    self._changed.notify(endpoint.id)
            return models
        finally:
            if self._is_current(endpoint.id):
                del self._requests[endpoint.id]

    def _is_current(self, endpoint_id: str) -> bool:
        """Return whether the pending request still counts: a key or an address may have changed meanwhile."""
        return self._requests.get(endpoint_id) is asyncio.current_task()

    def _on_request_end(self, task: asyncio.Task[ModelInfos]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, AgentError):
            _log.info("a server's models could not be listed: %s", error.kind)
        elif error is not None:
            _log.error("listing a server's models failed: %s", Fault(error).trace)

    async def _save(self) -> None:
        """Save the listings without prices: these come from the tables of models, which may be newer."""
        if self._file is None:
            return
        async with self._saving:
            listings = {
                endpoint.id: _without_prices(listing)
                for endpoint in self._saved_endpoints()
                if (listing := self._listing_of(endpoint)) is not None
            }
            try:
                await self._file.save(listings)
            except StorageFailed as error:
                _log.warning("the listings could not be saved: %s", error.kind)


def _without_prices(listing: Listing) -> Listing:
    return replace(listing, models=tuple(replace(model, price=None) for model in listing.models))


def _source_digest(endpoint: Endpoint) -> str:
    """Return a digest, because an address may hold a secret."""
    typed = [{"models": endpoint.models}] if endpoint.models else []
    identity = json.dumps([endpoint.dialect, endpoint.base_url, *endpoint.mirrors, *typed])
    return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()


MODELS_FILE = "models.toml"


async def load_model_overrides(folder: Path) -> "tuple[ModelTable | None, tuple[Sentence, ...]]":
    """Return the table, if there is one, and its faults in words. Raises nothing."""
    return await asyncio.to_thread(_read_overrides, folder / MODELS_FILE)


def _read_overrides(path: Path) -> "tuple[ModelTable | None, tuple[Sentence, ...]]":
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, ()
    except OSError as error:
        return None, (_unusable_file(path, error.strerror or type(error).__name__),)
    # Late: few people have such a file, and the start is measured.
    from desktop_agent.providers.catalogue.tables import parse_table

    try:
        table = parse_table(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, (_unusable_file(path, Sentence("line {line} is not text in UTF-8", {"line": str(line)})),)
    except tomllib.TOMLDecodeError as error:
        # The parser's own words end with line and column.
        return None, (_unusable_file(path, str(error)),)
    except (ValueError, RecursionError):
        # Python's own limits: thousands of digits or of brackets.
        return None, (_unusable_file(path, Sentence("a number is too long, or it is nested too deeply")),)
    return table, tuple(_skipped_entry(path, error) for error in table.errors)


def _unusable_file(path: Path, why: str | Sentence) -> Sentence:
    return Sentence("Your file “{name}” cannot be used: {why}.", {"name": path.name, "why": why})


def _skipped_entry(path: Path, error: "TableError") -> Sentence:
    values = {"name": path.name, "place": error.place, "why": error.reason}
    if error.line is None:
        return Sentence("In your file “{name}”, {place} was left out: {why}.", values)
    values["line"] = str(error.line)
    return Sentence("In your file “{name}”, line {line}, {place} was left out: {why}.", values)
