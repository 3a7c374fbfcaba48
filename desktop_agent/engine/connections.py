"""Servers in use, their keys and models."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from desktop_agent.engine.model_listings import ModelListings, ModelListingsFile
from desktop_agent.processes.worker_threads import wait_for_all
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.provider import (
    Failover,
    Provider,
    address_under_v1,
    catalogue_vendor,
    complete_address,
    load_dialects,
    make_provider,
)
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import (
    AgentError,
    AuthenticationFailed,
    InvalidRequest,
    KeyRequired,
    NotFound,
    PermissionRefused,
    ProviderError,
    SecretsUnavailable,
    Sentence,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.preferences import Preferences
from desktop_agent.types.providers import (
    CLOUD_PROVIDERS,
    DEMO_ENDPOINT,
    LOCAL_ENDPOINT,
    LOCAL_SERVERS,
    Endpoint,
    ImageLimits,
    ModelInfo,
    local_endpoint,
)

if TYPE_CHECKING:
    from desktop_agent.local_models.runner import LocalModels
    from desktop_agent.providers.demo.server import DemoServer


_DEMO_TITLE = "Demo (offline)"
# A local server that answers at all answers at once; in seconds.
_DISCOVERY_TIMEOUT = 2.0
_PRESETS = (*LOCAL_SERVERS, *CLOUD_PROVIDERS)
_NOT_OFFERED_STATUSES = {405, 501}


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A local server and its models, or None where nobody answered."""

    endpoint: Endpoint
    models: tuple[ModelInfo, ...] | None


