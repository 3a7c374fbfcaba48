"""Which certificates are trusted: a real server whose own certificate the system knows, or does not."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import certifi
import httpx
import pytest

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.http import HttpTarget, make_http_client
from desktop_agent.network import tls
from desktop_agent.network.fetch import FetchTimeouts, open_url
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest
from desktop_agent.providers.transport.httpx_transport import create_client
from desktop_agent.types.errors import ConnectionFailed
from desktop_agent.types.providers import Timeouts
from tests.desktop_agent.mcp.certificates import certificate, served
from tests.fakes.mcp_servers import at, stand
from tests.fakes.mcp_site import site


@pytest.fixture(autouse=True)
def no_earlier_context(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    tls._create_context.cache_clear()
    yield
    tls._create_context.cache_clear()


@asynccontextmanager
async def greeting(file: Path | None) -> AsyncGenerator[str]:
    """The address of a server that says hello to whoever trusts it; without a certificate it speaks no TLS."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    context = served(file) if file else None
    async with await asyncio.start_server(answer, "127.0.0.1", ssl=context) as server:
        yield f"http{'s' if file else ''}://localhost:{server.sockets[0].getsockname()[1]}/"


async def greeted(url: str) -> str:
    async with await asyncio.to_thread(create_client) as client:
        return (await client.get(url)).text


async def test_what_the_system_trusts_is_trusted(tmp_path, monkeypatch):
    file = certificate(tmp_path, "localhost")
    monkeypatch.setattr(tls, "SYSTEM_BUNDLES", (str(tmp_path / "not here"), str(file)))
    async with greeting(file) as url:
        assert await greeted(url) == "hello"
        monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
        with pytest.raises(httpx.ConnectError, match="self-signed"):
            await greeted(url)


async def test_a_server_of_tools_too(tmp_path, monkeypatch):
    file = certificate(tmp_path, "localhost")
    monkeypatch.setattr(tls, "SYSTEM_BUNDLES", (str(file),))
    async with site(context=served(file), tokens={""}) as there:
        url = f"https://localhost:{there.port}/mcp"
        async with stand(tmp_path, at(url)) as here:
            assert (await here.servers.test("web", None)).state == "running"


def test_where_the_system_has_none_they_are_those_of_mozilla(tmp_path, monkeypatch):
    monkeypatch.setattr(tls, "SYSTEM_BUNDLES", (str(tmp_path / "not here"),))
    known = ssl.create_default_context(cafile=certifi.where())
    assert len(known.get_ca_certs()) > 100
    assert tls.tls_context().get_ca_certs() == known.get_ca_certs()


LINK = "ce275665.0"
"""The name that OpenSSL looks for: a hash of CN=localhost, as `openssl rehash` gives it."""


async def test_a_file_and_a_folder_that_the_environment_names_count_and_nothing_else(tmp_path, monkeypatch):
    file, folder = certificate(tmp_path, "localhost"), tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    async with greeting(file) as url:
        with pytest.raises(httpx.ConnectError, match="self-signed"):
            await greeted(url)
        # OpenSSL looks only when it needs one, and remembers.
        (folder / LINK).write_bytes(file.read_bytes())
        for other in ("", certifi.where()):
            monkeypatch.setenv("SSL_CERT_FILE", other)
            assert await greeted(url) == "hello"


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), (b"", "no certificate"), (b"\0\xff", "no cert")])
async def test_a_file_that_cannot_be_read_is_named_by_its_variable(tmp_path, monkeypatch, content, why):
    broken = tmp_path / "broken.pem"
    if content is not None:
        broken.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(broken))
    http, file = HttpClient(), certificate(tmp_path, "localhost")
    async with greeting(file) as url, site(context=served(file), tokens={""}) as there:
        with pytest.raises(ConnectionFailed, match=rf"cannot be read \({why}[^_]*\)") as refused:
            await http.exchange(HttpRequest(url, Timeouts()))
        tools = f"https://localhost:{there.port}/mcp"
        async with stand(tmp_path, at(tools)) as here:
            of_tools = await here.servers.test("web", None)
    await http.aclose()
    assert not refused.value.retryable
    assert "cannot be read" in str(of_tools.reason)
    for remedy in (refused.value.remedy, of_tools.remedy):
        assert "SSL_CERT_FILE" in str(remedy)


async def test_servers_without_tls_are_reached_though_the_certificates_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "gone.pem"))
    http = HttpClient()
    async with greeting(None) as url, site(tokens={""}) as there, stand(tmp_path, at(there.url)) as here:
        assert await http.exchange(HttpRequest(url, Timeouts())) == b"hello"
        assert (await here.servers.test("web", None)).state == "running"
    await http.aclose()


async def test_a_proxy_behind_tls_is_trusted_as_servers_are(tmp_path, monkeypatch):
    file = certificate(tmp_path, "localhost")
    monkeypatch.setattr(tls, "SYSTEM_BUNDLES", (str(file),))
    monkeypatch.setenv("no_proxy", "")
    address = "http://models.example/"
    async with greeting(file) as proxy:
        for name in ("http_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, proxy)
        assert await greeted(address) == "hello"
        async with open_url(httpx.URL(address), {}, allowed=frozenset(), timeouts=FetchTimeouts()) as response:
            assert b"".join([piece async for piece in response.body]) == b"hello"
        async with await make_http_client(HttpTarget(address), ServerLog()) as client:
            assert (await client.get(address)).text == "hello"


def test_they_are_read_once_for_each_place(tmp_path, monkeypatch):
    first = tls.tls_context()
    assert tls.tls_context() is first
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate(tmp_path, "localhost")))
    assert tls.tls_context() is not first
