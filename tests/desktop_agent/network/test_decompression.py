"""Compressed bodies, in whatever pieces they come."""

import gzip
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from desktop_agent.network.decompression import MAX_PIECE, decompress
from desktop_agent.types.errors import UnreadableAnswer

LARGE = bytes(range(256)) * 2 * (MAX_PIECE // 256)


async def pieces_of(data: bytes, size: int) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def whole(data: bytes, size: int, encoding: str = "gzip") -> bytes:
    async with aclosing(pieces_of(data, size)) as source:
        return b"".join([piece async for piece in decompress(source, encoding)])


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
async def test_all_members_are_read_and_filler_behind_them_is_not(size: int) -> None:
    members = [gzip.compress(text) for text in (b"Hel", b"", b"lo", LARGE, b"!")]
    assert await whole(b"".join(members), size) == b"Hello" + LARGE + b"!"
    for filler in (bytes(600), b"\x1f", b"what is no member \x1f\x8b at all"):
        assert await whole(b"".join(members) + filler, size) == b"Hello" + LARGE + b"!"
    assert await whole(zlib.compress(b"Hello") + b"filler", size, "deflate") == b"Hello"


@pytest.mark.parametrize("size", [1, 1_000_000])
async def test_a_damaged_member_is_told(size: int) -> None:
    second = bytearray(gzip.compress(b"lo"))
    second[12] ^= 0xFF
    with pytest.raises(UnreadableAnswer, match="damaged"):
        await whole(gzip.compress(b"Hel") + second, size)
