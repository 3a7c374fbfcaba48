"""All hooks run, the strictest wins, and nothing that a hook does reaches further than its verdict."""

import asyncio
import logging
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from desktop_agent.agent.hooks import run_post_tool_hooks, run_pre_tool_hooks, run_prompt_hooks
from desktop_agent.processes.foreign_code import HistoryCopy, deep_copy
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Json, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import (
    HookAllow,
    HookAsk,
    HookDeny,
    HookEdit,
    Hooks,
    PostToolUse,
    PreToolUse,
    UserPromptSubmit,
)
from desktop_agent.types.tool_calls import ToolClass


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    word: str
    more: list[int] = []


async def run(_input: Wanted, _call: RunningCall) -> tuple[Text, ...]:
    return ()


@pytest.fixture
def tool() -> AnyTool:
    return Tool(name="speak", description="", schema=ModelSchema(Wanted), run=run)


def history(length: int) -> tuple[Message, ...]:
    call = ToolUse(id="0", name="speak", input={"word": "before"})
    return tuple(Message.user_with_blocks([call]) for _ in range(length))


def call(length: int = 1) -> PreToolUse:
    return PreToolUse("1", "speak", {"word": "one", "more": [1]}, ToolClass.MUTATING, history(length))


def ended(outcome: Outcome = Outcome.SUCCEEDED) -> PostToolUse:
    result = ToolResult(tool_use_id="1", content=(Json(value={"a": [1]}),), outcome=outcome)
    return PostToolUse("1", "speak", {"word": "one"}, result, history(1))


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def hook_that_returns(verdict: Any, moments: list[Any] | None = None) -> Callable[[Any], Awaitable[Any]]:
    """Return a hook that answers with `verdict` and records its moments."""

    async def hook(moment: Any) -> Any:
        if moments is not None:
            moments.append(moment)
        return verdict

    return hook


async def failing(_moment: Any) -> Any:
    raise LookupError("the password is 1234")


def bursting(kind: type[BaseException], *, later: bool) -> Callable[[Any], Awaitable[Any]]:
    async def hook(_moment: Any) -> Any:
        if later:
            await asyncio.sleep(0)
        raise kind("the password is 1234")

    return hook


async def silent(_moment: Any) -> Any:
    await asyncio.Event().wait()


async def cancelling_itself(_moment: Any) -> Any:
    raise asyncio.CancelledError


def before(*verdicts: Any) -> Hooks:
    return Hooks(
        pre_tool_use=tuple(verdict if callable(verdict) else hook_that_returns(verdict) for verdict in verdicts)
    )


def after(*verdicts: Any) -> Hooks:
    return Hooks(
        post_tool_use=tuple(verdict if callable(verdict) else hook_that_returns(verdict) for verdict in verdicts)
    )


def prompted(*verdicts: Any) -> Hooks:
    return Hooks(
        user_prompt_submit=tuple(verdict if callable(verdict) else hook_that_returns(verdict) for verdict in verdicts)
    )


UNCHECKED = Message.model_construct(role=Role.USER, blocks=(Text.model_construct(text=5),))
ALLOW, ASK, DENY = HookAllow(), HookAsk("look"), HookDeny("no")
EDIT = HookEdit(input={"word": "two"})


@pytest.mark.parametrize(
    ("verdicts", "ruling", "reason", "word"),
    [
        ((), "allow", "", "one"),
        ((None, ALLOW), "allow", "", "one"),
        ((EDIT, ALLOW), "allow", "", "two"),
        ((ASK, ALLOW), "ask", "look", "one"),
        ((EDIT, ASK, None), "ask", "look", "two"),
        ((DENY, ASK, ALLOW), "deny", "no", "one"),
        ((ASK, EDIT, DENY), "deny", "no", "two"),
        ((DENY, HookDeny("never"), HookDeny("no")), "deny", "no never", "one"),
        ((HookDeny(),), "deny", "A hook denied this call.", "one"),
        ((HookAsk(),), "ask", "", "one"),
    ],
)
async def test_the_strictest_verdict_wins(
    tool: AnyTool, verdicts: tuple[Any, ...], ruling: str, reason: str, word: str
) -> None:
    ruled = await run_pre_tool_hooks(before(*verdicts), call(), tool)
    assert (ruled.verdict, ruled.reason, ruled.input["word"]) == (ruling, reason, word)
    assert ruled.edited == (EDIT in verdicts)


