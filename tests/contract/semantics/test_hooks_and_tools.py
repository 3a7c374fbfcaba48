"""Section Semantics: hooks, and what a tool is."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from desktop_agent.agent.guards import Guards
from desktop_agent.api.client import Client
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import read_event
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.tools.tool import RunningCall, ToolRegistry
from desktop_agent.types import engine_events as engine
from desktop_agent.types import policies as h
from desktop_agent.types.blocks import Json, Outcome, Text, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, RunEnd, ToolCallPending, ToolFinished, ToolStarted
from desktop_agent.types.errors import ToolInputInvalid, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import (
    Guard,
    GuardContinue,
    GuardMoment,
    HookAllow,
    HookAsk,
    HookDeny,
    HookEdit,
    Hooks,
    PreToolUse,
)
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason
from desktop_agent.types.tool_calls import AllowOnce, DiffPreview, Effect, ToolClass
from tests.contract.scenes import ACT, DONE, LOOK, answer_all, in_folder, on_disk, one, only, until, write
from tests.desktop_agent.engine.restoring import restore
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.library import acting, blocks_of, says
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Stage, shaky_store

Verdict = Any


def answers(*verdicts: Verdict, moments: list[Any] | None = None) -> Hooks:
    """One hook before calls for each verdict."""

    def hook(verdict: Verdict) -> Callable[[PreToolUse], Awaitable[Verdict]]:
        async def check(moment: PreToolUse) -> Verdict:
            if moments is not None:
                moments.append(moment)
            if isinstance(verdict, Exception):
                raise verdict
            return verdict

        return check

    return Hooks(pre_tool_use=tuple(hook(verdict) for verdict in verdicts))


def deny(name: str) -> Rule:
    return Rule(effect=RuleEffect.DENY, tool=name, scope=RuleScope.ALWAYS)


async def test_hooks__see_typed_prompts_and_prepared_messages_alike() -> None:
    texts: list[str] = []

    async def look(moment: h.UserPromptSubmit) -> None:
        texts.append(moment.prompt.text)

    options, _ = acting(Turn(says("a")), Turn(says("b")), hooks=Hooks().add_user_prompt_submit(look))
    async with Client(options) as client:
        await client.send("typed")
        await blocks_of(client.receive)
        await client.send_message(Message.user("prepared"))
        await blocks_of(client.receive)
    assert texts == ["typed", "prepared"]


async def test_hooks__never_see_the_runtimes_own_continuations() -> None:
    texts: list[str] = []

    async def look(moment: h.UserPromptSubmit) -> None:
        texts.append(moment.prompt.text)

    async def more(moment: GuardMoment) -> GuardContinue | None:
        return GuardContinue("once more") if moment.iteration == 0 else None

    paused = Turn(ContentDelta("a"), MessageDelta(StopReason.PAUSE_TURN), Done())
    desk = Desk(paused, DONE, DONE, hooks=Hooks((look,)), guards=Guards((Guard("g", more, 2),)))
    assert await desk.execute(Message.user("mine")) is RunEnd.COMPLETED
    assert texts == ["mine"]
    assert len(desk.provider.requests) == 3


async def test_hooks__all_run_in_order_also_behind_one_that_denies() -> None:
    order: list[int] = []

    def hook(number: int, verdict: Verdict) -> Any:
        async def check(_: PreToolUse) -> Verdict:
            order.append(number)
            return verdict

        return check

    hooks = Hooks(pre_tool_use=(hook(1, None), hook(2, HookDeny("no")), hook(3, HookAllow())))
    desk = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,), hooks=hooks)
    await desk.execute()
    assert order == [1, 2, 3]
    assert desk.memory.outcomes == [Outcome.DENIED]


EDIT = HookEdit(input={"word": "edited"})


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((HookAllow(), None), "runs x"),
        ((HookAllow(), EDIT, HookAllow()), "runs edited"),
        ((EDIT, HookAsk("why"), HookAllow()), "asks about edited"),
        ((HookAsk(), HookDeny("no"), EDIT, HookAllow()), "denied"),
    ],
)
async def test_hooks__the_strictest_verdict_wins(verdicts: tuple[Verdict, ...], expected: str) -> None:
    desk = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,), hooks=answers(*verdicts))
    running = desk.start()
    await until(lambda: desk.approvals.open_approvals or running.done())
    if desk.approvals.open_approvals:
        outcome = f"asks about {one(desk.approvals.open_approvals).input['word']}"
        desk.decide(AllowOnce())
    await running
    if not desk.memory.of(ApprovalRequested):
        started = desk.memory.of(ToolStarted)
        outcome = f"runs {started[0].input['word']}" if started else str(desk.memory.outcomes[0])
    assert outcome == expected


async def test_hooks__an_allow_never_overrides_a_rule_that_denies_or_asks() -> None:
    desk = Desk(Turn(call("1", "look"), call("2", "act")), DONE, tools=(LOOK, ACT), hooks=answers(HookAllow()))
    desk.permission_policy.add(deny("look"))
    running = desk.start()
    await desk.approvals_open()
    assert one(desk.approvals.open_approvals).tool_use.id == "2"
    desk.decide(AllowOnce())
    await running
    assert desk.memory.outcomes == [Outcome.DENIED, Outcome.SUCCEEDED]


async def test_hooks__get_a_copy_of_the_real_history_that_changes_nothing() -> None:
    async def spoil(moment: PreToolUse) -> None:
        histories.append([message.text for message in moment.history])
        moment.input["word"] = "spoiled"
        object.__setattr__(moment.history[0].blocks[0], "text", "spoiled")

    histories: list[list[str]] = []
    desk = Desk(Turn(ContentDelta("hm"), call("1", "look")), DONE, tools=(LOOK,), hooks=Hooks(pre_tool_use=(spoil,)))
    await desk.execute()
    assert histories == [["go", "hm"]]
    assert desk.memory.messages[0].text == "go"
    assert one(desk.memory.of(ToolStarted)).input == {"word": "x"}


@pytest.mark.parametrize("when", ["user_prompt_submit", "pre_tool_use", "post_tool_use"])
async def test_hooks__one_that_raises_denies_and_the_session_goes_on(tmp_path: Path, when: str) -> None:
    async def broken(_: object) -> None:
        if not raised:
            raised.append(when)
            raise RuntimeError("a fault in the hook")

    raised: list[str] = []
    turns = Turn(call("1", "look")), DONE, DONE
    hooks = Hooks(**{when: (broken,)})
    async with on_disk(tmp_path, *turns, tools=(LOOK,), hooks=hooks) as stage:
        await stage.say()
        if when == "user_prompt_submit":
            assert stage.session.history == ()
        else:
            outcomes = [event.outcome for event in stage.of(ToolFinished)]
            assert outcomes == [Outcome.DENIED if when == "pre_tool_use" else Outcome.FAILED]
        await stage.say("again")
        assert stage.session.history[-1].text in {"Done.", ""}
        assert raised == [when]
        await stage.session.close()


async def test_hooks__edited_input_is_validated_and_gated_again() -> None:
    invalid = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,), hooks=answers(HookEdit(input={"word": ["no"]})))
    await invalid.execute()
    assert invalid.memory.outcomes == [Outcome.DENIED]

    exact = Rule(effect=RuleEffect.DENY, tool="look", pattern={"type": "arguments", "digest": LOOK.digest(EDIT.input)})  # type: ignore[arg-type]
    denied = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,), hooks=answers(EDIT))
    denied.permission_policy.add(exact)
    await denied.execute()
    assert denied.memory.outcomes == [Outcome.DENIED]
    assert not invalid.memory.of(ToolStarted) + denied.memory.of(ToolStarted)


async def test_hooks__requested_and_effective_input_are_both_stored(tmp_path: Path) -> None:
    async with on_disk(tmp_path, Turn(call("1", "look", "wanted")), DONE, tools=(LOOK,), hooks=answers(EDIT)) as stage:
        await stage.say()
        stored = await stage.stored()
        await stage.session.close()
    assert stored[1].tool_uses[0].input == {"word": "wanted"}
    with closing(sqlite3.connect(tmp_path / "data" / DATABASE_NAME)) as database:
        rows = [read_event(text) for (text,) in database.execute("SELECT event FROM journal")]
    assert one(only(rows, ToolCallPending)).input == {"word": "wanted"}
    assert one(only(rows, ToolStarted)).input == {"word": "edited"}


async def test_hooks__after_a_call_may_change_or_keep_out_what_the_model_gets() -> None:
    async def censor(moment: h.PostToolUse) -> HookEdit | HookDeny:
        if moment.tool_use_id == "2":
            return HookDeny("a secret was in it")
        return HookEdit(result=moment.result.model_copy(update={"content": (Text(text="[censored]"),)}))

    desk = Desk(
        Turn(call("1", "look"), call("2", "look", "b")), DONE, tools=(LOOK,), hooks=Hooks(post_tool_use=(censor,))
    )
    await desk.execute()
    first, second = desk.memory.results
    assert (first.content, first.outcome) == ((Text(text="[censored]"),), Outcome.SUCCEEDED)
    assert second.outcome is Outcome.FAILED
    assert "a secret was in it" in str(second.content)
    assert desk.provider.requests[1].messages[-1].blocks == (first, second)


class Trip(BaseModel):
    city: str
    days: int = 1


@made_tool(schema=Trip)
async def from_model(city: str, days: int) -> str:
    """Plans a trip."""
    return f"{city} {days}"


@made_tool
async def from_hints(city: str, days: int = 1) -> dict[str, Any]:
    """Plans a trip.

    Args:
        city: Where to.
    """
    return {"city": city, "days": days}


GIVEN = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}


@made_tool(schema=GIVEN)
async def from_schema(city: str, days: int = 1) -> str:
    """Plans a trip."""
    return city * days


@made_tool(schema={"city": "string", "days": "integer?"})
async def from_shorthand(city: str, days: int = 1) -> str:
    """Plans a trip."""
    return city * days


@pytest.mark.parametrize("plan", [from_model, from_hints, from_schema, from_shorthand], ids=lambda plan: plan.name)
async def test_tool__schema_from_a_model_from_hints_or_given(plan: Any) -> None:
    schema = plan.spec.input_schema
    assert schema["type"] == "object"
    assert (schema["properties"]["city"]["type"], schema["properties"]["days"]["type"]) == ("string", "integer")
    assert schema["required"] == ["city"]
    assert plan.description == "Plans a trip."
    parts = await plan.run(plan.checked({"city": "Oslo", "days": 2}), RunningCall("1", lambda _: None))
    assert parts in ((Text(text="Oslo 2"),), (Text(text="OsloOslo"),), (Json(value={"city": "Oslo", "days": 2}),))
    for wrong in ({}, {"city": "Oslo", "days": "many"}):
        with pytest.raises(ToolInputInvalid):
            plan.checked(wrong)
    assert (from_hints.spec.input_schema["properties"]["city"]["description"]) == "Where to."


async def test_tool__is_mutating_unless_it_says_otherwise_and_so_is_an_unknown_one() -> None:
    assert from_hints.tool_class is ToolClass.MUTATING
    assert made_tool(tool_class=ToolClass.READ_ONLY)(from_hints_again).tool_class is ToolClass.READ_ONLY
    assert [str(effect) for effect in Effect] == ["read", "write", "execute", "network", "delegate"]
    assert ToolRegistry((LOOK,)).class_of("nobody") is ToolClass.MUTATING


async def from_hints_again(city: str) -> str:
    return city


def test_tool__two_of_one_name_are_an_error_at_registration() -> None:
    with pytest.raises(WrongUse, match="look"):
        ToolRegistry((LOOK, tool("look")))
    with pytest.raises(WrongUse, match="look"):
        ToolRegistry((LOOK,)).with_tools(tool("look"))
    assert ToolRegistry((LOOK, tool("Look"))).names == ("look", "Look")


@pytest.mark.parametrize("word", ["strng", "str", "text", "int", "", "String"])
def test_tool__an_unknown_type_word_in_shorthand_is_an_error_not_a_string(word: str) -> None:
    with pytest.raises(WrongUse):
        made_tool(name="t", schema={"a": word})(from_hints_again)


async def test_tool__has_its_own_timeout() -> None:
    async def forever(_: str) -> str:
        await asyncio.Event().wait()
        return ""

    slow = tool("slow", forever, read_only=True, timeout=0.01)
    desk = Desk(Turn(call("1", "slow"), call("2", "look")), DONE, tools=(slow, LOOK))
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.TIMED_OUT, Outcome.SUCCEEDED]


async def test_tool__has_its_own_concurrency() -> None:
    running, most = 0, 0

    @made_tool(tool_class=ToolClass.READ_ONLY, concurrency=2)
    async def narrow(n: int) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        return str(n)

    uses = [ToolUse(id=str(n), name="narrow", input={"n": n}) for n in range(6)]
    desk = Desk(Turn(*uses), DONE, tools=(narrow,))
    await desk.execute()
    assert most == 2
    assert desk.memory.outcomes == [Outcome.SUCCEEDED] * 6


async def test_tool__shows_its_effect_before_it_happens(tmp_path: Path) -> None:
    async with in_folder(tmp_path, Turn(write("1", "a.txt", "new\n")), DONE) as stage:
        (tmp_path / "work" / "a.txt").write_text("old\n")
        stage.session.send(Message.user("go"))
        await stage.until(lambda: stage.session.approvals.open_approvals)
        card = one(stage.session.approvals.open_approvals)
        assert card.preview == DiffPreview("a.txt", "old\n", "new\n")
        assert (tmp_path / "work" / "a.txt").read_text() == "old\n"
        stage.session.interrupt()
        await stage.idle()
        await stage.session.close()


async def test_tool__may_say_how_to_undo_it(tmp_path: Path) -> None:
    done: list[str] = []

    async def undo(made: dict[str, Any]) -> str:
        done.remove(made["city"])
        return f"Unbooked {made['city']}."

    @made_tool(undo=undo)
    async def book(city: str) -> str:
        done.append(city)
        return city

    use = ToolUse(id="1", name="book", input={"city": "Oslo"})
    async with shaky_store(tmp_path / "data") as shaky:
        stage = Stage(shaky, Turn(use), DONE, tools=(book,), setup={"store": shaky.store})
        stage.session.send(Message.user("go"))
        await answer_all(stage, AllowOnce())
        await stage.idle()
        assert done == ["Oslo"]
        assert stage.session.checkpoints is not None
        created = one(stage.of(engine.CheckpointCreated))
        for _ in range(2):
            await restore(stage.session.checkpoints, created.checkpoint_id)
            assert done == []
        assert stage.of(engine.CheckpointRestored) == [
            engine.CheckpointRestored(created.checkpoint_id, undone="Unbooked Oslo.")
        ]
        await stage.session.close()
