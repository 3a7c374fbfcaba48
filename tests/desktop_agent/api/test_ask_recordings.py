"""Every recorded stream and error, asked for by the command, compared line by line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.retry import MAX_RETRY_AFTER, RetryPolicy
from tests.fakes.ask_command import Asker, serving
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.recordings import RECORDINGS, cut_at, expected, matches, pieces, recordings, splits
from tests.frame.selection import few

DIALECTS = ("openai-chat", "compat", "openai-responses", "anthropic", "gemini")
STREAMS = recordings(*DIALECTS)
ERRORS = json.loads((RECORDINGS / "http_errors.json").read_text("utf-8"))
SIZES = (0, 1, 2, 3, 7, 4096, -1)
# Nothing came but a call that its server could not read: that is asked once more.
ASKED_TWICE = {"gemini/malformed_function_call"}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waiting between attempts."""
    monkeypatch.setattr(RetryPolicy, "delay", _at_once(RetryPolicy.delay))


def _at_once(real: Any) -> Any:
    def delay(self: RetryPolicy, error: Any, attempt: int) -> float | None:
        return None if real(self, error, attempt) is None else 0.0

    return delay


def dialect(folder: str) -> list[str]:
    """The words that choose it."""
    return ["--dialect", "openai-chat" if folder == "compat" else folder]


def test_there_are_recordings() -> None:
    assert len(STREAMS) >= 30
    assert len(ERRORS) >= 25
    assert {path.parent.name for path in STREAMS} == set(DIALECTS)


def ways() -> list[tuple[Path, int]]:
    """Each stream once, the cuttings in turn; one of each dialect in all cuttings (0: whole, -1: at its own offsets).

    That no cutting makes a difference is for the decoder to hold: tests/desktop_agent/providers/test_recordings.py.
    """
    once = [(path, SIZES[number % len(SIZES)]) for number, path in enumerate(STREAMS)]
    every = [(recordings(folder)[0], size) for folder in DIALECTS for size in SIZES]
    return list(dict.fromkeys([*once, *every]))


def one_of_each_shape() -> Iterator[Any]:
    """A shape is what the recording is named after, in whatever dialect."""
    shapes: set[str] = set()
    for path, size in ways():
        exhaustive = pytest.mark.exhaustive("test_a_recorded_stream, the same shape in another dialect or cutting")
        yield pytest.param(path, size, marks=exhaustive if path.stem in shapes else ())
        shapes.add(path.stem)


@pytest.mark.parametrize(
    ("path", "size"), list(one_of_each_shape()), ids=lambda value: name(value) if isinstance(value, Path) else value
)
def test_a_recorded_stream(ask: Asker, path: Path, size: int) -> None:
    about, data = expected(path), path.read_bytes()
    parts = cut_at(data, splits(path)) if size < 0 else pieces(data, size)
    with serving(Loopback(Reply(parts, about["http_status"], about["headers"]))) as server:
        result = ask("--jsonl", *dialect(path.parent.name), "hi", server=server)
        # Calls that nobody offered are not asked about again.
        assert len(server.requests) == (2 if name(path) in ASKED_TWICE else 1)
    # Of the first attempt only what it used is written.
    matches(result.events[len(server.requests) - 1 :], about["events"], extras=True)
    types = {event["type"] for event in about["events"]}
    cut = {"max_tokens", "context_window_exceeded", "content_filter", "refusal", "malformed_tool_call"}
    is_cut = any(event.get("stop_reason") in cut for event in about["events"])
    is_something = types & {"content_delta", "tool_use"}
    assert result.code == (0 if is_something and not is_cut and "error" not in types else 1)


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: f"{row['protocol']}-{row['name']}")
def test_a_recorded_error(ask: Asker, row: dict[str, Any]) -> None:
    reply = Reply(row["body"].encode(), row["status"], row["headers"], "length")
    with serving(Loopback(reply)) as server:
        result = ask("--jsonl", *dialect(row["protocol"]), "hi", server=server)
        requests = len(server.requests)
    (error,) = result.events
    assert error == {"type": "error", "kind": row["expect"]["kind"], "message": row["expect"]["message"]}
    assert result.code == 1
    hint = float(row["headers"].get("retry-after", 0))
    assert (requests > 1) == (row["expect"]["retry"] and hint <= MAX_RETRY_AFTER)


@pytest.mark.parametrize("path", few(STREAMS[:: len(STREAMS) // 4], 2, "the same process"), ids=name)
async def test_as_a_process_of_its_own(ask: Asker, path: Path) -> None:
    about, data = expected(path), path.read_bytes()  # noqa: ASYNC240 - nothing else waits here
    async with Loopback(Reply(pieces(data, 3), about["http_status"], about["headers"])) as server:
        result = await ask.child("--jsonl", *dialect(path.parent.name), "hi", server=server)
    matches(result.events, about["events"], extras=True)