class Connections:
    """Makes providers from endpoints and keys. `given` and its key hold for this run only and are never saved.

    `catalogue` adds what is known about models besides their listings, which `saved` stores between two starts.
    """

    def __init__(
        self,
        secrets: SecretStore,
        http: HttpClient,
        preferences: Callable[[], Preferences],
        *,
        given: Endpoint | None = None,
        given_key: SecretStr | None = None,
        catalogue: Catalogue | None = None,
        saved: ModelListingsFile | None = None,
    ) -> None:
        self._secrets = secrets
        self._http = http
        self._preferences = preferences
        self._given = given
        self._given_key = given_key
        self._providers: dict[str, Provider] = {}
        self._forgotten = 0  # how many providers were, so far
        self._catalogue = catalogue or Catalogue()
        self._listings = ModelListings(saved, self._listed_by_server, lambda: self._preferences().providers.endpoints)
        self.on_models_changed = self._listings.on_change
        self._demo: DemoServer | None = None
        self._demo_endpoint: Endpoint | None = None
        self._starting_demo = asyncio.Lock()

    @cached_property
    def local(self) -> "LocalModels":
        """The model files that the person runs. Made late: most people have none, and the start is measured."""
        from desktop_agent.local_models.runner import LocalModels

        return LocalModels(
            lambda: self._preferences().local,
            lambda address, key: make_provider("openai-chat", address, key, self._http, self._catalogue),
        )

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the servers in use: the one of the command line, then those the person added."""
        added = self._preferences().providers.endpoints
        first = () if self._given is None else (self._given,)
        demo = () if self._demo_endpoint is None else (self._demo_endpoint,)
        local = local_endpoint(self._preferences().local.models)
        return (*first, *added, *(() if local is None else (local,)), *demo)

    def endpoint(self, endpoint_id: str) -> Endpoint:
        """Return the endpoint of this id. Raises WrongUse."""
        for endpoint in self.endpoints():
            if endpoint.id == endpoint_id:
                return endpoint
        titles = {DEMO_ENDPOINT: _DEMO_TITLE, **{preset.id: preset.title for preset in _PRESETS}}
        # The id of a server that the person added is all that is left of it; its address is in there.
        title = titles.get(endpoint_id, endpoint_id.removeprefix("custom:"))
        raise WrongUse(Sentence("The server “{title}” is no longer set up.", {"title": title}), "Choose another model.")

    def require_endpoint(self, endpoint_id: str | None) -> None:
        """Raise WrongUse for a server that is no longer set up."""
        if endpoint_id not in (None, DEMO_ENDPOINT) and endpoint_id not in self._providers:
            self.endpoint(endpoint_id)

    async def start_demo(self) -> Endpoint:
        """Return the demo's loopback server, started on first use."""
        async with self._starting_demo:
            if self._demo_endpoint is None:
                # Late: most people never use the demo.
                from desktop_agent.providers.demo.server import DemoServer

                self._demo = DemoServer()
                base_url = await self._demo.start()
                self._demo_endpoint = Endpoint(id=DEMO_ENDPOINT, title=_DEMO_TITLE, base_url=base_url, kind="demo")
            return self._demo_endpoint

    async def provider(self, endpoint_id: str) -> Provider:
        """Return the provider for this endpoint. Raises WrongUse, SecretsUnavailable, AuthenticationFailed."""
        if endpoint_id == DEMO_ENDPOINT:
            await self.start_demo()
        if endpoint_id == LOCAL_ENDPOINT:
            return self.local.provider
        while endpoint_id not in self._providers:
            await self._catalogue.warm_up()
            endpoint, forgotten = self.endpoint(endpoint_id), self._forgotten
            key = await self._key_for(endpoint)
            if forgotten != self._forgotten:
                continue  # meanwhile it was removed or changed, or its key was
            if key is None and endpoint.needs_key:
                raise KeyRequired(Sentence("there is none for {server} yet.", {"server": endpoint.title}))
            self._providers[endpoint_id] = self._make(endpoint, key)
        return self._providers[endpoint_id]

    async def models(self, endpoint_id: str, *, refresh: bool = False) -> tuple[ModelInfo, ...]:
        """Return the models of this endpoint as last listed, even before this start and while the server is down.

        With `refresh` the server is asked. Raises ProviderError and what `provider` raises.
        """
        if endpoint_id == DEMO_ENDPOINT:
            await self.start_demo()
        endpoint = self.endpoint(endpoint_id)
        models = await self._listings.models(endpoint, refresh=refresh)
        return tuple(self._catalogue.merged(_vendor_of_endpoint(endpoint), model) for model in models)

    def known_model(self, endpoint_id: str, model: str) -> ModelInfo | None:
        """Return what is known of a model without asking a server: listed, from its provider, or in the catalogue."""
        endpoint = next((known for known in (*self.endpoints(), *_PRESETS) if known.id == endpoint_id), None)
        if endpoint is None:
            return None
        listed = next((info for info in self._listings.known(endpoint) if info.id == model), None)
        if listed is not None:
            return self._catalogue.merged(_vendor_of_endpoint(endpoint), listed)
        provider = self._providers.get(endpoint_id)
        if provider is not None and model:
            return provider.model_info(model)
        return self._catalogue.find(_vendor_of_endpoint(endpoint), model)

    def listed_models(self, endpoint: Endpoint) -> tuple[ModelInfo, ...]:
        """Return the models of an endpoint as last listed, without asking a server."""
        return tuple(
            self._catalogue.merged(_vendor_of_endpoint(endpoint), model) for model in self._listings.known(endpoint)
        )

    def picture_limits(self, endpoint_id: str, model: str) -> ImageLimits:
        """Return the picture limits; no limits before the server was first used."""
        provider = self._providers.get(endpoint_id)
        return ImageLimits() if provider is None else provider.picture_limits(model)

    async def check(self, endpoint: Endpoint, key: SecretStr | None) -> tuple[Endpoint, tuple[ModelInfo, ...]]:
        """Ask the server for its models with this key, without storing anything. Raises ProviderError.

        Return it with the address that answered: `/v1` under the given one is tried too.
        """
        await self._catalogue.warm_up()
        endpoint = with_complete_address(endpoint)
        provider = self._make(endpoint, key)
        try:
            return endpoint, _typed_first(endpoint, provider, await provider.list_models())
        except ProviderError as error:
            if isinstance(error, (NotFound, UnreadableAnswer)) and (
                result := await self._check_under_v1(endpoint, key)
            ):
                return result
            if not endpoint.models or not lacks_listing(error):
                raise
            return endpoint, _typed_first(endpoint, provider, ())

    async def check_again(self, endpoint_id: str) -> tuple[Endpoint, tuple[ModelInfo, ...]]:
        """Check a server in use with its key. Raises as `provider` does, and ProviderError."""
        endpoint = self.endpoint(endpoint_id)
        return await self.check(endpoint, await self._key_for(endpoint))

    async def _check_under_v1(
        self, endpoint: Endpoint, key: SecretStr | None
    ) -> tuple[Endpoint, tuple[ModelInfo, ...]] | None:
        """Check the address with `/v1`; None if there is no list of models either. Raises ProviderError for a refusal.

        Where the person typed models, the given address counts as right: only a refused key shows that this one is.
        """
        address = address_under_v1(endpoint.dialect, endpoint.base_url)
        if address is None:
            return None
        # Mirrors with the same path lack `/v1` too.
        path = _path_of(endpoint.base_url)
        mirrors = tuple(
            address_under_v1(endpoint.dialect, mirror) or mirror if _path_of(mirror) == path else mirror
            for mirror in endpoint.mirrors
        )
        endpoint = endpoint.model_copy(update={"base_url": address, "mirrors": mirrors})
        provider = self._make(endpoint, key)
        try:
            return endpoint, _typed_first(endpoint, provider, await provider.list_models())
        except AuthenticationFailed:
            raise
        except ProviderError as error:
            if not endpoint.models and not lacks_listing(error):
                raise
            return None

    async def save_key(self, endpoint_id: str, key: SecretStr, *, session_only: bool = False) -> None:
        """Store a key in the keyring, or in memory when the person chose so. Raises SecretsUnavailable."""
        if session_only:
            self._secrets.remember_for_session(endpoint_id, key)
        else:
            await self._secrets.set(endpoint_id, key)
        self.forget(endpoint_id)

    async def remove_key(self, endpoint_id: str) -> None:
        """Delete the key. Raises SecretsUnavailable."""
        await self._secrets.delete(endpoint_id)
        self.forget(endpoint_id)

    def forget(self, endpoint_id: str, *, prices_only: bool = False) -> None:
        """Build the provider anew next time. `prices_only`: the catalogue has other prices, the listing stays."""
        self._providers.pop(endpoint_id, None)
        self._forgotten += 1
        if prices_only:
            self._listings.forget_prices(endpoint_id)
        else:
            self._listings.forget(endpoint_id)

    async def discover_local(self) -> tuple[FoundServer, ...]:
        """Return which of the known local servers answer on loopback."""

        async def ask(endpoint: Endpoint) -> FoundServer:
            try:
                async with asyncio.timeout(_DISCOVERY_TIMEOUT):
                    return FoundServer(endpoint, await self._make(endpoint, None).list_models())
            except (AgentError, TimeoutError):
                return FoundServer(endpoint, None)

        return tuple(await asyncio.gather(*(ask(endpoint) for endpoint in LOCAL_SERVERS)))

    async def warm_up(self) -> None:
        """Load in threads what the first request needs, and ask all servers in use for their models meanwhile."""
        await asyncio.gather(self._http.warm_up(), self._catalogue.warm_up(), self._listings.warm_up())
        await asyncio.to_thread(load_dialects, [endpoint.dialect for endpoint in self.endpoints()])
        for endpoint in self.endpoints():
            self._listings.refresh(endpoint)

    async def close(self) -> None:
        """Close the demo, pending requests, and all connections."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._http.aclose)
            if "local" in vars(self):
                stack.push_async_callback(self.local.close)
            if self._demo is not None:
                stack.push_async_callback(self._demo.aclose)
            await self._listings.close()
            # Prompts that a server caches for them cost money until they are deleted.
            await wait_for_all(*(provider.aclose() for provider in self._providers.values()))

    async def _listed_by_server(self, endpoint: Endpoint) -> tuple[ModelInfo, ...]:
        return await _list_models(endpoint, await self.provider(endpoint.id))

    def _make(self, endpoint: Endpoint, key: SecretStr | None) -> Provider:
        """Build a provider; the key goes only to the endpoint's own addresses, which the person entered for it."""
        addresses = tuple(dict.fromkeys((endpoint.base_url, *endpoint.mirrors)))
        adapters = tuple(
            make_provider(endpoint.dialect, address, key, self._http, self._catalogue) for address in addresses
        )
        return adapters[0] if len(adapters) == 1 else Failover(adapters, addresses)

    async def _key_for(self, endpoint: Endpoint) -> SecretStr | None:
        """Return the key; it goes only to the server it was given for."""
        if endpoint.kind == "demo":
            return None
        if endpoint == self._given:
            return self._given_key or await _key_of_same_server(
                self._secrets, self._preferences().providers.endpoints, endpoint
            )
        return await _stored_key(self._secrets, endpoint)


