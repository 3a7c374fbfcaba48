"""Who answers where a person must decide and no window is there."""

import asyncio
from typing import Any

import pytest

from desktop_agent.api.client import Client
from desktop_agent.permissions.approvals import Approval
from desktop_agent.types.blocks import Outcome, Text
from desktop_agent.types.engine_events import ApprovalRequested, RunEnd, ToolFinished
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import HookAsk, HookEdit, Hooks, PreToolUse, Specialist
from desktop_agent.types.tool_calls import AllowOnce, Decision, Deny, DenyAndStop
from tests.fakes.library import LIMIT, Gate, acting, adder, call, listed, says
from tests.fakes.scripted_provider import ScriptedProvider, Turn

ASK = Rule(effect=RuleEffect.ASK, tool="add", scope=RuleScope.ALWAYS)


def calling_model(**values: Any) -> tuple[AgentOptions, ScriptedProvider]:
    turns = (Turn(call()), Turn(says("ok")))
    return acting(*turns, tools=(adder(),), auto_execute_tools=True, rules=(ASK,), **values)


async def finished(options: AgentOptions) -> list[ToolFinished]:
    async with Client(options) as client:
        return [event for event in await listed(client.stream("add")) if isinstance(event, ToolFinished)]


@pytest.mark.parametrize(("approver", "outcome"), [("always", Outcome.SUCCEEDED), ("never", Outcome.DENIED)])
async def test_always_and_never(approver: str, outcome: Outcome) -> None:
    options, _ = calling_model(approver=approver)
    assert [event.outcome for event in await finished(options)] == [outcome]


async def test_nobody_there_is_never() -> None:
    options, provider = calling_model()
    (event,) = await finished(options)
    assert event.outcome is Outcome.DENIED
    (said,) = event.result.content
    assert isinstance(said, Text)
    # Not that a person denied it.
    assert said.text == "This call was denied: nobody is there to approve it."
    provider.assert_finished()


async def test_the_callers_function_sees_the_call_and_may_edit_it() -> None:
    approvals: list[Approval] = []

    async def approver(approval: Approval) -> Decision:
        approvals.append(approval)
        return AllowOnce(edited_input={"a": 20, "b": 22})

    options, _ = calling_model(approver=approver)
    (event,) = await finished(options)
    assert str(event.result.content[-1].text).endswith("42")
    assert (approvals[0].tool_use.name, approvals[0].input) == ("add", {"a": 1, "b": 2})


async def test_an_approver_that_raises_or_edits_nonsense_denies() -> None:
    async def raises(_: Approval) -> Decision:
        raise RuntimeError("oops")

    async def nonsense(_: Approval) -> Decision:
        return AllowOnce(edited_input={"a": "x"})

    async def yes(_: Approval) -> Any:
        return True

    async def nothing(_: Approval) -> Any:
        return None

    for approver in (raises, nonsense, yes, nothing):
        options, _ = calling_model(approver=approver)
        (event,) = await finished(options)
        assert event.outcome is Outcome.DENIED
        assert "This call was denied: the approver" in str(event.result.content)


@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_whatever_an_approver_raises_denies_and_the_run_goes_on(kind: type[BaseException], later: bool) -> None:
    async def approver(_: Approval) -> Decision:
        if later:
            await asyncio.sleep(0)
        raise kind("a secret")

    options, provider = calling_model(approver=approver)
    async with Client(options) as client:
        events = await listed(client.stream("add"))
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert (finished.outcome, events[-1].reason) == (Outcome.DENIED, RunEnd.COMPLETED)
    assert "secret" not in str(finished)
    provider.assert_finished()


async def test_what_an_approver_does_to_what_it_is_shown_changes_nothing() -> None:
    async def approver(approval: Approval) -> Decision:
        for shown in (approval.input, approval.tool_use.input):
            shown.clear()
            shown["a"] = 100
        return AllowOnce()

    options, provider = calling_model(approver=approver)
    async with Client(options) as client:
        events = await listed(client.stream("add"))
        assert client.history[1].tool_uses[0].input == {"a": 1, "b": 2}
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.result.content == (Text(text="3"),)
    assert provider.requests[-1].messages[1].tool_uses[0].input == {"a": 1, "b": 2}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("levels", [300, 5_000])
