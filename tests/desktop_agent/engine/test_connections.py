"""Servers, keys and models. A key goes only to the server it was given for."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from desktop_agent.engine import connections as module
from desktop_agent.engine.connections import Connections, key_from_environment
from desktop_agent.engine.model_listings import ModelListingsFile
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.catalogue.tables import parse_table
from desktop_agent.providers.provider import Failover
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KeyRequired,
    KeyringMissing,
    NotFound,
    ProviderError,
    SecretsUnavailable,
    ServerFailed,
    WrongUse,
)
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import DEMO_ENDPOINT, DEMO_MODEL, Endpoint, ImageLimits, ModelInfo
from tests.fakes.http_server import Loopback, Reply, Request
from tests.fakes.model_server import endpoint, keys_seen, listing, model_server, refusal
from tests.fakes.recordings import ask


class Setting:
    """Connections over preferences that a test may change, with the keyring that tests have: none."""

    def __init__(self) -> None:
        self.secrets = SecretStore()
        self.endpoints: tuple[Endpoint, ...] = ()
        self.opened: list[Connections] = []

    def connections(
        self,
        *added: Endpoint,
        given: Endpoint | None = None,
        given_key: str | None = None,
        folder: Path | None = None,
        catalogue: Catalogue | None = None,
    ) -> Connections:
        self.endpoints = added
        instance = Connections(
            self.secrets,
            HttpClient(),
            lambda: Preferences(providers=ProviderPreferences(endpoints=self.endpoints)),
            given=given,
            given_key=SecretStr(given_key) if given_key else None,
            saved=ModelListingsFile(folder) if folder is not None else None,
            catalogue=catalogue,
        )
        self.opened.append(instance)
        return instance


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    setting = Setting()
    yield setting
    for connections in setting.opened:
        await connections.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_the_given_key_goes_to_the_given_server_and_to_no_other(setting: Setting) -> None:
    async with model_server("a") as mine, model_server("b") as other:
        given = endpoint(mine, "command-line")
        connections = setting.connections(endpoint(other, "other"), given=given, given_key="sk-given")
        await ask(await connections.provider("command-line"))
        await ask(await connections.provider("other"))
        assert keys_seen(mine) == {"Bearer sk-given"}
        assert keys_seen(other) == {None}
        assert [endpoint.id for endpoint in connections.endpoints()] == ["command-line", "other"]


async def test_a_saved_server_of_the_given_ones_name_does_not_get_its_key(setting: Setting) -> None:
    async with model_server("a") as mine, model_server("b") as other:
        connections = setting.connections(endpoint(other, "same"), given=endpoint(mine, "same"), given_key="sk-given")
        await connections.models("same")
        assert keys_seen(mine) == {"Bearer sk-given"}
        assert other.requests == []


async def test_each_saved_key_goes_to_its_own_server(setting: Setting) -> None:
    async with model_server("a") as one, model_server("b") as two:
        setting.secrets.remember_for_session("one", SecretStr("sk-one"))
        setting.secrets.remember_for_session("two", SecretStr("sk-two"))
        connections = setting.connections(endpoint(one, "one"), endpoint(two, "two"))
        for id_ in ("one", "two"):
            await connections.models(id_)
            await ask(await connections.provider(id_))
        assert keys_seen(one) == {"Bearer sk-one"}
        assert keys_seen(two) == {"Bearer sk-two"}


async def test_a_given_address_uses_the_key_saved_for_that_address(setting: Setting) -> None:
    async with model_server("a") as mine, model_server("b") as other:
        setting.secrets.remember_for_session("saved", SecretStr("sk-saved"))
        setting.secrets.remember_for_session("other", SecretStr("sk-other"))
        saved = endpoint(mine, "saved", base_url=mine.url + "/")
        given = endpoint(mine, "command-line")
        connections = setting.connections(endpoint(other, "other"), saved, given=given)
        await connections.models("command-line")
        assert keys_seen(mine) == {"Bearer sk-saved"}


async def test_a_given_address_uses_the_key_whether_or_not_it_is_complete(setting: Setting) -> None:
    whole, bare = (Endpoint(id="saved", title="", base_url=f"http://models.lan:11434{path}") for path in ("/v1", ""))
    setting.secrets.remember_for_session("saved", SecretStr("sk-saved"))
    for saved, target in ((whole, bare), (bare, whole)):
        key = await module._key_of_same_server(setting.secrets, (saved,), target)
        assert key is not None
        assert key.get_secret_value() == "sk-saved"
    strange = whole.model_copy(update={"base_url": "http://models.lan:99999"})
    assert await module._key_of_same_server(setting.secrets, (strange,), whole) is None


async def test_a_saved_key_does_not_follow_to_an_address_that_it_was_not_saved_for(setting: Setting) -> None:
    broken = Loopback(refusal(503))
    async with broken, model_server("a") as mine, model_server("b") as foreign:
        setting.secrets.remember_for_session("saved", SecretStr("sk-saved"))
        saved = endpoint(broken, "saved", mirrors=(mine.url,))
        connections = setting.connections(saved, given=endpoint(broken, "line", mirrors=(foreign.url,)))
        await connections.models("line")
        assert keys_seen(broken) == keys_seen(foreign) == {None}
        connections = setting.connections(saved, given=endpoint(mine, "line"))
        await connections.models("line")
        assert keys_seen(mine) == {"Bearer sk-saved"}


async def test_a_preset_that_was_given_another_address_keeps_that_key_for_it(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with model_server("a") as mine, model_server("b") as gateway:
        monkeypatch.setattr(module, "CLOUD_PROVIDERS", (endpoint(mine, "preset"),))
        setting.secrets.remember_for_session("preset", SecretStr("sk-gateway"))
        given = endpoint(mine, "command-line")
        connections = setting.connections(endpoint(gateway, "preset"), given=given)
        await connections.models("command-line")
        assert keys_seen(mine) == {None}
        connections = setting.connections(given=given)
        await connections.models("command-line", refresh=True)
        assert keys_seen(mine) == {None, "Bearer sk-gateway"}


async def test_without_a_keyring_a_server_that_needs_no_key_works(setting: Setting) -> None:
    async with model_server("a") as server:
        connections = setting.connections(endpoint(server), given=endpoint(server, "command-line"))
        assert [model.id for model in await connections.models("mine")] == ["a"]
        assert [model.id for model in await connections.models("command-line")] == ["a"]


class RecordingKeyring(SecretStore):
    """Records the names that the keyring is asked for: where it is locked, each opens a dialog of the system."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    async def get(self, name: str) -> SecretStr | None:
        self.names.append(name)
        return await super().get(name)


