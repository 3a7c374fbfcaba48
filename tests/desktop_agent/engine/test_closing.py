"""A session that is closed: its events fit together, and it refuses every request."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import UserItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import MAX_RETURNED
from desktop_agent.storage.records import LoadedConversation
from desktop_agent.tools.decorator import tool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.engine_events import RunEnd, RunFinished, ToolFinished, UserMessageQueued, UserMessageReturned
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import PLAN_MODE, Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import (
    Guard,
    GuardMoment,
    GuardPass,
    HookDeny,
    Hooks,
    HookVerdict,
    PromptPolicy,
    StopTool,
    UserPromptSubmit,
)
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import ToolClass
from tests.desktop_agent.engine.restoring import restore, restore_since
from tests.fakes import agent_run
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait
from tests.fakes.session import Shaky, Stage, shaky_store

ALWAYS = Rule(effect=RuleEffect.ALLOW, tool="act", scope=RuleScope.ALWAYS)
GIVEN = Rule(effect=RuleEffect.DENY, tool="other", scope=RuleScope.ALWAYS)
WAITS = Message.user("waits")


async def no_guard(_: GuardMoment) -> GuardPass:
    return GuardPass()


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


def events_about(stage: Stage, message: Message) -> list[type]:
    """Return the types of the events about this message, in order."""
    return [
        type(envelope.event) for envelope in stage.events if getattr(envelope.event, "message_id", None) == message.id
    ][1:]


class PendingHook:
    """A hook that does not answer about a prompt before it is released."""

    def __init__(self, verdict: HookVerdict | None = None) -> None:
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.verdict = verdict

    async def __call__(self, _: UserPromptSubmit) -> HookVerdict | None:
        self.reached.set()
        await self.goes_on.wait()
        return self.verdict

    @property
    def setup(self) -> dict[str, Any]:
        return {"hooks": Hooks().add_user_prompt_submit(self)}


async def test_a_prompt_that_closing_keeps_is_never_said_to_be_handed_back(shaky: Shaky) -> None:
    looking = PendingHook()
    stage = Stage(shaky, setup=looking.setup)
    prompt = Message.user("mine")
    stage.session.send(prompt)
    await looking.reached.wait()
    await stage.session.close()
    assert events_about(stage, prompt) == [UserMessageQueued]
    assert stage.session.returned(prompt.id) is None
    assert not [item for item in stage.session.transcript if isinstance(item, UserItem)]
    loaded = await shaky.store.load(stage.session.record.id)
    assert [entry.message for entry in loaded.record.state.queue] == [prompt]


async def test_a_prompt_that_stop_hands_back_is_said_to_be_once(shaky: Shaky) -> None:
    looking = PendingHook()
    stage = Stage(shaky, setup=looking.setup)
    prompt = Message.user("mine")
    stage.session.send(prompt)
    await looking.reached.wait()
    stage.session.interrupt()
    await stage.idle()
    assert events_about(stage, prompt) == [UserMessageReturned]
    assert not [item for item in stage.session.transcript if isinstance(item, UserItem)]
    await stage.session.close()
    assert events_about(stage, prompt) == [UserMessageReturned]


async def test_one_that_was_refused_while_it_closed_is_handed_back_and_not_kept(shaky: Shaky) -> None:
    looking = PendingHook(HookDeny("no"))
    stage = Stage(shaky, setup=looking.setup)
    prompt = Message.user("mine")
    stage.session.send(prompt)
    await looking.reached.wait()
    # The hook has answered, and nobody has heard it yet.
    looking.goes_on.set()
    await asyncio.sleep(0)
    await stage.session.close()
    returned = events_about(stage, prompt) == [UserMessageReturned]
    queue = (await shaky.store.load(stage.session.record.id)).record.state.queue
    assert returned == (queue == ())
    assert returned == (stage.session.returned(prompt.id) == prompt)


async def test_a_prompt_that_is_sent_when_the_stopped_one_ends_stays_shown(shaky: Shaky) -> None:
    looking = PendingHook()
    stage = Stage(shaky, Turn(ContentDelta("fine")), setup=looking.setup)
    first, second = Message.user("first"), Message.user("second")

    def again(envelope: Any) -> None:
        if envelope.event == RunFinished(RunEnd.CANCELLED):
            looking.goes_on.set()
            stage.session.send(second)

    stage.session.subscribe(on_event=again)
    stage.session.send(first)
    await looking.reached.wait()
    stage.session.interrupt()
    await stage.idle()
    assert [item.message_id for item in stage.session.transcript if isinstance(item, UserItem)] == [second.id]
    assert stage.session.returned(first.id) == first
    await stage.session.close()


ACTS: dict[str, Callable[[Session], Any]] = {
    "send": lambda session: session.send(Message.user("more")),
    "steer": lambda session: session.steer(Message.user("more")),
    "steer when idle": lambda session: session.steer(Message.user("more"), "idle"),
    "retry": lambda session: session.retry(),
    "go on": lambda session: session.continue_run(),
    "resume": lambda session: session.resume(),
    "compact": lambda session: session.compact(),
    "edit": lambda session: session.edit_history(()),
    "rename": lambda session: session.change_record(title="Mine"),
    "mode": lambda session: session.modes.set_by_person("plan"),
    "policy": lambda session: session.policies.install(PromptPolicy(id="brief", text="Be brief.", scope="persistent")),
    "queue": lambda session: session.queue.add(Message.user("more")),
    "rule": lambda session: session.permission_policy.add(ALWAYS),
    "no mode of the agent's": lambda session: session.modes.cancel_request(),
    "no policy": lambda session: session.policies.remove("there"),
    "guard": lambda session: session.guards.add(Guard("more", no_guard, max_iterations=1)),
    "no guard": lambda session: session.guards.remove("there"),
    "edit what waits": lambda session: session.queue.edit(WAITS.id, (Text(text="else"),)),
    "move what waits": lambda session: session.queue.move(WAITS.id, 0),
    "not that which waits": lambda session: session.queue.remove(WAITS.id),
    "take what waits": lambda session: session.queue.take_next(),
    "hand back": lambda session: session.queue.take_all(),
    "no rule": lambda session: session.permission_policy.revoke(GIVEN.id),
    "another folder": lambda session: session.permission_policy.set_workspace("/elsewhere"),
    "standing mode": lambda session: session.permission_policy.set_mode(PLAN_MODE),
    "lift": lambda session: session.permission_policy.lift_suspension(),
}


def controls_of(session: Session) -> tuple[object, ...]:
    """All that may be changed while a conversation is open."""
    permission_policy, queue = session.permission_policy, session.queue.entries
    of_standing = (permission_policy.mode, permission_policy.rules, permission_policy._workspace)
    return (session.modes.current, session.policies.list(), session.guards.list(), queue, *of_standing)


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("is_kept", [True, False])
async def test_what_a_closed_one_is_asked_for_is_refused_with_a_remedy(shaky: Shaky, name: str, is_kept: bool) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(wait), setup={"rules": (GIVEN,)})
    stage.session.policies.install(PromptPolicy(id="there", text="Be brief."))
    stage.session.guards.add(Guard("there", no_guard, max_iterations=1))
    if is_kept:
        await stage.say()
        stage.session.send(Message.user("two"))
        assert wait.reached is not None
        await wait.reached.wait()
        stage.session.steer(WAITS, "idle")
    await stage.session.close()
    stood = controls_of(stage.session)
    events, history, shown = list(stage.events), stage.session.history, list(stage.session.transcript)
    stored = await shaky.store.load(stage.session.record.id) if is_kept else None
    with pytest.raises(WrongUse, match="closed") as refused:
        ACTS[name](stage.session)
    assert "Open it again" in str(refused.value.remedy)
    await stage.idle()
    await asyncio.sleep(0)
    assert (stage.events, stage.session.history, list(stage.session.transcript)) == (events, history, shown)
    assert (await shaky.store.load(stage.session.record.id) if is_kept else None) == stored
    assert await shaky.store.rules.all() == ()
    assert controls_of(stage.session) == stood
    assert not stage.busy


async def test_what_is_changed_while_it_closes_is_kept(shaky: Shaky) -> None:
    """The run that is being stopped may still need what stands around it, so that refuses nothing yet."""
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(wait))
    stage.session.send(Message.user("go"))
    assert wait.reached is not None
    await wait.reached.wait()
    shaky.gate = asyncio.Event()
    closing = asyncio.create_task(stage.session.close())
    await shaky.reached.wait()
    assert stage.session.is_closed
    stage.session.policies.install(PromptPolicy(id="late", text="Be brief.", scope="persistent"))
    stage.session.queue.add(WAITS)
    stage.session.permission_policy.add(ALWAYS)
    with pytest.raises(WrongUse, match="closed"):
        stage.session.send(Message.user("more"))
    shaky.gate.set()
    await closing
    state = (await shaky.store.load(stage.session.record.id)).record.state
    assert [policy.id for policy in state.policies] == ["late"]
    assert [entry.message for entry in state.queue] == [WAITS]
    assert [rule.id for rule in await shaky.store.rules.all()] == [ALWAYS.id]


async def test_a_closed_one_hears_no_more_of_rules_that_others_lay_down(shaky: Shaky) -> None:
    book = RuleBook()
    closed, opened = (Stage(shaky, setup={"rule_book": book}) for _ in range(2))
    await closed.session.close()
    opened.session.permission_policy.add(ALWAYS)
    assert (closed.session.permission_policy.rules, opened.session.permission_policy.rules) == ((), (ALWAYS,))
    await opened.session.close()


async def test_to_stop_to_wait_and_to_close_are_harmless_behind_the_end(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(wait))
    stage.session.send(Message.user("go"))
    assert wait.reached is not None
    await wait.reached.wait()
    waits = Message.user("waits")
    stage.session.steer(waits, "idle")
    await asyncio.gather(stage.session.close(), stage.session.close())
    events = list(stage.events)
    assert not stage.session.interrupt()
    assert not stage.session.interrupt(StopTool("1"))
    await stage.session.wait_idle()
    await stage.session.close()
    assert stage.events == events
    assert stage.of(UserMessageReturned) == []
    assert [entry.message for entry in (await shaky.store.load(stage.session.record.id)).record.state.queue] == [waits]


async def test_nothing_is_restored_in_a_closed_one(shaky: Shaky, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    stage = Stage(shaky, Turn(ContentDelta("one")), setup={"store": shaky.store}, workspace=str(work))
    await stage.say()
    checkpoints = stage.session.checkpoints
    assert checkpoints is not None
    keeper = checkpoints.checkpointer(Workspace(work))
    checkpoint = await keeper.create_checkpoint("call", stage.session.history[-1].id, ("a",))
    assert checkpoint is not None
    (work / "a").write_text("1")
    await keeper.complete_checkpoint(checkpoint)
    await stage.session.close()
    assert [checkpoint.id for checkpoint in await checkpoints.list()] == [checkpoint.id]
    for restoring in (restore(checkpoints, checkpoint.id), restore_since(checkpoints, stage.session.history[0].id)):
        with pytest.raises(WrongUse, match="closed"):
            await restoring
    assert (work / "a").read_text() == "1"


async def test_a_closed_one_is_opened_afresh(tmp_path: Path) -> None:
    """Not before it has come to its end: its run is over, and all of it is written."""
    wait = Wait(asyncio.Event(), asyncio.Event())
    engine = await Engine.open(tmp_path, RunDefaults(model="m"))
    turns = Turn(ContentDelta("one")), Turn(ContentDelta("two"), wait), Turn(ContentDelta("three"))
    engine.connections._providers["e"] = ScriptedProvider(*turns)
    store, shaky = engine.store, Shaky(engine.store)
    shaky.checkpoints = store.checkpoints  # type: ignore[attr-defined]
    engine.store = shaky  # type: ignore[assignment]
    first = engine.new_session(endpoint_id="e")
    first.send(Message.user("go"))
    await first.wait_idle()
    first.send(Message.user("on"))
    assert wait.reached is not None
    await wait.reached.wait()
    loaded: list[str] = []

    async def load(id_: str, at_least: int | None = None) -> LoadedConversation:
        with pytest.raises(WrongUse, match="closed"):
            first.queue.take_all()
        loaded.append(id_)
        return await store.load(id_, at_least)

    shaky.load = load  # type: ignore[method-assign]
    shaky.gate = asyncio.Event()
    closing = asyncio.create_task(first.close())
    await shaky.reached.wait()
    opening = asyncio.create_task(engine.session(first.record.id))
    for _ in range(20):
        await asyncio.sleep(0)
    assert loaded == []
    shaky.gate.set()
    reopened = await opening
    assert closing.done()
    assert reopened is not first
    assert await engine.session(first.record.id) is reopened
    reopened.send(Message.user("more"))
    await reopened.wait_idle()
    assert [message.text for message in reopened.history] == ["go", "one", "on", "two", "more", "three"]
    await engine.close()


async def test_what_was_handed_back_and_nobody_asks_for_is_not_remembered_for_ever(shaky: Shaky) -> None:
    stage = Stage(shaky)
    messages = [Message.user(str(number)) for number in range(MAX_RETURNED + 1)]
    for message in messages:
        stage.session.queue.add(message)
    stage.session.interrupt()
    assert len(stage.of(UserMessageReturned)) == len(messages)
    assert [stage.session.returned(message.id) for message in messages] == [None, *messages[1:]]
    assert stage.session.returned(messages[-1].id) is None
    await stage.session.close()


async def test_what_waits_is_kept_where_the_end_comes_while_stop_is_being_done(shaky: Shaky) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    @tool(tool_class=ToolClass.READ_ONLY)
    async def slow() -> str:
        """It takes its grace."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await may_end.wait()
        return ""

    rules = (Rule(effect=RuleEffect.ALLOW, tool=slow.identity, scope=RuleScope.ALWAYS),)
    stage = Stage(shaky, Turn(ToolUse(id="c", name="slow", input={})), tools=(slow,), setup={"rules": rules})
    stage.session.send(Message.user("go"))
    await begun.wait()
    stage.session.steer(WAITS, "idle")
    stage.session.interrupt()
    # Whoever would be handed back to has gone.
    stage.session.unsubscribe(stage.events.append)
    closing = asyncio.create_task(stage.session.close())
    await asyncio.sleep(0)
    may_end.set()
    await closing
    stored = await shaky.store.load(stage.session.record.id)
    assert [entry.message.text for entry in stored.record.state.queue] == ["waits"]


