"""The addresses that the HTTP client of a server may reach."""

import httpx2
import pytest

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.host_policy import HttpTarget, allowed_private_hosts, is_private_host
from desktop_agent.mcp.http import MAX_METADATA_BYTES, RedirectRefused, make_http_client
from desktop_agent.network.hosts import PrivateHost
from desktop_agent.types.errors import ToolFailed
from tests.fakes.mcp_client import address
from tests.fakes.mcp_site import ENDLESS, site


def resolver(*answers: list[str]):
    remaining = [*answers]

    async def resolve(host: str, port: int) -> list[str]:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return resolve


async def test_a_public_name_leads_to_no_private_address():
    async with site() as server:
        target = HttpTarget(f"http://tools.example:{server.port}/mcp", resolve=resolver(["127.0.0.1"]))
        async with await make_http_client(target, ServerLog()) as client:
            with pytest.raises(PrivateHost, match=r"127\.0\.0\.1"):
                await client.get(target.url)
        assert server.asked == []


async def test_one_private_address_among_public_ones_is_enough():
    target = HttpTarget("http://tools.example:9/mcp", resolve=resolver(["8.8.8.8", "10.0.0.1"]))
    async with await make_http_client(target, ServerLog()) as client:
        with pytest.raises(PrivateHost, match=r"10\.0\.0\.1"):
            await client.get(target.url)


async def test_a_name_that_is_another_address_the_next_time_is_looked_at_again():
    async with site() as server:
        server.answers["/mcp"] = lambda _: (200, {"connection": "close"}, b"ok")
        url = f"http://localhost:{server.port}/mcp"
        target = HttpTarget(url, allowed_private_hosts(url), resolve=resolver(["127.0.0.1"], ["127.0.0.1"]))
        async with await make_http_client(target, ServerLog()) as client:
            assert (await client.get(url)).text == "ok"
        public = HttpTarget(f"http://tools.example:{server.port}/mcp", resolve=resolver(["192.0.2.1"], ["127.0.0.1"]))
        async with await make_http_client(public, ServerLog()) as client:
            for _ in range(2):
                with pytest.raises(PrivateHost):
                    await client.get(public.url)
        assert len(server.asked) == 1


async def test_what_the_person_entered_as_private_is_reached_and_that_alone():
    async with site() as server, site("127.0.0.2") as other_server:
        server.answers["/mcp"] = lambda _: (200, {}, b"ok")
        target = HttpTarget(server.url, allowed_private_hosts(server.url), {"x-key": "k"}, allows_other_servers=True)
        async with await make_http_client(target, ServerLog()) as client:
            assert (await client.get(server.url)).text == "ok"
            with pytest.raises(PrivateHost):
                await client.get(other_server.url)
        assert server.asked[0].headers["x-key"] == "k"
        assert other_server.asked == []


async def test_nobody_else_is_asked_at_all_and_never_with_a_token():
    target = HttpTarget("https://tools.example/mcp", resolve=resolver(["8.8.8.8"]))
    async with await make_http_client(target, ServerLog()) as client:
        with pytest.raises(RedirectRefused, match="redirects to another one"):
            await client.get("https://other.example/")
    roaming = HttpTarget("https://tools.example/mcp", allows_other_servers=True, resolve=resolver(["127.0.0.1"]))
    async with await make_http_client(roaming, ServerLog()) as client:
        with pytest.raises(RedirectRefused, match="no encrypted address"):
            await client.get("http://other.example/")
        with pytest.raises(RedirectRefused, match="a secret for another server"):
            await client.get("https://other.example/", headers={"Authorization": "bearer t"})
        with pytest.raises(PrivateHost):
            await client.get("https://other.example/")


async def test_a_proxy_is_asked_as_elsewhere_and_never_about_private_addresses(monkeypatch):
    async with site() as proxy, site() as server:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy.root)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        server.answers["/mcp"] = lambda _: (200, {}, b"ok")
        url = "http://tools.example/mcp"
        async with await make_http_client(HttpTarget(url, resolve=resolver(["127.0.0.1"])), ServerLog()) as client:
            assert (await client.post(url)).status_code == 401
        assert [request.headers["host"] for request in proxy.asked] == ["tools.example"]
        async with await make_http_client(
            HttpTarget(server.url, allowed_private_hosts(server.url)), ServerLog()
        ) as client:
            assert (await client.get(server.url)).text == "ok"
        async with await make_http_client(HttpTarget("http://10.0.0.1/mcp"), ServerLog()) as client:
            with pytest.raises(PrivateHost):
                await client.get("http://10.0.0.1/mcp")
        assert len(proxy.asked) == 1


async def test_a_proxy_that_opens_no_tunnel_is_said(monkeypatch):
    async with site() as proxy:
        for name in ("https_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.root)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        async with address("https://tools.example/mcp") as live:
            with pytest.raises(ToolFailed, match=r"does not connect to “tools\.example” \(404\)"):
                await load_tool_offer(live)


async def test_what_is_no_answer_to_a_call_is_small():
    async with site() as server:
        server.answers["/mcp"] = lambda _: (200, {"content-type": "text/event-stream"}, ENDLESS)
        async with await make_http_client(
            HttpTarget(server.url, allowed_private_hosts(server.url)), ServerLog()
        ) as client:
            with pytest.raises(httpx2.ReadError, match=f"{MAX_METADATA_BYTES:,}"):
                await client.get(server.url)


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("http://localhost:1/mcp", {"localhost"}),
        ("http://127.0.0.1/mcp", {"127.0.0.1"}),
        ("http://[::1]:1/mcp", {"::1"}),
        ("https://nas.local/mcp", {"nas.local"}),
        ("https://192.168.1.7/mcp", {"192.168.1.7"}),
        ("https://tools.example.com/mcp", set()),
        ("https://8.8.8.8/mcp", set()),
    ],
)
def test_only_a_private_host_that_was_entered_may_be_private(url, own):
    assert allowed_private_hosts(url) == own
    assert allowed_private_hosts(url, frozenset({"vpn.example"})) == ({*own, "vpn.example"} if own else frozenset())


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "::ffff:10.0.0.1", "169.254.169.254", "fe80::1%eth0", "a"])
def test_private_in_all_forms(host):
    assert is_private_host(host)
