"""Section Data: what messages, usage, configuration and options are, and that JSON loses nothing of them."""

import asyncio
import base64
import json
import os
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pictures
from pydantic import BaseModel, SecretStr, ValidationError

from desktop_agent.api.provider import Provider
from desktop_agent.storage.records import message_to_json, read_message
from desktop_agent.types.blocks import (
    Base64Source,
    Citation,
    Image,
    ImageDetail,
    Json,
    Outcome,
    ServerStep,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
    detect_media_type,
)
from desktop_agent.types.errors import ImageRefused, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.policies import Hooks, Limits
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import ProviderConfig, ReasoningBudget, ReasoningDisabled, ReasoningEffort, Timeouts
from tests.fakes.agent_run import Desk
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import Gate, acting, adder
from tests.fakes.scripted_provider import Turn


def picture(kind: str) -> bytes:
    data = BytesIO()
    Pictures.new("RGB", (3, 2), "red").save(data, kind)
    return data.getvalue()


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def back(text: str) -> Message:
    """As the store reads it."""
    return read_message(text, id_="id", role="user", state="complete")


def is_frozen(value: BaseModel) -> bool:
    name = next(iter(type(value).model_fields))
    with pytest.raises(ValidationError):
        setattr(value, name, getattr(value, name))
    return True


def test_role__is_one_of_four() -> None:
    assert [str(role) for role in Role] == ["system", "user", "assistant", "tool"]
    messages = (Message.system("s"), Message.user("u"), Message.assistant("a"), Message.tool_results([]))
    assert [message.role for message in messages] == list(Role)


CALL = ToolUse(id="c1", name="look", input={"deep": {"list": [1, None, "ü"]}})
RESULT = ToolResult(
    tool_use_id="c1",
    content=(Text(text="seen"), Json(value={"n": [1.5, True]}), Image(source=UrlSource(url="https://example.org/a"))),
    outcome=Outcome.FAILED,
)


@pytest.mark.parametrize("block", [Text(text="a\ud800ü\x00", citations=(Citation(url="u", start=0),)), CALL, RESULT])
def test_content_blocks__are_frozen_and_json_loses_nothing(block: BaseModel) -> None:
    message = Message.user_with_blocks([block])
    assert back(message_to_json(message)) == message
    assert is_frozen(block)


def test_content_blocks__a_result_holds_text_json_and_images_and_nothing_else() -> None:
    assert [part.type for part in RESULT.content] == ["text", "json", "image"]
    with pytest.raises(ValidationError):
        ToolResult.model_validate({"tool_use_id": "c1", "content": [CALL.model_dump()]})


def test_content_blocks__a_result_says_how_the_call_ended_and_that_is_what_makes_it_an_error() -> None:
    outcomes = {"succeeded", "failed", "denied", "cancelled", "timed_out", "limit", "unknown"}
    assert {str(outcome) for outcome in Outcome} == outcomes
    ends = {outcome: ToolResult(tool_use_id="c1", outcome=outcome) for outcome in Outcome}
    assert [outcome for outcome, result in ends.items() if not result.is_error] == [Outcome.SUCCEEDED]
    with pytest.raises(ValidationError):  # derived, never given
        ToolResult.model_validate({"tool_use_id": "c1", "is_error": True})


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_image__four_formats_are_told_by_their_content_and_never_by_their_name(kind: str) -> None:
    data = picture(kind)
    assert detect_media_type(data) == f"image/{kind.lower()}"
    message = Message.user_with_file("?", data, "lies.pdf")
    (image,) = (block for block in message.blocks if isinstance(block, Image))
    assert isinstance(image.source, Base64Source)
    assert (image.source.media_type, base64.b64decode(image.source.data)) == (f"image/{kind.lower()}", data)
    assert back(message_to_json(message)) == message


def test_image__what_is_none_of_them_is_refused_whatever_it_is_called() -> None:
    with pytest.raises(ImageRefused):
        Message.user_with_file("?", b"%PDF-1.7 not a picture", "picture.png")
    with pytest.raises(ImageRefused):
        Message.user_with_file("?", picture("BMP"), "picture.png")
    with pytest.raises((ImageRefused, ValidationError), match="labelled image/png but contains image/gif"):
        Message.user_with_base64_image("?", base64_of(picture("GIF")), "image/png")