async def test_edited_arguments_that_are_nested_deeply_are_one_failed_call(levels: int) -> None:
    async def approver(_: Approval) -> Decision:
        return AllowOnce(edited_input={"a": nested(levels), "b": 2})

    options, provider = calling_model(approver=approver)
    async with Client(options) as client:
        events = await listed(client.stream("add"))
        assert client.history[-1].text == "ok"
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.outcome is Outcome.DENIED
    assert "nested too deep" in str(finished.result.content)
    provider.assert_finished()


async def test_what_an_approver_raises_is_logged_without_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    async def approver(_: Approval) -> Decision:
        raise RuntimeError("a secret")

    options, _ = calling_model(approver=approver)
    (event,) = await finished(options)
    assert "RuntimeError" in caplog.text
    assert "secret" not in f"{caplog.text} {event}"


async def test_deny_and_stop_ends_the_run() -> None:
    async def approver(_: Approval) -> Decision:
        return DenyAndStop()

    options, provider = calling_model(approver=approver)
    async with Client(options) as client:
        await listed(client.stream("add"))
        assert client.ended is RunEnd.CANCELLED
    assert len(provider.requests) == 1


async def test_stop_takes_the_question_back_and_the_approver_is_not_waited_for() -> None:
    gate = Gate()
    cancelled: list[bool] = []

    async def approver(_: Approval) -> Decision:
        gate.arrived.set()
        try:
            await gate.opened.wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return Deny()

    options, _ = calling_model(approver=approver)
    async with Client(options) as client:
        events = []
        async for event in client.stream("add"):
            events.append(event)
            if isinstance(event, ApprovalRequested):
                await gate.until_arrived()
                client.interrupt()
        assert client.ended is RunEnd.CANCELLED
        async with asyncio.timeout(LIMIT):
            while not cancelled:
                await asyncio.sleep(0)


async def test_hooks_edit_and_ask() -> None:
    async def edit(_: PreToolUse) -> HookEdit:
        return HookEdit(input={"a": 40, "b": 2})

    async def ask(moment: PreToolUse) -> HookAsk:
        assert moment.input == {"a": 40, "b": 2}
        return HookAsk("look at it")

    reasons: list[str] = []

    async def approver(approval: Approval) -> Decision:
        reasons.append(approval.reason)
        return AllowOnce()

    options, _ = acting(
        Turn(call()),
        Turn(says("ok")),
        tools=(adder(),),
        auto_execute_tools=True,
        hooks=Hooks().add_pre_tool_use(edit).add_pre_tool_use(ask),
        approver=approver,
    )
    (event,) = await finished(options)
    assert str(event.result.content[-1].text).endswith("42")
    assert reasons == ["look at it"]


async def test_the_calls_of_a_specialist_come_with_its_path() -> None:
    paths: list[tuple[str, ...]] = []

    async def approver(approval: Approval) -> Decision:
        paths.append(approval.agent_path)
        return AllowOnce()

    options, provider = acting(
        Turn(call("s1", name="accountant").model_copy(update={"input": {"task": "add 1 and 2"}})),
        Turn(call()),
        Turn(says("3")),
        Turn(says("It is 3.")),
        tools=(adder(),),
        auto_execute_tools=True,
        rules=(ASK,),
        specialists=(Specialist(name="accountant", description="Adds.", system_prompt="Add.", tools=("add",)),),
        approver=approver,
    )
    envelopes = []
    async with Client(options, listener=envelopes.append) as client:
        events = await listed(client.stream("add"))
    assert paths == [("accountant",)]
    assert [event.id for event in events if isinstance(event, ToolFinished)] == ["s1"]
    inner = [envelope for envelope in envelopes if envelope.parent_run_id is not None]
    assert "c1" in [envelope.event.id for envelope in inner if isinstance(envelope.event, ToolFinished)]
    assert events[-1].reason is RunEnd.COMPLETED
    provider.assert_finished()


async def test_consent_reaches_specialists() -> None:
    options, provider = acting(
        Turn(call("s1", name="accountant").model_copy(update={"input": {"task": "add 1 and 2"}})),
        Turn(call()),
        Turn(says("3")),
        Turn(says("It is 3.")),
        tools=(adder(),),
        auto_execute_tools=True,
        specialists=(Specialist(name="accountant", description="Adds.", system_prompt="Add.", tools=("add",)),),
    )
    async with Client(options) as client:
        response = await client.complete("add")
    assert response.text == "It is 3."
    assert response.blocks[1].content == (Text(text="3"),)
    provider.assert_finished()
