"""Section Semantics: retry, replay of thinking, caches of prompts, compaction."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.retry import MAX_RETRY_AFTER, RetryPolicy
from desktop_agent.api.client import Client
from desktop_agent.api.provider import Provider
from desktop_agent.conversation.history import compacted_view
from desktop_agent.conversation.items import NoticeItem
from desktop_agent.providers.dialects.openai_responses.adapter import build_body
from desktop_agent.providers.dialects.openai_responses.messages import Recipient
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.transport.error_responses import error_from_status
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.types.blocks import Summary, Text, Thinking, ToolUse
from desktop_agent.types.engine_events import ContextCompacted, ErrorOccurred, RetryScheduled, RunEnd
from desktop_agent.types.errors import (
    CachingNotSupported,
    ConnectionFailed,
    InvalidRequest,
    Overloaded,
    RateLimited,
    RemedyAction,
    TimedOut,
    Truncated,
)
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, Dialect, ModelInfo, ProviderConfig, Timeouts
from tests.contract.scenes import DONE, LOOK, on_disk, one, only
from tests.contract.vendors import MODELS, answers_like, history_of, recorded, result_of
from tests.fakes.agent_run import Desk, call
from tests.fakes.demo_server import DIALECTS, demo
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.library import acting, says
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import check_invariants

NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


@made_tool(schema=NUMBERS)
async def add(a: int, b: int) -> str:
    """Adds."""
    return str(a + b)


def refused(status: int, kind: str = "", headers: dict[str, str] | None = None) -> Any:
    body = json.dumps({"error": {"type": kind, "message": "whatever it says: please retry, do not retry"}})
    return error_from_status(status, headers or {}, body.encode())


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_retry__these_are_asked_again(status: int) -> None:
    assert RetryPolicy().delay(refused(status), 1) is not None
    assert RetryPolicy().delay(ConnectionFailed("no"), 1) is not None
    assert RetryPolicy().delay(Overloaded("busy"), 1) is not None


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
def test_retry__these_are_not_whatever_their_text_says(status: int) -> None:
    assert RetryPolicy().delay(refused(status), 1) is None


def test_retry__waits_grow_vary_and_honour_the_servers_hint() -> None:
    policy = RetryPolicy(attempts=9, first_delay=1.0, max_delay=8.0)
    for attempt, ceiling in enumerate((1, 2, 4, 8, 8), start=1):
        delays = {policy.delay(Overloaded("busy"), attempt) or 0.0 for _ in range(50)}
        assert len(delays) > 1
        assert ceiling * 0.5 <= min(delays) <= max(delays) <= ceiling
    assert policy.delay(RateLimited("slow", retry_after=17), 1) == 17
    assert policy.delay(RateLimited("slow", retry_after=MAX_RETRY_AFTER + 1), 1) is None
    assert policy.delay(Overloaded("busy"), 9) is None


async def test_retry__over_a_real_connection_with_the_servers_header() -> None:
    busy = Reply(
        b'{"error": {"message": "slow"}}', 429, {"content-type": "application/json", "retry-after": "0.01"}, "length"
    )
    replies = iter([busy, Reply(sse(chunk({"content": "Hello"}), chunk(finish="stop")))])
    envelopes: list[Any] = []
    async with (
        Loopback(choose=lambda _: next(replies)) as server,
        Client(model="m", base_url=server.url, listener=envelopes.append) as client,
    ):
        assert (await client.complete("hi")).text == "Hello"
        assert len(server.requests) == 2
        assert server.requests[0].json == server.requests[1].json
    assert one(only([envelope.event for envelope in envelopes], RetryScheduled)).after == 0.01


async def test_retry__our_own_time_out_after_the_request_was_sent_is_left_to_the_person() -> None:
    """It may be billed. Found where every silent request was sent three times."""
    envelopes: list[Any] = []
    config = ProviderConfig(timeouts=Timeouts(first_event=0.2, idle=0.2))
    async with (
        Loopback(Reply(b"", hold=asyncio.Event())) as server,
        Client(model="m", base_url=server.url, config=config, listener=envelopes.append) as client,
    ):
        with pytest.raises(TimedOut):
            await client.complete("hi")
        assert len(server.requests) == 1
    events = [envelope.event for envelope in envelopes]
    assert only(events, RetryScheduled) == []
    assert one(only(events, ErrorOccurred)).action is RemedyAction.RETRY


async def test_retry__only_before_any_content_then_the_half_answer_is_kept_and_retry_offered() -> None:
    desk = Desk(Turn(ContentDelta("Hal"), Truncated("gone")))
    assert await desk.execute() is RunEnd.FAILED
    assert (len(desk.provider.requests), desk.memory.of(RetryScheduled)) == (1, [])
    assert (desk.memory.messages[-1].text, desk.memory.messages[-1].state) == ("Hal", MessageState.INTERRUPTED)
    assert one(desk.memory.of(ErrorOccurred)).action is RemedyAction.RETRY
    before = Desk(Turn(Truncated("gone")), DONE)
    assert await before.execute() is RunEnd.COMPLETED


SECRET = re.compile(rb'"(?:signature|data|encrypted_content|thoughtSignature)":\s*"([^"]{20,})"')
THOUGHTS: list[tuple[Dialect, str]] = [
    ("anthropic", "thinking_text"),
    ("anthropic", "redacted_thinking"),
    ("anthropic", "tools_parallel"),
    ("openai-responses", "reasoning_tools"),
    ("gemini", "thinking_text"),
    ("gemini", "tools_parallel"),
]


async def asked_with(dialect: Dialect, server: Loopback, history: tuple[Message, ...], **values: Any) -> bytes:
    async with Client(model=MODELS[dialect], dialect=dialect, base_url=server.root, api_key="k", **values) as client:
        results = [call for message in history[-1:] for call in message.tool_uses]
        answered = [Message.tool_results([result_of(use) for use in results])] if results else []
        await client.edit_history([*history, *answered, Message.user("and now?")])
        await client.complete("")
    return server.requests[-1].body


@pytest.mark.parametrize(("dialect", "name"), THOUGHTS)
async def test_thinking_replay__own_blocks_go_back_byte_for_byte(dialect: Dialect, name: str) -> None:
    secrets = {match.decode() for match in SECRET.findall(recorded(dialect, name))}
    async with Loopback(choose=answers_like(dialect, name)) as server:
        history = await history_of(dialect, name, server)
        sent = json.loads(await asked_with(dialect, server, history))
        assert any(isinstance(block, Thinking) for message in history for block in message.blocks) or secrets
    assert secrets
    text = json.dumps(sent)
    assert {secret for secret in secrets if json.dumps(secret)[1:-1] in text} == final(secrets)


def final(secrets: set[str]) -> set[str]:
    """A stream may show a state twice, unfinished first: what counts is the last."""
    return {secret for secret in secrets if not any(other != secret and other.startswith(secret) for other in secrets)}


@pytest.mark.parametrize(
    ("dialect", "name", "other"),
    [(dialect, name, other) for dialect, name in THOUGHTS for other in DIALECTS if other != dialect],
)
async def test_thinking_replay__another_providers_is_never_sent(dialect: Dialect, name: str, other: Dialect) -> None:
    async with Loopback(choose=answers_like(dialect, name)) as server:
        history = await history_of(dialect, name, server)
        body = await asked_with(other, server, history)
    thoughts = [block for message in history for block in message.blocks if isinstance(block, Thinking)]
    for secret in {match.decode() for match in SECRET.findall(recorded(dialect, name))}:
        assert secret.encode() not in body
    for thought in thoughts:
        assert not thought.text or json.dumps(thought.text)[1:-1].encode() not in body


CHANGES: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the instructions": {"system_prompt": "Now in French."},
    "the tools": {"tools": (add,)},
    "what was said first": {},
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("what", CHANGES)
async def test_thinking_replay__no_change_of_the_prefix_makes_a_request_that_is_refused(
    dialect: Dialect, what: str
) -> None:
    async with demo() as served:  # its thoughts are sealed to what stood before them, and it refuses broken seals
        async with Client(served.options(dialect, system_prompt="Be brief.")) as client:
            await client.complete("hello")
            history = client.history
        if what == "what was said first":
            history = (Message.user("hello, edited"), *history[1:])
        assert any(isinstance(block, Thinking) for message in history for block in message.blocks)
        async with Client(served.options(dialect, **{"system_prompt": "Be brief.", **CHANGES[what]})) as client:
            await client.edit_history(history)
            assert (await client.complete("and now?")).is_complete
        assert len(served.states) == 2  # neither was refused and asked again


@pytest.mark.parametrize("reason", [StopReason.PAUSE_TURN, StopReason.CONTINUATION])
async def test_thinking_replay__a_pause_is_gone_on_with_and_not_shown_as_an_end(reason: StopReason) -> None:
    desk = Desk(Turn(ContentDelta("a"), MessageDelta(reason), Done()), Turn(ContentDelta("b")))
    assert await desk.execute() is RunEnd.COMPLETED
    assert [message.role for message in desk.memory.messages] == [Role.USER, Role.ASSISTANT, Role.ASSISTANT]
    assert desk.provider.requests[1].messages[-1].text == "a"
    desk.provider.assert_finished()


async def test_prompt_caching__anthropic_marks_tools_system_and_the_moving_tail() -> None:
    places: list[list[str]] = []
    async with Loopback(Reply(recorded("anthropic", "text"))) as server:
        options = {"model": MODELS["anthropic"], "dialect": "anthropic", "base_url": server.root, "api_key": "k"}
        async with Client(**options, system_prompt="S", tools=(add,)) as client:
            for prompt in ("one", "two"):
                await client.complete(prompt)
    for request in server.requests:
        body = request.json
        marked = ["tools" for tool in body["tools"] if "cache_control" in tool]
        marked += ["system" for block in body["system"] if "cache_control" in block]
        for index, message in enumerate(body["messages"]):
            marked += [str(index) for block in message["content"] if "cache_control" in block]
        places.append(marked)
    assert places[0] == ["tools", "system", "0"]
    assert places[1][:2] == ["tools", "system"]
    assert places[1][-1] == "2"


async def test_prompt_caching__openai_gets_a_key_that_stays_the_same_in_a_conversation() -> None:
    options, script = acting(*(Turn(says("a")) for _ in range(4)))
    for _ in range(2):
        async with Client(options) as client:
            for prompt in ("one", "two"):
                await client.complete(prompt)
    recipient = Recipient(FAMILIES["openai"], "account")
    bodies = [build_body(request, recipient, Capabilities(), frozenset()) for request in script.requests]
    keys = [body.fields.get("prompt_cache_key") for body in bodies]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert all(keys)


async def test_prompt_caching__gemini_keeps_contents_and_uses_them() -> None:
    cached = {"name": "cachedContents/abc", "expireTime": "2099-01-01T00:00:00Z", "usageMetadata": {}}

    def choose(request: Request) -> Reply:
        if "cachedContents" in request.path:
            return Reply(json.dumps(cached).encode(), 200, {"content-type": "application/json"}, "length")
        return Reply(recorded("gemini", "text"))

    async with (
        Loopback(choose=choose) as server,
        await Provider.create("gemini-3.8-flash", "k", dialect="gemini", base_url=server.root) as provider,
    ):
        long = [Message.user("a long text " * 9_000), Message.assistant("Yes?"), Message.user("One.")]
        assert (await provider.prompt_cache(long)).name == "cachedContents/abc"
        await provider.complete(long)
        body = next(request.json for request in server.requests if ":stream" in request.path)
        assert body["cachedContent"] == "cachedContents/abc"
        assert "a long text" not in json.dumps(body)


async def test_prompt_caching__savings_are_visible_in_the_usage_and_a_lack_is_a_typed_error() -> None:
    usage = {
        "prompt_tokens": 90,
        "completion_tokens": 1,
        "total_tokens": 91,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    async with (
        Loopback(Reply(sse(chunk({"content": "a"}), chunk(finish="stop", usage=usage)))) as server,
        Client(model="m", base_url=server.url) as client,
    ):
        own_usage = (await client.complete("hi")).usage
        assert own_usage is not None
        assert (own_usage.input_tokens, own_usage.cache_read_tokens) == (90, 64)
    _, script = acting(Turn(says("a")))
    with pytest.raises(CachingNotSupported):
        await (await Provider.create("m", provider=script)).prompt_cache("hi")


WINDOW = (ModelInfo("m", capabilities=Capabilities(context_window=1_000)),)


def full(tokens: int) -> UsageUpdate:
    return UsageUpdate(Usage(input_tokens=tokens, output_tokens=10))


@pytest.mark.parametrize(("tokens", "compacts"), [(850, True), (600, False)])
async def test_compaction__goes_by_real_usage_against_the_context_window(tokens: int, compacts: bool) -> None:
    summary = (Turn(ContentDelta("In short.")),) if compacts else ()
    desk = Desk(Turn(full(tokens), call("1", "look")), *summary, DONE, tools=(LOOK,), models=WINDOW)
    desk.memory.messages[:0] = [Message.user("x" * 9_000), Message.assistant("y" * 9_000)]
    assert await desk.execute() is RunEnd.COMPLETED
    assert bool(desk.memory.of(ContextCompacted)) is compacts
    desk.provider.assert_finished()


def group(number: int) -> list[Message]:
    use = ToolUse(id=f"c{number}", name="look", input={"word": str(number)})
    thought = Thinking(text="hm", provider="p", metadata={"signature": f"s{number}"})
    answer = Message(role=Role.ASSISTANT, blocks=(thought, Text(text="Let me look."), use))
    return [Message.user(f"question {number}"), answer, Message.tool_results([result_of(use)])]


async def test_compaction__never_splits_thinking_calls_and_results() -> None:
    history = [message for number in range(4) for message in group(number)]
    for first_kept in history:
        summary = Message(role=Role.SYSTEM, blocks=(Summary(text="In short.", first_kept_id=first_kept.id),))
        sent = compacted_view([*history, summary, Message.user("now")])
        calls = [use.id for message in sent for use in message.tool_uses]
        results = [block.tool_use_id for message in sent if message.role is Role.TOOL for block in message.blocks]
        assert calls == results
        thoughts = sum(isinstance(block, Thinking) for message in sent for block in message.blocks)
        assert thoughts == len(calls)
        assert sent[-1].text == "now"


async def test_compaction__everything_stays_on_disk_and_the_person_can_look_behind_it(tmp_path: Path) -> None:
    turns = DONE, Turn(ContentDelta("They spoke of the sea.")), DONE
    async with on_disk(tmp_path, *turns) as stage:
        await stage.say("first")
        before = stage.session.history
        await asyncio.sleep(0)
        stage.session.edit_history([*before, Message.user("second")])
        stage.session.compact()
        await stage.idle()
        event = one(stage.of(ContextCompacted))
        assert event.summary == "They spoke of the sea."
        stored = await stage.stored()
        assert stored[:2] == before
        notice = next(item for item in stage.session.transcript if isinstance(item, NoticeItem))
        assert notice.folded == ("They spoke of the sea.",)
        await stage.session.close()
        check_invariants(stage.session.history, stage.events)


async def test_retry__an_error_of_the_question_itself_is_said_once() -> None:
    desk = Desk(Turn(InvalidRequest("too silly")))
    assert await desk.execute() is RunEnd.FAILED
    assert one(desk.memory.of(ErrorOccurred)).kind == "invalid_request"