@pytest.mark.parametrize(
    "spoil",
    [
        "\n{}",
        "data:image/png;base64,{}",
        "-_{}",
        "{}!",
        "{}\n",
        "{}=",
        "{}A",
    ],
)
def test_image__base64_is_strict(spoil: str) -> None:
    data = base64_of(picture("PNG"))
    assert Message.user_with_base64_image("?", data, "image/png")
    with pytest.raises((ImageRefused, ValidationError)):
        Message.user_with_base64_image("?", spoil.format(data), "image/png")


@pytest.mark.parametrize("url", ["http://example.org/a.png", "https://example.org/a.png"])
def test_image__an_address_is_http_or_https_and_has_a_detail(url: str) -> None:
    assert [str(detail) for detail in ImageDetail] == ["low", "high", "auto"]
    message = Message.user_with_image_detail("?", url, ImageDetail.LOW)
    assert message.blocks[1] == Image(source=UrlSource(url=url), detail=ImageDetail.LOW)
    for wrong in ("file:///etc/passwd", "ftp://example.org/a", "javascript:1", "example.org"):
        with pytest.raises((ImageRefused, ValidationError)):
            Message.user_with_image("?", wrong)


# Anthropic: signature, redacted data. OpenAI: item id, summary index, encrypted content. Gemini: signature. None.
STATES: list[tuple[str, dict[str, Any]]] = [
    ("anthropic", {"type": "thinking", "signature": "Eu8B/+=="}),
    ("anthropic", {"type": "redacted_thinking", "data": "EmwK"}),
    ("openai-responses", {"id": "rs_1", "summary_index": 1, "encrypted_content": "gAAA="}),
    ("gemini", {"thoughtSignature": "CpQB"}),
    ("openai-chat", {}),
]


@pytest.mark.parametrize(("provider", "metadata"), STATES)
def test_thinking__what_is_shown_and_the_opaque_state_survive_unchanged(provider: str, metadata: dict) -> None:
    thought = Thinking(text="What the API chose to show.", provider=provider, metadata=metadata)
    message = Message(role=Role.ASSISTANT, blocks=(thought,))
    restored = back(message_to_json(message))
    assert restored == message
    assert isinstance(restored.blocks[0], Thinking)
    assert list(restored.blocks[0].metadata.items()) == list(metadata.items())  # byte for byte: their order too
    assert is_frozen(thought)
    assert restored.text == ""  # reasoning is not what was said


def test_unknown_block__of_another_version_is_kept_and_comes_out_as_it_went_in() -> None:
    newer = Message.user("a").model_dump(mode="json")
    raw = {"type": "hologram", "depth": 3, "parts": [{"x": None}]}
    newer["blocks"].append(raw)
    message = back(json.dumps(newer))
    assert message.blocks == (Text(text="a"), Unknown(raw=raw))
    assert back(message_to_json(message)) == message


def test_unknown_block__of_a_provider_stands_in_the_answer_and_in_the_transcript() -> None:
    block = Unknown(raw={"type": "new_thing"}, provider="anthropic")
    desk = Desk(Turn(ContentDelta("a"), block, ServerStep(provider="p", name="search", raw={})))
    asyncio.run(desk.execute())
    assert desk.memory.messages[-1].blocks[:2] == (Text(text="a"), block)


def test_message__makers_set_role_and_blocks_and_json_loses_nothing() -> None:
    url, png = "https://example.org/a.png", picture("PNG")
    messages = {
        "user": Message.user("t"),
        "blocks": Message.user_with_blocks([Text(text="t"), CALL]),
        "assistant": Message.assistant("t"),
        "system": Message.system("t"),
        "image": Message.user_with_image("t", url),
        "detail": Message.user_with_image_detail("t", url, ImageDetail.HIGH),
        "base64": Message.user_with_base64_image("t", base64_of(png), "image/png"),
        "file": Message.user_with_file("t", png, "a.png"),
    }
    assert {message.text for message in messages.values()} == {"t"}
    roles = {name: str(message.role) for name, message in messages.items()}
    assert roles == dict.fromkeys(messages, "user") | {"assistant": "assistant", "system": "system"}
    for message in messages.values():
        assert is_frozen(message)
        assert message.state is MessageState.COMPLETE
        assert Message.model_validate_json(message.model_dump_json()) == message
    assert len({message.id for message in messages.values()}) == len(messages)
    assert [str(state) for state in MessageState] == ["complete", "interrupted"]


