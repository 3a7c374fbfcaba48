"""Two phases: an answer, or calls that the caller runs; any number of rounds, for specialists too."""

import asyncio
from typing import Any

import pytest

from desktop_agent.api.chat_loop import AgentResponse, NeedsToolExecution, StreamingResponse, TwoPhaseAgent
from desktop_agent.api.responses import collect_text
from desktop_agent.tools.calculator import calculate
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, RunFinished
from desktop_agent.types.errors import AuthenticationFailed, SpecialistHasNoTools, Truncated, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import PromptPolicy, Specialist
from desktop_agent.types.providers import Dialect
from tests.fakes.demo_server import DIALECTS, demo
from tests.fakes.library import LIMIT, Gate, acting, adder, call, listed, says, sent
from tests.fakes.scripted_provider import Turn


def results(needs: NeedsToolExecution, text: str = "3") -> Message:
    return Message.tool_results(
        [ToolResult(tool_use_id=call.id, content=(Text(text=text),)) for call in needs.tool_calls]
    )


async def words(response: AgentResponse) -> str:
    assert isinstance(response, StreamingResponse)
    return await collect_text(response.events)


async def test_it_is_controlled_while_it_works() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b"), gate.step), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        agent.controls.set_mode("plan")
        response = await agent.process("hi")
        await gate.until_arrived()
        assert agent.controls.turn_id is not None
        agent.controls.policies.install(PromptPolicy(id="brief", text="Be brief."))
        agent.controls.queue.add("and more", expected_turn=agent.controls.turn_id)
        gate.opened.set()
        assert await words(response) == "ab"
        gate.opened.clear()
        assert [message.text for message in provider.requests[1].messages] == ["hi", "a", "and more"]
        assert "Be brief." in str(provider.requests[1].config.system_prompt)
        assert (agent.controls.mode.name, agent.controls.interrupt()) == ("plan", False)


async def test_it_is_stopped_in_the_middle() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("a"), gate.step))
    async with TwoPhaseAgent(options) as agent:
        response = await agent.process("hi")
        await gate.until_arrived()
        assert agent.controls.interrupt()
        assert await words(response) == "a"
        assert agent.history[-1].state is MessageState.INTERRUPTED


async def test_an_answer_without_calls_streams_from_its_first_word() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("Hel"), gate.step, says("lo")))
    async with TwoPhaseAgent(options) as agent:
        response = await agent.process("hi")
        gate.opened.set()
        assert await words(response) == "Hello"
        assert isinstance(response, StreamingResponse)
        assert response.needs is None


