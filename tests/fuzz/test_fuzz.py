"""A small part of the fuzzing with one fixed seed; `make fuzz` does the rest."""

import mmap
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from desktop_agent.providers.dialects import response_stream
from desktop_agent.providers.transport.sse import MAX_EVENT_SIZE, SseDecoder
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import Truncated
from desktop_agent.types.provider_events import (
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    Origin,
    ProviderEvent,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
)
from tests.frame.examples import examples
from tests.fuzz import __main__ as fuzz
from tests.fuzz import memory
from tests.fuzz.judge import SMALL_LIMIT, Fault, Judge, Outcome, check_cut, checked
from tests.fuzz.mutate import DIALECTS, case, cut, is_endless, seeds

SEED = 7
STREAMS = examples(2000)
START = AnswerStarted(Origin(provider="x"))
END = (MessageDelta(StopReason.END_TURN, "stop"), Done())


@pytest.fixture(autouse=True)
def _real_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge replaces it by one with another limit; put it back."""
    monkeypatch.setattr(response_stream, "SseDecoder", SseDecoder)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_broken_streams_end_in_events_or_a_typed_error(dialect: str) -> None:
    report = await fuzz.worked(dialect, SEED, [n for n in range(STREAMS) if not is_endless(dialect, SEED, n)])
    assert report.streams > STREAMS * 0.99
    assert not report.faults
    assert report.endings["done"] > STREAMS / 5
    assert report.endings["truncated"] > STREAMS / 10
    assert len(report.endings) >= 4


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_seed_is_what_its_recording_says(dialect: str) -> None:
    judge = Judge(dialect)
    ends = [(await judge.judged([data])).error is None for data in seeds(dialect)]
    assert sum(ends) >= len(ends) / 3


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_number_gives_the_same_stream_again(dialect: str) -> None:
    numbers = range(50, 90)
    assert [case(dialect, 1, number) for number in numbers] == [case(dialect, 1, number) for number in numbers]
    assert [case(dialect, 1, number) for number in numbers] != [case(dialect, 2, number) for number in numbers]
    for number in numbers:
        one = case(dialect, 1, number)
        assert b"".join(cut(Random(number), one.data)) == one.data


async def test_an_endless_line_is_refused_at_the_limit() -> None:
    start = seeds("openai-chat")[0]
    outcome = await Judge("openai-chat").judged([start[:300], b"x" * (SMALL_LIMIT + 1)])
    assert outcome.error is not None
    assert "larger than" in str(outcome.error)


def test_some_streams_reach_the_real_limit() -> None:
    number = next(number for number in range(50, 50_000) if is_endless("gemini", SEED, number))
    one = case("gemini", SEED, number)
    assert one.limit == MAX_EVENT_SIZE
    assert len(one.data) > MAX_EVENT_SIZE
    assert len({id(chunk) for chunk in one.chunks}) < 10  # made cheaply


CALL = ToolUse(id="a", name="b", input={})
BAD: dict[str, Sequence[ProviderEvent]] = {
    "no start": [ContentDelta("x"), *END],
    "no end": [START, ContentDelta("x"), Done()],
    "not done": [START, END[0]],
    "two ends": [START, END[0], *END],
    "after the end": [START, END[0], ContentDelta("x"), Done()],
    "after done": [START, *END, ContentDelta("x")],
    "one id twice": [START, CALL, CALL, *END],
    "no name": [START, ToolUse(id="a", name="", input={}), *END],
    "a lost piece": [START, ToolArgsDelta("", None, "x"), *END],
    "malformed and run": [START, ToolUse(id="a", name="b", input={"a": 1}, malformed="{"), *END],
    "half a pair": [START, ContentDelta("\ud83d"), *END],
    "half a pair within": [START, ToolUse(id="a", name="b", input={"a": ["\ud83d"]}), *END],
    "no number": [START, ToolUse(id="a", name="b", input={"a": float("nan")}), *END],
    "thought otherwise": [START, ThinkingDelta("x"), ThinkingBlock("y", "p"), *END],
}


@pytest.mark.parametrize("name", BAD)
def test_the_judge_sees(name: str) -> None:
    checked(Outcome([START, ContentDelta("x"), CALL, *END]))
    checked(Outcome([START, ContentDelta("x")], Truncated("x")))
    with pytest.raises(Fault):
        checked(Outcome(list(BAD[name])))


def test_the_judge_sees_a_cut_call() -> None:
    whole = Outcome([START, ToolUse(id="a", name="b", input={"path": "x"}), *END])
    check_cut(whole, Outcome([START, ToolUse(id="c", name="b", input={"path": "x"})], Truncated("x")))
    for call in (ToolUse(id="a", name="b", input={}), ToolUse(id="a", name="b", input={}, malformed='{"path')):
        with pytest.raises(Fault, match="cut call"):
            check_cut(whole, Outcome([START, call], Truncated("x")))


async def test_the_judge_sees_a_decoder_that_depends_on_the_cutting(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = SseDecoder.feed
    monkeypatch.setattr(SseDecoder, "feed", lambda self, chunk: feed(self, chunk.replace(b"Hello", b"Hullo")))
    judge = Judge("openai-chat")
    data = next(each for each in seeds("openai-chat") if b"Hello" in each)
    outcome = await judge.judged([data])
    with pytest.raises(Fault, match="cut otherwise"):
        await judge.judged_again([data[at : at + 1] for at in range(len(data))], outcome)


def test_the_watermark_sees_what_was_used_and_given_back() -> None:
    if not memory._RESET.exists():
        pytest.skip("needs /proc")
    # From the system itself: the allocator may have as much left over from tests before.
    size = memory.FREE + 20 * 1024 * 1024
    with pytest.raises(Fault, match="were used for"), memory.Watermark(1000), mmap.mmap(-1, size) as area:
        area[:: mmap.PAGESIZE] = b"x" * (size // mmap.PAGESIZE)
    with memory.Watermark(1000):
        bytearray(1000)


def test_a_fault_is_kept_with_its_bytes_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "KEPT", tmp_path / "fuzz")
    fuzz.keep("gemini", 1, 60, "Fault: \ud83d")
    assert (tmp_path / "fuzz" / "gemini-1-60.sse").read_bytes() == case("gemini", 1, 60).data
    assert "--dialect gemini --seed 1 --number 60" in capsys.readouterr().out


def test_a_process_of_its_own_reports_and_one_that_dies_names_its_stream() -> None:
    report = fuzz.in_a_process("gemini", 1, range(5, 8))
    assert (report.streams, report.faults, report.endings.total()) == (3, {}, 3)
    assert "ended with 2" in fuzz.in_a_process("no such dialect", 1, range(5, 6)).faults[5]
