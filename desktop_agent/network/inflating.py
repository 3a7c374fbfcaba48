"""Compressed answers, a bounded piece at a time: a few kilobytes may stand for gigabytes."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator

from desktop_agent.vocabulary.errors import UnreadableAnswer

PIECE = 64 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_BARE = -zlib.MAX_WBITS
_KINDS = frozenset({"gzip", "x-gzip", "deflate"})  # RFC 9110, section 8.4.1


async def inflated(source: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """The bytes behind one layer of gzip or deflate, at most PIECE at once; the loop gets its turn between two.

    Raises UnreadableAnswer for damaged data and for every other encoding: none was asked for, and layers upon layers
    are how small answers become endless ones.
    """
    if encoding not in _KINDS:
        raise UnreadableAnswer(f"its body is compressed in a way that was not asked for ({encoding[:40]})")
    inflater = None
    async for chunk in source:
        if inflater is None and chunk:
            # Some servers send deflate without the wrapping that RFC 9110 asks for; every browser reads it.
            is_bare = encoding == "deflate" and chunk[0] & 0x0F != zlib.DEFLATED
            inflater = zlib.decompressobj(_BARE if is_bare else _GZIP_OR_ZLIB)
        if inflater is None:
            continue
        waiting, piece = chunk, b""
        while (waiting or len(piece) == PIECE) and not inflater.eof:
            try:
                piece = inflater.decompress(waiting, PIECE)
            except zlib.error:
                raise UnreadableAnswer("its compressed body is damaged") from None
            waiting = inflater.unconsumed_tail
            if piece:
                yield piece
                await asyncio.sleep(0)
