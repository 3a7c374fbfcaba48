"""Signing in to a server of tools, staying signed in, and what a hostile server makes of it."""

import asyncio
import logging
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.mcp import host_policy, oauth_session
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.oauth_records import OAuthRecord
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.mcp import CLIENT_SECRET, McpServerState, SignInPageTexts
from tests.fakes.mcp_client import until
from tests.fakes.mcp_servers import Stand, at, stand
from tests.fakes.mcp_site import ENDLESS, Answer, Asked, Site, as_json, site
from tests.frame.patience import PATIENCE

SECRETS = ("access-secret", "refresh-secret", "client-secret", "the-code")
PRM = "/.well-known/oauth-protected-resource/mcp"
ASM = "/.well-known/oauth-authorization-server"


@asynccontextmanager
async def sign_in_site(folder: Path, **fields: Any) -> AsyncIterator[tuple[Site, Stand]]:
    """Open a site, and servers of tools that may sign in there."""
    async with site(**fields) as remote, stand(folder, at(remote.url, sign_in=True)) as setup:
        yield remote, setup


async def signed_in(remote: Site, setup: Stand) -> McpServerState:
    state = await setup.servers.sign_in("web", remote.opens)
    assert state.state == "running", state.reason
    return state


async def call_look(setup: Stand) -> str:
    tool = next(tool for tool in setup.servers.tools(None) if tool.name == "web__look")
    return str(await tool.run({}, RunningCall("call", lambda _: None)))


