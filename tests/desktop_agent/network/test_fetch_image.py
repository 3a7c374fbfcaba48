"""One way to the network for pictures: whom it asks, what it sends, what it takes, and when it gives up."""

import asyncio
import socket
import struct
import zlib

import httpcore
import pytest

from desktop_agent.network.fetch import MAX_IMAGE_BYTES, MAX_REDIRECTS, FetchTimeouts, PrivateImageHost, fetch_image
from desktop_agent.types.errors import ImageRefused
from tests.fakes.http_server import Loopback, Reply
from tests.frame.patience import PATIENCE

HERE = frozenset({"127.0.0.1"})
BARE = {"content-type": "text/plain", "set-cookie": "who=you"}


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def moved(to: str, status: int = 302) -> Reply:
    return Reply(b"", status, {"location": to, "set-cookie": "who=you"}, "length")


async def refusal(url: str, allowed: frozenset[str] = HERE, timeouts: FetchTimeouts | None = None) -> str:
    with pytest.raises(ImageRefused) as caught:
        await fetch_image(url, allowed=allowed, timeouts=timeouts)
    assert str(caught.value.remedy)
    return str(caught.value)


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_a_picture_comes_whole_and_nothing_of_the_person_goes_along(framing):
    async with Loopback(Reply([png()[:9], png()[9:]], headers=BARE, framing=framing), judged=False) as server:
        url = server.root.replace("http://", "http://user:secret@") + "/a b.png?x=1#part"
        assert await fetch_image(url, allowed=HERE) == png()
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/a%20b.png?x=1")
    assert set(request.headers) == {"host", "accept", "accept-encoding", "user-agent"}
    assert request.headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://x.org/a.png", "data:image/png;base64,AA", "//x.org", "http://", "a"]
)
async def test_only_addresses_of_the_web(url):
    assert "is not a web address" in await refusal(url)


@pytest.mark.parametrize(
    "url", [f"http://{'a' * 70}.com/x.png", "http://a..b/", "http://.a/", "http://127.0.0.1:70000/", "http://[bad/"]
)
async def test_a_host_that_cannot_exist_is_refused(url):
    assert "is not a web address" in await refusal(url)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "0x7f.1", "127.1"]
)
async def test_this_machine_is_refused_unless_it_is_allowed(host):
    async with Loopback(Reply(png()), judged=False) as server:
        with pytest.raises(PrivateImageHost) as caught:
            await fetch_image(f"http://{host}:{server.port}/a.png")
    assert caught.value.host == host.strip("[]")
    assert "whoever wrote the text" in str(caught.value.remedy)
    assert server.connections == 0


async def test_a_redirect_is_followed_without_its_cookies():
    async with Loopback(moved("/b.png"), Reply(png()), judged=False) as server:
        assert await fetch_image(f"{server.root}/a.png", allowed=HERE) == png()
    assert [request.path for request in server.requests] == ["/a.png", "/b.png"]
    assert "cookie" not in server.requests[1].headers
    assert "referer" not in server.requests[1].headers


async def test_a_redirect_to_a_private_machine_is_looked_at_again():
    inner = Loopback(Reply(png()), judged=False)
    async with inner, Loopback(moved(f"http://localhost:{inner.port}/"), judged=False) as server:
        with pytest.raises(PrivateImageHost) as caught:
            await fetch_image(f"{server.root}/a.png", allowed=HERE)
    assert caught.value.host == "localhost"
    assert inner.connections == 0


@pytest.mark.parametrize("to", ["file:///etc/passwd", "ftp://127.0.0.1/a.png", "http://[bad/", "//[x", "//a..b/"])
async def test_a_redirect_out_of_the_web_is_refused(to):
    async with Loopback(moved(to), judged=False) as server:
        assert "is not a web address" in await refusal(f"{server.root}/a.png")


async def test_redirects_end():
    async with Loopback(moved("/again", 308), judged=False) as server:
        assert "without end" in await refusal(f"{server.root}/a.png")
    assert len(server.requests) == MAX_REDIRECTS + 1


async def test_content_decides_not_its_label():
    page = Reply(b"<html>" + b"x" * 100, headers={"content-type": "image/png"})
    async with Loopback(page, Reply(b"<svg/>"), Reply(b""), judged=False) as server:
        for _ in range(3):
            assert "is not a PNG, JPEG, GIF or WebP image" in await refusal(f"{server.root}/a.png")


async def test_a_page_is_not_read_to_its_end():
    hold = asyncio.Event()
    async with Loopback(Reply(b"<html>" + b"x" * 100, hold=hold), judged=False) as server:
        assert "is not a PNG" in await refusal(f"{server.root}/a.png")
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_too_large_by_its_own_account_or_by_what_comes():
    said = Reply(b"", headers={"content-length": str(MAX_IMAGE_BYTES + 1)}, framing="close")
    lots = Reply([png(), *[b"\0" * 1_000_000] * 21])
    async with Loopback(said, lots, judged=False) as server:
        for _ in range(2):
            assert "is larger than 20 MB" in await refusal(f"{server.root}/a.png")


