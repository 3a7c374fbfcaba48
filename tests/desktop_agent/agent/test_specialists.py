"""Specialists at work: real runs below a real run."""

import asyncio
import base64
from dataclasses import replace

import pytest

from desktop_agent.agent.run import Run
from desktop_agent.types.blocks import Base64Source, Image, Outcome, Text
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    LimitReached,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.errors import InvalidRequest, WrongUse
from desktop_agent.types.messages import MessageState, Role
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import HookDeny, Hooks, Limits, PreToolUse, StopTool, StopTurn, UserPromptSubmit
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import PromptCaching, ProviderConfig, Timeouts
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny, DenyAndStop
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.specialist_run import Team, ask, specialist

DONE = Turn(ContentDelta("Done."))
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()


async def test_what_the_person_set_for_the_network_holds_for_it_unless_it_has_its_own() -> None:
    above = ProviderConfig(
        temperature=1.0, timeouts=Timeouts(idle=7), caching=PromptCaching(lifetime="long"), show_reasoning=False
    )
    own = specialist("other", config=ProviderConfig(timeouts=Timeouts(idle=9), show_reasoning=True))
    team = Team(
        Turn(ask("1"), ask("2", "other")),
        DONE,
        specialists=(specialist(), own),
        plays=dict.fromkeys(("researcher", "other"), (DONE,)),
    )
    team.run = Run(team.context, replace(team.settings, config=above))
    assert await team.execute() is RunEnd.COMPLETED
    first, second = (team.models[name].requests[0].config for name in ("researcher", "other"))
    assert first == above.model_copy(update={"temperature": None, "system_prompt": "You are researcher."})
    assert (second.timeouts, second.caching, second.show_reasoning) == (Timeouts(idle=9), above.caching, True)


async def test_its_final_text_is_the_result_and_its_work_is_its_own() -> None:
    team = Team(
        Turn(ask("1", task="Find the sea.", context="It is blue.")),
        DONE,
        specialists=(specialist(tools=("look", "missing"), config=ProviderConfig(temperature=0.5)),),
        plays={
            "researcher": (Turn(ContentDelta("Let me look."), call("1", "look", "sea")), Turn(ContentDelta("Sea!")))
        },
        tools=(tool("look", read_only=True), tool("act")),
    )
    assert await team.execute() is RunEnd.COMPLETED
    assert team.answered == (Outcome.SUCCEEDED, "Sea!")
    first = team.models["researcher"].requests[0]
    assert (first.model, first.config.system_prompt, first.config.temperature) == (
        "researcher",
        "You are researcher.",
        0.5,
    )
    assert [tool.name for tool in first.tools] == ["look"]
    (prompt,) = first.messages
    assert prompt.text == "Find the sea.\n\nContext:\nIt is blue."
    assert prompt.injected_by == "agent"
    assert [tool.name for tool in team.provider.requests[0].tools] == ["look", "act", "researcher"]
    assert [message.role for message in team.memory.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert team.sub.end is RunEnd.COMPLETED
    (started,) = team.sub.of(RunStarted)
    assert (started.agent, started.call_id) == ("researcher", "1")
    assert team.memory.of(RunStarted)[0].call_id == ""
    team.finish()


async def test_pictures_of_its_answer_are_in_the_result_without_the_state_of_its_model() -> None:
    source = Base64Source(media_type="image/png", data=PNG)
    made = Image(source=source, provider="p", metadata={"s": 1})
    team = Team(
        Turn(ask("1"), ask("2", "writer")),
        DONE,
        specialists=(specialist(), specialist("writer")),
        plays={"researcher": (Turn(made),), "writer": (Turn(ContentDelta("Here."), made),)},
    )
    assert await team.execute() is RunEnd.COMPLETED
    picture = Image(source=source)
    assert [result.content for result in team.memory.results] == [(picture,), (Text(text="Here."), picture)]
    assert team.memory.outcomes == [Outcome.SUCCEEDED] * 2
    team.finish()


async def test_without_a_model_of_its_own_it_uses_its_parents() -> None:
    team = Team(Turn(ask("1")), Turn(ContentDelta("Found.")), DONE, specialists=(specialist(model=None),), plays={})
    assert await team.execute() is RunEnd.COMPLETED
    assert team.answered == (Outcome.SUCCEEDED, "Found.")
    assert team.provider.requests[1].model == "m"


async def test_calling_one_asks_nobody_and_what_it_does_is_asked_with_its_path() -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("act",)),),
        plays={"researcher": (Turn(call("9", "act")), Turn(ContentDelta("Acted.")))},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    (approval,) = team.approvals.open_approvals
    assert approval.agent_path == ("researcher",)
    assert not team.memory.of(ApprovalRequested)
    assert team.sub.of(ApprovalRequested)[0].agent_path == ("researcher",)
    assert team.sub.of(ToolCallPending)[0].agent_path == ("researcher",)
    team.decide(AllowOnce())
    assert await running is RunEnd.COMPLETED
    assert team.answered == (Outcome.SUCCEEDED, "Acted.")