FIELDS = tuple(Usage.model_fields)


def test_usage__has_these_numbers_and_unknown_is_not_zero() -> None:
    tokens = ("input", "output", "cache_read", "cache_write", "reasoning", "total")
    assert (*(f"{name}_tokens" for name in tokens), "cost") == FIELDS
    assert {getattr(Usage(), name) for name in FIELDS} == {None}
    zero = Usage.model_validate(dict.fromkeys(FIELDS, 0))
    assert zero != Usage()
    assert Usage.model_validate_json(Usage(input_tokens=0).model_dump_json()) == Usage(input_tokens=0)


def test_usage__within_a_turn_the_larger_counts_across_turns_the_sum() -> None:
    early, late = Usage(input_tokens=10, output_tokens=2), Usage(input_tokens=9, output_tokens=7, cost=0.5)
    assert early.merge_max(late) == Usage(input_tokens=10, output_tokens=7, cost=0.5)
    assert early + late == Usage(input_tokens=19, output_tokens=9, cost=0.5)
    assert (early + late).cache_read_tokens is None
    assert early.merge_max(Usage()) == early + Usage() == early


def test_stop_reason__knows_these_and_keeps_the_words_of_others() -> None:
    known = "end_turn tool_use max_tokens stop_sequence pause_turn refusal content_filter context_window_exceeded"
    ours = "continuation malformed_tool_call cancelled unknown"
    assert [str(reason) for reason in StopReason] == f"{known} {ours}".split()


async def test_stop_reason__an_unknown_word_arrives_as_unknown_with_the_servers_word() -> None:
    body = sse(chunk({"content": "a"}), chunk(finish="tired"))
    async with Loopback(Reply(body)) as server, await Provider.create("m", base_url=server.url) as provider:
        (delta,) = [event async for event in provider.stream("hi") if isinstance(event, MessageDelta)]
    assert (delta.stop_reason, delta.raw) == (StopReason.UNKNOWN, "tired")


async def test_stop_reason__cancelled_is_set_by_the_runtime_only() -> None:
    body = sse(chunk({"content": "a"}), chunk(finish="cancelled"))
    async with Loopback(Reply(body)) as server, await Provider.create("m", base_url=server.url) as provider:
        assert (await provider.chat("hi")).stop_reason is StopReason.UNKNOWN
    gate = Gate()
    desk = Desk(Turn(ContentDelta("a"), gate.step))
    running = desk.start()
    await gate.until_arrived()
    desk.run.interrupt()
    await running
    assert desk.memory.messages[-1].stop_reason is StopReason.CANCELLED


def test_provider_config__json_loses_nothing_and_none_is_the_default() -> None:
    assert ProviderConfig().temperature is ProviderConfig().max_tokens is ProviderConfig().reasoning is None
    reasonings = [None, ReasoningDisabled(), ReasoningBudget(tokens=9)]
    levels = ("low", "medium", "high", "max")
    for reasoning in [*reasonings, *(ReasoningEffort(level=level) for level in levels)]:
        config = ProviderConfig(
            temperature=0.0, max_tokens=5, top_p=0.5, top_k=3, reasoning=reasoning, system_prompt="s",
            stop_sequences=("x",), extra_options={"a": [1]}, timeouts=Timeouts(connect=1, idle=2, total=3),
        )  # fmt: skip
        assert ProviderConfig.model_validate_json(config.model_dump_json()) == config
        assert is_frozen(config)