async def test_a_person_signs_in_and_the_tools_come(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with sign_in_site(tmp_path) as (remote, setup):
        before = await setup.servers.test("web", None)
        assert before.state == "signed_out"
        assert "Nobody is signed in" in str(before.reason)
        assert all("authorization" not in request.headers for request in remote.asked)
        state = await signed_in(remote, setup)
        assert [tool.name for tool in state.tools] == ["look"]
        assert "seen" in await call_look(setup)
        (page,) = remote.pages
        assert page.startswith(f"{remote.root}/authorize?")
        assert "code_challenge_method=S256" in page
        assert "resource=" in page
        (name, stored) = next(iter(setup.secrets.kept.items()))
        assert name == "mcp/web/ sign-in"
        assert all(secret in stored for secret in SECRETS[:3])
        record = OAuthRecord.model_validate_json(stored)
        shown = repr(record) + str(setup.servers.log("web", None)) + repr(state) + caplog.text
        assert not any(secret in shown for secret in SECRETS)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(secret.encode() in data for secret in SECRETS for data in files)


async def test_a_token_that_expires_is_renewed_once_for_all_and_after_a_restart(tmp_path):
    async with sign_in_site(tmp_path, expires_in=1) as (remote, setup):
        await signed_in(remote, setup)
        remote.expires_in = 3600
        remote.asked.clear()
        async with stand(tmp_path, *setup.configured) as later:
            later.secrets._session.update(setup.secrets._session)
            await later.servers.test("web", None)
            await asyncio.gather(*(call_look(later) for _ in range(5)))
            renewals = [request for request in remote.asked if request.path == "/token"]
            assert [request.form["grant_type"] for request in renewals] == ["refresh_token"]
            assert renewals[0].form["refresh_token"] == "refresh-secret-1"
            assert "access-secret" in later.secrets.kept["mcp/web/ sign-in"]
            assert later.secrets.kept != setup.secrets.kept
            remote.tokens = set()
            remote.asked.clear()
            await asyncio.gather(*(call_look(later) for _ in range(5)))
            assert remote.paths().count("/token") == 1


async def test_a_token_that_holds_no_more_is_renewed_or_the_person_is_asked(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        remote.tokens = set()
        assert "seen" in await call_look(setup)
        remote.tokens, remote.answers = set(), {"/token": lambda _: as_json({"error": "invalid_grant"}, 400)}
        with pytest.raises(ToolFailed, match="is no longer valid"):
            await call_look(setup)
        state = setup.servers.state("web", None)
        assert (state.state, str(state.reason)) == ("signed_out", "The sign-in to the server “Web” is no longer valid.")
        remote.answers.clear()
        await signed_in(remote, setup)
        assert "seen" in await call_look(setup)


@pytest.mark.parametrize("how", ["gone", "503", "429"])
async def test_who_cannot_be_renewed_now_stays_signed_in_and_comes_back(how, tmp_path, monkeypatch):
    monkeypatch.setattr(oauth_session, "_RETRY_PAUSE", 0.0)
    async with sign_in_site(tmp_path) as (remote, setup):
        if how == "gone":
            remote.metadata = {"token_endpoint": f"{remote.root}/token"}
        await signed_in(remote, setup)
        stored = dict(setup.secrets.kept)
        remote.tokens = set()
        if how == "gone":
            # As it was when the person signed in, but nothing answers there any more.
            text = stored["mcp/web/ sign-in"].replace(f"{remote.root}/token", "http://127.0.0.1:9/token")
            await setup.secrets.set("mcp/web/ sign-in", SecretStr(text))
            await setup.change(on=False)
            await setup.change(on=True)
            stored = dict(setup.secrets.kept)
        else:
            remote.answers["/token"] = lambda _: (int(how), {}, b"")
        state = await setup.servers.test("web", None)
        assert state.state == "failed"
        assert "could not be renewed: its sign-in server cannot be reached" in str(state.reason)
        assert "you stay signed in" in str(state.remedy)
        assert setup.secrets.kept == stored
        remote.answers.clear()
        if how == "gone":
            remote.tokens = {"access-secret-1"}
        assert (await setup.servers.test("web", None)).state == "running"
        assert "seen" in await call_look(setup)
        assert len(remote.pages) == 1


async def test_a_call_that_meets_it_fails_and_the_next_one_is_served(tmp_path, monkeypatch):
    monkeypatch.setattr(oauth_session, "_RETRY_PAUSE", 0.0)
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        remote.tokens, remote.answers = set(), {"/token": lambda _: (503, {}, b"")}
        with pytest.raises(ToolFailed, match="could not be renewed"):
            await call_look(setup)
        state = setup.servers.state("web", None)
        assert (state.state, "you stay signed in" in str(state.remedy)) == ("failed", True)
        remote.answers.clear()
        assert "seen" in await call_look(setup)
        assert setup.servers.state("web", None).state == "running"


async def test_many_calls_ask_once_for_what_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(oauth_session, "_RETRY_PAUSE", 3_600.0)
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        remote.tokens, remote.answers = set(), {"/token": lambda _: (503, {}, b"")}
        remote.asked.clear()
        failed = await asyncio.gather(*(call_look(setup) for _ in range(4)), return_exceptions=True)
        assert all(isinstance(error, ToolFailed) for error in failed)
        with pytest.raises(ToolFailed, match="could not be renewed"):
            await call_look(setup)
        assert remote.paths().count("/token") == 1


@pytest.mark.parametrize("how", ["whole", "refused", "gone", "unknown"])
async def test_the_server_is_told_of_who_signs_out_and_need_not_listen(how, tmp_path):
    async with site() as remote:
        root = "http://127.0.0.1:9" if how == "gone" else remote.root
        remote.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
        remote.metadata |= {} if how == "unknown" else {"revocation_endpoint": f"{root}/revoke"}
        remote.answers["/revoke"] = lambda _: (200 if how == "whole" else 503, {}, b"")
        server = at(remote.url, sign_in=True, client_id="agreed")
        async with stand(tmp_path, server) as setup:
            await setup.servers.save(server, {CLIENT_SECRET: SecretStr("client-secret-2")}, setup.keep)
            await signed_in(remote, setup)
            await setup.servers.sign_out("web")
            assert list(setup.secrets.kept.values()) == ["client-secret-2"]
        revocations = [request for request in remote.asked if request.path == "/revoke"]
        if how in ("gone", "unknown"):
            assert revocations == []
            return
        about = [(request.form["token_type_hint"], request.form["token"]) for request in revocations]
        assert about == [("refresh_token", "refresh-secret-1"), ("access_token", "access-secret-1")]
        proofs = {
            request.headers.get("authorization", "")
            for request in remote.asked
            if request.path in ("/token", "/revoke")
        }
        assert [proof.partition(" ")[0] for proof in proofs] == ["Basic"]


async def test_who_signs_out_leaves_nothing(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        await setup.servers.sign_out("web")
        assert setup.secrets.kept == {}
        assert (await setup.servers.test("web", None)).state == "signed_out"
        await signed_in(remote, setup)
        await setup.servers.remove("web", setup.keep)
        assert setup.secrets.kept == {}
        assert setup.servers.state("web", None).state == "off"


async def test_a_sign_in_belongs_to_one_address(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup), site() as other:
        await signed_in(remote, setup)
        server = at(other.url, sign_in=True)
        stored = setup.secrets.kept
        await setup.change(connection=server.connection)
        assert (await setup.servers.test("web", None)).state == "signed_out"
        assert not any("authorization" in request.headers for request in other.asked)
        await setup.change(connection=at(remote.url, sign_in=True).connection)
        await setup.servers.save(server, {}, setup.keep)
        assert (stored != {}, setup.secrets.kept) == (True, {})


async def test_one_without_a_sign_in_says_what_is_missing(tmp_path):
    async with site() as remote, stand(tmp_path, at(remote.url)) as setup:
        state = await setup.servers.test("web", None)
        assert state.state == "signed_out"
        assert "turn on signing in" in str(state.reason)
        refused = await setup.servers.sign_in("web", remote.opens)
        assert "not set up for signing in" in str(refused.reason)


async def test_only_the_answer_that_was_asked_for_is_taken(tmp_path):
    pages: list[str] = []
    async with sign_in_site(tmp_path) as (remote, setup):
        signing_in = asyncio.create_task(setup.servers.sign_in("web", pages.append))
        await until(lambda: bool(pages))
        back = pages[0].partition("redirect_uri=")[2].partition("&")[0].replace("%3A", ":").replace("%2F", "/")
        port = int(back.partition("127.0.0.1:")[2].partition("/")[0])
        for line in (
            "GET /callback?code=x&state=wrong HTTP/1.1\r\nHost: 127.0.0.1:{port}",
            "GET /callback?code=x HTTP/1.1\r\nHost: 127.0.0.1:{port}",
            "GET /callback?code=x&state={state} HTTP/1.1\r\nHost: evil.example:{port}",
            "POST /callback?code=x&state={state} HTTP/1.1\r\nHost: 127.0.0.1:{port}",
            "GET /elsewhere?code=x&state={state} HTTP/1.1\r\nHost: 127.0.0.1:{port}",
            "\x00\xff",
        ):
            state = pages[0].partition("state=")[2].partition("&")[0]
            assert not (await said(port, line.format(port=port, state=state))).startswith(b"HTTP/1.1 200")
        assert not signing_in.done()
        remote.opens(pages[0])
        assert (await signing_in).state == "running"
        with pytest.raises(ConnectionRefusedError):
            await said(port, "GET / HTTP/1.1")


async def said(port: int, line: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line.encode("latin-1") + b"\r\n\r\n")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_sign_in_that_is_refused_given_up_or_too_slow_leaves_nothing(tmp_path, monkeypatch):
    async with sign_in_site(tmp_path) as (remote, setup):

        def refuse(request: Asked):
            where = f"{request.query['redirect_uri']}?error=access_denied&state={request.query['state']}"
            return 302, {"location": where}, b""

        remote.answers["/authorize"] = refuse
        refused = await setup.servers.sign_in("web", remote.opens)
        assert (refused.state, str(refused.reason)) == ("signed_out", "The sign-in was refused (access_denied).")
        assert str(refused.remedy) == "Sign in again."
        pages: list[str] = []
        given_up = asyncio.create_task(setup.servers.sign_in("web", pages.append))
        await until(lambda: bool(pages))
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        from desktop_agent.mcp import oauth_login

        monkeypatch.setattr(oauth_login.OAuthLogin.run, "__defaults__", (0.5,))
        slow = await setup.servers.sign_in("web", lambda _: None)
        assert "took too long" in str(slow.reason)
        assert setup.secrets.kept == {}


@pytest.mark.parametrize(
    "page",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://example.com/authorize",
        "https://10.0.0.1/authorize",
        "https://router.lan/authorize",
        "https://0xa.1/authorize",
        "https://user:word@example.com/authorize",
        "https://[::ffff:10.0.0.1]/authorize",
        "data:text/html,x",
    ],
)
async def test_only_pages_that_may_be_opened_are_opened(page, tmp_path):
    async with sign_in_site(tmp_path, metadata={"authorization_endpoint": page}) as (remote, setup):
        await setup.servers.sign_in("web", remote.opens)
        # What is no address at all counts as not said: the library goes by the old way then, on the server itself.
        assert all(page.startswith(f"{remote.root}/authorize") for page in remote.pages)
        assert bool(remote.pages) == (not page.startswith("http"))


async def test_nothing_is_asked_of_private_hosts_and_nothing_without_encryption(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup), site("127.0.0.2") as private:
        for root in (private.root, "http://example.com", "https://169.254.169.254", "https://localhost.evil:1"):
            remote.answers[PRM] = lambda _, root=root: as_json(
                {"resource": remote.url, "authorization_servers": [root]}
            )
            assert (await setup.servers.sign_in("web", remote.opens)).state == "signed_out"
        del remote.answers[PRM]
        remote.metadata = {"token_endpoint": f"{private.root}/token"}
        assert (await setup.servers.sign_in("web", remote.opens)).state == "signed_out"
        remote.metadata = {"registration_endpoint": f"{private.root}/register"}
        assert (await setup.servers.sign_in("web", remote.opens)).state == "signed_out"
        assert private.asked == []
        assert setup.secrets.kept == {}


@pytest.mark.parametrize(
    "wants",
    [
        'Bearer resource_metadata="file:///etc/passwd"',
        'Bearer resource_metadata="http://127.0.0.2:{port}/x"',
        'Bearer resource_metadata="https://[::ffff:169.254.169.254]/x"',
        'Bearer resource_metadata="http://user:word@127.0.0.1:{port}/x"',
        'Bearer resource_metadata="javascript:alert(1)"',
        'Bearer resource_metadata="//"',
        'Bearer scope="' + "s" * 20_000 + '"',
        "Bearer " + 'resource_metadata="' * 200,
    ],
)
async def test_what_a_server_says_with_its_refusal_leads_nowhere(wants, tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup), site("127.0.0.2") as private:
        challenge = wants.format(port=private.port)
        remote.answers["/mcp"] = lambda _: (401, {"www-authenticate": challenge}, b"")
        assert (await setup.servers.test("web", None)).state == "signed_out"
        state = await setup.servers.sign_in("web", remote.opens)
        assert state.state == "signed_out"
        assert private.asked == []
        assert all(page.startswith(remote.root) for page in remote.pages)


async def test_scopes_without_end_open_no_page(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        scopes = {"scopes_supported": ["s" * 100] * 1_000}
        remote.answers[PRM] = lambda _: as_json(
            {"resource": remote.url, "authorization_servers": [remote.root], **scopes}
        )
        state = await setup.servers.sign_in("web", remote.opens)
        assert "not allowed" in str(state.reason)
        assert remote.pages == []


async def test_a_name_that_was_agreed_on_is_proved_in_the_way_that_is_taken(tmp_path):
    for ways, is_basic in ((["client_secret_post"], False), (["client_secret_basic"], True), (None, True)):
        metadata = {"registration_endpoint": None, "token_endpoint_auth_methods_supported": ways}
        async with site(metadata=metadata) as remote:
            server = at(remote.url, sign_in=True, client_id="agreed")
            async with stand(tmp_path, server) as setup:
                await setup.servers.save(server, {CLIENT_SECRET: SecretStr("client-secret-2")}, setup.keep)
                await signed_in(remote, setup)
                (token_request,) = [request for request in remote.asked if request.path == "/token"]
                assert ("authorization" in token_request.headers) == is_basic
                assert ("client-secret-2" in token_request.body) == (not is_basic)
                assert "client_id=agreed" in remote.pages[0]
                assert "/register" not in remote.paths()
                await setup.servers.remove("web", setup.keep)
                assert setup.secrets.kept == {}


async def test_metadata_of_somebody_else_is_refused(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        for path, value in (
            (PRM, {"resource": "https://other.example/mcp", "authorization_servers": [remote.root]}),
            (ASM, {**remote.described, "issuer": "https://other.example"}),
        ):
            remote.answers = {path: lambda _, value=value: as_json(value)}
            state = await setup.servers.sign_in("web", remote.opens)
            assert "is contradictory" in str(state.reason)
        assert remote.pages == []


async def test_endless_and_circling_metadata_end(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        for kind in ("application/json", "text/event-stream"):
            remote.answers = {PRM: lambda _, kind=kind: (200, {"content-type": kind}, ENDLESS)}
            remote.sent = 0
            assert (await setup.servers.sign_in("web", remote.opens)).state == "signed_out"
            assert remote.sent < 20_000_000
        remote.asked.clear()
        remote.answers = {path: lambda _, path=path: (307, {"location": path}, b"") for path in (PRM, ASM)}
        await setup.servers.sign_in("web", remote.opens)
        assert sum(request.path in (PRM, ASM) for request in remote.asked) < 40


@pytest.mark.parametrize("size", [150_000, 2_000_000])
async def test_a_token_that_is_huge_is_refused(size, tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        remote.answers["/token"] = lambda _: as_json({"access_token": "t" * size, "token_type": "Bearer"})
        state = await setup.servers.sign_in("web", remote.opens)
        assert state.state == "signed_out"
        assert len(str(state.reason)) < 300
        assert setup.secrets.kept == {}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"[]"),
        (200, b'{"access_token": 7}'),
        (200, b'{"access_token": ["access-secret-x"]}'),
        (200, b'{"access_token": "access-secret-x", "token_type": "mac"}'),
        (200, b"\xff" * 9),
        (400, b"access-secret-x"),
        (500, b'{"error": "access-secret-x"}'),
    ],
)
async def test_what_is_no_token_is_refused_without_being_shown(status, body, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with sign_in_site(tmp_path) as (remote, setup):
        remote.answers["/token"] = lambda _: (status, {"content-type": "application/json"}, body)
        state = await setup.servers.sign_in("web", remote.opens)
        assert state.state == "signed_out"
        assert "access-secret" not in str(state.reason) + caplog.text


async def test_a_header_that_breaks_lines_ends_the_sign_in(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        remote.answers["/token"] = lambda _: as_json({"access_token": "a\r\nX-More: 1", "token_type": "Bearer"})
        state = await setup.servers.sign_in("web", remote.opens)
        assert (state.state, str(state.reason)) == ("signed_out", "The server gave no token.")
        assert setup.secrets.kept == {}
        assert not any("x-more" in request.headers for request in remote.asked)


async def test_one_call_that_wants_more_leaves_the_others_as_they_are(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup):
        await signed_in(remote, setup)
        usual, wants = remote.answer, 'Bearer error="insufficient_scope", scope="more"'

        def strict(request: Asked):
            is_call = request.path == "/mcp" and '"tools/call"' in request.body
            return (403, {"www-authenticate": wants}, b"") if is_call else usual(request)

        remote.answer = strict  # type: ignore[method-assign]
        with pytest.raises(ToolFailed, match="allow more"):
            await call_look(setup)
        assert setup.servers.state("web", None).state == "signed_out"
        remote.answer = usual  # type: ignore[method-assign]
        assert "seen" in await call_look(setup)
        live = setup.servers.server("web", None)
        assert live is not None
        with pytest.raises(ToolFailed, match="unknown"):
            await unknown(live)
        assert live.lifecycle.start_count == 1
        await signed_in(remote, setup)
        assert "scope=more" in remote.pages[-1]


async def unknown(live: McpClient) -> None:
    """Send a request that the server refuses in its own way."""
    await live._ask(lambda client: client.get_prompt("none"))


async def test_the_token_goes_to_no_other_host(tmp_path):
    async with sign_in_site(tmp_path) as (remote, setup), site() as other:
        await signed_in(remote, setup)
        remote.answers["/mcp"] = lambda _: (307, {"location": other.url}, b"")
        with pytest.raises(ToolFailed):
            await call_look(setup)
        assert other.asked == []


def test_pages_that_may_be_opened():
    assert host_policy.may_open_url("https://example.com/a?b=c", frozenset())
    assert host_policy.may_open_url("http://127.0.0.1:8000/a", frozenset({"127.0.0.1"}))
    assert not host_policy.may_open_url("http://127.0.0.1:8000/a", frozenset())
    assert not host_policy.may_open_url("https://example.com/" + "a" * 9_000, frozenset())
    assert not host_policy.may_open_url("https://example.com:99999/", frozenset())
    assert not host_policy.may_open_url("https:///nowhere", frozenset())
    assert not host_policy.may_open_url("https://exa mple.com/", frozenset())


async def test_the_page_at_the_end_speaks_the_persons_language(tmp_path):
    words = SignInPageTexts(done="Fertig <b> & zurück", refused="Abgelehnt", language="de")
    async with sign_in_site(tmp_path) as (remote, setup):
        read: list[str] = []

        def opens(url: str) -> None:
            task = asyncio.create_task(asyncio.to_thread(read_page, url))
            task.add_done_callback(lambda done: read.append(done.result()))

        await setup.servers.sign_in("web", opens, words)
        await until(lambda: bool(read))
        assert "Fertig &lt;b&gt; &amp; zurück" in read[0]
        assert "lang='de'" in read[0]

        def refuses(request: Asked) -> Answer:
            where = f"{request.query['redirect_uri']}?error=access_denied&state={request.query['state']}"
            return 302, {"location": where}, b""

        remote.answers["/authorize"] = refuses
        await setup.servers.sign_out("web")
        await setup.servers.sign_in("web", opens, words)
        await until(lambda: len(read) == 2)
        assert "Abgelehnt" in read[1]


def read_page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as page:
        return page.read().decode()


async def test_who_does_not_protect_a_sign_in_is_not_signed_in_to(tmp_path):
    weak = {"code_challenge_methods_supported": ["plain"]}
    async with sign_in_site(tmp_path, metadata=weak) as (remote, setup):
        state = await setup.servers.sign_in("web", remote.opens)
        assert state.state == "signed_out"
        assert "PKCE" in str(state.reason)
        assert remote.pages == []