async def _stored_key(secrets: SecretStore, endpoint: Endpoint) -> SecretStr | None:
    """Return the key, or None. Raises SecretsUnavailable where a request without a key would only be refused."""
    if not endpoint.may_have_key:
        return secrets.remembered_secret(endpoint.id)
    try:
        return await secrets.get(endpoint.id)
    except SecretsUnavailable:
        # The server's refusal would hide that the keyring is locked.
        if endpoint.needs_key or endpoint.has_key:
            raise
        return None


def with_complete_address(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the address that is used. Raises WrongUse for one that cannot be."""
    return endpoint.model_copy(update={"base_url": complete_address(endpoint.dialect, endpoint.base_url)})


def _path_of(address: str) -> str:
    return urlsplit(address).path.rstrip("/")


def lacks_listing(error: AgentError) -> bool:
    """Return whether a server without a list of models may answer like this."""
    if not isinstance(error, ProviderError):
        return False
    kinds = (InvalidRequest, NotFound, PermissionRefused, UnreadableAnswer)
    return isinstance(error, kinds) or error.status in _NOT_OFFERED_STATUSES


async def _list_models(endpoint: Endpoint, provider: Provider) -> tuple[ModelInfo, ...]:
    """Return the models that the person typed first, then the others. Raises ProviderError."""
    try:
        listed = await provider.list_models()
    except ProviderError as error:
        if not endpoint.models or not lacks_listing(error):
            raise
        listed = ()
    return _typed_first(endpoint, provider, listed)


def _typed_first(endpoint: Endpoint, provider: Provider, listed: tuple[ModelInfo, ...]) -> tuple[ModelInfo, ...]:
    known = {model.id: model for model in listed}
    typed = tuple(known.pop(name, None) or provider.model_info(name) for name in dict.fromkeys(endpoint.models))
    return (*typed, *known.values())


async def _key_of_same_server(secrets: SecretStore, added: Sequence[Endpoint], target: Endpoint) -> SecretStr | None:
    # A preset that was given another address holds the key of that address.
    untouched = (provider for provider in CLOUD_PROVIDERS if all(provider.id != other.id for other in added))
    for endpoint in (*added, *untouched):
        # All of them: a mirror that the key was not saved for must not get it.
        if _addresses(target) <= _addresses(endpoint):
            return await _stored_key(secrets, endpoint)
    return None


def _addresses(endpoint: Endpoint) -> frozenset[str]:
    addresses = (endpoint.base_url, *endpoint.mirrors)
    # Those of a window were completed when they were saved.
    with suppress(WrongUse):
        addresses = tuple(complete_address(endpoint.dialect, address) for address in addresses)
    return frozenset(address.rstrip("/") for address in addresses)


def _vendor_of_endpoint(endpoint: Endpoint) -> str:
    return catalogue_vendor(endpoint.dialect, endpoint.base_url)


def key_from_environment(variable: str) -> SecretStr | None:
    """Return a key given for this run, or None when the variable is unset or empty."""
    value = os.environ.get(variable, "")
    return SecretStr(value) if value else None
