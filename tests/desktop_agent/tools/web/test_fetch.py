"""Which hosts are contacted, what is sent and accepted, and when a fetch gives up: real sockets, hostile servers."""

import asyncio
import datetime
import gzip
import ssl
import zlib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from desktop_agent.network.fetch import MAX_REDIRECTS, FetchTimeouts
from desktop_agent.tools.web.addresses import HostRefused
from desktop_agent.tools.web.pages import FetchLimits, OtherHostRedirect, Page, fetch
from desktop_agent.types.errors import ToolFailed
from tests.fakes.web_servers import PUBLIC, Detour, Names, RawServer, answer, endless, sending, way_of
from tests.frame.patience import PATIENCE

NOBODY: frozenset[str] = frozenset()
PATIENT = FetchTimeouts(connect=5, idle=5, total=20)
HTML = {"content_type": "text/html"}


async def page(url, bounds=None, connector=None, allowed=NOBODY):
    fetched = await fetch(url, allowed, bounds or FetchLimits(timeouts=PATIENT), connector or way_of())
    assert isinstance(fetched, Page)
    return fetched


async def failure(url, bounds=None, connector=None, allowed=NOBODY) -> str:
    with pytest.raises(ToolFailed) as caught:
        await fetch(url, allowed, bounds or FetchLimits(timeouts=PATIENT), connector or way_of())
    assert str(caught.value.remedy)
    return str(caught.value)


async def test_a_page_comes_and_nothing_of_the_person_goes():
    async with RawServer(sending(answer(b"<p>hi", **HTML, set_cookie="who=you"))) as server:
        fetched = await page(server.url(path="/a b?q=1#part"))
    assert (fetched.data, fetched.content_type, fetched.address.host) == (b"<p>hi", "text/html", "site.example")
    head = server.requests[0].decode().lower()
    assert head.startswith("get /a%20b?q=1 http/1.1\r\n")
    names = {line.partition(":")[0] for line in head.split("\r\n")[1:] if line}
    assert names == {"host", "accept", "accept-encoding", "accept-language", "user-agent"}


# -- which hosts are contacted


async def test_a_name_that_leads_to_a_private_address_is_not_connected_to():
    names, detour = Names({"site.example": [["10.0.0.1"]]}), Detour()
    error = await failure("http://site.example/", connector=way_of(names, detour))
    assert "its address is 10.0.0.1" in error
    assert detour.told == []


@pytest.mark.parametrize("second", ["127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fd00::1"])
async def test_one_private_address_among_public_ones_is_enough_to_refuse(second):
    names, detour = Names({"site.example": [[PUBLIC, second]]}), Detour()
    assert "not a public server" in await failure("http://site.example/", connector=way_of(names, detour))
    assert detour.told == []


async def test_rebinding_the_address_that_was_looked_at_is_the_one_connected_to():
    names, detour = Names({"site.example": [[PUBLIC], ["127.0.0.1"]]}), Detour()
    async with RawServer(sending(answer(b"fine", **HTML))) as server:
        assert (await page(server.url(), connector=way_of(names, detour))).data == b"fine"
    assert names.asked == ["site.example"]
    assert detour.told == [PUBLIC]


async def test_rebinding_between_a_redirect_and_its_target_is_seen():
    names, detour = Names({"site.example": [[PUBLIC], ["127.0.0.1"]]}), Detour()
    async with RawServer(sending(answer(status="302 Found", location="/again"))) as server:
        assert "its address is 127.0.0.1" in await failure(server.url(), connector=way_of(names, detour))
    assert len(server.requests) == 1
    assert detour.told == [PUBLIC]