async def test_a_denial_is_told_to_the_specialist_which_goes_on() -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("act",)),),
        plays={"researcher": (Turn(call("9", "act")), Turn(ContentDelta("Then not.")))},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    team.decide(Deny())
    assert await running is RunEnd.COMPLETED
    assert team.sub.outcomes == [Outcome.DENIED]
    assert team.answered == (Outcome.SUCCEEDED, "Then not.")


async def test_deny_and_stop_below_stops_all_of_it() -> None:
    team = Team(
        Turn(ask("1")),
        specialists=(specialist(tools=("act",)),),
        plays={"researcher": (Turn(call("9", "act")),)},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    team.decide(DenyAndStop())
    assert await running is RunEnd.CANCELLED
    assert team.sub.end is RunEnd.CANCELLED
    assert len(team.memory.results) == 1
    team.finish()


async def test_what_is_allowed_for_the_conversation_below_holds_above() -> None:
    team = Team(
        Turn(ask("1")),
        Turn(call("2", "act")),
        DONE,
        specialists=(specialist(tools=("act",)),),
        plays={"researcher": (Turn(call("9", "act")), DONE)},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    team.decide(AllowForConversation())
    assert await running is RunEnd.COMPLETED
    assert team.memory.outcomes == [Outcome.SUCCEEDED] * 2


@pytest.mark.parametrize(
    "rule", [None, Rule(effect=RuleEffect.DENY, tool="act", scope=RuleScope.ALWAYS)], ids=["plan", "rule"]
)
async def test_what_is_denied_above_is_denied_below(rule: Rule | None) -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("act",), mode="accept-edits"),),
        plays={"researcher": (Turn(call("9", "act")), DONE)},
        tools=(tool("act"),),
    )
    if rule is None:
        team.modes.set_by_person("plan")
    else:
        team.permission_policy.add(rule)
    assert await team.execute() is RunEnd.COMPLETED
    assert team.sub.outcomes == [Outcome.DENIED]
    assert not team.sub.of(ToolStarted)


async def test_a_wider_mode_of_its_own_does_not_free_it_of_questions() -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("act",), mode="accept-edits"),),
        plays={"researcher": (Turn(call("9", "act")), DONE)},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    team.decide(AllowOnce())
    assert await running is RunEnd.COMPLETED


async def test_a_narrower_mode_of_its_own_holds() -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("act",), mode="plan"),),
        plays={"researcher": (Turn(call("9", "act")), DONE)},
        tools=(tool("act"),),
    )
    team.modes.set_by_person("accept-edits")
    assert await team.execute() is RunEnd.COMPLETED
    assert team.sub.outcomes == [Outcome.DENIED]
    assert "plan mode" in (team.models["researcher"].requests[0].config.system_prompt or "")


