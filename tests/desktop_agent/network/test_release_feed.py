"""The document that names the newest version: what is asked, what is taken, and what becomes of hostile ones."""

import asyncio
import json
from datetime import date

import pytest

from desktop_agent.network.fetch import FetchTimeouts
from desktop_agent.network.hosts import FetchFailed
from desktop_agent.network.release_feed import MAX_FEED_BYTES, Release, fetch_release, is_newer, parse_release
from tests.fakes.http_server import Loopback, Reply
from tests.frame.patience import PATIENCE

GOOD = {"version": "1.2.3", "date": "2026-12-01", "page": "https://example.org/releases/1.2.3"}


def document(**changes: object) -> bytes:
    return json.dumps({**GOOD, **changes}).encode()


def moved(to: str) -> Reply:
    return Reply(b"", 302, {"location": to}, "length")


async def refusal(*replies: Reply, timeouts: FetchTimeouts | None = None) -> str:
    async with Loopback(*replies, judged=False) as server:
        with pytest.raises(FetchFailed) as caught:
            await fetch_release(f"{server.root}/feed.json", timeouts=timeouts)
    return str(caught.value)


async def test_one_request_without_anything_about_the_person_or_the_system():
    async with Loopback(Reply(document(more={"a": 1})), judged=False) as server:
        assert await fetch_release(f"{server.root}/feed.json?a=1#b") == Release(
            version="1.2.3", date=date(2026, 12, 1), page=GOOD["page"]
        )
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("GET", "/feed.json?a=1", b"")
    assert set(request.headers) == {"host", "accept", "accept-encoding", "user-agent"}
    assert request.headers["user-agent"] == "desktop-agent"


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"no JSON", b"[]", b"null", b'"1.2.3"', b"\xff\xfe", b"[" * 60_000, b'{"version": "1.2.3"}'),
        *(
            document(version=version)
            for version in (1, None, "", "1.2", "1.2.3rc1", "1.2.3\n", "٣.1.1", "9" * 20 + ".0.0")
        ),
        *(document(version=version) for version in ("1.2.3\u202e", "<b>1.2.3</b>", ["1.2.3"])),
        *(document(date=day) for day in ("tomorrow", 20261201, "2026-13-01", "2026-12-01T10:00:00", "0000-00-00")),
        *(
            document(page=page)
            for page in (
                *(
                    "javascript:alert(1)",
                    "http://example.org/",
                    "file:///etc/passwd",
                    "//example.org",
                    "example.org",
                    "",
                ),
                *("https://", "https://user:word@example.org/", "https://example.org/\u202egpj", "https://a b.org/"),
                *("https://example.org/\nx", "https://example.org/\x00", "https://examp\u0430le.org/", 7),
                *("https://example.org/" + "a" * 500, "https://example.org:99999/", "https://example.org/<b>"),
            )
        ),
    ],
)
async def test_what_describes_no_version_is_refused_whole(data):
    assert parse_release(data) is None
    assert "does not describe a version" in await refusal(Reply(data))


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_a_large_document_is_left(framing):
    padded = document(padding="x" * MAX_FEED_BYTES)
    assert "too large" in await refusal(Reply([padded[:40_000], padded[40_000:]], framing=framing))


async def test_another_status_and_a_server_that_is_gone_are_said():
    assert "names no version (status 404)" in await refusal(Reply(document(), 404))
    async with Loopback(Reply(), judged=False) as server:
        feed = f"{server.root}/"
    with pytest.raises(FetchFailed, match="could not be reached"):
        await fetch_release(feed)


async def test_a_body_that_never_ends_is_given_up():
    async with asyncio.timeout(PATIENCE):
        words = await refusal(Reply(document()[:5], hold=asyncio.Event()), timeouts=FetchTimeouts(total=0.2))
    assert "took longer than" in words


async def test_a_redirect_is_followed_within_the_server_alone():
    async with Loopback(moved("/newest.json"), Reply(document()), judged=False) as server:
        assert (await fetch_release(f"{server.root}/feed.json")).version == "1.2.3"
    assert [request.path for request in server.requests] == ["/feed.json", "/newest.json"]
    async with Loopback(Reply(document()), judged=False) as other:
        for target in (
            f"{other.root}/feed.json",
            f"http://localhost:{other.port}/",
            "javascript:alert(1)",
            "http://[x",
        ):
            assert "redirects to another server" in await refusal(moved(target))
    assert other.connections == 0
    assert "without end" in await refusal(moved("/feed.json"))


@pytest.mark.parametrize("feed", ["http://example.org/feed", "ftp://example.org/", "file:///etc/passwd", "", "feed"])
async def test_only_https_is_asked(feed):
    with pytest.raises(FetchFailed, match="unusable address"):
        await fetch_release(feed)


@pytest.mark.parametrize(
    ("version", "than"),
    [
        *(("1.10.0", "1.9.9"), ("1.2.3", "1.2.2"), ("2.0.0", "1.99.99"), ("1.0.0", "0.9.0+local")),
        *(("1.2.0", "1.2.0rc1"), ("1.2.0", "1.2.0-rc.1"), ("1.2.0", "1.2.0.dev3"), ("1.2.1", "1.2")),
    ],
)
def test_versions_are_compared_by_their_numbers(version, than):
    assert is_newer(version, than)
    assert not is_newer(than, version)


@pytest.mark.parametrize(
    ("version", "than"), [("1.2.0", "1.2"), ("1.2.0", "1.2.0+local"), ("1.2.0", "1.2.0.post1"), ("x", "1")]
)
def test_equal_or_unknown_versions_are_no_news(version, than):
    assert not is_newer(version, than)
    assert not is_newer(than, version)
