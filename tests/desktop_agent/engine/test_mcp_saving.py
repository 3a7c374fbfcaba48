"""Servers are saved and removed with what belongs to them."""

import asyncio

import pytest
from pydantic import SecretStr

from desktop_agent.engine.mcp_connections import OAuthManager
from desktop_agent.engine.mcp_servers import McpServers
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import SecretsUnavailable, StorageFailed, ToolFailed, WrongUse
from desktop_agent.types.mcp import CLIENT_SECRET, StdioConnection
from tests.fakes.mcp_servers import at, own, stand


def with_secrets(*names: str):
    connection = own().connection
    assert isinstance(connection, StdioConnection)
    return own().model_copy(update={"connection": connection.model_copy(update={"secret_env": names})})


async def test_a_value_that_is_not_given_stays_and_one_that_is_named_no_more_goes(tmp_path):
    async with stand(tmp_path) as setup:
        one, two = SecretStr("value-one"), SecretStr("value-two")
        await setup.servers.save(with_secrets("TOKEN", "OTHER"), {"TOKEN": one, "OTHER": two}, setup.keep)
        assert setup.secrets.kept == {"mcp/own/TOKEN": "value-one", "mcp/own/OTHER": "value-two"}
        await setup.servers.save(with_secrets("TOKEN"), {}, setup.keep)
        assert setup.secrets.kept == {"mcp/own/TOKEN": "value-one"}
        assert len(setup.configured) == 1
        await setup.servers.save(own(server_id="more"), {}, setup.keep)
        assert [server.id for server in setup.configured] == ["own", "more"]
        await setup.servers.remove("own", setup.keep)
        assert (setup.secrets.kept, [server.id for server in setup.configured]) == ({}, ["more"])


async def test_what_was_saved_while_the_keyring_was_asked_stays(tmp_path):
    async with stand(tmp_path, own(), own(server_id="two")) as setup:
        requested, go, set_now = asyncio.Event(), asyncio.Event(), setup.secrets.set

        async def slow(name, value):
            requested.set()
            await go.wait()
            await set_now(name, value)

        setup.secrets.set = slow
        saving = asyncio.create_task(
            setup.servers.save(with_secrets("TOKEN"), {"TOKEN": SecretStr("value-one")}, setup.keep)
        )
        await requested.wait()
        await setup.servers.save(setup.configured[1].model_copy(update={"on": False}), {}, setup.keep)
        go.set()
        await saving
        assert [(server.secret_names, server.on) for server in setup.configured] == [(("TOKEN",), True), ((), False)]


async def test_a_server_that_is_turned_off_while_the_keyring_is_asked_is_not_started(tmp_path):
    mark = tmp_path / "started"
    connection = StdioConnection(command="/bin/sh", args=("-c", f"echo x > {mark}"), secret_env=("TOKEN",))
    async with stand(tmp_path, own().model_copy(update={"connection": connection})) as setup:
        requested, go = asyncio.Event(), asyncio.Event()

        async def slow(name):
            requested.set()
            await go.wait()
            return SecretStr("value-one")

        setup.secrets.get = slow
        live = setup.servers.server("own", None)
        call = asyncio.create_task(live.call("add", {}))
        await requested.wait()
        await setup.change(on=False)
        go.set()
        with pytest.raises(ToolFailed, match="was turned off, removed or changed"):
            await call
        assert not mark.exists()
        assert live.lifecycle.state.state == "idle"


async def test_it_is_known_which_values_are_held(tmp_path):
    async with stand(tmp_path, with_secrets("TOKEN", "OTHER")) as setup:
        assert await setup.servers.stored_secret_names("own") == frozenset()
        await setup.secrets.set("mcp/own/OTHER", SecretStr("value"))
        await setup.secrets.set("mcp/own/ELSE", SecretStr("value"))
        assert await setup.servers.stored_secret_names("own") == {"OTHER"}
        assert await setup.servers.stored_secret_names("nobody") == frozenset()