async def test_the_persons_mode_reaches_a_specialist_at_work() -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("act",)),),
        plays={"researcher": (Turn(Wait(go, begun), call("9", "act")), DONE)},
        tools=(tool("act"),),
    )
    running = team.start()
    await begun.wait()
    team.modes.set_by_person("plan")
    go.set()
    assert await running is RunEnd.COMPLETED
    assert team.sub.outcomes == [Outcome.DENIED]


async def test_tools_that_it_was_not_given_do_not_run() -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("look",)),),
        plays={"researcher": (Turn(call("9", "peek")), DONE)},
        tools=(tool("look", read_only=True), tool("peek", read_only=True)),
    )
    assert await team.execute() is RunEnd.COMPLETED
    assert not team.sub.of(ToolStarted)
    assert team.sub.outcomes == [Outcome.DENIED]


async def test_what_it_uses_counts_for_its_parent() -> None:
    used = UsageUpdate(Usage(input_tokens=80, output_tokens=20))
    team = Team(Turn(ask("1")), plays={"researcher": (Turn(used, ContentDelta("Found.")),)}, limits=Limits(tokens=100))
    assert await team.execute() is RunEnd.LIMIT
    assert [event.which for event in team.memory.of(LimitReached)] == ["tokens"]
    assert team.sub.end is RunEnd.COMPLETED


async def test_its_share_is_its_limit_and_what_it_said_so_far_is_told() -> None:
    used = UsageUpdate(Usage(input_tokens=30, output_tokens=20))
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("look",), share=0.4),),
        plays={"researcher": (Turn(ContentDelta("I saw a ship."), used, call("9", "look")),)},
        tools=(tool("look", read_only=True),),
        limits=Limits(tokens=100),
    )
    assert await team.execute() is RunEnd.COMPLETED
    outcome, words = team.answered
    assert outcome is Outcome.FAILED
    assert "limit: tokens" in words
    assert "I saw a ship." in words
    assert team.sub.end is RunEnd.LIMIT


async def test_a_failure_below_is_words_above_with_what_it_said() -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        plays={"researcher": (Turn(ContentDelta("Half of"), InvalidRequest("too silly")),)},
    )
    assert await team.execute() is RunEnd.COMPLETED
    outcome, words = team.answered
    assert outcome is Outcome.FAILED
    assert "too silly" in words
    assert "Half of" in words
    assert team.sub.end is RunEnd.FAILED


async def test_one_that_says_nothing_is_a_failure_in_words() -> None:
    team = Team(Turn(ask("1")), DONE, plays={"researcher": (Turn(),)})
    assert await team.execute() is RunEnd.COMPLETED
    outcome, words = team.answered
    assert outcome is Outcome.FAILED
    assert "without saying anything" in words


@pytest.mark.parametrize("tools", [(), ("missing",)])
async def test_one_without_tools_that_asks_for_one_is_told_so(tools: tuple[str, ...]) -> None:
    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=tools),),
        plays={"researcher": (Turn(ContentDelta("Let me see."), call("9", "look")),)},
        tools=(tool("look", read_only=True),),
    )
    assert await team.execute() is RunEnd.COMPLETED
    outcome, words = team.answered
    assert outcome is Outcome.FAILED
    assert "has no tools" in words
    assert "Let me see." in words
    team.finish()


async def test_a_mode_that_does_not_exist_is_words() -> None:
    team = Team(Turn(ask("1")), DONE, specialists=(specialist(mode="yolo"),), plays={"researcher": ()})
    assert await team.execute() is RunEnd.COMPLETED
    assert "its mode “yolo” does not exist" in team.answered[1]
    assert not team.memory.nested_ones


async def test_arguments_that_do_not_fit_start_nothing() -> None:
    team = Team(Turn(ask("1", task="")), DONE, plays={"researcher": ()})
    assert await team.execute() is RunEnd.COMPLETED
    assert team.answered[0] is Outcome.FAILED
    assert not team.memory.nested_ones


