"""A key stays with the addresses that it was given for."""

import asyncio

import pytest
from pydantic import SecretStr

from desktop_agent.types.errors import KeyringLocked
from desktop_agent.types.providers import Endpoint, ModelInfo
from tests.fakes.model_server import endpoint, keys_seen, model_server
from tests.fakes.qt_loop import Heard, until
from tests.ui.bridge.test_servers import run, states_of

KEY = SecretStr("sk-right")


async def connect(bridge, server, **more):
    # A key in memory is none in the keyring.
    server_endpoint = endpoint(server, has_key=False, **more)
    await states_of(bridge, bridge.servers.connect_endpoint, server_endpoint, KEY, session_only=True)
    assert await bridge.servers.saved.servers_with_keys() == ("mine",)
    return server_endpoint


def test_another_title_or_dialect_keeps_the_key(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a", key="sk-right") as server:
            original = await connect(bridge, server)
            changed = original.model_copy(update={"title": "Work", "base_url": server.url})
            listed, endpoint_changes = Heard(bridge.servers.models_changed), Heard(bridge.servers.endpoints_changed)
            states, _ = await states_of(bridge, bridge.servers.edit, changed)
            assert states == [("mine", "busy"), ("mine", "ok")]
            assert bridge.servers.endpoints == (changed,)
            assert await bridge.servers.saved.servers_with_keys() == ("mine",)
            assert len(endpoint_changes) == 1
            assert listed[-1][0].endpoint == changed
            assert keys_seen(server) == {"Bearer sk-right"}

    run(in_loop, tmp_path, work)


def test_another_host_or_mirror_never_sees_the_key(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a") as server, model_server("b") as other:
            mine = await connect(bridge, server)
            states, _ = await states_of(bridge, bridge.servers.edit, mine.model_copy(update={"base_url": other.url}))
            assert states == []
            assert await bridge.servers.saved.servers_with_keys() == ()
            assert keys_seen(other) == {None}
            await connect(bridge, server)
            mirrored = mine.model_copy(update={"mirrors": (other.url,)})
            await states_of(bridge, bridge.servers.edit, mirrored)
            assert await bridge.servers.saved.servers_with_keys() == ()
            assert keys_seen(other) == {None}
            assert bridge.servers.endpoints == (mirrored,)

    run(in_loop, tmp_path, work)


def test_a_key_that_cannot_be_deleted_keeps_the_address(in_loop, tmp_path, monkeypatch):
    async def work(bridge):
        async def refuse(_name):
            raise KeyringLocked("The keyring is locked.")

        async with model_server("a") as server, model_server("b") as other:
            mine = await connect(bridge, server)
            monkeypatch.setattr(bridge.engine.secrets, "delete", refuse)
            states, words = await states_of(
                bridge, bridge.servers.edit, mine.model_copy(update={"base_url": other.url})
            )
            assert states == [("mine", "error")]
            assert "The keyring is locked." in words[0]
            assert bridge.servers.endpoints == (mine,)
            assert keys_seen(other) == set()

    run(in_loop, tmp_path, work)


def test_connecting_a_preset_anew_does_not_take_the_key_of_its_other_address(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a") as server, model_server("b") as other:
            await connect(bridge, server)
            await states_of(bridge, bridge.servers.connect_endpoint, endpoint(other), None)
            assert await bridge.servers.saved.servers_with_keys() == ()
            assert keys_seen(other) == {None}
            await connect(bridge, server)
            await states_of(bridge, bridge.servers.connect_endpoint, endpoint(server), None)
            assert await bridge.servers.saved.servers_with_keys() == ("mine",)

    run(in_loop, tmp_path, work)


def test_an_address_whose_server_moved_gets_an_id_of_its_own(in_loop, tmp_path):
    async def work(bridge):
        saved_servers = bridge.servers.saved
        address = "http://127.0.0.1:1/v1"
        assert saved_servers.id_for(address, (), "openai-chat") == f"custom:{address}"
        moved = Endpoint(id=f"custom:{address}", title="t", base_url="http://127.0.0.1:2/v1")
        await saved_servers.use(moved, ModelInfo("m").id, has_new_key=True)
        assert saved_servers.id_for(address, (), "openai-chat") == f"custom:{address}#2"
        second = Endpoint(id=f"custom:{address}#2", title="t", base_url=address)
        await saved_servers.use(second, "m", has_new_key=True)
        assert saved_servers.id_for(address, (), "openai-chat") == f"custom:{address}#2"

    run(in_loop, tmp_path, work)


def test_addresses_that_were_completed_are_found_as_they_were_typed(in_loop, tmp_path):
    async def work(bridge):
        saved_servers = bridge.servers.saved
        mirrors = ("https://b.example/v1", "https://c.example/openai")
        saved = Endpoint(id="mine", title="t", base_url="https://a.example/v1", mirrors=mirrors)
        await saved_servers.use(saved, "m", has_new_key=False)
        assert saved_servers.id_for("https://a.example", ("https://b.example", mirrors[1]), "openai-chat") == "mine"
        assert saved_servers.id_for("https://a.example", mirrors[:1], "openai-chat") != "mine"
        # There is another one at the address that was typed.
        bare = saved.model_copy(update={"id": "bare", "base_url": "https://a.example", "models": ("m",)})
        await saved_servers.use(bare, "m", has_new_key=False)
        assert saved_servers.id_for(bare.base_url, mirrors, "openai-chat") == "bare"
        assert saved_servers.id_for(saved.base_url, mirrors, "openai-chat") == "mine"

    run(in_loop, tmp_path, work)


def test_one_address_in_two_dialects_is_two_servers(in_loop, tmp_path):
    async def work(bridge):
        saved_servers = bridge.servers.saved
        address = "http://127.0.0.1:1/v1"
        ids = []
        for dialect in ("openai-chat", "anthropic", "openai-chat", "anthropic"):
            ids.append(saved_servers.id_for(address, (), dialect))
            new_endpoint = Endpoint(id=ids[-1], title="t", dialect=dialect, base_url=address)
            await saved_servers.use(new_endpoint, "m", has_new_key=True)
        assert ids == [f"custom:{address}", f"custom:{address}#2"] * 2
        assert [server.dialect for server in bridge.servers.endpoints] == ["openai-chat", "anthropic"]

    run(in_loop, tmp_path, work)


def test_one_who_is_gone_meanwhile_is_not_brought_back(in_loop, tmp_path):
    async def work(bridge):
        assert await bridge.servers.saved.edit(Endpoint(id="gone", title="t", base_url="http://127.0.0.1:1")) is False
        assert bridge.servers.endpoints == ()

    run(in_loop, tmp_path, work)


def test_a_key_that_was_entered_while_a_server_was_edited_stays(in_loop, tmp_path):
    async def work(bridge):
        saved_servers, original = bridge.servers.saved, Endpoint(id="mine", title="t", base_url="http://127.0.0.1:1/v1")
        await saved_servers.use(original, None, has_new_key=False)
        await saved_servers.use(original, None, has_new_key=True)
        await saved_servers.edit(original.model_copy(update={"title": "Work", "has_key": False}))
        (current,) = bridge.servers.endpoints
        assert (current.title, current.has_key) == ("Work", True)

    run(in_loop, tmp_path, work)


def remove(bridge, server):
    bridge.servers.remove(server.id)


def move(bridge, server):
    bridge.servers.edit(server.model_copy(update={"base_url": "http://127.0.0.1:1/v1"}))


def rename(bridge, server):
    bridge.servers.edit(server.model_copy(update={"title": "Work"}))


@pytest.mark.parametrize("change", [remove, move, rename])
@pytest.mark.parametrize("slow", ["check", "save_key"])
def test_a_key_that_is_tried_undoes_no_change_of_its_server(in_loop, tmp_path, change, slow):
    async def work(bridge):
        async with model_server("a", key="sk-right") as server:
            original_endpoint = endpoint(server, has_key=False)
            await bridge.servers.saved.use(original_endpoint, "a", has_new_key=False)
            original, may_answer, is_asked = getattr(bridge.engine.connections, slow), asyncio.Event(), asyncio.Event()

            async def ask_later(*args, **kwargs):
                is_asked.set()
                await may_answer.wait()
                return await original(*args, **kwargs)

            setattr(bridge.engine.connections, slow, ask_later)
            bridge.servers.replace_key("mine", KEY, session_only=True)
            await is_asked.wait()
            changed = Heard(bridge.servers.endpoints_changed)
            change(bridge, original_endpoint)
            await until(lambda: changed)
            servers = bridge.servers.endpoints
            may_answer.set()
            await bridge.idle()
            assert bridge.servers.endpoints == servers
            assert await bridge.servers.saved.servers_with_keys() == (("mine",) if change is rename else ())

    run(in_loop, tmp_path, work)