async def test_another_value_holds_at_once(tmp_path):
    async with stand(tmp_path) as setup:
        server = with_secrets("TOKEN")
        await setup.servers.save(server, {"TOKEN": SecretStr("value-one")}, setup.keep)
        await setup.servers.test("own", None)
        first = setup.servers.server("own", None)
        await setup.servers.save(server, {"TOKEN": SecretStr("value-two")}, setup.keep)
        await setup.servers.test("own", None)
        second = setup.servers.server("own", None)
        assert first is not second
        assert second is not None
        assert "value-two" in str(await second.call("environment", {}))


@pytest.mark.parametrize("value", ["", "two\nlines", "nul\0"])
async def test_what_cannot_be_sent_is_refused_before_anything_is_kept(value, tmp_path):
    async with stand(tmp_path) as setup:
        with pytest.raises(WrongUse):
            await setup.servers.save(with_secrets("TOKEN"), {"TOKEN": SecretStr(value)}, setup.keep)
        with pytest.raises(WrongUse):
            await setup.servers.save(own(), {"TOKEN": SecretStr("x")}, setup.keep)
        assert (setup.secrets.kept, setup.configured) == ({}, ())


async def test_without_a_keyring_nothing_is_saved_and_what_is_there_can_go(tmp_path):
    configured = [own()]
    servers = McpServers(lambda: tuple(configured), SecretStore(), tmp_path)

    async def keep(changed):
        configured[:] = changed

    try:
        with pytest.raises(SecretsUnavailable):
            await servers.save(with_secrets("TOKEN"), {"TOKEN": SecretStr("x")}, keep)
        assert configured == [own()]
        configured[:] = [with_secrets("TOKEN")]
        assert await servers.stored_secret_names("own") == frozenset()
        await servers.remove("own", keep)
        assert configured == []
        configured[:] = [at("https://tools.example/mcp", sign_in=True)]
        with pytest.raises(SecretsUnavailable):
            await OAuthManager(SecretStore(), frozenset).sign_in(configured[0], lambda _: None)
        await servers.remove("web", keep)
        assert configured == []
    finally:
        await servers.close()


async def test_a_client_secret_goes_with_its_id_and_its_address(tmp_path):
    known = at("https://tools.example/mcp", sign_in=True, client_id="agreed")
    changes = {"client_id": "other"}, {"url": "https://other.example/mcp"}, {"client_id": ""}
    async with stand(tmp_path, known) as setup:
        for change in changes:
            await setup.servers.save(known, {CLIENT_SECRET: SecretStr("s3cret-value")}, setup.keep)
            await setup.servers.save(known.model_copy(update={"title": "Else"}), {}, setup.keep)
            assert list(setup.secrets.kept.values()) == ["s3cret-value"]
            changed = known.model_copy(update={"connection": known.connection.model_copy(update=change)})
            await setup.servers.save(changed, {}, setup.keep)
            assert setup.secrets.kept == {}


async def test_a_save_that_fails_leaves_the_old_values(tmp_path):
    async with stand(tmp_path) as setup:
        await setup.servers.save(with_secrets("TOKEN"), {"TOKEN": SecretStr("value-old")}, setup.keep)

        async def failing(servers):
            raise StorageFailed("The disk is full.")

        new = {"TOKEN": SecretStr("value-new"), "OTHER": SecretStr("value-other")}
        with pytest.raises(StorageFailed):
            await setup.servers.save(with_secrets("TOKEN", "OTHER"), new, failing)
        assert setup.secrets.kept == {"mcp/own/TOKEN": "value-old"}