async def test_all_run_in_order_and_each_sees_what_those_before_made_of_it(tool: AnyTool) -> None:
    moments: list[PreToolUse] = []
    verdicts = (None, HookEdit(input={"word": "two"}), DENY, HookEdit(input={"word": "three", "more": [3]}), ALLOW)
    ruled = await run_pre_tool_hooks(
        before(*(hook_that_returns(verdict, moments) for verdict in verdicts)), call(), tool
    )
    assert [moment.input["word"] for moment in moments] == ["one", "one", "two", "two", "three"]
    assert ruled.verdict == "deny"
    assert ruled.input == {"word": "three", "more": [3]}


@pytest.mark.parametrize(
    ("edited", "why"),
    [
        ({"word": 5}, "word: Input should be a valid string"),
        ({"word": "two", "other": 1}, "other: Extra inputs are not permitted"),
        ({"word": "two", "more": {1, 2}}, r"cannot be used \(TypeError\)"),
        ({"word": "two", "more": [float("nan")]}, r"cannot be used \(ValueError\)"),
        ({"word": "two", "more": nested(5_000)}, "nested too deep"),
        ({"word": "two", "more": nested(300)}, "nested too deep"),
    ],
)
async def test_an_edit_that_does_not_fit_the_tool_denies(tool: AnyTool, edited: dict[str, Any], why: str) -> None:
    moments: list[PreToolUse] = []
    ruled = await run_pre_tool_hooks(before(HookEdit(input=edited), hook_that_returns(None, moments)), call(), tool)
    assert ruled.verdict == "deny"
    assert re.search(why, ruled.reason)
    assert moments[0].input == ruled.input == {"word": "one", "more": [1]}
    assert not ruled.edited


async def test_arguments_of_a_tool_that_is_not_there_can_be_edited_all_the_same(tool: AnyTool) -> None:
    ruled = await run_pre_tool_hooks(before(HookEdit(input={"any": ("a", 1)})), call(), None)
    assert (ruled.verdict, ruled.input) == ("allow", {"any": ["a", 1]})


