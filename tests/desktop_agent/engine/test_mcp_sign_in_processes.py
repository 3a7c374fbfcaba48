"""One sign-in for several processes: a server that takes each refresh token once, and refuses it the second time."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import SecretStr

from desktop_agent.mcp.oauth_records import OAuthRecord
from desktop_agent.storage.locks.conversation_locks import process_lock
from tests.desktop_agent.engine.shared_keyring import call_look, share
from tests.desktop_agent.engine.test_mcp_shared_sign_in import rotate_tokens
from tests.desktop_agent.engine.test_mcp_sign_in import sign_in_site, signed_in
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, stand
from tests.fakes.mcp_site import Site

NAME = "mcp/web/ sign-in"


@asynccontextmanager
async def two_engines(folder: Path) -> AsyncIterator[tuple[Site, Stand, Stand]]:
    """Two engines that share a keyring and are signed in; each refresh token holds once from now on."""
    async with sign_in_site(folder) as (remote, setup), stand(folder, *setup.configured) as other:
        share(setup, folder / "keyring")
        share(other, folder / "keyring")
        await signed_in(remote, setup)
        assert (await other.servers.test("web", None)).state == "running"
        yield remote, setup, other


def kept(setup: Stand) -> OAuthRecord:
    return OAuthRecord.model_validate_json(setup.secrets.kept[NAME])


def refused(remote: Site, tokens: str) -> int:
    """How often it was asked with a token that it takes no more."""
    return sum(
        request.path == "/mcp" and request.headers.get("authorization") == f"Bearer {tokens}"
        for request in remote.asked
    )


@asynccontextmanager
async def process(folder: Path, url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    module = "tests.desktop_agent.engine.shared_keyring"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, str(folder / "keyring"), str(folder), url, stdin=pipe, stdout=pipe
    )
    try:
        assert await line_of(child) == "running"
        yield child
    finally:
        child.stdin.close()
        await child.wait()


async def line_of(child: asyncio.subprocess.Process) -> str:
    return (await child.stdout.readline()).decode().strip()


async def test_processes_renew_one_sign_in_once(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        share(setup, tmp_path / "keyring")
        await signed_in(remote, setup)
        used = rotate_tokens(remote)
        async with process(tmp_path, remote.url) as first, process(tmp_path, remote.url) as second:
            remote.held["/token"] = asyncio.Event()
            remote.tokens, remote.asked = set(), []
            calling = asyncio.create_task(call_look(setup))
            for child in (first, second):
                child.stdin.write(b"look\n")
            # All of them know that they need another token before one of them has it.
            await until(lambda: refused(remote, "access-secret-1") == 3)
            remote.held["/token"].set()
            results = [await calling, await line_of(first), await line_of(second)]
            assert all("seen" in line for line in results), results
            assert used == ["refresh-secret-1"]
            assert remote.paths().count("/token") == 1
            # What one of them was given is given back by the next.
            remote.tokens = set()
            first.stdin.write(b"look\n")
            assert "seen" in await line_of(first)
            assert "seen" in await call_look(setup)
            assert used == ["refresh-secret-1", "refresh-secret-2"]
            assert kept(setup).tokens["refresh_token"] == remote.refresh


async def test_a_sign_in_that_expired_meanwhile_is_renewed_from_the_newest(tmp_path):
    async with two_engines(tmp_path) as (remote, setup, other):
        used = rotate_tokens(remote)
        remote.expires_in, remote.tokens = 0, set()
        assert "seen" in await call_look(other)
        assert used == ["refresh-secret-1"]
        assert "seen" in await call_look(setup)
        assert used == ["refresh-secret-1", "refresh-secret-2"]


async def test_who_signed_out_elsewhere_is_signed_out_here(tmp_path):
    async with two_engines(tmp_path) as (remote, setup, other):
        await other.servers.sign_out("web")
        remote.tokens, remote.asked = set(), []
        assert "seen" not in await call_look(setup)
        assert "/token" not in remote.paths()
        assert all(request.headers.get("authorization") != "Bearer " for request in remote.asked)
        assert setup.servers.state("web", None).state == "signed_out"
        assert setup.secrets.kept == {}


@pytest.mark.parametrize("what", ["out", "in"])
async def test_a_renewal_puts_nothing_over_what_was_done_elsewhere_meanwhile(tmp_path, what):
    async with two_engines(tmp_path) as (remote, setup, other):
        rotate_tokens(remote)
        remote.held["/token"] = asyncio.Event()
        remote.tokens, remote.asked = set(), []
        calling = asyncio.create_task(call_look(setup))
        await until(lambda: "/token" in remote.paths())
        newest = kept(setup).with_tokens({"access_token": "access-secret-9", "refresh_token": "r9"})
        if what == "out":
            await other.servers.sign_out("web")
        else:
            await other.secrets.set(NAME, SecretStr(newest.model_dump_json()))
            remote.tokens = {"access-secret-9"}
        remote.held["/token"].set()
        result = await calling
        assert ("seen" in result) is (what == "in")
        assert setup.secrets.kept == ({NAME: newest.model_dump_json()} if what == "in" else {})


async def test_a_process_that_never_ends_its_renewal_ends_no_sign_in(tmp_path, monkeypatch):
    monkeypatch.setattr("desktop_agent.engine.mcp_connections._LOCK_TIMEOUT", 0.1)
    async with two_engines(tmp_path) as (remote, setup, other):
        used = rotate_tokens(remote)
        before = kept(setup)
        remote.tokens = set()
        async with process_lock("mcp-web", 0) as is_alone:
            assert is_alone
            assert "is being renewed by another window of the program" in await call_look(setup)
            assert used == []
            assert kept(setup) == before
            assert setup.servers.state("web", None).state == "failed"
        assert "seen" in await call_look(other)
        assert used == ["refresh-secret-1"]