@pytest.mark.parametrize("has_key", [None, False])
async def test_the_keyring_is_not_asked_for_a_server_that_has_no_key(setting: Setting, has_key: bool | None) -> None:
    setting.secrets = keyring = RecordingKeyring()
    async with model_server("m") as server:
        connections = setting.connections(endpoint(server, has_key=has_key))
        await connections.warm_up()
        assert await ask(await connections.provider("mine"))
        assert (await connections.models("mine", refresh=True))[0].id == "m"
    assert keyring.names == []


async def test_the_keyring_is_asked_for_a_server_that_was_given_a_key(setting: Setting) -> None:
    setting.secrets = keyring = RecordingKeyring()
    async with model_server("m") as server:
        connections = setting.connections(endpoint(server, has_key=True))
        # Without the key it would only refuse, and nobody would learn why.
        with pytest.raises(KeyringMissing):
            await connections.provider("mine")
    assert keyring.names == ["mine"]
    elsewhere = Endpoint(id="far", title="Far", base_url="https://models.example/v1")
    assert elsewhere.may_have_key  # nobody knows: it was saved by a version that did not say it
    assert not elsewhere.model_copy(update={"has_key": False}).may_have_key


async def test_a_key_in_memory_is_used_where_the_keyring_is_not_asked(setting: Setting) -> None:
    async with model_server("m", key="for now") as server:
        connections = setting.connections(endpoint(server, has_key=False))
        await connections.save_key("mine", SecretStr("for now"), session_only=True)
        assert (await connections.models("mine", refresh=True))[0].id == "m"


async def test_without_a_keyring_a_server_that_needs_a_key_says_so(setting: Setting) -> None:
    async with model_server("a") as server:
        connections = setting.connections(endpoint(server, needs_key=True))
        with pytest.raises(KeyringMissing):
            await connections.provider("mine")
        with pytest.raises(SecretsUnavailable):
            await connections.save_key("mine", SecretStr("sk-new"))
        await connections.save_key("mine", SecretStr("sk-new"), session_only=True)
        await connections.models("mine")
        assert keys_seen(server) == {"Bearer sk-new"}