@pytest.mark.parametrize("wrong", [{"temperature": 3}, {"max_tokens": 0}, {"top_p": 2}, {"top_k": 0}, {"reason": 1}])
def test_provider_config__is_validated(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ProviderConfig.model_validate(wrong)


async def test_provider_config__what_is_none_is_not_sent_and_what_is_set_is() -> None:
    names = {"temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "reasoning_effort"}
    async with Loopback(Reply(sse(chunk({"content": "a"}), chunk(finish="stop")))) as server:
        for config in (
            ProviderConfig(),
            ProviderConfig(temperature=0.0, top_p=0.5, stop_sequences=("x",), extra_options={"seed": 7}),
        ):
            async with await Provider.create("m", base_url=server.url, config=config) as provider:
                await provider.chat("hi")
        plain, full = (request.json for request in server.requests)
    assert names & set(plain) == set()
    assert (full["temperature"], full["top_p"], full["stop"], full["seed"]) == (0.0, 0.5, ["x"], 7)


async def test_provider_state__is_readable_while_a_stream_runs() -> None:
    gate = Gate()
    usage = Usage(input_tokens=20, output_tokens=3, cache_read_tokens=5)
    _, script = acting(Turn(UsageUpdate(usage), ContentDelta("a"), gate.step))
    provider = await Provider.create("m", provider=script)
    before = provider.state().last_request_time
    reading = asyncio.create_task(provider.complete("hi"))
    await gate.until_arrived()
    state = provider.state()
    assert (state.input_tokens, state.output_tokens, state.cached_tokens, state.request_count) == (20, 3, 5, 1)
    assert (before, state.conversation_turns, state.metadata) == (None, 0, {})
    assert state.last_request_time is not None
    gate.opened.set()
    await reading
    assert provider.state().conversation_turns == 1


async def test_provider_state__of_a_real_server_too() -> None:
    hold = asyncio.Event()
    usage = {
        "prompt_tokens": 4,
        "completion_tokens": 2,
        "total_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    begin, end = sse(chunk({"content": "a"}), done=False), sse(chunk(finish="stop", usage=usage))
    choose = iter([Reply(begin, hold=hold, cut=True), Reply(begin + end)])
    async with (
        Loopback(choose=lambda _: next(choose)) as server,
        await Provider.create("m", base_url=server.url) as provider,
    ):
        events = provider.stream("hi")
        async for event in events:
            if isinstance(event, ContentDelta):
                break
        assert (provider.state().request_count, provider.state().conversation_turns) == (1, 0)
        await events.aclose()
        await provider.chat("hi")
        state = provider.state()
    counted = (state.input_tokens, state.output_tokens, state.cached_tokens, state.request_count)
    assert (*counted, state.conversation_turns) == (4, 2, 1, 2, 1)


def test_agent_options__are_checked_by_keyword_and_by_builder_alike() -> None:
    values: dict[str, Any] = {
        "model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": SecretStr("k"), "system_prompt": "s",
        "tools": (adder(),), "auto_execute_tools": True, "limits": Limits(tool_iterations=3),
        "hooks": Hooks(), "config": ProviderConfig(temperature=0.5),
    }  # fmt: skip
    built = (
        AgentOptions.builder().server(values["base_url"], "k").model("m", values["config"]).system_prompt("s")
        .tools(*values["tools"]).auto_execute_tools().limits(values["limits"]).hooks(Hooks()).build()
    )  # fmt: skip
    assert built == AgentOptions(**values)
    assert AgentOptions(model="m", max_tool_iterations=7).run_limits.tool_iterations == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": ""},
        {"base_url": "not an address"},
        {"max_tool_iterations": 0},
        {"tools": (adder(), adder())},
        {"tools": (len,)},
        {"mode": "no such mode"},
        {"nonsense": 1},
    ],
)
def test_agent_options__that_make_no_sense_are_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(WrongUse):
        AgentOptions(**{"model": "m", **wrong})


def test_agent_options__fall_back_to_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("DESKTOP_AGENT_MODEL", "from-environment")
    options = AgentOptions()
    assert (options.model, options.base_url) == ("from-environment", os.environ["DESKTOP_AGENT_BASE_URL"])
    explicit = AgentOptions.builder().server("http://127.0.0.1:2/v1").model("given").build()
    assert (explicit.model, explicit.base_url) == ("given", "http://127.0.0.1:2/v1")


@pytest.mark.parametrize(
    ("server", "port"), [("lmstudio", 1234), ("ollama", 11434), ("llamacpp", 8080), ("vllm", 8000)]
)
def test_agent_options__have_presets_for_local_servers(server: str, port: int) -> None:
    assert AgentOptions.preset(server, model="m").address == f"http://127.0.0.1:{port}/v1"
    assert AgentOptions.builder().preset(server).model("m").build() == AgentOptions.preset(server, model="m")
