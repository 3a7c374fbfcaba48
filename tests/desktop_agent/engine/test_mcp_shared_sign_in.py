"""One sign-in for all folders: a server that takes each refresh token once, and connections that go meanwhile."""

import asyncio
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.mcp.oauth_records import OAuthRecord
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import KeyringLocked
from desktop_agent.types.mcp import HttpConnection
from tests.desktop_agent.engine.test_mcp_sign_in import door, signed_in
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, own, stand
from tests.fakes.mcp_site import Answer, Asked, Site, as_json


def rotating(there: Site) -> list[str]:
    """Make each refresh token valid once. Return the list of those that are used."""
    used: list[str] = []

    def token(request: Asked) -> Answer:
        refresh_token = request.form.get("refresh_token", "")
        if refresh_token != there.refresh:
            return as_json({"error": "invalid_grant"}, 400)
        used.append(refresh_token)
        there.refresh = f"refresh-secret-{len(used) + 1}"
        return as_json(there.given())

    there.answers["/token"] = token
    return used


class Gate:
    """A keyring that takes its time, as long as `open` is not set."""

    def __init__(self, here: Stand) -> None:
        self.asked, self.open = False, asyncio.Event()
        self.open.set()
        self._set = here.secrets.set
        here.secrets.set = self._wait

    async def _wait(self, name: str, value: SecretStr) -> None:
        self.asked = not self.open.is_set()
        await self.open.wait()
        await self._set(name, value)


async def look(here: Stand, folder: Path) -> str:
    tool = next(tool for tool in here.servers.tools(folder) if tool.name == "web__look")
    return str(await tool.run({}, RunningCall("call", lambda _: None)))


def kept(here: Stand) -> OAuthRecord:
    return OAuthRecord.model_validate_json(here.secrets.kept["mcp/web/ sign-in"])


async def test_two_folders_renew_one_sign_in(tmp_path):
    folders = tmp_path / "a", tmp_path / "b"
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        used = rotating(there)
        for folder in folders:
            assert (await here.servers.test("web", folder)).state == "running"
        for round_ in (1, 2):
            there.tokens = set()
            assert all("seen" in result for result in await asyncio.gather(*(look(here, folder) for folder in folders)))
            assert len(used) == round_
        assert kept(here).tokens["refresh_token"] == there.refresh == "refresh-secret-3"
        later = await here.servers.test("web", tmp_path / "c")
        assert later.state == "running"


async def test_a_renewal_is_not_cut_off_with_its_connection(tmp_path):
    async with door(tmp_path) as (there, here):
        gate = Gate(here)
        await signed_in(there, here)
        used = rotating(there)
        gate.open.clear()
        there.tokens = set()
        call = asyncio.create_task(look(here, None))
        await until(lambda: gate.asked)
        await here.change(on=False)
        await asyncio.gather(call, return_exceptions=True)
        gate.open.set()
        await until(lambda: kept(here).tokens["refresh_token"] == "refresh-secret-2")
        await here.change(on=True)
        assert (await here.servers.test("web", None)).state == "running"
        assert used == ["refresh-secret-1"]


async def test_what_is_put_away_with_all_servers_is_kept_too(tmp_path):
    async with door(tmp_path) as (there, here):
        gate = Gate(here)
        await signed_in(there, here)
        rotating(there)
        gate.open.clear()
        there.tokens = set()
        call = asyncio.create_task(look(here, None))
        await until(lambda: gate.asked)
        closing = asyncio.create_task(here.servers.close())
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.wait([closing], timeout=0.5)
        assert not closing.done()
        gate.open.set()
        await closing
        assert kept(here).tokens["refresh_token"] == "refresh-secret-2"


async def test_a_renewal_brings_nothing_back_after_signing_out(tmp_path):
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        used = rotating(there)
        answer, signing_out = there.answers["/token"], []

        def token(request: Asked) -> Answer:
            # Before the answer is there.
            signing_out.append(asyncio.create_task(here.servers.sign_out("web")))
            return answer(request)

        there.answers["/token"] = token
        there.tokens = set()
        await asyncio.gather(look(here, None), return_exceptions=True)
        await asyncio.gather(*signing_out)
        await until(lambda: not here.servers._oauth._renewals)
        assert used == ["refresh-secret-1"]
        assert here.secrets.kept == {}


async def test_what_signing_in_left_goes_with_the_sign_in(tmp_path):
    async with door(tmp_path) as (there, here):
        for other in ("off", "elsewhere", "a program", "removed"):
            await signed_in(there, here)
            before = here.configured[0]
            assert isinstance(before.connection, HttpConnection)
            assert list(here.secrets.kept) == ["mcp/web/ sign-in"]
            changes = {"off": {"sign_in": False}, "elsewhere": {"url": "https://other.example/mcp"}}
            if other in changes:
                connection = before.connection.model_copy(update=changes[other])
                await here.servers.save(before.model_copy(update={"connection": connection}), {}, here.keep)
            elif other == "a program":
                await here.servers.save(own(server_id="web"), {}, here.keep)
            else:
                await here.servers.remove("web", here.keep)
            assert here.secrets.kept == {}, other
            await here.keep((before,))


async def test_a_server_that_was_turned_off_for_signing_in_takes_its_tokens_along(tmp_path):
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        before = here.configured[0]
        connection = before.connection.model_copy(update={"sign_in": False})
        # As an older version left it.
        await here.keep((before.model_copy(update={"connection": connection}),))
        await here.servers.remove("web", here.keep)
        assert here.secrets.kept == {}


async def test_a_state_says_whether_a_sign_in_is_kept(tmp_path):
    async with door(tmp_path) as (there, here):
        assert here.servers.state("web", None).is_signed_in is None
        await here.servers.check_sign_in("web")
        assert here.servers.state("web", None).is_signed_in is False
        assert here.states == ["idle"]
        await signed_in(there, here)
        assert here.servers.state("web", None).is_signed_in is True
        async with stand(tmp_path, *here.configured) as later:
            later.secrets._session.update(here.secrets._session)
            await later.servers.check_sign_in("web")
            assert (later.servers.state("web", None).state, later.servers.state("web", None).is_signed_in) == (
                "idle",
                True,
            )
            await later.change(on=False)
            assert later.servers.state("web", None).is_signed_in is True
            await later.servers.sign_out("web")
            assert later.servers.state("web", None).is_signed_in is False


async def test_a_keyring_that_does_not_answer_keeps_no_sign_in(tmp_path):
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)

        async def locked(_: str) -> None:
            raise KeyringLocked("The keyring is locked.")

        here.secrets.get = locked
        await here.servers.check_sign_in("web")
        assert here.servers.state("web", None).is_signed_in is False
        await here.servers.check_sign_in("unknown")
