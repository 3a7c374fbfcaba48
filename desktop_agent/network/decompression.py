"""Decompress responses a bounded piece at a time: a few kilobytes may become gigabytes."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator

from desktop_agent.types.errors import Sentence, UnreadableAnswer

MAX_PIECE = 8 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS
_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})  # RFC 9110, section 8.4.1
_MEMBER = b"\x1f\x8b"  # how one begins: several may follow each other (RFC 1952, section 2.2)


async def decompress(source: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes, None]:
    """Decompress one layer of gzip or deflate, at most MAX_PIECE bytes at once; other tasks of the loop run in between.

    Raises UnreadableAnswer for damaged data and for every other encoding: none was asked for, and layers upon layers
    are how small answers become endless ones.
    """
    if encoding not in _ENCODINGS:
        template = "its body is compressed in a way that was not asked for ({encoding})"
        raise UnreadableAnswer(Sentence(template, {"encoding": encoding[:40]}))
    inflater, pending, piece, is_over = None, b"", b"", False
    async for chunk in source:
        pending = b"" if is_over else pending + chunk
        while pending or (len(piece) == MAX_PIECE and not (inflater is None or inflater.eof)):
            if inflater is None:
                inflater = zlib.decompressobj(_window_bits(encoding, pending))
            elif inflater.eof and pending == _MEMBER[:1]:
                break
            elif inflater.eof and pending.startswith(_MEMBER):
                inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
            elif inflater.eof:
                # What is no member is ignored, as gzip itself does.
                pending, is_over = b"", True
                break
            try:
                piece = inflater.decompress(pending, MAX_PIECE)
            except zlib.error:
                raise UnreadableAnswer(Sentence("its compressed body is damaged")) from None
            pending = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if piece:
                yield piece
            await asyncio.sleep(0)


def _window_bits(encoding: str, start: bytes) -> int:
    """Return zlib's window bits. Some servers send deflate without the wrapping of RFC 9110; every browser reads it."""
    is_bare = encoding == "deflate" and start[0] & 0x0F != zlib.DEFLATED
    return _RAW_DEFLATE if is_bare else _GZIP_OR_ZLIB