async def test_a_server_without_it_and_no_server():
    async with Loopback(Reply(b"", 404), judged=False) as server:
        root = server.root
        assert "(status 404)" in await refusal(f"{root}/a.png")
    assert "could not be reached" in await refusal(f"{root}/a.png")
    assert "could not be reached" in await refusal("http://no-such-host.invalid/a.png")
    assert "could not be reached" in await refusal("http://xn--.invalid/a.png")


async def test_a_cut_answer_is_no_picture():
    async with Loopback(Reply(png()[:30], framing="length", cut=True), judged=False) as server:
        assert "could not be reached" in await refusal(f"{server.root}/a.png")


async def test_silence_and_slowness_end():
    hold = asyncio.Event()
    async with Loopback(Reply(png(), hold=hold), judged=False) as server:
        assert "does not answer" in await refusal(f"{server.root}/a.png", timeouts=FetchTimeouts(idle=0.1))
        assert "longer than 0.2 seconds" in await refusal(f"{server.root}/a.png", timeouts=FetchTimeouts(total=0.2))


async def test_cancelling_closes_the_connection():
    hold = asyncio.Event()
    async with Loopback(Reply(png(), hold=hold), judged=False) as server:
        task = asyncio.create_task(fetch_image(f"{server.root}/a.png", allowed=HERE))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_a_proxy_is_used_and_gets_no_private_names(monkeypatch):
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"http": proxy_address[0]})
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda host: False)
    proxy_address = [""]
    async with Loopback(Reply(png()), judged=False) as proxy:
        proxy_address[0] = proxy.root
        assert await fetch_image("http://no-such-host.invalid/a.png") == png()
        assert proxy.requests[0].path == "http://no-such-host.invalid/a.png"
        await refusal("http://10.0.0.1/a.png", frozenset())
        assert len(proxy.requests) == 1
        proxy_address[0] = "socks5://127.0.0.1:1"
        assert "socks5" in await refusal("http://no-such-host.invalid/a.png")


@pytest.fixture
def behind(monkeypatch):
    """Sets the proxy."""
    monkeypatch.setattr("urllib.request.proxy_bypass", lambda host: False)
    return lambda url: monkeypatch.setattr("urllib.request.getproxies", lambda: {"http": url, "https": url})


async def test_a_proxy_that_opens_no_tunnel_is_said(behind):
    async with Loopback(Reply(b"no", status=403), judged=False) as proxy:
        behind(proxy.root)
        said = await refusal("https://no-such-host.invalid/a.png")
    assert "The proxy of this system does not connect to “no-such-host.invalid” (403)." in said


@pytest.mark.parametrize(
    "proxy",
    ["http://127.0.0.1:bad", "127.0.0.1:70000", "http://[x:1", "http://:8080", "http://a..b:1", "http://u:pw@a..b"],
)
async def test_a_proxy_that_is_no_address_is_said(behind, proxy):
    behind(proxy)
    said = await refusal("http://no-such-host.invalid/a.png")
    assert "proxy that is set has no usable address" in said
    assert "pw" not in said


async def test_a_proxy_on_ipv6_with_a_password(behind, monkeypatch):
    made = []
    real = httpcore.AsyncHTTPProxy

    def proxy(url, auth, **more):
        made.append((url, auth))
        return real(url, auth, **more)

    monkeypatch.setattr(httpcore, "AsyncHTTPProxy", proxy)
    behind("http://me:p%40ss@[::1]:1")
    assert "could not be reached" in await refusal("http://no-such-host.invalid/a.png")
    ((url, auth),) = made
    assert (url.host, url.port, auth) == (b"::1", 1, ("me", "p@ss"))


async def test_behind_a_proxy_nobody_else_is_asked_for_the_name(behind, monkeypatch):
    asked = []
    real = socket.getaddrinfo

    def lookup(host, port, family=0, type=0, proto=0, flags=0):  # noqa: A002  the library's own name
        if not flags & socket.AI_NUMERICHOST:
            asked.append(host)
        return real(host, port, family, type, proto, flags)

    async with Loopback(Reply(png()), judged=False) as proxy:
        behind(proxy.root)
        monkeypatch.setattr(socket, "getaddrinfo", lookup)
        assert await fetch_image("http://no-such-host.invalid/a.png") == png()
    assert not {str(host) for host in asked} & {"no-such-host.invalid", "b'no-such-host.invalid'"}


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "10.0.0.1.", "167772161", "0xa.1", "[fec0::1]", "[fe80::1%1]", "[::ffff:10.0.0.1]"]
)
async def test_behind_a_proxy_a_private_address_is_seen_in_all_its_forms(behind, host):
    async with Loopback(Reply(png()), judged=False) as proxy:
        behind(proxy.root)
        with pytest.raises(PrivateImageHost):
            await fetch_image(f"http://{host}/a.png")
        assert not proxy.requests
