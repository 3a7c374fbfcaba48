"""Servers are saved and removed with what belongs to them."""

import pytest
from pydantic import SecretStr

from desktop_agent.engine.mcp.servers import McpServers
from desktop_agent.engine.mcp.sign_ins import SignIns
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.vocabulary.errors import SecretsUnavailable, WrongUse
from desktop_agent.vocabulary.mcp.servers import StdioConnection
from tests.desktop_agent.engine.mcp.stand import at, own, stand


def with_secrets(*names: str):
    connection = own().connection
    assert isinstance(connection, StdioConnection)
    return own().model_copy(update={"connection": connection.model_copy(update={"secret_env": names})})


async def test_a_value_that_is_not_given_stays_and_one_that_is_named_no_more_goes(tmp_path):
    async with stand(tmp_path) as here:
        one, two = SecretStr("value-one"), SecretStr("value-two")
        await here.servers.save(with_secrets("TOKEN", "OTHER"), {"TOKEN": one, "OTHER": two}, here.keep)
        assert here.secrets.kept == {"mcp/own/TOKEN": "value-one", "mcp/own/OTHER": "value-two"}
        await here.servers.save(with_secrets("TOKEN"), {}, here.keep)
        assert here.secrets.kept == {"mcp/own/TOKEN": "value-one"}
        assert len(here.configured) == 1
        await here.servers.save(own(server_id="more"), {}, here.keep)
        assert [each.id for each in here.configured] == ["own", "more"]
        await here.servers.remove("own", here.keep)
        assert (here.secrets.kept, [each.id for each in here.configured]) == ({}, ["more"])


async def test_another_value_holds_at_once(tmp_path):
    async with stand(tmp_path) as here:
        server = with_secrets("TOKEN")
        await here.servers.save(server, {"TOKEN": SecretStr("value-one")}, here.keep)
        await here.servers.test("own", None)
        first = here.servers.server("own", None)
        await here.servers.save(server, {"TOKEN": SecretStr("value-two")}, here.keep)
        await here.servers.test("own", None)
        second = here.servers.server("own", None)
        assert first is not second
        assert second is not None
        assert "value-two" in str(await second.call("environment", {}))


@pytest.mark.parametrize("value", ["", "two\nlines", "nul\0"])
async def test_what_cannot_be_sent_is_refused_before_anything_is_kept(value, tmp_path):
    async with stand(tmp_path) as here:
        with pytest.raises(WrongUse):
            await here.servers.save(with_secrets("TOKEN"), {"TOKEN": SecretStr(value)}, here.keep)
        with pytest.raises(WrongUse):
            await here.servers.save(own(), {"TOKEN": SecretStr("x")}, here.keep)
        assert (here.secrets.kept, here.configured) == ({}, ())


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
        await servers.remove("own", keep)
        assert configured == []
        configured[:] = [at("https://tools.example/mcp", sign_in=True)]
        with pytest.raises(SecretsUnavailable):
            await SignIns(SecretStore(), frozenset).sign_in(configured[0], lambda _: None)
        await servers.remove("web", keep)
        assert configured == []
    finally:
        await servers.close()