async def test_a_missing_key_is_said_before_anybody_is_asked(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting.secrets, "get", _no_key)
    async with model_server("a") as server:
        connections = setting.connections(endpoint(server, needs_key=True))
        with pytest.raises(AuthenticationFailed, match="Mine"):
            await connections.provider("mine")
        assert server.requests == []


async def _no_key(_: str) -> None:
    return None


async def test_another_key_makes_another_provider(setting: Setting) -> None:
    async with model_server("a") as server:
        connections = setting.connections(endpoint(server))
        before = await connections.provider("mine")
        assert await connections.provider("mine") is before
        await connections.save_key("mine", SecretStr("sk-new"), session_only=True)
        assert await connections.provider("mine") is not before
        await connections.models("mine")
        await connections.remove_key("mine")
        await connections.models("mine")
        assert [
            request.headers.get("authorization") for request in server.requests if request.path == "/v1/models"
        ] == [
            "Bearer sk-new",
            None,
        ]


async def test_models_are_remembered_until_asked_again(setting: Setting) -> None:
    async with model_server("a", "b") as server:
        connections = setting.connections(endpoint(server))
        assert connections.known_model("mine", "a") is None
        await connections.models("mine")
        request_count = len(server.requests)
        await connections.models("mine")
        assert len(server.requests) == request_count
        known = connections.known_model("mine", "b")
        assert known is not None
        assert known.id == "b"
        assert connections.known_model("mine", "c") == ModelInfo("c")  # its provider knows nothing more
        assert connections.known_model("nowhere", "a") is None
        await connections.models("mine", refresh=True)
        assert len(server.requests) > request_count


async def test_mirrors_are_asked_when_the_first_fails_and_get_the_same_key(setting: Setting) -> None:
    broken = Loopback(refusal(503))
    async with broken, model_server("a") as mirror, model_server("b") as other:
        setting.secrets.remember_for_session("mine", SecretStr("sk-mine"))
        mine = endpoint(broken, mirrors=(mirror.url, broken.url))
        connections = setting.connections(mine, endpoint(other, "other"))
        provider = await connections.provider("mine")
        assert isinstance(provider, Failover)
        await ask(provider)
        assert [model.id for model in await connections.models("mine")] == ["a"]
        await ask(await connections.provider("other"))
        assert keys_seen(broken) == keys_seen(mirror) == {"Bearer sk-mine"}
        assert keys_seen(other) == {None}
        assert len(broken.requests) == 1
        assert not isinstance(await connections.provider("other"), Failover)


async def test_offline_the_last_listing_holds_and_a_refresh_says_what_is_wrong(
    setting: Setting, tmp_path: Path
) -> None:
    async with model_server("a") as server:
        mine = endpoint(server)
        await setting.connections(mine, folder=tmp_path).models("mine")
    connections = setting.connections(mine, folder=tmp_path)
    assert [model.id for model in await connections.models("mine")] == ["a"]
    known = connections.known_model("mine", "a")
    assert known is not None
    assert known.id == "a"
    with pytest.raises(ConnectionFailed):
        await connections.models("mine", refresh=True)
    assert [model.id for model in await connections.models("mine")] == ["a"]


async def test_at_the_start_listings_are_asked_for_in_the_background(setting: Setting, tmp_path: Path) -> None:
    names = ["a"]
    async with Loopback(choose=lambda _: listing(*names)) as server:
        mine = endpoint(server)
        await setting.connections(mine, folder=tmp_path).models("mine")
        names.append("b")
        connections = setting.connections(mine, folder=tmp_path)
        changed = asyncio.Event()
        connections.on_models_changed(lambda endpoint_id: changed.set() if endpoint_id == "mine" else None)
        assert [model.id for model in await connections.models("mine")] == ["a"]
        await connections.warm_up()
        await changed.wait()
        assert [model.id for model in await connections.models("mine")] == ["a", "b"]


async def test_a_server_of_the_command_line_leaves_no_listing(setting: Setting, tmp_path: Path) -> None:
    async with model_server("a") as server:
        given = endpoint(server, "command-line")
        await setting.connections(given=given, folder=tmp_path).models("command-line")
        assert await ModelListingsFile(tmp_path).load() == {}