async def test_they_nest_only_so_deep() -> None:
    nested = Turn(ask("1", task="Ask another."))
    team = Team(
        nested,
        DONE,
        specialists=(specialist(specialists=("researcher",)),),
        plays={"researcher": (nested, nested, nested, DONE, DONE, DONE)},
    )
    assert await team.execute() is RunEnd.COMPLETED
    deepest = team.sub.nested_ones[0].nested_ones[0]
    assert not deepest.nested_ones
    assert deepest.outcomes == [Outcome.FAILED]
    assert "3 deep" in str(deepest.results[0].content)
    assert deepest.of(ToolCallPending)[0].agent_path == ("researcher",) * 3
    team.finish()


async def test_a_specialist_calls_only_those_that_its_parent_may_call() -> None:
    team = Team(
        Turn(ask("1", "first")),
        DONE,
        specialists=(
            specialist("first", specialists=("second", "third")),
            specialist("second", specialists=("third",)),
        ),
        plays={"first": (Turn(ask("1", "second")), DONE), "second": (DONE,)},
    )
    assert await team.execute() is RunEnd.COMPLETED
    assert [tool.name for tool in team.models["first"].requests[0].tools] == ["second"]
    assert team.models["second"].requests[0].tools == ()


async def test_hooks_see_its_calls_and_not_its_task() -> None:
    prompts: list[UserPromptSubmit] = []
    calls: list[PreToolUse] = []

    async def see_prompt(moment: UserPromptSubmit) -> None:
        prompts.append(moment)

    async def see_call(moment: PreToolUse) -> HookDeny | None:
        calls.append(moment)
        return HookDeny("not now") if moment.agent_path else None

    team = Team(
        Turn(ask("1")),
        DONE,
        specialists=(specialist(tools=("look",)),),
        plays={"researcher": (Turn(call("9", "look")), DONE)},
        tools=(tool("look", read_only=True),),
        hooks=Hooks().add_user_prompt_submit(see_prompt).add_pre_tool_use(see_call),
    )
    assert await team.execute() is RunEnd.COMPLETED
    assert not prompts
    assert [(call.name, call.agent_path) for call in calls] == [("researcher", ()), ("look", ("researcher",))]
    assert team.sub.outcomes == [Outcome.DENIED]


