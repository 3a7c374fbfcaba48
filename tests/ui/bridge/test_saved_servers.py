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
    mine = endpoint(server, has_key=False, **more)
    await states_of(bridge, bridge.servers.connect_endpoint, mine, KEY, session_only=True)
    assert await bridge.servers.saved.servers_with_keys() == ("mine",)
    return mine


def test_another_title_or_dialect_keeps_the_key(in_loop, tmp_path):
    async def work(bridge):
        async with model_server("a", key="sk-right") as server:
            mine = await connect(bridge, server)
            changed = mine.model_copy(update={"title": "Work", "base_url": server.url})
            listed, told = Heard(bridge.servers.models_changed), Heard(bridge.servers.endpoints_changed)
            states, _ = await states_of(bridge, bridge.servers.edit, changed)
            assert states == [("mine", "busy"), ("mine", "ok")]
            assert bridge.servers.endpoints == (changed,)
            assert await bridge.servers.saved.servers_with_keys() == ("mine",)
            assert len(told) == 1
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
        kept = bridge.servers.saved
        here = "http://127.0.0.1:1/v1"
        assert kept.id_for(here, (), "openai-chat") == f"custom:{here}"
        moved = Endpoint(id=f"custom:{here}", title="t", base_url="http://127.0.0.1:2/v1")
        await kept.use(moved, ModelInfo("m").id, has_new_key=True)
        assert kept.id_for(here, (), "openai-chat") == f"custom:{here}#2"
        same = Endpoint(id=f"custom:{here}#2", title="t", base_url=here)
        await kept.use(same, "m", has_new_key=True)
        assert kept.id_for(here, (), "openai-chat") == f"custom:{here}#2"

    run(in_loop, tmp_path, work)


def test_addresses_that_were_completed_are_found_as_they_were_typed(in_loop, tmp_path):
    async def work(bridge):
        kept = bridge.servers.saved
        mirrors = ("https://b.example/v1", "https://c.example/openai")
        saved = Endpoint(id="mine", title="t", base_url="https://a.example/v1", mirrors=mirrors)
        await kept.use(saved, "m", has_new_key=False)
        assert kept.id_for("https://a.example", ("https://b.example", mirrors[1]), "openai-chat") == "mine"
        assert kept.id_for("https://a.example", mirrors[:1], "openai-chat") != "mine"
        # There is another one at the address that was typed.
        bare = saved.model_copy(update={"id": "bare", "base_url": "https://a.example", "models": ("m",)})
        await kept.use(bare, "m", has_new_key=False)
        assert kept.id_for(bare.base_url, mirrors, "openai-chat") == "bare"
        assert kept.id_for(saved.base_url, mirrors, "openai-chat") == "mine"

    run(in_loop, tmp_path, work)


def test_one_address_in_two_dialects_is_two_servers(in_loop, tmp_path):
    async def work(bridge):
        kept = bridge.servers.saved
        here = "http://127.0.0.1:1/v1"
        ids = []
        for dialect in ("openai-chat", "anthropic", "openai-chat", "anthropic"):
            ids.append(kept.id_for(here, (), dialect))
            made = Endpoint(id=ids[-1], title="t", dialect=dialect, base_url=here)
            await kept.use(made, "m", has_new_key=True)
        assert ids == [f"custom:{here}", f"custom:{here}#2"] * 2
        assert [each.dialect for each in bridge.servers.endpoints] == ["openai-chat", "anthropic"]

    run(in_loop, tmp_path, work)


def test_one_who_is_gone_meanwhile_is_not_brought_back(in_loop, tmp_path):
    async def work(bridge):
        assert await bridge.servers.saved.edit(Endpoint(id="gone", title="t", base_url="http://127.0.0.1:1")) is False
        assert bridge.servers.endpoints == ()

    run(in_loop, tmp_path, work)


def test_a_key_that_was_entered_while_a_server_was_edited_stays(in_loop, tmp_path):
    async def work(bridge):
        kept, before = bridge.servers.saved, Endpoint(id="mine", title="t", base_url="http://127.0.0.1:1/v1")
        await kept.use(before, None, has_new_key=False)
        await kept.use(before, None, has_new_key=True)
        await kept.edit(before.model_copy(update={"title": "Work", "has_key": False}))
        (now,) = bridge.servers.endpoints
        assert (now.title, now.has_key) == ("Work", True)

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
            mine = endpoint(server, has_key=False)
            await bridge.servers.saved.use(mine, "a", has_new_key=False)
            ask, may_answer, is_asked = getattr(bridge.engine.connections, slow), asyncio.Event(), asyncio.Event()

            async def ask_later(*given, **named):
                is_asked.set()
                await may_answer.wait()
                return await ask(*given, **named)

            setattr(bridge.engine.connections, slow, ask_later)
            bridge.servers.replace_key("mine", KEY, session_only=True)
            await is_asked.wait()
            changed = Heard(bridge.servers.endpoints_changed)
            change(bridge, mine)
            await until(lambda: changed)
            servers = bridge.servers.endpoints
            may_answer.set()
            await bridge.idle()
            assert bridge.servers.endpoints == servers
            assert await bridge.servers.saved.servers_with_keys() == (("mine",) if change is rename else ())

    run(in_loop, tmp_path, work)