async def test_another_key_forgets_what_the_last_one_was_shown(setting: Setting, tmp_path: Path) -> None:
    async with model_server("a") as server:
        mine = endpoint(server, needs_key=True)
        setting.secrets.remember_for_session("mine", SecretStr("sk-mine"))
        connections = setting.connections(mine, folder=tmp_path)
        await connections.models("mine")
        await connections.save_key("mine", SecretStr("sk-other"), session_only=True)
        request_count = len(server.requests)
        await connections.models("mine")
        assert len(server.requests) > request_count


async def test_what_the_tables_say_reaches_models_before_and_after_their_server_spoke(setting: Setting) -> None:
    table = Catalogue(parse_table('[stranger.a]\ntitle = "My A"\nprice = { input = 1, output = 2 }\n'))
    async with model_server("a") as server:
        connections = setting.connections(endpoint(server), catalogue=table)
        before = connections.known_model("mine", "a")
        (listed,) = await connections.models("mine")
        assert before is not None
        assert before.title == listed.title == "My A"
        assert listed.price == before.price
        assert connections.known_model("mine", "x") == ModelInfo("x")
        assert connections.picture_limits("nowhere", "a") == ImageLimits()


async def test_an_address_that_is_none_is_known_to_nobody(setting: Setting) -> None:
    strange = Endpoint(id="strange", title="Strange", base_url="http://x:99999/v1")
    connections = setting.connections(strange)
    assert connections.known_model("strange", "a") is None
    with pytest.raises(WrongUse):
        await connections.models("strange")


async def test_a_check_keeps_nothing(setting: Setting) -> None:
    async with model_server("a", key="sk-right") as server:
        connections = setting.connections()
        with pytest.raises(ProviderError):
            await connections.check(endpoint(server), SecretStr("sk-wrong"))
        checked, models = await connections.check(endpoint(server), SecretStr("sk-right"))
        assert checked == endpoint(server)
        assert [model.id for model in models] == ["a"]
        with pytest.raises(WrongUse):
            await connections.provider("mine")
        with pytest.raises(KeyringMissing):
            await setting.secrets.get("mine")


def below_v1(*models: str, status: int = 404, key: str | None = None) -> Loopback:
    """A server that answers under /v1 alone, as most do; elsewhere with this status."""

    def choose(request: Request) -> Reply:
        if not request.path.startswith("/v1/"):
            return refusal(status, "File Not Found") if status != 200 else Reply(b"<html>Hello</html>")
        if key is not None and request.headers.get("authorization") != f"Bearer {key}":
            return refusal(401, "wrong key")
        return listing(*models) if models else refusal(404)

    return Loopback(choose=choose)


@pytest.mark.parametrize("status", [404, 200])
async def test_a_check_finds_the_server_under_v1(setting: Setting, status: int) -> None:
    async with below_v1("a", status=status) as server:
        typed = endpoint(server, base_url=server.url.removesuffix("/v1"))
        checked, models = await setting.connections().check(typed, SecretStr("sk-mine"))
        assert checked == typed.model_copy(update={"base_url": server.url})
        assert [model.id for model in models] == ["a"]
        # A typed name is no reason to stay where nobody lists any.
        named = typed.model_copy(update={"models": ("b",)})
        checked, models = await setting.connections().check(named, None)
        assert checked.base_url == server.url
        assert [model.id for model in models] == ["b", "a"]
        assert keys_seen(server) == {"Bearer sk-mine", None}


async def test_further_addresses_that_were_typed_alike_are_completed_too(setting: Setting) -> None:
    async with below_v1("a") as server:
        mirrors = ("http://127.0.0.1:1/", "http://127.0.0.1:2/v1", "http://127.0.0.1:3/openai")
        typed = endpoint(server, base_url=server.url.removesuffix("/v1"), mirrors=mirrors)
        checked, _ = await setting.connections().check(typed, None)
        assert checked.base_url == server.url
        assert checked.mirrors == ("http://127.0.0.1:1/v1", *mirrors[1:])


async def test_a_check_says_what_the_server_says_where_neither_address_lists_models(setting: Setting) -> None:
    async with below_v1() as server, below_v1("a", key="sk-right") as locked:
        typed = endpoint(server, base_url=server.url.removesuffix("/v1"))
        with pytest.raises(NotFound, match="File Not Found"):
            await setting.connections().check(typed, None)
        checked, _ = await setting.connections().check(typed.model_copy(update={"models": ("b",)}), None)
        assert checked.base_url == typed.base_url
        # It is there, and wants a key.
        locked_one = endpoint(locked, base_url=locked.url.removesuffix("/v1"))
        with pytest.raises(KeyRequired, match="The server wants an API key: wrong key"):
            await setting.connections().check(locked_one, None)
        with pytest.raises(AuthenticationFailed, match="was not accepted"):
            await setting.connections().check(locked_one, SecretStr("sk-wrong"))