async def test_several_rounds_with_tools_still_offered() -> None:
    options, provider = acting(Turn(call("a"), call("b")), Turn(call("c")), Turn(says("done")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        needs = await agent.process("go")
        assert isinstance(needs, NeedsToolExecution)
        assert needs.tool_calls == (call("a"), call("b"))
        assert [message.role for message in needs.messages] == [Role.USER, Role.ASSISTANT]
        second = await agent.process_with_results([*needs.messages, results(needs)])
        assert isinstance(second, NeedsToolExecution)
        assert second.tool_calls == (call("c"),)
        # The results alone are enough.
        assert await words(await agent.process_with_results([results(second)])) == "done"
        assert agent.needs is None
    assert [[spec.name for spec in request.tools] for request in provider.requests] == [["add"]] * 3
    provider.assert_finished()


async def test_calls_behind_words_are_not_lost() -> None:
    options, _ = acting(Turn(says("Let me see."), call("a")), Turn(says("3")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        response = await agent.process("go")
        assert isinstance(response, StreamingResponse)
        events = await listed(response.events)
        assert call("a") in events
        assert events[-1] == RunFinished(RunEnd.AWAITING_RESULTS)
        assert response.needs is not None
        assert await words(await agent.process_with_results([results(response.needs)])) == "3"


async def test_results_are_exactly_those_that_were_asked_for() -> None:
    options, provider = acting(Turn(call("a"), call("b")), Turn(says("done")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        needs = await agent.process("go")
        assert isinstance(needs, NeedsToolExecution)

        async def refused(why: str, *results: ToolResult) -> None:
            for before in ((), needs.messages):
                with pytest.raises(WrongUse, match=why):
                    await agent.process_with_results([*before, Message.tool_results(results)])

        one, two = (ToolResult(tool_use_id=name) for name in "ab")
        await refused("missing: b", one)
        await refused("“z”", one, two, ToolResult(tool_use_id="z"))
        await refused("already", one, two, one)
        with pytest.raises(WrongUse, match="results are missing"):
            await agent.process_with_results(needs.messages)
        with pytest.raises(WrongUse, match="results are missing"):
            await agent.process_with_results([])
        assert agent.history == needs.messages
        assert await words(await agent.process_with_results([Message.tool_results([one, two])])) == "done"
    provider.assert_finished()


async def test_a_caller_may_bring_a_history_of_its_own() -> None:
    options, provider = acting(Turn(says("done")), tools=(adder(),))
    history = [Message.user("go"), Message.user_with_blocks([]).model_copy(update={"role": Role.ASSISTANT})]
    history[1] = history[1].model_copy(update={"blocks": (call("a"),)})
    async with TwoPhaseAgent(options) as agent:
        with pytest.raises(WrongUse, match="missing: a"):
            await agent.process_with_results([*history, Message.tool_results([])])
        assert agent.history == ()
        response = await agent.process_with_results([*history, Message.tool_results([ToolResult(tool_use_id="a")])])
        assert await words(response) == "done"
    assert [message.role for message in provider.requests[0].messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]


async def test_a_new_prompt_closes_calls_that_nobody_ran() -> None:
    options, provider = acting(Turn(call("a")), Turn(says("ok")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        await agent.process("go")
        assert await words(await agent.process("never mind")) == "ok"
    (closed,) = provider.requests[1].messages[2].blocks
    assert isinstance(closed, ToolResult)
    assert closed.outcome is Outcome.CANCELLED


async def test_errors_before_and_in_the_middle() -> None:
    options, _ = acting(Turn(AuthenticationFailed("no")), Turn(says("a"), Truncated("gone")), Turn(says("ok")))
    async with TwoPhaseAgent(options) as agent:
        with pytest.raises(AuthenticationFailed):
            await agent.process("hi")
        response = await agent.process("hi")
        assert isinstance(response, StreamingResponse)
        assert [event.kind for event in await listed(response.events) if isinstance(event, ErrorOccurred)] == [
            "truncated"
        ]
        assert await words(await agent.process("again")) == "ok"


async def test_leaving_the_events_stops_the_answer() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with TwoPhaseAgent(options) as agent:
        response = await agent.process("hi")
        assert isinstance(response, StreamingResponse)
        await response.events.aclose()
        assert provider.closed_early == 1
        assert await words(await agent.process("again")) == "b"


def accountant(**values: Any) -> Specialist:
    return Specialist(name="accountant", description="Adds.", system_prompt="You add.", **values)


async def test_a_specialist_gets_its_context_its_instructions_and_its_tools() -> None:
    options, provider = acting(
        Turn(call("a")),
        Turn(says("3")),
        tools=(adder(), adder(name="multiply")),
        specialists=(accountant(tools=("add",), model="small"),),
        system_prompt="You lead.",
    )
    context = [Message.user("My number is 1."), Message.assistant("Good.")]
    async with TwoPhaseAgent(options, specialist="accountant") as agent:
        needs = await agent.process("add 2", context=context)
        assert isinstance(needs, NeedsToolExecution)
        assert await words(await agent.process_with_results([results(needs)])) == "3"
    assert sent(provider, 0) == [("user", "My number is 1."), ("assistant", "Good."), ("user", "add 2")]
    for request in provider.requests:
        assert [spec.name for spec in request.tools] == ["add"]
        assert (request.model, request.config.system_prompt) == ("small", "You add.")


async def test_a_specialist_without_tools_that_asks_for_one_is_a_typed_error() -> None:
    turns = (Turn(call("a")), Turn(says("see"), call("a")), Turn(says("ok")))
    options, _ = acting(*turns, tools=(adder(),), specialists=(accountant(),))
    async with TwoPhaseAgent(options, specialist="accountant") as agent:
        with pytest.raises(SpecialistHasNoTools, match="accountant"):
            await agent.process("add")
        response = await agent.process("add")
        assert await words(response) == "see"
        assert isinstance(response, StreamingResponse)
        with pytest.raises(SpecialistHasNoTools, match="accountant"):
            _ = response.needs
        assert await words(await agent.process("without")) == "ok"


async def test_there_must_be_such_a_specialist() -> None:
    options, _ = acting(specialists=(accountant(),))
    with pytest.raises(WrongUse, match="“cook”"):
        TwoPhaseAgent(options, specialist="cook")


async def test_a_dropped_agent_stops() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step))
    agent = TwoPhaseAgent(options)
    await agent.process("hi")
    del agent
    async with asyncio.timeout(LIMIT):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
    assert provider.closed_early == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_dialect_over_real_sockets(dialect: Dialect) -> None:
    async with demo() as served, TwoPhaseAgent(served.options(dialect, tools=(calculate(),))) as agent:
        response = await agent.process("calculate 6 * 7")
        assert isinstance(response, StreamingResponse)
        assert any(isinstance(event, ToolUse) for event in await listed(response.events))
        assert response.needs is not None
        answer = await agent.process_with_results([*response.needs.messages, results(response.needs, "6 * 7 = 42")])
        assert "`calculate` **succeeded**" in await words(answer)


async def test_whoever_is_cancelled_while_asking_leaves_nothing_running() -> None:
    gate = Gate()
    options, provider = acting(Turn(call(), gate.step), Turn(says("b")))
    async with TwoPhaseAgent(options) as agent:
        asking = asyncio.create_task(agent.process("one"))
        await gate.until_arrived()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await words(await agent.process("two")) == "b"
    assert provider.closed_early == 1


async def test_what_is_refused_changes_nothing() -> None:
    options, _ = acting(Turn(call()), Turn(says("3")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        with pytest.raises(WrongUse, match="is empty"):
            await agent.process("", context=[Message.user("context")])
        assert agent.history == ()
        await agent.process("add")
        history: Any = [{"role": "tool", "content": "3"}]
        with pytest.raises(WrongUse, match="list of messages"):
            await agent.process_with_results(history)
