"""Every recorded stream and error, asked for by the command, compared line by line."""

import json
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent import turn
from desktop_agent.agent.retry import LONGEST_HINT, RetryPolicy
from tests.desktop_agent.faces.asking import Asked, Asker, serving
from tests.desktop_agent.providers.canon import RECORDINGS, cut_at, expected, matches, pieces, recordings, splits
from tests.desktop_agent.providers.loopback import Loopback, Reply

STREAMS = recordings("openai-chat", "compat")
ERRORS = [
    row
    for row in json.loads((RECORDINGS / "http_errors.json").read_text("utf-8"))
    if row["protocol"] in {"openai-chat", "compat"}
]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def first_turn(asked: Asked) -> list[dict[str, Any]]:
    """Until the answer's calls, which nobody runs here, have their results."""
    return [event for event in asked.events if event["type"] != "tool_result"]


@pytest.fixture(autouse=True)
def quick_and_single(monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn a run, and no waiting between attempts."""
    monkeypatch.setattr(RetryPolicy, "delay", _at_once(RetryPolicy.delay))
    monkeypatch.setattr(turn.Run, "_run_calls", _without_another_turn)


def _at_once(real: Any) -> Any:
    def delay(self: RetryPolicy, error: Any, attempt: int) -> float | None:
        return None if real(self, error, attempt) is None else 0.0

    return delay


async def _without_another_turn(_self: Any, _answer: Any) -> bool:
    return False


def test_there_are_recordings() -> None:
    assert len(STREAMS) >= 15
    assert len(ERRORS) >= 10


@pytest.mark.parametrize("size", [0, 1, 7, -1], ids=["whole", "bytes", "sevens", "mean"])
@pytest.mark.parametrize("path", STREAMS, ids=name)
def test_a_recorded_stream(ask: Asker, path: Path, size: int) -> None:
    about, data = expected(path), path.read_bytes()
    parts = cut_at(data, splits(path)) if size < 0 else pieces(data, size)
    with serving(Loopback(Reply(parts, about["http_status"], about["headers"]))) as server:
        asked = ask("--jsonl", "hi", server=server)
    matches(first_turn(asked), about["events"])
    failed = any(event["type"] == "error" for event in about["events"])
    calls = any(event["type"] == "tool_use" for event in about["events"])
    assert asked.code == (1 if failed else 130 if calls else 0)


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row["name"])
def test_a_recorded_error(ask: Asker, row: dict[str, Any]) -> None:
    reply = Reply(row["body"].encode(), row["status"], row["headers"], "length")
    with serving(Loopback(reply)) as server:
        asked = ask("--jsonl", "hi", server=server)
        requests = len(server.requests)
    (error,) = asked.events
    assert error == {"type": "error", "kind": row["expect"]["kind"], "message": row["expect"]["message"]}
    assert asked.code == 1
    hint = float(row["headers"].get("retry-after", 0))
    assert (requests > 1) == (row["expect"]["retry"] and hint <= LONGEST_HINT)


@pytest.mark.parametrize("path", STREAMS[:: len(STREAMS) // 3], ids=name)
async def test_as_a_process_of_its_own(ask: Asker, path: Path) -> None:
    about, data = expected(path), path.read_bytes()  # noqa: ASYNC240 - nothing else waits here
    calls = any(event["type"] == "tool_use" for event in about["events"])
    replies = [Reply(pieces(data, 3), about["http_status"], about["headers"])]
    if calls:
        replies.append(Reply(b'{"error":{"message":"enough"}}', 400, {"content-type": "application/json"}, "length"))
    async with Loopback(*replies) as server:
        asked = await ask.child("--jsonl", "hi", server=server)
    events = first_turn(asked)
    if calls:
        assert events.pop() == {"type": "error", "kind": "invalid_request", "message": "enough"}
    matches(events, about["events"])
