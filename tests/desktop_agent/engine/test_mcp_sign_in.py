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
async def door(folder: Path, **fields: Any) -> AsyncIterator[tuple[Site, Stand]]:
    """Open a site, and servers of tools that may sign in there."""
    async with site(**fields) as there, stand(folder, at(there.url, sign_in=True)) as here:
        yield there, here


async def signed_in(there: Site, here: Stand) -> McpServerState:
    state = await here.servers.sign_in("web", there.opens)
    assert state.state == "running", state.reason
    return state


async def look(here: Stand) -> str:
    tool = next(tool for tool in here.servers.tools(None) if tool.name == "web__look")
    return str(await tool.run({}, RunningCall("call", lambda _: None)))


async def test_a_person_signs_in_and_the_tools_come(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with door(tmp_path) as (there, here):
        before = await here.servers.test("web", None)
        assert before.state == "signed_out"
        assert "Nobody is signed in" in str(before.reason)
        assert all("authorization" not in request.headers for request in there.asked)
        state = await signed_in(there, here)
        assert [tool.name for tool in state.tools] == ["look"]
        assert "seen" in await look(here)
        (page,) = there.pages
        assert page.startswith(f"{there.root}/authorize?")
        assert "code_challenge_method=S256" in page
        assert "resource=" in page
        (name, stored) = next(iter(here.secrets.kept.items()))
        assert name == "mcp/web/ sign-in"
        assert all(secret in stored for secret in SECRETS[:3])
        record = OAuthRecord.model_validate_json(stored)
        shown = repr(record) + str(here.servers.log("web", None)) + repr(state) + caplog.text
        assert not any(secret in shown for secret in SECRETS)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(secret.encode() in data for secret in SECRETS for data in files)


async def test_a_token_that_expires_is_renewed_once_for_all_and_after_a_restart(tmp_path):
    async with door(tmp_path, expires_in=1) as (there, here):
        await signed_in(there, here)
        there.expires_in = 3600
        there.asked.clear()
        async with stand(tmp_path, *here.configured) as later:
            later.secrets._session.update(here.secrets._session)
            await later.servers.test("web", None)
            await asyncio.gather(*(look(later) for _ in range(5)))
            renewals = [request for request in there.asked if request.path == "/token"]
            assert [request.form["grant_type"] for request in renewals] == ["refresh_token"]
            assert renewals[0].form["refresh_token"] == "refresh-secret-1"
            assert "access-secret" in later.secrets.kept["mcp/web/ sign-in"]
            assert later.secrets.kept != here.secrets.kept
            there.tokens = set()
            there.asked.clear()
            await asyncio.gather(*(look(later) for _ in range(5)))
            assert there.paths().count("/token") == 1


async def test_a_token_that_holds_no_more_is_renewed_or_the_person_is_asked(tmp_path):
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        there.tokens = set()
        assert "seen" in await look(here)
        there.tokens, there.answers = set(), {"/token": lambda _: as_json({"error": "invalid_grant"}, 400)}
        with pytest.raises(ToolFailed, match="is no longer valid"):
            await look(here)
        state = here.servers.state("web", None)
        assert (state.state, str(state.reason)) == ("signed_out", "The sign-in to the server “Web” is no longer valid.")
        there.answers.clear()
        await signed_in(there, here)
        assert "seen" in await look(here)


@pytest.mark.parametrize("how", ["gone", "503", "429"])
async def test_who_cannot_be_renewed_now_stays_signed_in_and_comes_back(how, tmp_path, monkeypatch):
    monkeypatch.setattr(oauth_session, "_RETRY_PAUSE", 0.0)
    async with door(tmp_path) as (there, here):
        if how == "gone":
            there.metadata = {"token_endpoint": f"{there.root}/token"}
        await signed_in(there, here)
        stored = dict(here.secrets.kept)
        there.tokens = set()
        if how == "gone":
            # As it was when the person signed in, but nothing answers there any more.
            text = stored["mcp/web/ sign-in"].replace(f"{there.root}/token", "http://127.0.0.1:9/token")
            await here.secrets.set("mcp/web/ sign-in", SecretStr(text))
            await here.change(on=False)
            await here.change(on=True)
            stored = dict(here.secrets.kept)
        else:
            there.answers["/token"] = lambda _: (int(how), {}, b"")
        state = await here.servers.test("web", None)
        assert state.state == "failed"
        assert "could not be renewed: its sign-in server cannot be reached" in str(state.reason)
        assert "you stay signed in" in str(state.remedy)
        assert here.secrets.kept == stored
        there.answers.clear()
        if how == "gone":
            there.tokens = {"access-secret-1"}
        assert (await here.servers.test("web", None)).state == "running"
        assert "seen" in await look(here)
        assert len(there.pages) == 1


async def test_a_call_that_meets_it_fails_and_the_next_one_is_served(tmp_path, monkeypatch):
    monkeypatch.setattr(oauth_session, "_RETRY_PAUSE", 0.0)
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        there.tokens, there.answers = set(), {"/token": lambda _: (503, {}, b"")}
        with pytest.raises(ToolFailed, match="could not be renewed"):
            await look(here)
        state = here.servers.state("web", None)
        assert (state.state, "you stay signed in" in str(state.remedy)) == ("failed", True)
        there.answers.clear()
        assert "seen" in await look(here)
        assert here.servers.state("web", None).state == "running"


async def test_many_calls_ask_once_for_what_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(oauth_session, "_RETRY_PAUSE", 3_600.0)
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        there.tokens, there.answers = set(), {"/token": lambda _: (503, {}, b"")}
        there.asked.clear()
        failed = await asyncio.gather(*(look(here) for _ in range(4)), return_exceptions=True)
        assert all(isinstance(error, ToolFailed) for error in failed)
        with pytest.raises(ToolFailed, match="could not be renewed"):
            await look(here)
        assert there.paths().count("/token") == 1


@pytest.mark.parametrize("how", ["whole", "refused", "gone", "unknown"])
async def test_the_server_is_told_of_who_signs_out_and_need_not_listen(how, tmp_path):
    async with site() as there:
        root = "http://127.0.0.1:9" if how == "gone" else there.root
        there.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_basic"]}
        there.metadata |= {} if how == "unknown" else {"revocation_endpoint": f"{root}/revoke"}
        there.answers["/revoke"] = lambda _: (200 if how == "whole" else 503, {}, b"")
        server = at(there.url, sign_in=True, client_id="agreed")
        async with stand(tmp_path, server) as here:
            await here.servers.save(server, {CLIENT_SECRET: SecretStr("client-secret-2")}, here.keep)
            await signed_in(there, here)
            await here.servers.sign_out("web")
            assert list(here.secrets.kept.values()) == ["client-secret-2"]
        revocations = [request for request in there.asked if request.path == "/revoke"]
        if how in ("gone", "unknown"):
            assert revocations == []
            return
        about = [(request.form["token_type_hint"], request.form["token"]) for request in revocations]
        assert about == [("refresh_token", "refresh-secret-1"), ("access_token", "access-secret-1")]
        proofs = {
            request.headers.get("authorization", "") for request in there.asked if request.path in ("/token", "/revoke")
        }
        assert [proof.partition(" ")[0] for proof in proofs] == ["Basic"]


async def test_who_signs_out_leaves_nothing(tmp_path):
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        await here.servers.sign_out("web")
        assert here.secrets.kept == {}
        assert (await here.servers.test("web", None)).state == "signed_out"
        await signed_in(there, here)
        await here.servers.remove("web", here.keep)
        assert here.secrets.kept == {}
        assert here.servers.state("web", None).state == "off"


async def test_a_sign_in_belongs_to_one_address(tmp_path):
    async with door(tmp_path) as (there, here), site() as other:
        await signed_in(there, here)
        server = at(other.url, sign_in=True)
        stored = here.secrets.kept
        await here.change(connection=server.connection)
        assert (await here.servers.test("web", None)).state == "signed_out"
        assert not any("authorization" in request.headers for request in other.asked)
        await here.change(connection=at(there.url, sign_in=True).connection)
        await here.servers.save(server, {}, here.keep)
        assert (stored != {}, here.secrets.kept) == (True, {})


async def test_one_without_a_sign_in_says_what_is_missing(tmp_path):
    async with site() as there, stand(tmp_path, at(there.url)) as here:
        state = await here.servers.test("web", None)
        assert state.state == "signed_out"
        assert "turn on signing in" in str(state.reason)
        refused = await here.servers.sign_in("web", there.opens)
        assert "not set up for signing in" in str(refused.reason)


async def test_only_the_answer_that_was_asked_for_is_taken(tmp_path):
    pages: list[str] = []
    async with door(tmp_path) as (there, here):
        signing_in = asyncio.create_task(here.servers.sign_in("web", pages.append))
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
        there.opens(pages[0])
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
    async with door(tmp_path) as (there, here):

        def refuse(request: Asked):
            where = f"{request.query['redirect_uri']}?error=access_denied&state={request.query['state']}"
            return 302, {"location": where}, b""

        there.answers["/authorize"] = refuse
        refused = await here.servers.sign_in("web", there.opens)
        assert (refused.state, str(refused.reason)) == ("signed_out", "The sign-in was refused (access_denied).")
        assert str(refused.remedy) == "Sign in again."
        pages: list[str] = []
        given_up = asyncio.create_task(here.servers.sign_in("web", pages.append))
        await until(lambda: bool(pages))
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        from desktop_agent.mcp import oauth_login

        monkeypatch.setattr(oauth_login.OAuthLogin.run, "__defaults__", (0.5,))
        slow = await here.servers.sign_in("web", lambda _: None)
        assert "took too long" in str(slow.reason)
        assert here.secrets.kept == {}


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
    async with door(tmp_path, metadata={"authorization_endpoint": page}) as (there, here):
        await here.servers.sign_in("web", there.opens)
        # What is no address at all counts as not said: the library goes by the old way then, on the server itself.
        assert all(page.startswith(f"{there.root}/authorize") for page in there.pages)
        assert bool(there.pages) == (not page.startswith("http"))


async def test_nothing_is_asked_of_private_hosts_and_nothing_without_encryption(tmp_path):
    async with door(tmp_path) as (there, here), site("127.0.0.2") as private:
        for root in (private.root, "http://example.com", "https://169.254.169.254", "https://localhost.evil:1"):
            there.answers[PRM] = lambda _, root=root: as_json({"resource": there.url, "authorization_servers": [root]})
            assert (await here.servers.sign_in("web", there.opens)).state == "signed_out"
        del there.answers[PRM]
        there.metadata = {"token_endpoint": f"{private.root}/token"}
        assert (await here.servers.sign_in("web", there.opens)).state == "signed_out"
        there.metadata = {"registration_endpoint": f"{private.root}/register"}
        assert (await here.servers.sign_in("web", there.opens)).state == "signed_out"
        assert private.asked == []
        assert here.secrets.kept == {}


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
    async with door(tmp_path) as (there, here), site("127.0.0.2") as private:
        challenge = wants.format(port=private.port)
        there.answers["/mcp"] = lambda _: (401, {"www-authenticate": challenge}, b"")
        assert (await here.servers.test("web", None)).state == "signed_out"
        state = await here.servers.sign_in("web", there.opens)
        assert state.state == "signed_out"
        assert private.asked == []
        assert all(page.startswith(there.root) for page in there.pages)


async def test_scopes_without_end_open_no_page(tmp_path):
    async with door(tmp_path) as (there, here):
        scopes = {"scopes_supported": ["s" * 100] * 1_000}
        there.answers[PRM] = lambda _: as_json({"resource": there.url, "authorization_servers": [there.root], **scopes})
        state = await here.servers.sign_in("web", there.opens)
        assert "not allowed" in str(state.reason)
        assert there.pages == []


async def test_a_name_that_was_agreed_on_is_proved_in_the_way_that_is_taken(tmp_path):
    for ways, is_basic in ((["client_secret_post"], False), (["client_secret_basic"], True), (None, True)):
        metadata = {"registration_endpoint": None, "token_endpoint_auth_methods_supported": ways}
        async with site(metadata=metadata) as there:
            server = at(there.url, sign_in=True, client_id="agreed")
            async with stand(tmp_path, server) as here:
                await here.servers.save(server, {CLIENT_SECRET: SecretStr("client-secret-2")}, here.keep)
                await signed_in(there, here)
                (token_request,) = [request for request in there.asked if request.path == "/token"]
                assert ("authorization" in token_request.headers) == is_basic
                assert ("client-secret-2" in token_request.body) == (not is_basic)
                assert "client_id=agreed" in there.pages[0]
                assert "/register" not in there.paths()
                await here.servers.remove("web", here.keep)
                assert here.secrets.kept == {}


async def test_metadata_of_somebody_else_is_refused(tmp_path):
    async with door(tmp_path) as (there, here):
        for path, value in (
            (PRM, {"resource": "https://other.example/mcp", "authorization_servers": [there.root]}),
            (ASM, {**there.described, "issuer": "https://other.example"}),
        ):
            there.answers = {path: lambda _, value=value: as_json(value)}
            state = await here.servers.sign_in("web", there.opens)
            assert "is contradictory" in str(state.reason)
        assert there.pages == []


async def test_endless_and_circling_metadata_end(tmp_path):
    async with door(tmp_path) as (there, here):
        for kind in ("application/json", "text/event-stream"):
            there.answers = {PRM: lambda _, kind=kind: (200, {"content-type": kind}, ENDLESS)}
            there.sent = 0
            assert (await here.servers.sign_in("web", there.opens)).state == "signed_out"
            assert there.sent < 20_000_000
        there.asked.clear()
        there.answers = {path: lambda _, path=path: (307, {"location": path}, b"") for path in (PRM, ASM)}
        await here.servers.sign_in("web", there.opens)
        assert sum(request.path in (PRM, ASM) for request in there.asked) < 40


@pytest.mark.parametrize("size", [150_000, 2_000_000])
async def test_a_token_that_is_huge_is_refused(size, tmp_path):
    async with door(tmp_path) as (there, here):
        there.answers["/token"] = lambda _: as_json({"access_token": "t" * size, "token_type": "Bearer"})
        state = await here.servers.sign_in("web", there.opens)
        assert state.state == "signed_out"
        assert len(str(state.reason)) < 300
        assert here.secrets.kept == {}


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
    async with door(tmp_path) as (there, here):
        there.answers["/token"] = lambda _: (status, {"content-type": "application/json"}, body)
        state = await here.servers.sign_in("web", there.opens)
        assert state.state == "signed_out"
        assert "access-secret" not in str(state.reason) + caplog.text


async def test_a_header_that_breaks_lines_ends_the_sign_in(tmp_path):
    async with door(tmp_path) as (there, here):
        there.answers["/token"] = lambda _: as_json({"access_token": "a\r\nX-More: 1", "token_type": "Bearer"})
        state = await here.servers.sign_in("web", there.opens)
        assert (state.state, str(state.reason)) == ("signed_out", "The server gave no token.")
        assert here.secrets.kept == {}
        assert not any("x-more" in request.headers for request in there.asked)


async def test_one_call_that_wants_more_leaves_the_others_as_they_are(tmp_path):
    async with door(tmp_path) as (there, here):
        await signed_in(there, here)
        usual, wants = there.answer, 'Bearer error="insufficient_scope", scope="more"'

        def strict(request: Asked):
            is_call = request.path == "/mcp" and '"tools/call"' in request.body
            return (403, {"www-authenticate": wants}, b"") if is_call else usual(request)

        there.answer = strict  # type: ignore[method-assign]
        with pytest.raises(ToolFailed, match="allow more"):
            await look(here)
        assert here.servers.state("web", None).state == "signed_out"
        there.answer = usual  # type: ignore[method-assign]
        assert "seen" in await look(here)
        live = here.servers.server("web", None)
        assert live is not None
        with pytest.raises(ToolFailed, match="unknown"):
            await unknown(live)
        assert live.lifecycle.start_count == 1
        await signed_in(there, here)
        assert "scope=more" in there.pages[-1]


async def unknown(live: McpClient) -> None:
    """Send a request that the server refuses in its own way."""
    await live._ask(lambda client: client.get_prompt("none"))


async def test_the_token_goes_to_no_other_host(tmp_path):
    async with door(tmp_path) as (there, here), site() as other:
        await signed_in(there, here)
        there.answers["/mcp"] = lambda _: (307, {"location": other.url}, b"")
        with pytest.raises(ToolFailed):
            await look(here)
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
    async with door(tmp_path) as (there, here):
        read: list[str] = []

        def opens(url: str) -> None:
            task = asyncio.create_task(asyncio.to_thread(read_page, url))
            task.add_done_callback(lambda done: read.append(done.result()))

        await here.servers.sign_in("web", opens, words)
        await until(lambda: bool(read))
        assert "Fertig &lt;b&gt; &amp; zurück" in read[0]
        assert "lang='de'" in read[0]

        def refuses(request: Asked) -> Answer:
            where = f"{request.query['redirect_uri']}?error=access_denied&state={request.query['state']}"
            return 302, {"location": where}, b""

        there.answers["/authorize"] = refuses
        await here.servers.sign_out("web")
        await here.servers.sign_in("web", opens, words)
        await until(lambda: len(read) == 2)
        assert "Abgelehnt" in read[1]


def read_page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE) as page:
        return page.read().decode()


async def test_who_does_not_protect_a_sign_in_is_not_signed_in_to(tmp_path):
    weak = {"code_challenge_methods_supported": ["plain"]}
    async with door(tmp_path, metadata=weak) as (there, here):
        state = await here.servers.sign_in("web", there.opens)
        assert state.state == "signed_out"
        assert "PKCE" in str(state.reason)
        assert there.pages == []