async def test_a_private_host_that_the_person_allowed_is_asked():
    async with RawServer(sending(answer(b"home", **HTML))) as server:
        fetched = await fetch(server.url("127.0.0.1"), frozenset({"127.0.0.1"}), FetchLimits(timeouts=PATIENT))
        assert isinstance(fetched, Page)
        names = Names({"nas.lan": [["192.168.0.2"]]})
        assert (
            await page(server.url("nas.lan"), connector=way_of(names), allowed=frozenset({"NAS.lan."}))
        ).data == b"home"
        assert "not a public server" in await failure(server.url("localhost"), allowed=frozenset({"127.0.0.1"}))
    assert len(server.requests) == 2


async def test_a_name_without_an_address():
    assert "could not be reached" in await failure(
        "http://site.example/", connector=way_of(Names({"site.example": [[]]}))
    )


# -- redirects


async def test_a_redirect_on_the_same_host_is_followed_without_its_cookies():
    pieces = [
        answer(status="301 Moved", location="//SITE.example.:{port}/b", set_cookie="who=you"),
        answer(b"b", **HTML),
    ]

    async def script(reader, writer):
        port = writer.get_extra_info("sockname")[1]
        writer.write(pieces.pop(0).replace(b"{port}", str(port).encode()))

    async with RawServer(script) as server:
        assert (await page(server.url(path="/a"))).address.text == server.url(path="/b")
    assert b"cookie" not in server.requests[1].lower()
    assert b"referer" not in server.requests[1].lower()


@pytest.mark.parametrize("target", ["http://other.example/x", "https://www.site.example/x", "//93.184.216.34/x"])
async def test_a_redirect_to_another_host_is_said_and_not_followed(target):
    detour = Detour()
    async with RawServer(sending(answer(status="302 Found", location=target))) as server:
        redirect = await fetch(server.url(), NOBODY, FetchLimits(timeouts=PATIENT), way_of(detour=detour))
    assert isinstance(redirect, OtherHostRedirect)
    assert redirect.address.split("//")[1] == target.split("//")[1]
    assert detour.told == [PUBLIC]


PRIVATE = ["http://127.0.0.1/", "http://localhost/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/"]
METADATA = ["http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/", "http://[fd00:ec2::254]/"]


@pytest.mark.parametrize("to", [*PRIVATE, *METADATA])
async def test_a_redirect_to_a_private_host_is_refused(to):
    async with RawServer(sending(answer(status="307 Moved", location=to))) as server:
        with pytest.raises(HostRefused):
            await fetch(server.url(), NOBODY, FetchLimits(timeouts=PATIENT), way_of())
    assert len(server.requests) == 1


@pytest.mark.parametrize("to", ["file:///etc/passwd", "gopher://x.org/", "http://[bad/", "javascript:alert(1)"])
async def test_a_redirect_out_of_the_web_is_refused(to):
    async with RawServer(sending(answer(status="302 Found", location=to))) as server:
        assert "not a web address" in await failure(server.url())


@pytest.mark.parametrize("to", ["http://u:pw@site.example/", "http://site.example:25/"])
async def test_a_redirect_is_looked_at_as_any_address(to):
    async with RawServer(sending(answer(status="302 Found", location=to))) as server:
        assert "pw" not in await failure(server.url())
    assert len(server.requests) == 1


async def test_redirects_end():
    async with RawServer(sending(answer(status="308 Moved", location="/again"))) as server:
        assert "without end" in await failure(server.url())
    assert len(server.requests) == MAX_REDIRECTS + 1


# -- what is accepted

SMALL = FetchLimits(wire=10_000, plain=100_000, timeouts=PATIENT)
LOTS = b"\0" * 10_000_000


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", deflated)]
)
async def test_packed_pages_are_unpacked_and_bombs_are_not(encoding, pack):
    small, bomb = pack(b"<p>small"), pack(LOTS)
    pieces = [answer(small, content_encoding=encoding), answer(bomb[:9_000], content_encoding=encoding)]

    async def script(_reader, writer):
        writer.write(pieces.pop(0))

    async with RawServer(script) as server:
        assert (await page(server.url(), SMALL)).data == b"<p>small"
        assert "larger than 0.1 MB" in await failure(server.url(), SMALL)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "aes128gcm", "x" * 5000])