async def test_what_was_entered_for_one_host_or_program_goes_to_no_other(tmp_path):
    async with stand(tmp_path) as setup:
        first = at("https://one.example/mcp", headers=("X-Key", "X-More"))
        values = {"X-Key": SecretStr("value-key"), "X-More": SecretStr("value-more")}
        await setup.servers.save(first, values, setup.keep)
        await setup.servers.save(at("https://one.example/v2", headers=("X-Key", "X-More")), {}, setup.keep)
        assert set(setup.secrets.kept.values()) == {"value-key", "value-more"}
        moved = at("https://two.example/mcp", headers=("X-Key", "X-More"))
        await setup.servers.save(moved, {"X-Key": SecretStr("value-new")}, setup.keep)
        assert setup.secrets.kept == {"mcp/web/X-Key": "value-new"}
        server = with_secrets("TOKEN")
        await setup.servers.save(server, {"TOKEN": SecretStr("value-old")}, setup.keep)
        other = server.connection.model_copy(update={"command": "other"})
        await setup.servers.save(server.model_copy(update={"connection": other}), {}, setup.keep)
        assert setup.secrets.kept == {"mcp/web/X-Key": "value-new"}


async def test_what_was_entered_for_one_program_is_not_given_to_another_with_the_same_launcher(tmp_path):
    async with stand(tmp_path) as setup:
        server = with_secrets("TOKEN")
        await setup.servers.save(server, {"TOKEN": SecretStr("value-one")}, setup.keep)
        other = server.connection.model_copy(update={"args": (*server.connection.args, "another")})
        await setup.servers.save(server.model_copy(update={"connection": other}), {}, setup.keep)
        assert setup.secrets.kept == {}


async def test_where_a_secret_cannot_be_taken_away_nothing_changes(tmp_path):
    async with stand(tmp_path) as setup:
        first = at("https://one.example/mcp", headers=("X-Key",))
        await setup.servers.save(first, {"X-Key": SecretStr("value-one")}, setup.keep)

        async def locked(name):
            raise SecretsUnavailable("The keyring is locked.")

        setup.secrets.delete = locked
        with pytest.raises(SecretsUnavailable):
            await setup.servers.save(at("https://two.example/mcp", headers=("X-Key",)), {}, setup.keep)
        assert setup.configured == (first,)
        assert setup.secrets.kept == {"mcp/web/X-Key": "value-one"}


async def test_a_server_that_starts_while_it_is_saved_gets_the_secret_of_no_other_address(tmp_path):
    async with stand(tmp_path) as setup:
        server = with_secrets("TOKEN")
        await setup.servers.save(server, {"TOKEN": SecretStr("value-one")}, setup.keep)
        other = server.connection.model_copy(update={"args": ("-c", "print(1)")})
        requested, go, set_now, got = asyncio.Event(), asyncio.Event(), setup.secrets.set, []
        get_now = setup.secrets.get

        async def slow(name, value):
            await set_now(name, value)
            requested.set()
            await go.wait()

        async def get(name):
            got.append(name)
            return await get_now(name)

        setup.secrets.set, setup.secrets.get = slow, get
        moved = server.model_copy(update={"connection": other})
        saving = asyncio.create_task(setup.servers.save(moved, {"TOKEN": SecretStr("value-two")}, setup.keep))
        await requested.wait()
        got.clear()
        call = asyncio.create_task(setup.servers.server("own", None).call("add", {}))
        await asyncio.sleep(0.05)
        go.set()
        await saving
        with pytest.raises(ToolFailed, match="were changed meanwhile"):
            await call
        assert got == []


async def test_what_is_removed_while_it_is_saved_stays_removed(tmp_path):
    async with stand(tmp_path) as setup:
        server = with_secrets("TOKEN")
        await setup.servers.save(server, {"TOKEN": SecretStr("value-one")}, setup.keep)
        set_now = setup.secrets.set

        async def slow(name, value):
            await setup.servers.remove("own", setup.keep)
            await set_now(name, value)

        setup.secrets.set = slow
        with pytest.raises(WrongUse, match="removed meanwhile"):
            await setup.servers.save(server, {"TOKEN": SecretStr("value-two")}, setup.keep)
        assert (setup.configured, setup.secrets.kept) == ((), {})