class Slow:
    """The work of a tool that says when it began, and tidies up when it is cancelled."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.tidied = False

    async def work(self, word: str) -> str:
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.02)
            self.tidied = True
        return word


def slow_team(slow: Slow, *more: Turn) -> Team:
    return Team(
        Turn(ask("1")),
        *more,
        specialists=(specialist(tools=("look",)),),
        plays={"researcher": (Turn(ContentDelta("Looking."), call("9", "look")),)},
        tools=(tool("look", slow.work, read_only=True),),
    )


async def test_stopping_its_call_ends_its_run_in_order_and_the_parent_goes_on() -> None:
    slow = Slow()
    team = slow_team(slow, DONE)
    running = team.start()
    await slow.has_begun.wait()
    assert team.run.interrupt(StopTool("1"))
    assert await running is RunEnd.COMPLETED
    assert slow.tidied
    assert team.answered[0] is Outcome.CANCELLED
    assert team.sub.end is RunEnd.CANCELLED
    assert team.sub.outcomes == [Outcome.CANCELLED]


async def test_stopping_a_call_of_its_own_lets_it_go_on() -> None:
    slow = Slow()
    team = slow_team(slow, DONE)
    team.models["researcher"]._turns.append(Turn(ContentDelta("Then without.")))
    running = team.start()
    await slow.has_begun.wait()
    assert team.run.interrupt(StopTool("9"))
    assert await running is RunEnd.COMPLETED
    assert team.sub.outcomes == [Outcome.CANCELLED]
    assert team.answered == (Outcome.SUCCEEDED, "Then without.")


async def test_stop_ends_all_runs_once_and_every_call_has_its_result() -> None:
    slow = Slow()
    team = slow_team(slow)
    running = team.start()
    await slow.has_begun.wait()
    team.run.interrupt(StopTurn())
    assert await running is RunEnd.CANCELLED
    assert slow.tidied
    assert team.memory.outcomes == [Outcome.CANCELLED]
    assert team.sub.end is RunEnd.CANCELLED
    assert team.sub.outcomes == [Outcome.CANCELLED]


async def test_stop_while_its_model_speaks_keeps_what_it_said() -> None:
    begun = asyncio.Event()
    team = Team(Turn(ask("1")), plays={"researcher": (Turn(ContentDelta("Half"), Wait(asyncio.Event(), begun)),)})
    running = team.start()
    await begun.wait()
    team.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert team.models["researcher"].closed_early == 1
    assert (team.sub.messages[-1].text, team.sub.messages[-1].state) == ("Half", MessageState.INTERRUPTED)


async def test_a_stop_while_its_card_waits_takes_the_card_back() -> None:
    team = Team(
        Turn(ask("1")),
        specialists=(specialist(tools=("act",)),),
        plays={"researcher": (Turn(call("9", "act")),)},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    team.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert not team.approvals.open_approvals
    assert not team.sub.of(ToolStarted)


async def test_those_that_only_look_work_together() -> None:
    begun = {name: asyncio.Event() for name in ("one", "two")}
    go = asyncio.Event()
    team = Team(
        Turn(ask("1", "one"), ask("2", "two")),
        DONE,
        specialists=(specialist("one"), specialist("two")),
        plays={name: (Turn(Wait(go, begun[name]), ContentDelta(name)),) for name in begun},
    )
    running = team.start()
    await begun["one"].wait()
    await begun["two"].wait()
    go.set()
    assert await running is RunEnd.COMPLETED
    assert [result.tool_use_id for result in team.memory.results] == ["1", "2"]


async def test_those_that_may_change_something_work_one_after_the_other() -> None:
    team = Team(
        Turn(ask("1", "one"), ask("2", "two")),
        DONE,
        specialists=(specialist("one", tools=("act",)), specialist("two", tools=("act",))),
        plays={"one": (Turn(call("9", "act")), DONE), "two": (Turn(call("9", "act")), DONE)},
        tools=(tool("act"),),
    )
    running = team.start()
    await team.approvals_open()
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(team.approvals.open_approvals) == 1
    team.decide(AllowForConversation())
    assert await running is RunEnd.COMPLETED
    first, second = team.memory.nested_ones
    assert first.of(RunFinished)
    assert second.of(ToolFinished)[0].outcome is Outcome.SUCCEEDED


async def test_a_specialist_named_like_a_tool_is_refused() -> None:
    with pytest.raises(WrongUse, match="two tools"):
        Team(plays={}, specialists=(specialist("look"),), tools=(tool("look"),))


async def test_its_prompt_is_its_own_and_not_the_persons() -> None:
    team = Team(
        Turn(ask("1", "first")),
        DONE,
        specialists=(specialist("first", specialists=("second",)), specialist("second")),
        plays={"first": (Turn(ask("1", "second")), DONE), "second": (DONE,)},
    )
    assert await team.execute() is RunEnd.COMPLETED
    assert team.models["second"].requests[0].messages[0].injected_by == "first"


async def test_it_has_its_own_instructions_alone() -> None:
    async def more() -> tuple[str, ...]:
        return ("Be brief.",)

    team = Team(Turn(ask("1")), DONE, plays={"researcher": (DONE,)}, more_instructions=more)
    assert await team.execute() is RunEnd.COMPLETED
    assert [request.config.system_prompt for request in team.provider.requests] == ["Be brief."] * 2
    assert team.models["researcher"].requests[0].config.system_prompt == "You are researcher."
    team.finish()