async def test_whoever_typed_models_is_not_refused_for_what_is_under_v1(setting: Setting) -> None:
    async with Loopback(choose=lambda request: refusal(502 if request.path.startswith("/v1/") else 404)) as server:
        typed = endpoint(server, base_url=server.url.removesuffix("/v1"))
        with pytest.raises(ServerFailed):
            await setting.connections().check(typed, None)
        named = typed.model_copy(update={"models": ("b",)})
        checked, models = await setting.connections().check(named, None)
        assert (checked, [model.id for model in models]) == (named, ["b"])


async def test_a_check_returns_the_address_that_a_known_server_is_asked_at(setting: Setting) -> None:
    connections = setting.connections()
    for dialect, whole in (("openai-chat", "http://127.0.0.1:11434/v1"), ("anthropic", "http://127.0.0.1:11434")):
        bare = Endpoint(id="mine", title="Mine", dialect=dialect, base_url="http://127.0.0.1:11434", models=("a",))
        assert module.with_complete_address(bare).base_url == whole
    with pytest.raises(WrongUse):
        await connections.check(Endpoint(id="mine", title="Mine", base_url="http://x:99999"), None)


@pytest.mark.parametrize(("endpoint_id", "named"), [("nowhere", "nowhere"), ("ollama", "Ollama")])
async def test_a_server_that_is_not_set_up_is_refused_by_name(setting: Setting, endpoint_id: str, named: str) -> None:
    connections = setting.connections()
    for refused in (connections.endpoint, connections.require_endpoint):
        with pytest.raises(WrongUse, match=named):
            refused(endpoint_id)
    assert connections.endpoints() == ()


async def test_local_servers_are_found(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    never = asyncio.Event()
    hanging = Loopback(Reply(hold=never))
    monkeypatch.setattr(module, "_DISCOVERY_TIMEOUT", 0.3)
    async with model_server("a", "b") as here, model_server() as empty, Loopback(refusal(500)) as broken, hanging:
        nobody = Endpoint(id="nobody", title="Nobody", base_url=f"http://127.0.0.1:{free_port()}/v1", kind="local")
        servers = (endpoint(here, "here"), nobody, endpoint(empty, "empty"), endpoint(broken, "broken"))
        monkeypatch.setattr(module, "LOCAL_SERVERS", (*servers, endpoint(hanging, "hanging")))
        setting.secrets.remember_for_session("here", SecretStr("sk-mine"))
        discovered = await setting.connections().discover_local()
        models = {server.endpoint.id: server.models and [model.id for model in server.models] for server in discovered}
        assert models == {"here": ["a", "b"], "nobody": None, "empty": (), "broken": None, "hanging": None}
        assert keys_seen(here) == {None}  # who answers on a port is not known yet


async def test_the_demo_is_started_once(setting: Setting) -> None:
    connections = setting.connections()
    assert connections.endpoints() == ()
    with pytest.raises(WrongUse, match=re.escape("Demo (offline)")):
        connections.endpoint(DEMO_ENDPOINT)
    first, second, provider = await asyncio.gather(
        connections.start_demo(), connections.start_demo(), connections.provider(DEMO_ENDPOINT)
    )
    assert first == second
    assert first.kind == "demo"
    assert connections.endpoints() == (first,)
    assert await connections.provider(DEMO_ENDPOINT) is provider
    assert [model.id for model in await connections.models(DEMO_ENDPOINT)] == [DEMO_MODEL]


async def test_the_demo_gets_no_key(setting: Setting) -> None:
    setting.secrets.remember_for_session(DEMO_ENDPOINT, SecretStr("sk-mine"))
    connections = setting.connections()
    assert await connections._key_for(await connections.start_demo()) is None


def test_a_key_from_the_environment_hides_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-secret")
    key = key_from_environment("SOME_KEY")
    assert key is not None
    assert "sk-secret" not in repr(key)
    monkeypatch.setenv("SOME_KEY", "")
    assert key_from_environment("SOME_KEY") is None
    monkeypatch.delenv("SOME_KEY")
    assert key_from_environment("SOME_KEY") is None
