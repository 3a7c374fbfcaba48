"""One sign-in for all folders: a server that takes each refresh token once, and connections that go meanwhile."""

import asyncio
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.mcp.oauth_records import OAuthRecord
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import KeyringLocked
from desktop_agent.types.mcp import HttpConnection
from tests.desktop_agent.engine.test_mcp_sign_in import sign_in_site, signed_in
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, own, stand
from tests.fakes.mcp_site import Answer, Asked, Site, as_json


def rotate_tokens(remote: Site) -> list[str]:
    """Make each refresh token valid once. Return the list of those that are used."""
    used: list[str] = []

    def token(request: Asked) -> Answer:
        refresh_token = request.form.get("refresh_token", "")
        if refresh_token != remote.refresh:
            return as_json({"error": "invalid_grant"}, 400)
        used.append(refresh_token)
        remote.refresh = f"refresh-secret-{len(used) + 1}"
        return as_json(remote.given())

    remote.answers["/token"] = token
    return used


class Gate:
    """A keyring that takes its time, as long as `open` is not set."""

    def __init__(self, setup: Stand) -> None:
        self.asked, self.open = False, asyncio.Event()
        self.open.set()
        self._set = setup.secrets.set
        setup.secrets.set = self._wait

    async def _wait(self, name: str, value: SecretStr) -> None:
        self.asked = not self.open.is_set()
        await self.open.wait()
        await self._set(name, value)


async def call_look(setup: Stand, folder: Path) -> str:
    tool = next(tool for tool in setup.servers.tools(folder) if tool.name == "web__look")
    return str(await tool.run({}, RunningCall("call", lambda _: None)))


def kept(setup: Stand) -> OAuthRecord:
    return OAuthRecord.model_validate_json(setup.secrets.kept["mcp/web/ sign-in"])


async def test_two_folders_renew_one_sign_in(tmp_path):
    folders = tmp_path / "a", tmp_path / "b"
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        used = rotate_tokens(remote)
        for folder in folders:
            assert (await setup.servers.test("web", folder)).state == "running"
        for round_ in (1, 2):
            remote.tokens = set()
            assert all(
                "seen" in result for result in await asyncio.gather(*(call_look(setup, folder) for folder in folders))
            )
            assert len(used) == round_
        assert kept(setup).tokens["refresh_token"] == remote.refresh == "refresh-secret-3"
        later = await setup.servers.test("web", tmp_path / "c")
        assert later.state == "running"


async def test_a_renewal_is_not_cut_off_with_its_connection(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        gate = Gate(setup)
        await signed_in(remote, setup)
        used = rotate_tokens(remote)
        gate.open.clear()
        remote.tokens = set()
        call = asyncio.create_task(call_look(setup, None))
        await until(lambda: gate.asked)
        await setup.change(on=False)
        await asyncio.gather(call, return_exceptions=True)
        gate.open.set()
        await until(lambda: kept(setup).tokens["refresh_token"] == "refresh-secret-2")
        await setup.change(on=True)
        assert (await setup.servers.test("web", None)).state == "running"
        assert used == ["refresh-secret-1"]


async def test_what_is_put_away_with_all_servers_is_kept_too(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        gate = Gate(setup)
        await signed_in(remote, setup)
        rotate_tokens(remote)
        gate.open.clear()
        remote.tokens = set()
        call = asyncio.create_task(call_look(setup, None))
        await until(lambda: gate.asked)
        closing = asyncio.create_task(setup.servers.close())
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.wait([closing], timeout=0.5)
        assert not closing.done()
        gate.open.set()
        await closing
        assert kept(setup).tokens["refresh_token"] == "refresh-secret-2"


async def test_a_renewal_brings_nothing_back_after_signing_out(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        used = rotate_tokens(remote)
        answer, signing_out = remote.answers["/token"], []

        def token(request: Asked) -> Answer:
            # Before the answer is there.
            signing_out.append(asyncio.create_task(setup.servers.sign_out("web")))
            return answer(request)

        remote.answers["/token"] = token
        remote.tokens = set()
        await asyncio.gather(call_look(setup, None), return_exceptions=True)
        await asyncio.gather(*signing_out)
        await until(lambda: not setup.servers._oauth._renewals)
        assert used == ["refresh-secret-1"]
        assert setup.secrets.kept == {}


async def test_what_signing_in_left_goes_with_the_sign_in(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        for other in ("off", "elsewhere", "a program", "removed"):
            await signed_in(remote, setup)
            before = setup.configured[0]
            assert isinstance(before.connection, HttpConnection)
            assert list(setup.secrets.kept) == ["mcp/web/ sign-in"]
            changes = {"off": {"sign_in": False}, "elsewhere": {"url": "https://other.example/mcp"}}
            if other in changes:
                connection = before.connection.model_copy(update=changes[other])
                await setup.servers.save(before.model_copy(update={"connection": connection}), {}, setup.keep)
            elif other == "a program":
                await setup.servers.save(own(server_id="web"), {}, setup.keep)
            else:
                await setup.servers.remove("web", setup.keep)
            assert setup.secrets.kept == {}, other
            await setup.keep((before,))


async def test_a_server_that_was_turned_off_for_signing_in_takes_its_tokens_along(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        before = setup.configured[0]
        connection = before.connection.model_copy(update={"sign_in": False})
        # As an older version left it.
        await setup.keep((before.model_copy(update={"connection": connection}),))
        await setup.servers.remove("web", setup.keep)
        assert setup.secrets.kept == {}


async def test_a_state_says_whether_a_sign_in_is_kept(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        assert setup.servers.state("web", None).is_signed_in is None
        await setup.servers.check_sign_in("web")
        assert setup.servers.state("web", None).is_signed_in is False
        assert setup.states == ["idle"]
        await signed_in(remote, setup)
        assert setup.servers.state("web", None).is_signed_in is True
        async with stand(tmp_path, *setup.configured) as later:
            later.secrets._session.update(setup.secrets._session)
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
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)

        async def locked(_: str) -> None:
            raise KeyringLocked("The keyring is locked.")

        setup.secrets.get = locked
        await setup.servers.check_sign_in("web")
        assert setup.servers.state("web", None).is_signed_in is False
        await setup.servers.check_sign_in("unknown")
