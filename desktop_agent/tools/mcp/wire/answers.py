"""Answers over HTTP, whole or as events, such that the library can read them, and at once.

The library waits for an answer with the id of its question. So each of them knows the question, and whatever ends it
becomes an answer to that.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import httpx2

from desktop_agent.tools.mcp.wire.messages import SERVER_FAILED, Read, failed, read, unreadable, with_code
from desktop_agent.tools.mcp.wire.pace import Pace

if TYPE_CHECKING:
    from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCResponse

_LARGE = 4_000
_MOST_LINES = 10_000
_LONGEST_STRAY = 50_000
_BOM = b"\xef\xbb\xbf"
_QUESTION = "desktop-agent/question"
_USUAL_NAMES = {b"event: message", b"event:message"}
_BAD_REQUEST, _FAILURE, _GONE = 400, 400, 404


@dataclass(frozen=True, slots=True)
class Question:
    """What an answer is to. `call`: its id; None where no answer is waited for. `session`: one was named with it."""

    call: int | str | None = None
    session: bool = False


async def question_of(request: httpx2.Request) -> Question:
    """By what was sent; a request that follows a redirect has its body no more, so it is kept beside it."""
    if _QUESTION not in request.extensions:
        request.extensions[_QUESTION] = Question(await _call_of(request), "mcp-session-id" in request.headers)
    return cast("Question", request.extensions[_QUESTION])


async def _call_of(request: httpx2.Request) -> int | str | None:
    try:
        sent = request.content
        message: Any = json.loads(sent) if len(sent) < _LARGE else await asyncio.to_thread(json.loads, sent)
    except (httpx2.RequestNotRead, ValueError):
        return None
    named = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    return named.get("id") if "method" in named else None


def failure_of(question: Question, message: str) -> bytes:
    """The body of an answer of ours; empty where none is waited for."""
    return b"" if question.call is None else _written(failed(question.call, message))


async def _read(data: bytes) -> Read:
    return read(data) if len(data) < _LARGE else await asyncio.to_thread(read, data)


def _written(message: "JSONRPCMessage") -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")


def _of(question: Question, messages: "Sequence[JSONRPCMessage]") -> "list[JSONRPCMessage]":
    """What is no answer, and behind it the one to this question: of answers to others there is its failure instead."""
    answers = [cast("JSONRPCResponse | JSONRPCError", each) for each in messages if not hasattr(each, "method")]
    if question.call is None or not answers:
        return list(messages)
    mine = [each for each in answers if str(each.id) == str(question.call)]
    # Without an id: the server could not read that of the question.
    mine = mine or [each for each in answers if each.id is None]
    others = [each for each in messages if hasattr(each, "method")]
    if not mine:
        return [*others, unreadable(question.call, "it answers another question")]
    return [*others, mine[0] if mine[0].id == question.call else mine[0].model_copy(update={"id": question.call})]


class WholeAnswer(httpx2.AsyncByteStream):
    """One message, of at most so many bytes."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, question: Question, status: int = 200) -> None:
        self._inner = inner
        self._most = most
        self._question = question
        self._status = status

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where it is larger."""
        pieces: list[bytes] = []
        left = self._most
        async for piece in self._inner:
            left -= len(piece)
            if left < 0:
                raise _too_large(self._most)
            pieces.append(piece)
        data = b"".join(pieces).removeprefix(_BOM)
        yield data if self._question.call is None else self._answer(self._question.call, data, await _read(data))

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()

    def _answer(self, call: int | str, data: bytes, found: Read) -> bytes:
        if self._status >= _FAILURE:
            return self._refusal(call, data, found)
        answers = [each for each in _of(self._question, found.messages) if not hasattr(each, "method")]
        if answers:
            return data if found.is_whole and answers[0] is found.messages[0] else _written(answers[0])
        return _written(unreadable(call, "it is no answer of the protocol" if data.strip() else "it is empty"))

    def _refusal(self, call: int | str, data: bytes, found: Read) -> bytes:
        """The failure in it, whatever its id: servers make one up (“server-error”). Without one the status counts."""
        from mcp_types import CONNECTION_CLOSED, JSONRPCError

        failure = next((each for each in found.messages if isinstance(each, JSONRPCError)), None)
        if failure is None or not found.is_json:
            return data
        if self._question.session and _has_forgotten(self._status, failure.error.code):
            failure = with_code(failure, CONNECTION_CLOSED)
        return _written(failure.model_copy(update={"id": call}))


def _has_forgotten(status: int, code: int) -> bool:
    """Whether a server knows the session no more: 404 by the protocol; those of its TypeScript library say 400, too."""
    from mcp_types import METHOD_NOT_FOUND

    return (status == _GONE and code != METHOD_NOT_FOUND) or (status == _BAD_REQUEST and code == SERVER_FAILED)


class EventStream(httpx2.AsyncByteStream):
    """Events (https://html.spec.whatwg.org/multipage/server-sent-events.html), each of at most so many bytes.

    Those that are no message are told as `stray` and not passed on. The last one needs no blank line, if it is whole.
    """

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        most: int,
        question: Question,
        stray: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._most = most
        self._question = question
        self._stray = stray
        self._pace = Pace()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Raises ReadError where one is larger."""
        pending: list[bytes] = []
        size, lines = 0, 0
        broken: httpx2.TransportError | None = None
        try:
            async with aclosing(_one_line_end(self._inner)) as pieces:
                async for piece in pieces:
                    *whole, rest = _parts(pending, piece)
                    for each in whole:
                        self._pace.begin()
                        if event := await self._event(each):
                            yield event
                        await self._pace.done()
                    if whole:
                        pending, size, lines = [], 0, 0
                    pending.append(rest)
                    size, lines = size + len(rest), lines + rest.count(b"\n")
                    if size > self._most or lines > _MOST_LINES:
                        pending = []
                        raise _too_large(self._most)
        except httpx2.TransportError as error:
            broken = error
        if pending and (event := await self._event(b"".join(pending), is_last=True)):
            yield event
        if broken is not None:
            raise broken

    async def aclose(self) -> None:
        """As the library wants it."""
        await self._inner.aclose()

    async def _event(self, event: bytes, *, is_last: bool = False) -> bytes:
        """One or more for the library; empty for what it need not see."""
        lines = event.split(b"\n")
        data = b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
        if not data:
            # Nothing in it but comments says nothing; an id or a pause may be alone.
            says = any(line.startswith((b"id", b"retry", b"data")) for line in lines)
            return event + b"\n\n" if says and not is_last else b""
        found = await _read(data)
        if not found.messages:
            self._stray(data[:_LONGEST_STRAY].decode("utf-8", "replace"))
        if not found.messages or (is_last and not found.is_json):
            return b""
        passed = _of(self._question, found.messages)
        # The library passes over what is named otherwise than “message”.
        named = [line for line in lines if line.startswith(b"event")]
        if found.is_whole and passed[0] is found.messages[0] and set(named) <= _USUAL_NAMES:
            return event.rstrip(b"\n") + b"\n\n"
        others = [line for line in lines if line and line not in named and not line.startswith(b"data")]
        return b"".join(b"\n".join([*others, b"data: " + _written(each), b"", b""]) for each in passed)


def _parts(pending: list[bytes], piece: bytes) -> list[bytes]:
    """Events that are whole with this piece, and what is left; joined only then, as one may come in many pieces."""
    meets = piece.startswith(b"\n") and bool(pending) and pending[-1].endswith(b"\n")
    if meets or b"\n\n" in piece:
        return b"".join([*pending, piece]).split(b"\n\n")
    return [piece]


async def _one_line_end(inner: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    """The text without the mark at its start, and with one end for all lines."""
    held, is_start = b"", True
    async for piece in inner:
        text = held + piece
        if is_start and len(text) < len(_BOM) and _BOM.startswith(text):
            held = text
            continue
        if is_start:
            is_start, text = False, text.removeprefix(_BOM)
        # The second half of a line end may come with the next piece.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text[:-1] if held else text
        if text:
            yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if held == b"\r":
        yield b"\n"


def _too_large(most: int) -> httpx2.ReadError:
    return httpx2.ReadError(f"the answer is larger than {most:,} bytes, or has too many lines")