@pytest.mark.parametrize(
    "fault",
    [
        failing,
        cancelling_itself,
        *(bursting(kind, later=later) for kind in (SystemExit, GeneratorExit, KeyboardInterrupt) for later in (0, 1)),
        hook_that_returns("deny"),
        hook_that_returns(True),
        hook_that_returns(HookEdit()),
        hook_that_returns(HookDeny(5)),
        hook_that_returns(HookAsk(b"why")),
        hook_that_returns(HookEdit(input="two", prompt="two", result="two")),
        hook_that_returns(HookEdit(input={"word": 5}, prompt=UNCHECKED)),
    ],
)
async def test_a_fault_denies_says_no_secret_and_the_others_run(
    tool: AnyTool, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    moments: list[Any] = []
    caplog.set_level(logging.DEBUG)
    last = hook_that_returns(ALLOW, moments)
    ruled = await run_pre_tool_hooks(before(fault, last), call(), tool)
    assert (ruled.verdict, len(moments)) == ("deny", 1)
    result = await run_post_tool_hooks(after(fault, last), ended())
    assert (result.outcome, len(moments)) == (Outcome.FAILED, 2)
    assert all(isinstance(part, Text) for part in result.content)
    prompt = await run_prompt_hooks(prompted(fault, last), UserPromptSubmit(Message.user("hello")))
    assert (prompt.allowed, len(moments)) == (False, 3)
    assert ruled.reason
    assert prompt.reason
    assert "1234" not in f"{ruled.reason} {prompt.reason} {caplog.text} {result}"


async def test_a_hook_that_is_no_coroutine_denies(tool: AnyTool) -> None:
    def plain(_moment: PreToolUse) -> HookAllow:
        return HookAllow()

    assert (await run_pre_tool_hooks(before(plain), call(), tool)).verdict == "deny"


@pytest.mark.parametrize("length", [1, 100])
async def test_what_a_hook_does_to_what_it_was_given_changes_nothing(tool: AnyTool, length: int) -> None:
    moment, untouched = call(length), call(length)

    async def vandal(received: PreToolUse) -> None:
        received.input["word"] = "vandal"
        received.input["more"].append(2)
        for message in received.history:
            message.tool_uses[0].input.clear()

    moments: list[PreToolUse] = []
    ruled = await run_pre_tool_hooks(before(vandal, hook_that_returns(None, moments)), moment, tool)
    assert ruled.input == moments[0].input == moment.input == untouched.input
    assert [message.blocks for message in moment.history] == [message.blocks for message in untouched.history]


async def test_a_hook_that_never_answers_is_ended_and_denies(tool: AnyTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.hooks.TIME_LIMIT", 0.01)
    ruled = await run_pre_tool_hooks(before(silent, ALLOW), call(), tool)
    assert ruled.verdict == "deny"
    assert "within 0.01 s" in ruled.reason


async def test_a_hook_that_answers_only_when_it_is_ended_is_too_late(
    tool: AnyTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.agent.hooks.TIME_LIMIT", 0.01)

    async def late(_moment: PreToolUse) -> HookAllow:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return HookAllow()

    assert (await run_pre_tool_hooks(before(late), call(), tool)).verdict == "deny"


async def test_a_hook_that_will_not_end_is_left_alone(
    tool: AnyTool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("desktop_agent.agent.hooks._GRACE", 0.01)
    monkeypatch.setattr("desktop_agent.agent.hooks.TIME_LIMIT", 0.01)
    enough = asyncio.Event()

    async def stubborn(_moment: PreToolUse) -> None:
        while not enough.is_set():
            try:
                await enough.wait()
            except asyncio.CancelledError:
                continue
        raise LookupError

    assert (await run_pre_tool_hooks(before(stubborn), call(), tool)).verdict == "deny"
    assert "left alone" in caplog.text
    enough.set()
    await asyncio.sleep(0)


@pytest.mark.parametrize("length", [1, 100])
async def test_a_cancel_goes_through_to_the_hook(tool: AnyTool, length: int) -> None:
    events: list[str] = []
    waits = asyncio.Event()

    async def waiting(_moment: PreToolUse) -> None:
        try:
            waits.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            events.append("cancelled")
            raise

    task = asyncio.ensure_future(
        run_pre_tool_hooks(before(waiting, hook_that_returns(None, events)), call(length), tool)
    )
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["cancelled"]


async def test_edits_of_a_result_chain_and_change_nothing_but_its_content() -> None:
    moments: list[PostToolUse] = []
    first = HookEdit(result=ToolResult(tool_use_id="other", content=(Text(text="2"),), outcome=Outcome.DENIED))
    second = HookEdit(result=ToolResult(tool_use_id="other", content=(Text(text="3"),)))
    result = await run_post_tool_hooks(
        after(hook_that_returns(first, moments), hook_that_returns(second, moments), hook_that_returns(None, moments)),
        ended(),
    )
    assert [moment.result.content for moment in moments[1:]] == [(Text(text="2"),), (Text(text="3"),)]
    assert result == ToolResult(tool_use_id="1", content=(Text(text="3"),))
    unknown = await run_post_tool_hooks(after(first), ended(Outcome.UNKNOWN))
    assert (unknown.outcome, unknown.tool_use_id) == (Outcome.UNKNOWN, "1")


@pytest.mark.parametrize("verdict", [DENY, HookAsk("no")])
async def test_a_denied_result_is_kept_out(verdict: Any) -> None:
    edit = HookEdit(result=ToolResult(tool_use_id="1", content=(Text(text="edited"),)))
    result = await run_post_tool_hooks(after(verdict, edit), ended())
    assert result == ToolResult(tool_use_id="1", content=(Text(text="no"),), outcome=Outcome.FAILED)
    assert (await run_post_tool_hooks(after(verdict), ended(Outcome.CANCELLED))).outcome is Outcome.CANCELLED


async def test_without_hooks_everything_stays_as_it_is(tool: AnyTool) -> None:
    moment, done, prompt = call(), ended(), Message.user("hello")
    assert (await run_pre_tool_hooks(Hooks(), moment, tool)).input is moment.input
    assert await run_post_tool_hooks(Hooks(), done) is done.result
    assert (await run_prompt_hooks(Hooks(), UserPromptSubmit(prompt))).prompt is prompt


async def test_edits_of_a_prompt_chain_and_keep_its_id() -> None:
    moments: list[UserPromptSubmit] = []
    sent = Message.user("hello")
    ruling = await run_prompt_hooks(
        prompted(
            HookEdit(prompt=Message.user("two")), hook_that_returns(HookEdit(prompt=Message.system("three")), moments)
        ),
        UserPromptSubmit(sent, history(1)),
    )
    assert moments[0].prompt.text == "two"
    assert ruling.allowed
    assert (ruling.prompt.text, ruling.prompt.id, ruling.prompt.role) == ("three", sent.id, sent.role)


@pytest.mark.parametrize(
    "verdict",
    [
        DENY,
        HookAsk("no"),
        HookEdit(prompt=Message.user_with_blocks([])),
        HookEdit(prompt=Message.tool_results([ToolResult(tool_use_id="1")])),
    ],
)
async def test_a_refused_prompt_comes_back_as_it_was_sent(verdict: Any) -> None:
    sent = Message.user("hello")
    ruling = await run_prompt_hooks(prompted(HookEdit(prompt=Message.user("two")), verdict), UserPromptSubmit(sent))
    assert not ruling.allowed
    assert ruling.reason
    assert ruling.prompt == sent


async def test_a_copy_of_the_history_is_made_once_and_is_no_part_of_the_real_one(tool: AnyTool) -> None:
    moment, moments = call(100), list[PreToolUse]()
    hooks = before(hook_that_returns(None, moments), hook_that_returns(None, moments))
    await run_pre_tool_hooks(hooks, moment, tool)
    shared = HistoryCopy(moment.history)
    for _ in range(2):
        await run_pre_tool_hooks(hooks, replace(moment, history=()), tool, history=shared)
    first, second, *others = (received.history for received in moments)
    assert first is second
    assert first == moment.history
    assert first[0] is not moment.history[0]
    assert len({id(history) for history in others}) == 1


@pytest.mark.parametrize("numbers", [1, 100_000])
async def test_what_is_copied_for_a_hook_is_copied_in_a_thread_if_it_is_large(
    monkeypatch: pytest.MonkeyPatch, numbers: int
) -> None:
    threads: list[int] = []

    def noted(value: Any) -> Any:
        threads.append(threading.get_ident())
        return deep_copy(value)

    for name in ("agent.hooks.deep_copy", "processes.foreign_code.read_only_copy"):
        monkeypatch.setattr(f"desktop_agent.{name}", noted)
    big = ToolResult(tool_use_id="1", content=(Json(value=list(range(numbers))),))
    moment = PostToolUse("1", "speak", {}, big, (Message.tool_results([big]),))
    await run_post_tool_hooks(after(None), moment)
    assert len(threads) == 2
    assert (threading.get_ident() in threads) is (numbers == 1)
