"""A conversation that is kept nowhere."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_opening import in_memory_session
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import StoredSource, Text, ToolResult
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import PromptPolicy
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import ProviderConfig
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import ScriptedProvider, Turn


async def no_picture(source: StoredSource) -> bytes:
    raise AssertionError(source)


def setup(*turns: Turn, **more: Any) -> tuple[SessionSetup, ScriptedProvider]:
    provider = ScriptedProvider(*turns)

    async def opened(*_: object) -> ScriptedProvider:
        return provider

    session_setup = SessionSetup(
        open_provider=opened,
        read_picture=no_picture,
        tools_for=lambda _: ToolRegistry((tool("act"),)),
        config_for=lambda _: ProviderConfig(),
        **more,
    )
    return session_setup, provider


async def test_a_rule_for_a_closed_one_is_refused() -> None:
    session_setup, _ = setup()
    session = in_memory_session(session_setup, model="m")
    rule = Rule(effect=RuleEffect.DENY, tool="act", scope=RuleScope.CONVERSATION)
    session.permission_policy.add(rule)
    await session.close()
    with pytest.raises(WrongUse, match="closed"):
        session.permission_policy.add(rule.model_copy(update={"id": "another"}))
    with pytest.raises(WrongUse, match="closed"):
        session.permission_policy.revoke(rule.id)


async def test_it_speaks_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session_setup, provider = setup(Turn(ContentDelta("Hi")), Turn(ContentDelta("again")))
    session = in_memory_session(session_setup, model="m", messages=(Message.user("before"), Message.assistant("yes")))
    assert session.is_new
    session.send(Message.user("Hello"))
    await session.wait_idle()
    assert not session.is_new
    session.send(Message.user("more"))
    await session.wait_idle()
    assert [message.text for message in session.history] == ["before", "yes", "Hello", "Hi", "more", "again"]
    assert [message.text for message in provider.requests[0].messages] == ["before", "yes", "Hello"]
    await session.close()
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_the_caller_runs_the_calls_and_goes_on(tmp_path: Path) -> None:
    session_setup, _ = setup(Turn(call("1", "act")), Turn(ContentDelta("done")), execute_tools=False)
    session = in_memory_session(session_setup, model="m")
    events: list[Envelope] = []
    session.subscribe(on_event=events.append)
    session.send(Message.user("go"))
    session.steer(Message.user("later"), "idle")
    await session.wait_idle()
    ends = [envelope.event.reason for envelope in events if isinstance(envelope.event, RunFinished)]
    assert ends == [RunEnd.AWAITING_RESULTS]  # and what waits goes on waiting
    assert len(session.queue.entries) == 1
    session.queue.take_all()
    result = ToolResult(tool_use_id="1", content=(Text(text="ok"),))
    session.edit_history((*session.history, Message.tool_results([result])))
    session.continue_run()
    await session.wait_idle()
    assert [message.role for message in session.history] == ["user", "assistant", "tool", "assistant"]
    with pytest.raises(WrongUse):
        session.continue_run()
    await session.close()


async def test_rules_and_modes_hold_while_it_is_open(tmp_path: Path) -> None:
    rule = Rule(effect=RuleEffect.ALLOW, tool="act", scope=RuleScope.ALWAYS)
    session_setup, _ = setup(Turn(call("1", "act")), Turn(ContentDelta("done")), rules=(rule,))
    session = in_memory_session(session_setup, model="m")
    session.modes.set_by_person("accept-edits")
    session.policies.install(PromptPolicy(id="p", text="Be brief.", scope="persistent"))
    session.send(Message.user("go"))
    await session.wait_idle()
    assert session.history[-1].text == "done"
    assert session.record.state.mode == "accept-edits"
    session.permission_policy.revoke(rule.id)
    assert session.permission_policy.rules == ()
    await session.close()
