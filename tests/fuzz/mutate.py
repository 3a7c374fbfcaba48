"""Streams as no server should send them: recordings, bent at random. A seed and a number give the same stream again."""

import json
import re
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from desktop_agent.providers.transport.sse import MAX_EVENT_SIZE
from tests.fakes import vendor_streams as streams
from tests.fakes.recordings import recordings
from tests.fuzz.judge import SMALL_LIMIT

DIALECTS = streams.DIALECTS
_FOLDERS = {"openai-chat": ("openai-chat", "compat"), **{name: (name,) for name in DIALECTS[1:]}}
_SEPARATOR = re.compile(rb"(?:\r\n\r\n|\n\n|\r\r)")
_LONGEST = 200_000
_ENDLESS = 0.0005
_ONLY_CUT = 0.1

_TOKENS = (
    b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"data:", b"data: ", b"data: [DONE]\n\n", b"[DONE]", b"event: error\n",
    b"event: ping\ndata: {}\n\n", b": comment\n\n", b"id: 1\n", b"retry: 1\n", b"error: {}\n", b"\xef\xbb\xbf", b"\x00",
    b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xc2\x85", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\ud83d", b"\\u0000",
    b",", b":", b"null", b"NaN", b"-", b"1e999", b"{}\n\n", b"data: {}\n\n", b"data: []\n\n",
    b'data: ""\n\n', b"data: 1\n\n", b"data: null\n\n", b'data: {"error":{"message":"x"}}\n\n', b'{"error":"x"}\n',
    b"<html>", b"<think>", b"</think>",
)  # fmt: skip
_MARK = "\ue000"
# Texts that stand for what the JSON writer cannot write: replaced after it has written the rest.
_RAW = {
    f"{_MARK}deep": "[" * 150 + "]" * 150,
    # orjson reads about 1,024 levels, which is more than Python's own recursion bears.
    f"{_MARK}nested": '{"error":' * 700 + "1" + "}" * 700,
    f"{_MARK}lists": "[" * 950 + "1" + "]" * 950,
    f"{_MARK}deeper": '{"a":' * 3000 + "1" + "}" * 3000,
    f"{_MARK}deepest": "[" * 60_000 + "]" * 60_000,
    f"{_MARK}unclosed": "[" * 500,
    f"{_MARK}huge": "9" * 400,
    f"{_MARK}hugest": "9" * 6000,
    f"{_MARK}float": "1e999",
    f"{_MARK}nan": "NaN",
    f"{_MARK}infinity": "-Infinity",
    f"{_MARK}half": '"\\ud83d"',
    f"{_MARK}other_half": '"\\ude00 x"',
    f"{_MARK}control": '"a\x01\tb"',
    f"{_MARK}twice": '{"index":0,"index":1,"type":"text","type":"tool_use","id":"a","id":"b"}',
    f"{_MARK}nothing": "",
}
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**9, 2**53 + 1, 2**63, 2**64, -(10**30), 0.5, -0.0, 1e300, "", " ", "x", "0",
    "null", "\n", "a" * 300, "text", "tool_use", "error", "stop", "call_1", "\u2028", "\x00", "😀", "<think>",
    [], {}, [None], [[]], [{}], {"": None}, ["x", 1, {}], {"text": 1}, {"type": "text", "text": "x"}, {"type": []},
    {"message": "x", "code": 500},
    *_RAW,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One stream to try: its bytes in pieces, and the size limit it is read with."""

    chunks: tuple[bytes, ...]
    limit: int = SMALL_LIMIT
    whole: tuple[bytes, ...] = ()  # where these bytes are only the beginning of a recording: all of it

    @property
    def data(self) -> bytes:
        """All of it."""
        return b"".join(self.chunks)


def case(dialect: str, seed: int, number: int) -> Case:
    """The stream of this number; the first are the recordings as they are."""
    random = _random(dialect, seed, number)
    is_endless = random.random() < _ENDLESS
    if number < len(seeds(dialect)):
        return Case(tuple(cut(random, seeds(dialect)[number])))
    if is_endless:
        return _endless(random, dialect)
    data = random.choice(seeds(dialect if random.random() < 0.95 else random.choice(DIALECTS)))
    if random.random() < _ONLY_CUT:
        return Case(tuple(cut(random, data[: random.randrange(len(data))])), whole=(data,))
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        data = random.choice(_MUTATIONS)(random, data, dialect)[:_LONGEST]
    return Case(tuple(cut(random, data)))


def is_endless(dialect: str, seed: int, number: int) -> bool:
    """Whether it is one of the rare streams that reach the real limit; such a one takes seconds."""
    return _random(dialect, seed, number).random() < _ENDLESS


def _random(dialect: str, seed: int, number: int) -> Random:
    return Random(f"{seed}/{dialect}/{number}")


def cut(random: Random, data: bytes) -> list[bytes]:
    """The same bytes in pieces, of one size or of many."""
    style = random.random()
    if style < 0.25:
        return [data]
    if style < 0.6:
        size = random.choice((1, 2, 3, 7, 64, 300, 4096))
        size = max(size, len(data) // random.choice((100, 100, 100, 5000)))
        return [data[at : at + size] for at in range(0, len(data), size)]
    if style < 0.8:
        return [piece for piece in re.split(rb"(?<=\n\n)", data) if piece]
    edges = sorted(random.randrange(len(data) + 1) for _ in range(random.randrange(1, 30)))
    return [data[a:b] for a, b in zip([0, *edges], [*edges, len(data)], strict=True)]


@cache
def seeds(dialect: str) -> tuple[bytes, ...]:
    """The recordings of this dialect, and a short stream of its vendor."""
    recorded = [path.read_bytes() for path in recordings(*_FOLDERS[dialect])]
    return (*recorded, b"".join(streams.events(dialect, 5)))


@cache
def _members(dialect: str) -> tuple[Any, ...]:
    """Every value at every place of every recording, small ones: to be put where others belong."""
    found: dict[str, Any] = {}
    for data in seeds(dialect):
        for event in _SEPARATOR.split(data):
            parsed = _parsed(event)
            for parent, key in _places(parsed):
                text = json.dumps(parent[key])
                if len(text) < 2000:
                    found[text] = parent[key]
    return tuple(found.values())


@cache
def _keys(dialect: str) -> tuple[str, ...]:
    texts = {json.dumps(value): value for value in _members(dialect) if isinstance(value, dict)}
    return tuple(sorted({key for value in texts.values() for key in value}))


def _endless(random: Random, dialect: str) -> Case:
    """A line beyond the real limit, or an event of many lines; one piece of memory, again and again."""
    piece = random.choice((b"x" * 65536, b"data: " + b"x" * 65530 + b"\n", b'{"a":[' * 10000, b"data: {\n" * 8000))
    count = MAX_EVENT_SIZE // len(piece) + 20
    start = random.choice(seeds(dialect))
    return Case((start[: random.randrange(len(start))], *[piece] * count, b"\n\n", start), MAX_EVENT_SIZE)


def _flip(random: Random, data: bytes, _: str) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            at = random.randrange(len(changed))
            changed[at] = random.choice((changed[at] ^ (1 << random.randrange(8)), random.randrange(256)))
    return bytes(changed)


def _truncate(random: Random, data: bytes, _: str) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _delete(random: Random, data: bytes, _: str) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes, _: str) -> bytes:
    start, end = _span(random, data)
    return data[:end] + data[start:end] * random.choice((1, 1, 2, 20)) + data[end:]


def _insert(random: Random, data: bytes, _: str) -> bytes:
    at = random.randrange(len(data) + 1)
    token = random.choice(_TOKENS) * random.choice((1, 1, 1, 2, 50))
    return data[:at] + token + data[at:]


def _merge(random: Random, data: bytes, dialect: str) -> bytes:
    other = random.choice(seeds(dialect if random.random() < 0.8 else random.choice(DIALECTS)))
    at, there = random.randrange(len(data) + 1), random.randrange(len(other) + 1)
    return data[:at] + other[there:]


def _long_line(random: Random, data: bytes, _: str) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice((b"x", b"data: x\n", b'"', b"[", b"\\", b" ")) * SMALL_LIMIT + data[at:]


def _events(random: Random, data: bytes, dialect: str) -> bytes:
    """Whole events: swapped, doubled, lost, moved, borrowed, with another end of line."""
    ending = random.choice((b"\n\n", b"\r\n\r\n")) if random.random() < 0.2 else b"\n\n"
    events = [event for event in _SEPARATOR.split(data) if event]
    if not events:
        return data
    for _ in range(random.choice((1, 1, 2, 5))):
        one, other = random.randrange(len(events)), random.randrange(len(events))
        match random.randrange(6):
            case 0:
                events[one], events[other] = events[other], events[one]
            case 1:
                events.insert(other, events[one])
            case 2 if len(events) > 1:
                del events[one]
            case 3:
                foreign = [each for each in _SEPARATOR.split(random.choice(seeds(dialect))) if each]
                events.insert(other, random.choice(foreign))
            case 4:
                events[one:one] = [events[other]] * random.choice((2, 10, 60))
            case _:
                events.insert(other, events.pop(one))
    return ending.join(events) + (ending if random.random() < 0.9 else b"")


def _json(random: Random, data: bytes, dialect: str) -> bytes:
    """Another value, another name, or nothing, at any place of any event."""
    events = _SEPARATOR.split(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(events))
        parsed = _parsed(events[at])
        places = list(_places(parsed))
        if not places:
            continue
        head = events[at][: events[at].find(b"{")]
        parent, key = random.choice(places)
        _bend(random, parent, key, dialect)
        events[at] = head + _written(random, parsed)
    return b"\n\n".join(events)


def _bend(random: Random, parent: Any, key: Any, dialect: str) -> None:
    match random.randrange(7):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, dict):
            parent[random.choice(_keys(dialect))] = parent.pop(key)
        case 2:
            parent[key] = random.choice(_members(dialect))
        case 3 if isinstance(parent, dict):
            parent[random.choice(_keys(dialect))] = random.choice((*_members(dialect), *_VALUES))
        case 4 if isinstance(parent, list):
            parent.insert(key, random.choice(_VALUES))
        case 5 if isinstance(parent[key], str):
            parent[key] += random.choice(("\ud83d", "\ude00", "\x00", '"}', "<think>", "\n", "é", "{", "\\"))
        case _:
            parent[key] = random.choice(_VALUES)


def _written(random: Random, value: Any) -> bytes:
    compact = (",", ":") if random.random() < 0.8 else None
    text = json.dumps(value, ensure_ascii=random.random() < 0.7, separators=compact)
    for mark, raw in _RAW.items():
        text = text.replace(json.dumps(mark), raw).replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every member of every object and array, as what holds it and where."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            found.append((each, key))
            waiting.append(each[key])
    return found


def _parsed(event: bytes) -> Any:
    start = event.find(b"{")
    try:
        return json.loads(event[start:]) if start >= 0 else None
    except (ValueError, RecursionError):
        return None


def _span(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.choice((1, 1, 2, 10, 100, 1000)))


_MUTATIONS = (
    _flip, _truncate, _delete, _repeat, _insert, _insert, _merge, _events, _events, _events,
    *[_json] * 9,
)  # fmt: skip