async def test_what_cannot_be_unpacked_is_said(encoding):
    async with RawServer(sending(answer(gzip.compress(b"x"), content_encoding=encoding))) as server:
        assert "packed in a way" in await failure(server.url())


async def test_damaged_packing_is_said():
    async with RawServer(sending(answer(b"\x1f\x8b nothing of that", content_encoding="gzip"))) as server:
        assert "packed in a way" in await failure(server.url())


async def test_too_large_by_its_own_account_is_not_read():
    async with RawServer(sending(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n")) as server:
        assert "larger than 0.01 MB" in await failure(server.url(), SMALL)


ENDLESS_CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "chunk"),
    [(ENDLESS_CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n"), (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1024)],
)
async def test_a_body_without_end_is_left(head, chunk):
    async with RawServer(endless(head, chunk)) as server:
        assert "larger than 0.01 MB" in await failure(server.url(), SMALL)
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_a_slow_body_ends_with_the_time_for_all():
    slow = FetchLimits(timeouts=FetchTimeouts(connect=5, idle=5, total=0.3))
    async with RawServer(endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.05)) as server:
        assert "took longer than 0.3 seconds" in await failure(server.url(), slow)
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_silence_ends():
    async def silent(reader, _writer):
        await reader.read()

    async with RawServer(silent) as server:
        error = await failure(server.url(), FetchLimits(timeouts=FetchTimeouts(connect=5, idle=0.1, total=20)))
    assert "does not answer" in error


async def test_headers_without_end():
    async with RawServer(endless(b"HTTP/1.1 200 OK\r\n", b"x-flood: " + b"y" * 1000 + b"\r\n")) as server:
        assert "could not be reached" in await failure(server.url())
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


GARBAGE = [
    b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcde",
    b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nabcde",
    ENDLESS_CHUNKED + b"zz\r\nnothing\r\n",
    ENDLESS_CHUNKED + b"5\r\nabc",
    ENDLESS_CHUNKED + b"fffffffffffffffffffff\r\nabc",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"\x00\x01\x02\x03" * 100,
    b"",
    b"HTTP/1.1 200 OK\r\nlocation",
]


@pytest.mark.parametrize("response", GARBAGE)
async def test_garbage_is_no_page(response):
    async with RawServer(sending(response)) as server:
        assert "could not be reached" in await failure(server.url())


async def test_more_than_it_said_is_not_read():
    async with RawServer(
        sending(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nsmuggled")
    ) as server:
        assert (await page(server.url())).data == b"ok"


@pytest.mark.parametrize("status", ["404 Not Found", "500 No", "204 None", "206 Part", "304 Same"])
async def test_other_answers_are_said(status):
    async with RawServer(sending(answer(status=status))) as server:
        assert f"(status {status[:3]})" in await failure(server.url())


async def test_cancelling_closes_the_connection():
    async with RawServer(endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.01)) as server:
        task = asyncio.create_task(page(server.url()))
        while not server.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


# -- TLS


def certificate(folder: Path, *names: str) -> Path:
    """Create a self-signed certificate; key and certificate are in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "server.pem"
    file.write_bytes(secret + signed.public_bytes(pem))
    return file


async def over_tls(file: Path, host: str) -> tuple[str, int]:
    """Return the page of this host or the error, and how many requests the server saw."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    async with RawServer(sending(answer(b"safe", **HTML)), context) as server:
        try:
            text = (await page(server.url(host).replace("http:", "https:"))).data.decode()
        except ToolFailed as error:
            text = str(error)
    return text, len(server.requests)


async def test_the_certificate_is_that_of_the_name_and_not_of_the_address(tmp_path, monkeypatch):
    file = certificate(tmp_path, "site.example")
    assert await over_tls(file, "site.example") == ("“site.example” could not be reached.", 0)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert await over_tls(file, "site.example") == ("safe", 1)
    assert await over_tls(file, "other.example") == ("“other.example” could not be reached.", 0)
