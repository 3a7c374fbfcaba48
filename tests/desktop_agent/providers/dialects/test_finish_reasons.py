"""Finish reasons of every dialect."""

import json
from typing import Any

import pytest

from desktop_agent.conversation.transcript_notices import NOT_ENDED, explain_ending
from desktop_agent.providers.dialects.anthropic.response_stream import FrameReader as AnthropicReader
from desktop_agent.providers.dialects.gemini.response_stream import FrameReader as GeminiReader
from desktop_agent.providers.dialects.openai_chat.response_stream import FrameReader as ChatReader
from desktop_agent.providers.dialects.response_stream import BaseFrameReader, failure_for, finish_word, stop_reason_for
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.types.errors import Overloaded, ServerFailed
from desktop_agent.types.provider_events import MessageDelta, StopReason, UsageUpdate


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", StopReason.END_TURN),
        ("STOP", StopReason.END_TURN),
        ("eos", StopReason.END_TURN),
        ("function_call", StopReason.TOOL_USE),
        ("tool-calls", StopReason.TOOL_USE),
        ("length", StopReason.MAX_TOKENS),
        ("MAX_TOKENS", StopReason.MAX_TOKENS),
        ("sensitive", StopReason.CONTENT_FILTER),
        ("SAFETY", StopReason.CONTENT_FILTER),
        ("COMPLETE", StopReason.END_TURN),
        ("banana", StopReason.UNKNOWN),
        # No server is known to send these.
        ("done", StopReason.UNKNOWN),
        ("tool_call", StopReason.UNKNOWN),
    ],
)
def test_words_by_what_they_mean(word: str, reason: StopReason) -> None:
    assert (finish_word(word), stop_reason_for(word), failure_for(word, None)) == (word, reason, None)


@pytest.mark.parametrize("nothing", ["", "null", "None", " NULL ", None, 0, False, {}])
def test_nothing_is_said_in_many_ways(nothing: Any) -> None:
    assert finish_word(nothing) is None


def test_words_for_answers_that_failed() -> None:
    assert isinstance(failure_for("network_error", "q1"), ServerFailed)
    assert isinstance(failure_for("insufficient_system_resource", None), Overloaded)


def chat(finish_reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": "hi "}, "finish_reason": finish_reason}]}


def gemini(finish_reason: str) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"text": "hi "}]}, "finishReason": finish_reason}]}


def anthropic(finish_reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": finish_reason}}


READERS = [(ChatReader, chat), (GeminiReader, gemini), (AnthropicReader, anthropic)]


@pytest.mark.parametrize(("reader_type", "frame"), READERS)
def test_the_word_null_is_no_end_in_any_dialect(reader_type: Any, frame: Any) -> None:
    builder = PartBuilder("p")
    reader: BaseFrameReader = reader_type(builder, {})
    reader.read(("", frame("null")))
    assert not reader.has_finished
    reader.read(("", frame("length" if reader_type is not GeminiReader else "MAX_TOKENS")))
    assert reader.has_finished
    reader.end()
    (end,) = [event for event in builder.take_events() if isinstance(event, MessageDelta)]
    assert end.stop_reason is StopReason.MAX_TOKENS


@pytest.mark.parametrize(("reader_type", "frame"), READERS)
def test_an_answer_that_failed_says_so_in_any_dialect(reader_type: Any, frame: Any) -> None:
    reader: BaseFrameReader = reader_type(PartBuilder("p"), {})
    reader.read(("", frame("network_error")))
    assert isinstance(reader.failure, ServerFailed)


@pytest.mark.parametrize("behind", [False, True])
def test_usage_inside_choices_or_behind_the_end_mark(behind: bool) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    inside = json.loads(json.dumps(chat("stop")))
    inside["choices"][0]["usage"] = usage
    builder = PartBuilder("p")
    reader = ChatReader(builder, {})
    reader.read(("", chat("stop") if behind else inside))
    reader.done = True
    if behind:
        reader.read(("", {"choices": [], "usage": usage}))
    reader.end()
    (update,) = [event for event in builder.take_events() if isinstance(event, UsageUpdate)]
    assert (update.usage.input_tokens, update.usage.output_tokens) == (3, 2)


def test_an_answer_that_its_server_did_not_end_is_marked() -> None:
    explanation = explain_ending(StopReason.END_TURN, {"unended": True})
    assert explanation is not None
    assert explanation.sentence == NOT_ENDED
