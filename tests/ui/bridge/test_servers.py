"""Model servers for the screens."""

import asyncio
import functools

import pytest
from pydantic import SecretStr

from desktop_agent.engine import connections
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.providers import Capabilities, Endpoint
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.model_server import endpoint, keys_seen, model_server
from tests.fakes.qt_loop import SCRIPTED, Bridge, Heard, held, until


def run(in_loop, folder, work, *, connected=False):
    async def whole():
        bridge = await Bridge.open(folder, connected=connected)
        try:
            await work(bridge)
            assert bridge.errors == []
        finally:
            await bridge.close()

    in_loop(whole())


async def states_of(bridge, command, *args, **kwargs):
    states = Heard(bridge.servers.state_changed)
    command(*args, **kwargs)
    await bridge.idle()
    return [(id_, state) for id_, state, _ in states], [str(sentence) for *_, sentence in states]


def test_connecting_keeps_the_server_and_uses_its_first_model(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a", "b") as server:
            connected, changed = Heard(bridge.servers.connected), Heard(bridge.servers.endpoints_changed)
            models = Heard(bridge.servers.models_changed)
            mine = endpoint(server, has_key=False)
            states, _ = await states_of(bridge, bridge.servers.connect_endpoint, mine, None)
            assert states == [("mine", "busy"), ("mine", "ok")]
            assert connected == [("mine", "a")]
            assert len(changed) == 1
            providers = bridge.engine.preferences.providers
            assert (providers.endpoints, providers.endpoint_id, providers.model) == ((mine,), "mine", "a")
            ((group,),) = models
            assert [model.id for model in group.models] == ["a", "b"]
            assert bridge.servers.endpoints == (mine,)
            # Connected again, it is there once.
            await states_of(bridge, bridge.servers.connect_endpoint, mine, None)
            assert bridge.servers.endpoints == (mine,)

    run(in_loop, tmp_path, work)


def test_a_server_that_is_removed_while_it_is_asked_for_its_models_is_not_listed(in_loop, tmp_path):
    async def work(bridge):
        await bridge.servers.saved.use(
            Endpoint(id="mine", title="t", base_url="http://127.0.0.1:9"), "a", has_new_key=False
        )
        is_asked, may_answer = held(bridge.engine.connections, "models")
        bridge.servers.refresh_models()
        await is_asked.wait()
        listed = Heard(bridge.servers.models_changed)
        bridge.servers.remove("mine")
        assert await listed.next() == []
        may_answer.set()
        await bridge.idle()
        assert listed[-1] == []

    run(in_loop, tmp_path, work)


def test_a_wrong_key_says_so_and_keeps_nothing(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a", key="sk-right") as server:
            arguments = (endpoint(server), SecretStr("sk-wrong"))
            states, words = await states_of(bridge, bridge.servers.connect_endpoint, *arguments, session_only=True)
            assert states == [("mine", "busy"), ("mine", "error")]
            assert "wrong key" in words[-1]
            assert "Check the API key" in words[-1]
            assert bridge.servers.endpoints == ()
            assert "mine" not in bridge.engine.secrets._session

    run(in_loop, tmp_path, work)


def test_without_a_keyring_the_person_may_choose_memory(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a", key="sk-right") as server:
            arguments = (endpoint(server), SecretStr("sk-right"))
            states, _ = await states_of(bridge, bridge.servers.connect_endpoint, *arguments)
            assert states == [("mine", "busy"), ("mine", "no_keyring")]
            assert bridge.servers.endpoints == ()
            states, _ = await states_of(bridge, bridge.servers.connect_endpoint, *arguments, session_only=True)
            assert states[-1] == ("mine", "ok")
            assert keys_seen(server) == {"Bearer sk-right"}
            assert await bridge.servers.saved.servers_with_keys() == ("mine",)

    run(in_loop, tmp_path, work)


def test_a_server_without_models_says_so_and_keeps_no_key(in_loop, tmp_path):
    async def work(bridge):
        async with model_server() as server:
            arguments = (endpoint(server), SecretStr("sk-mine"))
            states, words = await states_of(bridge, bridge.servers.connect_endpoint, *arguments, session_only=True)
            assert states[-1] == ("mine", "error")
            assert "no models yet" in words[-1]
            assert bridge.servers.endpoints == ()
            assert "mine" not in bridge.engine.secrets._session

    run(in_loop, tmp_path, work)


def test_what_cannot_be_kept_is_said_beside_the_server(in_loop, tmp_path, monkeypatch):
    async def work(bridge):
        async def refuse(*_):
            raise StorageFailed("The disk is full.")

        async with model_server("a") as server:
            monkeypatch.setattr(bridge.engine, "change_preferences", refuse)
            arguments = (endpoint(server), SecretStr("sk-mine"))
            states, words = await states_of(bridge, bridge.servers.connect_endpoint, *arguments, session_only=True)
            assert states == [("mine", "busy"), ("mine", "error")]
            assert "The disk is full." in words[-1]

    run(in_loop, tmp_path, work)


def test_another_key_chooses_no_model_and_connects_nothing(in_loop, tmp_path, monkeypatch):
    async def work(bridge):
        async with model_server("a", "b", key="sk-new") as one, model_server("c") as two:
            one_kept, two_kept = endpoint(one, "one", has_key=False), endpoint(two, "two", has_key=False)
            await states_of(bridge, bridge.servers.connect_endpoint, two_kept, None)
            providers = bridge.engine.preferences.providers.model_copy(update={"endpoints": (one_kept, two_kept)})
            await bridge.engine.change_preferences(
                bridge.engine.preferences.model_copy(update={"providers": providers})
            )
            connected, changed = Heard(bridge.servers.connected), Heard(bridge.servers.endpoints_changed)
            keep = bridge.engine.connections.save_key
            in_memory = functools.partial(keep, session_only=True)
            monkeypatch.setattr(bridge.engine.connections, "save_key", lambda id_, key, **_: in_memory(id_, key))
            states, _ = await states_of(bridge, bridge.servers.replace_key, "one", SecretStr("sk-new"))
            assert states == [("one", "busy"), ("one", "ok")]
            assert keys_seen(one) == {"Bearer sk-new"}
            assert bridge.servers.saved.find("one").has_key
            assert connected == []
            assert len(changed) == 1
            providers = bridge.engine.preferences.providers
            assert (providers.endpoint_id, providers.model) == ("two", "c")

    run(in_loop, tmp_path, work)


def test_another_key_can_stay_in_memory(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a") as server:
            await states_of(bridge, bridge.servers.connect_endpoint, endpoint(server, "one"), None)
            arguments = ("one", SecretStr("sk-new"))
            states, _ = await states_of(bridge, bridge.servers.replace_key, *arguments)
            assert states == [("one", "busy"), ("one", "no_keyring")]
            states, _ = await states_of(bridge, bridge.servers.replace_key, *arguments, session_only=True)
            assert states == [("one", "busy"), ("one", "ok")]
            assert await bridge.servers.saved.servers_with_keys() == ("one",)
            bridge.servers.test("one")
            await bridge.idle()
            assert "Bearer sk-new" in keys_seen(server)

    run(in_loop, tmp_path, work)


def test_a_server_can_be_removed_without_a_keyring(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a") as one, model_server("b") as two:
            for server in (endpoint(one, "one"), endpoint(two, "two")):
                await states_of(bridge, bridge.servers.connect_endpoint, server, None)
            changed = Heard(bridge.servers.endpoints_changed)
            bridge.servers.remove("two")
            await bridge.idle()
            assert [server.id for server in bridge.servers.endpoints] == ["one"]
            assert len(changed) == 1
            # What is gone is no longer the choice for new conversations.
            providers = bridge.engine.preferences.providers
            assert (providers.endpoint_id, providers.model) == ("one", None)
            bridge.servers.remove("one")
            await bridge.idle()
            assert bridge.engine.preferences.providers.endpoint_id is None

    run(in_loop, tmp_path, work)


@pytest.mark.parametrize(("models", "ending"), [(("a",), "has one model."), (("a", "b"), "has 2 models.")])
def test_a_test_tells_how_many_models_there_are(in_loop, tmp_path, models, ending):
    async def work(bridge):
        async with model_server(*models) as server:
            await states_of(bridge, bridge.servers.connect_endpoint, endpoint(server), None)
            states, words = await states_of(bridge, bridge.servers.test, "mine")
            assert states == [("mine", "busy"), ("mine", "ok")]
            assert words[-1].endswith(ending)
        states, words = await states_of(bridge, bridge.servers.test, "mine")
        assert states == [("mine", "busy"), ("mine", "error")]
        assert "could not be reached" in words[-1]

    run(in_loop, tmp_path, work)


def test_one_silent_server_does_not_hide_the_others(in_loop, tmp_path):
    async def work(bridge):
        silent = Loopback(Reply(hold=asyncio.Event()))
        async with model_server("a") as server, silent:
            endpoints = (endpoint(silent, "silent"), endpoint(server, "quick"))
            providers = bridge.engine.preferences.providers.model_copy(update={"endpoints": endpoints})
            changed = bridge.engine.preferences.model_copy(update={"providers": providers})
            await bridge.engine.change_preferences(changed)
            bridge.servers.refresh_models()
            await until(lambda: bridge.engine.connections.known_model("quick", "a"))
            await until(lambda: silent.requests)

    run(in_loop, tmp_path, work)


def test_problems_of_a_listing_are_shown_beside_it(in_loop, tmp_path):
    async def work(bridge):
        models = Heard(bridge.servers.models_changed)
        bridge.engine.connections.forget(SCRIPTED.id)
        bridge.servers.refresh_models(again=True)
        await bridge.idle()
        ((group,),) = models
        assert group.models == ()
        assert "could not be reached" in str(group.problem)
        assert bridge.servers.capabilities("scripted", "m") == Capabilities()

    run(in_loop, tmp_path, work, connected=True)


def test_local_servers_are_told(in_loop, tmp_path, monkeypatch):
    async def work(bridge):
        async with model_server("a") as server:
            nobody = Endpoint(id="nobody", title="Nobody", base_url="http://127.0.0.1:9/v1")
            monkeypatch.setattr(connections, "LOCAL_SERVERS", (endpoint(server, "here"), nobody))
            changes = Heard(bridge.servers.local_servers_changed)
            bridge.servers.find_local()
            await bridge.idle()
            assert [(server.endpoint.id, server.models is not None) for server in changes[0]] == [
                ("here", True),
                ("nobody", False),
            ]

    run(in_loop, tmp_path, work)


def test_choosing_a_model_holds_for_the_next_conversation(in_loop, tmp_path):
    async def work(bridge):
        await bridge.servers.saved.choose("scripted", "another")
        assert bridge.engine.preferences.providers.model == "another"
        demo = await bridge.engine.connections.start_demo()
        await bridge.servers.saved.choose(demo.id, "demo")
        assert bridge.engine.preferences.providers.model == "another"
        bridge.library.new()
        assert bridge.library.current.model == "another"

    run(in_loop, tmp_path, work, connected=True)
