"""How a conversation stands: changed by the person at any time, and found again as it was left."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.storage.records import ConversationState
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, LimitReached, ModeChanged, PolicyInstalled
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    BUILT_IN_MODES,
    DEFAULT_MODE,
    PLAN_MODE,
    Mode,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.policies import Limits, PromptPolicy, QueuedMessage, Specialist
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import Shaky, Stage, results_of, shaky_store

ALLOWS = Rule(effect=RuleEffect.ALLOW, tool="*", scope=RuleScope.ALWAYS)


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


async def test_the_mode_and_the_policies_outlast_the_program(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(), Turn())
    await stage.say()
    stage.session.modes.set_by_person("plan")
    stage.session.policies.install(PromptPolicy(id="brief", text="Be brief.", scope="persistent"))
    stage.session.policies.install(PromptPolicy(id="now", text="Only now."))
    between = [envelope for envelope in stage.events if not envelope.run_id]
    assert [envelope.event for envelope in between] == [
        ModeChanged("default", "plan", "person"),
        PolicyInstalled("brief"),
        PolicyInstalled("now"),
    ]
    await stage.session.close()
    reopened = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert reopened.modes.current == reopened.permission_policy.mode == PLAN_MODE
    assert [policy.id for policy in reopened.policies.list()] == ["brief"]
    reopened.send(Message.user("more"))
    await reopened.wait_idle()
    assert "Be brief." in (stage.provider.requests[-1].config.system_prompt or "")
    assert PLAN_MODE.addendum in (stage.provider.requests[-1].config.system_prompt or "")
    await reopened.close()


async def test_a_mode_that_is_chosen_before_the_first_prompt_is_kept_with_it(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn())
    stage.session.modes.set_by_person("accept-edits")
    assert await shaky.store.list_conversations() == ()
    await stage.say()
    assert (await shaky.store.load(stage.session.record.id)).record.state.mode == "accept-edits"
    await stage.session.close()


async def test_a_change_of_the_mode_in_a_run_is_an_event_of_it_and_decides_what_waits(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(call("1", "act")), Turn(), tools=(tool("act"),))
    stage.session.send(Message.user("p"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    stage.session.modes.set_by_person("plan")
    await stage.idle()
    assert results_of(stage.session.history)["1"].outcome is Outcome.DENIED
    (changed,) = [envelope for envelope in stage.events if isinstance(envelope.event, ModeChanged)]
    assert changed.run_id == stage.events[0].run_id
    assert len(stage.of(ApprovalRequested)) == 1
    await stage.session.close()


@pytest.mark.parametrize(
    ("modes", "falls_to"),
    [
        (BUILT_IN_MODES, PLAN_MODE),
        ((ACCEPT_EDITS_MODE, DEFAULT_MODE), DEFAULT_MODE),
        ((ACCEPT_EDITS_MODE,), DEFAULT_MODE),
        ((PLAN_MODE.model_copy(update={"rules": (ALLOWS,)}), DEFAULT_MODE), DEFAULT_MODE),
    ],
)
async def test_in_place_of_a_mode_that_is_gone_the_strictest_holds(
    shaky: Shaky, modes: tuple[Mode, ...], falls_to: Mode
) -> None:
    stage = Stage(shaky, Turn(), setup={"modes": lambda: modes})
    await stage.say()
    await stage.session.close()
    await shaky.store.update_conversation(stage.session.record.id, state=ConversationState(mode="careful"))
    reopened = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert reopened.modes.current == falls_to
    notices = [str(item.sentence) for item in reopened.transcript if isinstance(item, NoticeItem)]
    assert len(notices) == 1
    assert "careful" in notices[0]
    assert falls_to.title in notices[0]
    await reopened.close()
    assert (await shaky.store.load(reopened.record.id)).record.state.mode == falls_to.name


async def test_what_could_not_be_opened_again_is_left_out(shaky: Shaky) -> None:
    """A state that no version writes must not keep anybody from reading the conversation."""
    stage = Stage(shaky, Turn())
    await stage.say()
    await stage.session.close()
    twice = PromptPolicy(id="a", text="x", scope="persistent")
    prompt = QueuedMessage(message=Message.user("once"))
    nothing = QueuedMessage(message=Message.user(" "))
    odd = (prompt, prompt, QueuedMessage(message=Message.assistant("no prompt")), nothing)
    state = ConversationState(policies=(twice, twice), queue=odd)
    await shaky.store.update_conversation(stage.session.record.id, state=state)
    reopened = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert [policy.id for policy in reopened.policies.list()] == ["a"]
    assert reopened.queue.entries == (prompt,)
    await reopened.close()


async def test_the_time_in_which_a_person_is_asked_does_not_count(shaky: Shaky) -> None:
    limits = Limits(seconds=0.2)
    ask = ToolUse(id="1", name="ask_user", input={"question": "Which?"})
    stage = Stage(shaky, Turn(ask), Turn(), setup={"questions": True})
    stage.session._runs.run_factory._setup = replace(stage.session._runs._setup, limits=lambda: limits)
    stage.session.send(Message.user("go"))
    await stage.until(lambda: stage.session.questions.open_questions)
    await asyncio.sleep(0.5)
    (question,) = stage.session.questions.open_questions
    stage.session.questions.answer(question.question_id, "this")
    await stage.idle()
    assert results_of(stage.session.history)["1"].outcome is Outcome.SUCCEEDED
    assert stage.of(LimitReached) == []
    await stage.session.close()


class OwnModes:
    """What the person has of their own, changed while a conversation is open."""

    def __init__(self, *modes: Mode) -> None:
        self.own = modes

    def all(self) -> tuple[Mode, ...]:
        return (*BUILT_IN_MODES, *self.own)


async def test_a_mode_that_is_changed_while_it_holds_decides_about_what_waits(shaky: Shaky) -> None:
    modes = OwnModes(Mode(name="own", title="Own"))
    stage = Stage(shaky, Turn(call("1", "act")), Turn(), tools=(tool("act"),), setup={"modes": modes.all})
    stage.session.modes.set_by_person("own")
    stage.session.send(Message.user("p"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    modes.own = (Mode(name="own", title="Own", mutating="deny"),)
    stage.session.modes.refresh_modes()
    await stage.idle()
    assert results_of(stage.session.history)["1"].outcome is Outcome.DENIED
    assert [item for item in stage.session.transcript if isinstance(item, NoticeItem)] == []
    await stage.session.close()


async def test_a_mode_that_is_removed_while_it_holds_is_said_and_what_came_instead_is_kept(shaky: Shaky) -> None:
    modes = OwnModes(Mode(name="own", title="Own", mutating="accept_edits"))
    begun, go = asyncio.Event(), asyncio.Event()
    turns = (Turn(Wait(go, begun), call("1", "act")), Turn())
    stage = Stage(shaky, *turns, tools=(tool("act"),), setup={"modes": modes.all})
    stage.session.modes.set_by_person("own")
    stage.session.send(Message.user("p"))
    await stage.until(begun.is_set)
    modes.own = ()
    stage.session.modes.refresh_modes()
    stage.session.modes.refresh_modes()
    go.set()
    await stage.until(lambda: stage.session.approvals.open_approvals)
    (notice,) = [item for item in stage.session.transcript if isinstance(item, NoticeItem)]
    assert str(notice.sentence).startswith("The mode “Own” was removed, so “Default” holds here.")
    stage.session.interrupt()
    await stage.idle()
    await stage.session.close()
    assert (await shaky.store.load(stage.session.record.id)).record.state.mode == "default"


async def test_what_a_removed_mode_denied_stays_denied_until_another_is_chosen(shaky: Shaky) -> None:
    denies = Rule(effect=RuleEffect.DENY, tool="act", scope=RuleScope.ALWAYS)
    modes = OwnModes(Mode(name="own", title="Own", rules=(denies, ALLOWS)))
    turns = (Turn(call("1", "act")), Turn(), Turn(call("2", "act")), Turn())
    stage = Stage(shaky, *turns, tools=(tool("act"),), setup={"modes": modes.all})
    stage.session.modes.set_by_person("own")
    modes.own = ()
    stage.session.modes.refresh_modes()
    await stage.say()
    assert results_of(stage.session.history)["1"].outcome is Outcome.DENIED
    (notice,) = [item for item in stage.session.transcript if isinstance(item, NoticeItem)]
    assert "What it denied is still denied here" in str(notice.sentence)
    stage.session.modes.set_by_person("default")
    stage.session.send(Message.user("again"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    stage.session.interrupt()
    await stage.idle()
    await stage.session.close()
    # Closed, it takes no notice of anything.
    modes.own = (Mode(name="default-2", title="Default"),)
    stage.session.modes.refresh_modes()


@pytest.mark.parametrize("is_open", [True, False], ids=["while open", "while closed"])
async def test_what_a_removed_mode_denied_stays_denied_over_a_restart(is_open: bool, shaky: Shaky) -> None:
    denies = Rule(effect=RuleEffect.DENY, tool="look", scope=RuleScope.ALWAYS)
    own = Mode(name="own", title="Own", rules=(denies, ALLOWS))
    modes = OwnModes(own)
    turns = (Turn(), Turn(call("1", "look")), Turn())
    stage = Stage(shaky, *turns, tools=(tool("look", read_only=True),), setup={"modes": modes.all})
    stage.session.modes.set_by_person("own")
    await stage.say()
    if is_open:
        modes.own = ()
        stage.session.modes.refresh_modes()
    await stage.session.close()
    modes.own = ()
    reopened = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    (notice,) = [item for item in reopened.transcript if isinstance(item, NoticeItem)]
    assert "What it denied is still denied here" in str(notice.sentence)
    reopened.send(Message.user("more"))
    await reopened.wait_idle()
    assert results_of(reopened.history)["1"].outcome is Outcome.DENIED
    # Another one of its name is not it; the very same is.
    modes.own = (Mode(name="own", title="Own"),)
    reopened.modes.refresh_modes()
    assert reopened.modes.current.rules == (denies,)
    await reopened.close()
    third = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert third.modes.current.rules == (denies,)
    modes.own = (own,)
    third.modes.refresh_modes()
    assert third.modes.current == own
    await third.close()


async def test_a_mode_that_came_in_place_of_another_is_kept_as_what_it_is(shaky: Shaky) -> None:
    modes = OwnModes(Mode(name="own", title="Own", mutating="accept_edits"))
    stage = Stage(shaky, Turn(), setup={"modes": modes.all})
    stage.session.modes.set_by_person("own")
    await stage.say()
    await stage.session.close()
    modes.own = ()
    reopened = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert reopened.modes.current == DEFAULT_MODE
    await reopened.close()
    modes.own = (Mode(name="own", title="Own", mutating="accept_edits"),)
    third = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
    assert third.modes.current == DEFAULT_MODE
    await third.close()


async def test_specialists_are_asked_for_at_every_prompt_and_one_at_work_ends_as_it_began(shaky: Shaky) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    finder = Specialist(name="finder", description="Finds.", system_prompt="You find.")
    there: list[Specialist] = []
    delegating = ToolUse(id="1", name="finder", input={"task": "Look."})
    turns = (Turn(), Turn(delegating), Turn(Wait(go, begun), ContentDelta("Found.")), Turn(), Turn())
    stage = Stage(shaky, *turns, setup={"specialists": lambda: tuple(there)})
    await stage.say()
    there.append(finder)
    stage.session.send(Message.user("find it"))
    await stage.until(begun.is_set)
    there[:] = [finder.model_copy(update={"name": "seeker", "system_prompt": "You seek."})]
    go.set()
    await stage.idle()
    await stage.say("and now?")
    offered = [[tool.name for tool in request.tools] for request in stage.provider.requests]
    assert offered == [[], ["finder"], [], ["finder"], ["seeker"]]
    assert results_of(stage.session.history)["1"].outcome is Outcome.SUCCEEDED
    assert (stage.provider.requests[2].config.system_prompt or "").startswith("You find.")
    await stage.session.close()
