"""Section What never happens: runs, tools and histories. What servers send and get is in test_never_on_the_wire.py."""

import asyncio
import threading
from typing import Any

import pytest

from desktop_agent.agent.guards import Guards
from desktop_agent.api.client import Client
from desktop_agent.conversation.history import compacted_view
from desktop_agent.tools.decorator import tool as made_tool
from desktop_agent.types.blocks import Outcome, Summary, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import RunEnd, ToolCallPending, ToolStarted
from desktop_agent.types.errors import Truncated, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, Hooks, Limits, PostToolUse
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage
from desktop_agent.types.providers import Capabilities, ModelInfo
from desktop_agent.types.tool_calls import ToolClass
from tests.contract.scenes import DONE, LOOK, one, until
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import LIMIT, Gate, acting, adder, blocks_of, listed, says
from tests.fakes.library import call as sum_of
from tests.fakes.scripted_provider import Turn
from tests.fakes.specialist_run import Team, ask


async def test_never_a_lost_stop__between_two_turns_the_model_is_not_asked_again() -> None:
    async def stop(_: PostToolUse) -> None:
        desk.run.interrupt()

    async def more(_: GuardMoment) -> GuardContinue:
        return GuardContinue("go on")

    desk = Desk(
        Turn(call("1", "look")), DONE, tools=(LOOK,),
        hooks=Hooks(post_tool_use=(stop,)), guards=Guards((Guard("g", more, 9, at="turn_end"),)),
    )  # fmt: skip
    assert await desk.execute() is RunEnd.CANCELLED
    assert len(desk.provider.requests) == 1


async def test_never_a_lost_stop__of_a_pause_that_would_be_gone_on_with() -> None:
    gate = Gate()
    paused = Turn(ContentDelta("a"), MessageDelta(StopReason.PAUSE_TURN), gate.step, Done())
    desk = Desk(paused, DONE)
    running = desk.start()
    await gate.until_arrived()
    desk.run.interrupt()
    gate.opened.set()
    assert await running is RunEnd.CANCELLED
    assert len(desk.provider.requests) == 1