async def test_calls_that_wait_for_the_person_wait_on_where_the_end_keeps_them(shaky: Shaky) -> None:
    calls = agent_run.call("1", "look"), agent_run.call("2", "act")
    tools = agent_run.tool("look", read_only=True), agent_run.tool("act")
    stage = Stage(shaky, Turn(*calls), tools=tools)
    stage.session.send(Message.user("go"))
    await stage.until(lambda: stage.session.approvals.open_approvals and stage.of(ToolFinished))
    events = list(stage.events)
    await stage.session.close(keeps_approvals=True)
    assert stage.events == events
    assert not stage.busy
    (run,) = await shaky.store.find_interrupted_runs()
    assert [waiting.tool for waiting in run.waiting_calls] == ["act"]
    loaded = await shaky.store.load(stage.session.record.id)
    assert [message.role for message in loaded.messages] == [Role.USER, Role.ASSISTANT]


async def test_what_works_beside_a_call_that_waits_is_stopped_with_it(shaky: Shaky) -> None:
    begun = asyncio.Event()

    @tool(tool_class=ToolClass.READ_ONLY)
    async def slow() -> str:
        """It has no end."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    calls = ToolUse(id="1", name="slow", input={}), agent_run.call("2", "act")
    rules = (Rule(effect=RuleEffect.ALLOW, tool=slow.identity, scope=RuleScope.ALWAYS),)
    stage = Stage(shaky, Turn(*calls), tools=(slow, agent_run.tool("act")), setup={"rules": rules})
    stage.session.send(Message.user("go"))
    await begun.wait()
    await stage.until(lambda: stage.session.approvals.open_approvals)
    await stage.session.close(keeps_approvals=True)
    assert [event.reason for event in stage.of(RunFinished)] == [RunEnd.CANCELLED]
    assert await shaky.store.find_interrupted_runs() == ()


async def test_what_is_released_after_the_engine_closed_leaves_nothing_waiting(tmp_path: Path) -> None:
    engine = await Engine.open(tmp_path, RunDefaults())
    session = engine.new_session()
    await engine.close()
    before = asyncio.all_tasks()
    engine.release_session(session)
    assert asyncio.all_tasks() == before