async def test_never_a_lost_stop__while_the_caller_runs_the_calls() -> None:
    options, provider = acting(Turn(sum_of("c1")), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("1 + 2")
        client.interrupt()
        client.add_tool_result("c1", 3)
        await client.continue_()
        assert await blocks_of(client.receive) == []
        assert client.ended is RunEnd.CANCELLED
        assert len(provider.requests) == 1


async def test_never_after_stop__no_tool_runs_even_behind_one_that_heeds_nothing() -> None:
    began, go = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    async def stubborn(word: str) -> str:
        ran.append(word)
        began.set()
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        return word

    act = tool("act", stubborn)
    desk = Desk(Turn(call("1", "act", "a"), call("2", "act", "b")), Turn(call("3", "act", "c")), tools=(act,))
    desk.allow(act)
    running = desk.start()
    await began.wait()
    desk.run.interrupt()
    go.set()
    assert await running is RunEnd.CANCELLED
    assert ran == ["a"]
    assert desk.memory.outcomes[1] is Outcome.CANCELLED


async def test_never_an_empty_second_send__with_tools_that_run_by_themselves() -> None:
    turns = [turn for n in "12" for turn in (Turn(sum_of(f"c{n}")), Turn(says(f"answer {n}")))]
    options, provider = acting(*turns, tools=(adder(),), auto_execute_tools=True)
    async with Client(options) as client:
        for n in "12":
            await client.send("again")
            kinds = [type(block) for block in await blocks_of(client.receive)]
            assert kinds == [ToolUse, ToolResult, Text]
            assert client.history[-1].text == f"answer {n}"
    provider.assert_finished()


@pytest.mark.parametrize("how", ["complete", "send", "stream"])
async def test_never_two_ends_by_timing__whenever_stop_comes(how: str) -> None:
    ends: set[Any] = set()
    for ticks in range(30):
        gate = Gate()
        options, _ = acting(Turn(says("a"), sum_of(), gate.step), tools=(adder(),), auto_execute_tools=True)
        async with Client(options) as client, asyncio.timeout(LIMIT):
            if how == "complete":
                asking = asyncio.create_task(client.complete("hi"))
            elif how == "send":
                asking = asyncio.create_task(client.send("hi"))
            else:
                asking = asyncio.create_task(listed(client.stream("hi")))
            while client._conversation.run is None:
                await asyncio.sleep(0)
            for _ in range(ticks):
                await asyncio.sleep(0)
            client.interrupt()
            await asking  # raises nothing
            await blocks_of(client.receive)
            ends.add(client.ended)
    assert ends == {RunEnd.CANCELLED}


CUTS: dict[str, Turn] = {
    "the model's own limit": Turn(ContentDelta("Hal"), MessageDelta(StopReason.MAX_TOKENS), Done()),
    "the window": Turn(ContentDelta("Hal"), MessageDelta(StopReason.CONTEXT_WINDOW_EXCEEDED), Done()),
    "the filter": Turn(ContentDelta("Hal"), MessageDelta(StopReason.CONTENT_FILTER), Done()),
    "the connection": Turn(ContentDelta("Hal"), Truncated("gone")),
    "our bound": Turn(ContentDelta("Hal"), *(ContentDelta("x" * 60) for _ in range(9))),
}


@pytest.mark.parametrize("why", CUTS)
async def test_never_cut_and_final__a_text_that_something_cut_is_marked(why: str) -> None:
    desk = Desk(CUTS[why], limits=Limits(answer_characters=100))
    await desk.execute()
    last = desk.memory.messages[-1]
    assert last.text.startswith("Hal")
    assert last.state is MessageState.INTERRUPTED


@pytest.mark.parametrize("calls", [(), (call("1", "look"),)])
async def test_never_billed_again_on_max_tokens__the_question_is_asked_once(calls: tuple[ToolUse, ...]) -> None:
    desk = Desk(Turn(ContentDelta("Hal"), *calls, MessageDelta(StopReason.MAX_TOKENS)), tools=(LOOK,))
    assert await desk.execute() is RunEnd.LIMIT
    assert len(desk.provider.requests) == 1
    assert not desk.memory.of(ToolStarted)
    assert desk.memory.outcomes == [Outcome.CANCELLED] * len(calls) or desk.memory.outcomes == [Outcome.LIMIT] * len(
        calls
    )


async def test_never_results_without_their_call__the_answer_stands_before_them() -> None:
    desk = Desk(Turn(ContentDelta("see"), call("1", "look")), DONE, tools=(LOOK,))
    await desk.execute()
    for messages in (desk.memory.messages, desk.provider.requests[1].messages):
        answer, results = messages[1], messages[2]
        assert (answer.role, answer.tool_uses[0].id) == (Role.ASSISTANT, "1")
        assert [block.tool_use_id for block in results.blocks] == ["1"]  # type: ignore[union-attr]


async def test_never_results_without_their_call__whatever_the_caller_makes_of_the_history() -> None:
    options, provider = acting(Turn(says("ok")))
    stray = Message.tool_results([ToolResult(tool_use_id="nobody's", content=(Text(text="stray"),))])
    async with Client(options) as client:
        await client.edit_history([Message.user("a"), stray, Message.user("b")])
        await client.complete("c")
    assert [message.role for message in provider.requests[0].messages] == [Role.USER] * 3


async def test_never_paired_by_anything_but_id__results_in_any_order_and_unknown_ids_refused() -> None:
    uses = [sum_of(id_) for id_ in ("c1", "c2", "c3")]  # the same tool, the same arguments
    options, provider = acting(Turn(*uses), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("go")
        for use_id in ("c3", "c1", "c2"):
            client.add_tool_result(use_id, f"of {use_id}")
        for unknown in ("c4", "C1", "add"):
            with pytest.raises(WrongUse):
                client.add_tool_result(unknown, "x")
        await client.continue_()
    blocks = provider.requests[1].messages[-1].blocks
    assert [(block.tool_use_id, block.content[0].text) for block in blocks] == [  # type: ignore[union-attr]
        (f"c{n}", f"of c{n}") for n in (1, 2, 3)
    ]


async def test_never_in_hash_order__parallel_calls_keep_theirs() -> None:
    ids = [f"call-{n * 7919 % 1000}" for n in range(40)]
    desk = Desk(Turn(*(call(use, "look", use) for use in ids)), DONE, tools=(LOOK,))
    await desk.execute()
    assert [event.id for event in desk.memory.of(ToolCallPending)] == ids
    assert [result.tool_use_id for result in desk.memory.results] == ids
    assert [block.tool_use_id for block in desk.provider.requests[1].messages[-1].blocks] == ids  # type: ignore[union-attr]


async def test_never_a_batch_failed_by_one__the_others_run() -> None:
    bad = ToolUse(id="2", name="look", malformed='{"word": oops')
    wrong = ToolUse(id="3", name="look", input={"word": []})
    desk = Desk(Turn(call("1", "look"), bad, wrong, call("4", "look", "d")), DONE, tools=(LOOK,))
    assert await desk.execute() is RunEnd.COMPLETED
    assert [str(outcome) for outcome in desk.memory.outcomes] == ["succeeded", "failed", "failed", "succeeded"]


def grouped(number: int) -> list[Message]:
    use = ToolUse(id=f"c{number}", name="look", input={"word": "x" * 900})
    answer = Message(role=Role.ASSISTANT, blocks=(use,), usage=Usage(input_tokens=900, output_tokens=5))
    results = Message.tool_results([ToolResult(tool_use_id=use.id, content=(Text(text="y" * 900),))])
    return [Message.user(f"question {number} " + "z" * 900), answer, results]


async def test_never_cut_between_call_and_result__however_much_is_summarised() -> None:
    models = (ModelInfo("m", capabilities=Capabilities(context_window=1_000)),)
    desk = Desk(Turn(ContentDelta("In short.")), DONE, models=models)
    desk.memory.messages[:] = [message for n in range(6) for message in grouped(n)]
    await desk.execute(Message.user("and now?"))
    sent_messages = desk.provider.requests[-1].messages
    assert "In short." in sent_messages[0].text
    assert len(sent_messages) < len(desk.memory.messages)
    calls = [use.id for message in sent_messages for use in message.tool_uses]
    results = [
        block.tool_use_id for message in sent_messages for block in message.blocks if isinstance(block, ToolResult)
    ]
    assert calls == results
    history = [message for n in range(3) for message in grouped(n)]
    cut = Message(role=Role.SYSTEM, blocks=(Summary(text="s", first_kept_id=history[5].id),))
    assert history[4] in compacted_view([*history, cut])


async def test_never_an_old_stream_after_clearing__the_connection_is_closed_first() -> None:
    hold = asyncio.Event()
    old = Reply(sse(chunk({"content": "old"}), done=False), hold=hold)
    replies = iter([old, Reply(sse(chunk({"content": "new"}), chunk(finish="stop")))])
    async with Loopback(choose=lambda _: next(replies)) as server, Client(model="m", base_url=server.url) as client:
        await client.send("one")
        await client.clear_history()
        async with asyncio.timeout(LIMIT):
            await server.disconnected.wait()
        assert (await client.complete("two")).text == "new"
        assert [message.text for message in client.history] == ["two", "new"]
        assert [message["content"] for message in server.requests[1].json["messages"]] == ["two"]


async def test_never_a_blocked_loop__it_turns_while_a_function_of_the_callers_blocks() -> None:
    began, may_end = threading.Event(), threading.Event()

    @made_tool(tool_class=ToolClass.READ_ONLY)
    def slow(word: str) -> str:
        began.set()
        # Only the loop can let it end: were the loop blocked, this would be False.
        return str(may_end.wait(LIMIT))

    desk = Desk(Turn(call("1", "slow")), DONE, tools=(slow,))
    running = desk.start()
    await until(began.is_set)
    may_end.set()
    await running
    assert desk.memory.results[0].content == (Text(text="True"),)


async def test_never_one_round_only__every_follow_up_offers_the_tools_again() -> None:
    options, provider = acting(
        *(Turn(sum_of(f"c{n}", n)) for n in range(4)), Turn(says("done")), tools=(adder(),), auto_execute_tools=True
    )
    async with Client(options) as client:
        assert (await client.complete("go")).text == "done"
    assert [[spec.name for spec in request.tools] for request in provider.requests] == [["add"]] * 5


async def test_never_a_specialist_without_context__it_begins_with_its_instructions_and_its_task() -> None:
    team = Team(Turn(ask("1", task="Find the sea.", context="It is blue.")), DONE, plays={"researcher": (DONE,)})
    await team.execute()
    request = team.models["researcher"].requests[0]
    prompt = one(request.messages)
    assert request.config.system_prompt == "You are researcher."
    assert "Find the sea." in prompt.text
    assert "It is blue." in prompt.text
