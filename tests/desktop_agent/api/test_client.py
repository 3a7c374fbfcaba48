"""`Client` with a model that plays a script: asking, receiving, history, errors."""

import asyncio
import gc
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from desktop_agent.api.chat_loop import TwoPhaseAgent
from desktop_agent.api.client import Client, query, run
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, RunFinished, ToolFinished
from desktop_agent.types.errors import AuthenticationFailed, ImagesNotSupported, Truncated, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.permissions import PLAN_MODE, Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import (
    Guard,
    GuardContinue,
    GuardMoment,
    GuardPass,
    HookDeny,
    Hooks,
    PromptPolicy,
    UserPromptSubmit,
)
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, ThinkingDelta
from tests.fakes.library import Gate, acting, adder, blocks_of, call, listed, says, sent
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE


async def test_blocks_come_one_after_the_other_and_none_at_the_end() -> None:
    options, provider = acting(Turn(ThinkingDelta("hm"), says("Hel"), says("lo")))
    async with Client(options) as client:
        await client.send("hi")
        blocks = await blocks_of(client.receive)
        assert [(type(block), block.text) for block in blocks] == [(Thinking, "hm"), (Text, "Hello")]
        assert await client.receive() is None
        assert client.ended is RunEnd.COMPLETED
    assert sent(provider) == [("user", "hi")]
    provider.assert_finished()


async def test_a_second_question_knows_the_first() -> None:
    options, provider = acting(Turn(says("one")), Turn(says("two")))
    async with Client(options) as client:
        assert (await client.complete("a")).text == "one"
        assert (await client.complete("b")).text == "two"
    assert sent(provider) == [("user", "a"), ("assistant", "one"), ("user", "b")]


async def test_blocks_are_given_as_soon_as_they_are_finished() -> None:
    gate = Gate()
    options, _ = acting(Turn(ThinkingDelta("hm"), says("x"), gate.step, says("y")))
    async with Client(options) as client:
        await client.send("hi")
        first = await client.receive()
        assert isinstance(first, Thinking)
        assert client.ended is None
        gate.opened.set()
        assert [block.text for block in await blocks_of(client.receive)] == ["xy"]


async def test_a_prepared_message_goes_as_it_is() -> None:
    options, provider = acting(Turn(says("ok")))
    message = Message.user_with_blocks([Text(text="a"), Text(text="b")])
    async with Client(options) as client:
        await client.send_message(message)
        await blocks_of(client.receive)
        assert client.history[0] == message
    assert provider.requests[0].messages[0].blocks == message.blocks


@pytest.mark.parametrize(
    "prompt",
    [
        Message.system("x"),
        Message.assistant("x"),
        Message.tool_results([ToolResult(tool_use_id="q")]),
        Message(role=Role.USER, blocks=(call("z"),)),
        Message(role=Role.USER, blocks=(ToolResult(tool_use_id="z"),)),
        Message(role=Role.USER),
        Message.user(""),
        "hello",
        None,
    ],
    ids=lambda _: "",
)
async def test_what_is_no_prompt_is_refused(prompt: Any) -> None:
    options, provider = acting(Turn(says("ok")))
    async with Client(options) as client:
        with pytest.raises(WrongUse):
            await client.send_message(prompt)
        assert client.history == ()
        if isinstance(prompt, Message):
            with pytest.raises(WrongUse):
                client.stream(prompt)
        assert (await client.complete("hi")).text == "ok"
    assert sent(provider) == [("user", "hi")]


async def test_whoever_is_cancelled_while_asking_leaves_nothing_running() -> None:
    gate = Gate()
    options, provider = acting(Turn(gate.step, says("a")), Turn(says("b")))
    async with Client(options) as client:
        sending = asyncio.create_task(client.send("one"))
        await gate.until_arrived()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (await client.complete("two")).text == "b"
    assert provider.closed_early == 1


async def test_tools_run_and_the_same_happens_the_second_time() -> None:
    options, provider = acting(
        Turn(says("see"), call("c1")),
        Turn(says("3")),
        Turn(says("see"), call("c2", 2, 3)),
        Turn(says("5")),
        tools=(adder(),),
        auto_execute_tools=True,
    )
    async with Client(options) as client:
        first = await listed(client.stream("1 + 2"))
        second = await listed(client.stream("2 + 3"))
    assert [type(event) for event in first] == [type(event) for event in second]
    assert [event.outcome for event in first if isinstance(event, ToolFinished)] == [Outcome.SUCCEEDED]
    assert isinstance(second[-1], RunFinished)
    results = [message.blocks[0] for message in provider.requests[-1].messages if message.role is Role.TOOL]
    assert [result.content[0] for result in results if isinstance(result, ToolResult)] == [
        Text(text="3"),
        Text(text="5"),
    ]
    provider.assert_finished()


async def test_receive_gives_calls_and_their_results() -> None:
    options, _ = acting(Turn(says("see"), call()), Turn(says("3")), tools=(adder(),), auto_execute_tools=True)
    async with Client(options) as client:
        await client.send("1 + 2")
        kinds = [type(block) for block in await blocks_of(client.receive)]
    assert kinds == [Text, ToolUse, ToolResult, Text]


async def test_text_streams_while_the_tool_runs_is_not_held_back() -> None:
    gate = Gate()

    async def wait() -> None:
        gate.arrived.set()
        await gate.opened.wait()

    options, _ = acting(Turn(says("see"), call()), Turn(says("3")), tools=(adder(wait),), auto_execute_tools=True)
    async with Client(options) as client:
        events = []
        async for event in client.stream("1 + 2"):
            events.append(event)
            if isinstance(event, Done) and not gate.opened.is_set():
                await gate.until_arrived()
                gate.opened.set()
    assert ContentDelta("see") in events


async def test_an_error_before_the_answer_is_raised_by_the_call_and_the_client_stays_usable() -> None:
    refusal = AuthenticationFailed("no such key", status=401, request_id="r1")
    options, provider = acting(Turn(refusal), Turn(refusal), Turn(refusal), Turn(says("ok")))
    async with Client(options) as client:
        with pytest.raises(AuthenticationFailed) as caught:
            await client.send("hi")
        assert (caught.value.status, caught.value.request_id) == (401, "r1")
        events = client.stream("hi")
        with pytest.raises(AuthenticationFailed):
            await listed(events)
        assert await listed(events) == []
        with pytest.raises(AuthenticationFailed):
            await client.complete("hi")
        assert client.ended is RunEnd.FAILED
        assert (await client.complete("hi")).text == "ok"
    provider.assert_finished()


async def test_a_missing_capability_is_its_own_error() -> None:
    options, _ = acting(Turn(ImagesNotSupported("This model does not read pictures.")))
    async with Client(options) as client:
        with pytest.raises(ImagesNotSupported):
            await client.send("hi")


async def test_an_error_in_the_middle_is_an_event() -> None:
    options, _ = acting(Turn(says("Hel"), Truncated("gone")))
    async with Client(options) as client:
        events = await listed(client.stream("hi"))
        assert [event.kind for event in events if isinstance(event, ErrorOccurred)] == ["truncated"]
        assert isinstance(events[-1], RunFinished)
        assert client.history[-1].text == "Hel"
        assert client.history[-1].state is MessageState.INTERRUPTED


async def test_an_error_in_the_middle_is_raised_once_behind_what_came() -> None:
    broken = Turn(says("Hel"), Truncated("gone"))
    options, provider = acting(broken, broken, Turn(says("Hello")))
    async with Client(options) as client:
        await client.send("hi")
        for _ in range(2):
            assert await client.receive() == Text(text="Hel")
            with pytest.raises(Truncated, match="gone"):
                await client.receive()
            assert await client.receive() is None
            if len(provider.requests) == 1:
                await client.continue_()
        await client.continue_()
        assert [block.text for block in await blocks_of(client.receive)] == ["Hello"]
    assert sent(provider) == [("user", "hi")]


async def test_complete_raises_what_broke_the_answer_off() -> None:
    options, _ = acting(Turn(says("Hel"), Truncated("gone")))
    async with Client(options) as client:
        with pytest.raises(Truncated, match="gone"):
            await client.complete("hi")
        assert client.history[-1].text == "Hel"


async def test_what_a_limit_cut_is_not_taken_for_whole() -> None:
    options, _ = acting(Turn(says("Hel"), MessageDelta(StopReason.MAX_TOKENS), Done()))
    async with Client(options) as client:
        response = await client.complete("hi")
    assert (response.text, response.end, response.is_complete) == ("Hel", RunEnd.LIMIT, False)


async def test_tool_iterations_are_bounded() -> None:
    options, provider = acting(
        *(Turn(call(f"c{n}", n)) for n in range(2)),
        tools=(adder(),),
        auto_execute_tools=True,
        max_tool_iterations=2,
    )
    async with Client(options) as client:
        assert (await client.complete("go")).end is RunEnd.LIMIT
    provider.assert_finished()


async def test_an_empty_prompt_goes_on() -> None:
    options, provider = acting(Turn(says("ok")))
    async with Client(options) as client:
        await client.edit_history([Message.user("hi")])
        await client.send("")
        await blocks_of(client.receive)
    assert sent(provider) == [("user", "hi")]


async def test_there_is_nothing_to_go_on_with_behind_a_whole_answer() -> None:
    options, _ = acting(Turn(says("ok")))
    async with Client(options) as client:
        with pytest.raises(WrongUse, match="nothing"):
            await client.continue_()
        await client.complete("hi")
        with pytest.raises(WrongUse, match="complete"):
            await client.send("")
        assert client.ended is RunEnd.COMPLETED


async def test_asking_while_it_answers_is_refused_and_disturbs_nothing() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("a"), gate.step, says("b")))
    async with Client(options) as client:
        await client.send("hi")
        with pytest.raises(WrongUse, match="not finished"):
            await client.send("again")
        with pytest.raises(WrongUse, match="not finished"):
            await client.edit_history([])
        gate.opened.set()
        assert [block.text for block in await blocks_of(client.receive)] == ["ab"]


async def test_history_is_edited_by_messages_or_by_a_function() -> None:
    options, provider = acting(Turn(says("one")), Turn(says("two")))
    async with Client(options) as client:
        await client.complete("a")
        await client.edit_history(lambda history: history[:1])
        assert [message.text for message in client.history] == ["a"]
        await client.edit_history([Message.user("x"), Message.assistant("y")])
        await client.complete("b")
    assert sent(provider) == [("user", "x"), ("assistant", "y"), ("user", "b")]


async def test_an_answer_is_asked_for_anew_and_the_first_is_found_again() -> None:
    options, provider = acting(Turn(says("one")), Turn(says("two")), Turn(says("three")))
    async with Client(options) as client:
        assert client.versions == {}
        await client.complete("a")
        first = client.history
        await client.edit_history(first[:-1])
        assert (await client.complete()).text == "two"
        (versions,) = client.versions.values()
        assert (versions.ids, versions.index) == ((first[1].id, client.history[1].id), 1)
        await client.show_version(first[1].id)
        assert client.history == first
        with pytest.raises(WrongUse, match="no message"):
            await client.show_version("nothing")
        await client.complete("b")
    assert sent(provider) == [("user", "a"), ("assistant", "one"), ("user", "b")]


async def test_a_message_is_deleted_with_what_follows_it() -> None:
    options, provider = acting(Turn(says("one")), Turn(says("two")), Turn(says("three")))
    async with Client(options) as client:
        await client.complete("a")
        await client.complete("b")
        await client.delete_message(client.history[2].id)
        assert [message.text for message in client.history] == ["a", "one"]
        with pytest.raises(WrongUse, match="no message"):
            await client.delete_message("nothing")
        assert (await client.complete("c")).text == "three"
    assert sent(provider) == [("user", "a"), ("assistant", "one"), ("user", "c")]


@pytest.mark.parametrize("history", [[1, 2], "abc", [None], None, lambda _: None], ids=lambda _: "")
async def test_a_history_is_messages(history: Any) -> None:
    options, provider = acting(Turn(says("one")), Turn(says("two")))
    async with Client(options) as client:
        for prompt in ("a", "b"):
            # Before it is open, and after.
            with pytest.raises(WrongUse, match="list of messages"):
                await client.edit_history(history)
            await client.complete(prompt)
    assert sent(provider) == [("user", "a"), ("assistant", "one"), ("user", "b")]


async def test_clearing_stops_waits_and_keeps_the_options() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")), system_prompt="Be brief.")
    async with Client(options) as client:
        await client.send("hi")
        await client.clear_history()
        assert client.history == ()
        assert (client.ended, provider.closed_early) == (RunEnd.CANCELLED, 1)
        assert (await client.complete("new")).text == "b"
        assert client.options is options
    assert sent(provider) == [("user", "new")]
    assert provider.requests[-1].config.system_prompt == "Be brief."


async def test_a_tool_is_found_by_its_exact_name() -> None:
    options, _ = acting(tools=(adder(),))
    async with Client(options) as client:
        tool = client.get_tool("add")
        assert tool is not None
        assert tool.name == "add"
        assert client.get_tool("Add") is None


async def test_a_prompt_that_a_hook_refuses_is_an_error_of_the_call() -> None:
    async def refuse(moment: UserPromptSubmit) -> HookDeny | None:
        return HookDeny("not today") if moment.prompt.text == "bad" else None

    options, provider = acting(Turn(says("ok")), hooks=Hooks().add_user_prompt_submit(refuse))
    async with Client(options) as client:
        with pytest.raises(WrongUse, match="not today"):
            await client.send("bad")
        assert client.history == ()
        assert (await client.complete("good")).text == "ok"
    assert sent(provider) == [("user", "good")]


async def test_rules_and_modes_go_over_the_consent_to_run_tools() -> None:
    deny = Rule(effect=RuleEffect.DENY, tool="add", scope=RuleScope.ALWAYS)
    for values in ({"rules": (deny,)}, {"mode": PLAN_MODE.name}):
        options, _ = acting(
            Turn(call()), Turn(says("no")), tools=(adder(),), auto_execute_tools=True, approver="always", **values
        )
        async with Client(options) as client:
            events = await listed(client.stream("1 + 2"))
        assert [event.outcome for event in events if isinstance(event, ToolFinished)] == [Outcome.DENIED]


async def test_guards_and_policies_hold() -> None:
    async def once_more(moment: GuardMoment) -> GuardContinue | None:
        return GuardContinue("more") if moment.iteration == 0 else None

    options, provider = acting(
        Turn(says("a")),
        Turn(says("b")),
        guards=(Guard("more", once_more, max_iterations=3),),
        policies=(PromptPolicy(id="p", text="Rhyme."),),
    )
    async with Client(options) as client:
        await client.complete("hi")
    assert sent(provider) == [("user", "hi"), ("assistant", "a"), ("user", "more")]
    assert "Rhyme." in (provider.requests[0].config.system_prompt or "")


async def test_a_closed_client_says_so_and_closes_twice() -> None:
    options, _ = acting(Turn(says("a")))
    client = Client(options)
    await client.complete("hi")
    await client.aclose()
    await client.aclose()
    with pytest.raises(WrongUse, match="closed"):
        await client.send("hi")
    assert client.history[-1].text == "a"


async def test_a_forgotten_client_warns_and_leaves_nothing_running() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step))
    clients = [Client(options)]
    await clients[0].send("hi")
    with pytest.warns(ResourceWarning, match="not closed"):
        clients.clear()
    async with asyncio.timeout(PATIENCE):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
    assert provider.closed_early == 1


async def test_a_client_that_was_never_used_needs_no_closing() -> None:
    options, provider = acting()
    client = Client(options)
    gone = weakref.ref(client)
    with warnings.catch_warnings(record=True) as warned:
        del client
        gc.collect()
    assert (gone(), [*warned], provider.requests) == (None, [], [])
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_options_may_be_values() -> None:
    options, provider = acting(Turn(says("a")))
    async with Client(model="m", provider=provider) as client:
        assert (await client.complete("hi")).text == "a"
    with pytest.raises(WrongUse, match="model"):
        Client(model="")
    assert Client(options, system_prompt="x").options.system_prompt == "x"


async def test_a_listener_hears_everything_with_its_place() -> None:
    options, _ = acting(Turn(says("a")))
    envelopes = []
    async with Client(options, listener=envelopes.append) as client:
        events = await listed(client.stream("hi"))
    assert [envelope.event for envelope in envelopes if envelope.run_id] == events
    assert [envelope.seq for envelope in envelopes if envelope.run_id] == list(range(1, len(events) + 1))


async def test_closing_while_it_is_being_opened_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[HttpClient] = []
    close = HttpClient.aclose

    async def noted(http: HttpClient) -> None:
        closed.append(http)
        await close(http)

    monkeypatch.setattr(HttpClient, "aclose", noted)
    client = Client(model="m", base_url="http://127.0.0.1:9/v1")
    sending = asyncio.create_task(client.send("hi"))
    await asyncio.sleep(0)
    await client.aclose()
    await sending
    assert client.ended is RunEnd.CANCELLED
    assert len(closed) == 1


def test_a_client_belongs_to_the_loop_it_was_used_in() -> None:
    options, _ = acting(Turn(says("a")), Turn(says("b")))
    client = Client(options)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(client.complete("hi"))
        with pytest.raises(WrongUse, match="another event loop"):
            asyncio.run(client.send("hi"))
        assert loop.run_until_complete(client.complete("hi")).text == "b"
        loop.run_until_complete(client.aclose())
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.mark.parametrize("has_asked", [False, True])
async def test_a_closed_client_can_not_be_changed(has_asked: bool) -> None:
    options, _ = acting(Turn(says("one")))
    client = Client(options, policies=[PromptPolicy(id="p", text="Rhyme.")])
    if has_asked:
        await client.complete("hi")
    await client.aclose()
    rule = Rule(effect=RuleEffect.DENY, tool="x")
    changes: list[Callable[[], object]] = [
        lambda: client.set_mode("plan"),
        lambda: client.policies.install(PromptPolicy(id="q", text="Sing.")),
        lambda: client.policies.remove("p"),
        lambda: client.guards.add(Guard("g", _passes, 1)),
        lambda: client.rules.add(rule),
        lambda: client.rules.revoke(rule.id),
        lambda: client.queue.add("more"),
    ]
    for change in changes:
        with pytest.raises(WrongUse):
            change()
    for wait in (client.clear_history, lambda: client.edit_history([]), lambda: client.send("hi")):
        with pytest.raises(WrongUse):
            await wait()


async def _passes(_: GuardMoment) -> GuardPass:
    return GuardPass()


async def test_a_prompt_of_blanks_is_none() -> None:
    options, script = acting()
    async with Client(options) as client:
        with pytest.raises(WrongUse, match="is empty"):
            await client.send(" \n")
    assert script.requests == []


async def test_hooks_in_a_list_run_and_grow() -> None:
    texts: list[str] = []

    async def look(moment: UserPromptSubmit) -> None:
        texts.append(moment.prompt.text)

    options, _ = acting(Turn(says("ok")), hooks=Hooks(user_prompt_submit=[look]).add_user_prompt_submit(look))
    async with Client(options) as client:
        await client.complete("hi")
    assert texts == ["hi", "hi"]
    assert hash(options.hooks)


@pytest.mark.parametrize("make", [Client, TwoPhaseAgent, partial(query, "hi"), partial(run, "hi")])
@pytest.mark.parametrize("options", ["llama3", {"model": "llama3"}])
def test_what_is_no_options_is_refused_at_once(make: Callable[[Any], object], options: Any) -> None:
    with pytest.raises(WrongUse, match="not options"):
        make(options)


async def test_the_result_of_what_is_no_id_is_refused() -> None:
    options, _ = acting(Turn(call("c1")), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("add")
        use: Any = call("c1")
        with pytest.raises(WrongUse, match="not the id of a call"):
            client.add_tool_result(use, "3")
        client.add_tool_result(use.id, "3")
        assert (await client.complete()).text == "3"


@pytest.mark.parametrize("has_asked", [False, True])
async def test_what_is_none_of_its_controls_is_refused_and_changes_nothing(has_asked: bool) -> None:
    gate = Gate()
    options, _ = acting(Turn(says("one"), gate.step), Turn(says("two")))
    async with Client(options) as client:
        if has_asked:
            await client.send("hi")
        wrong: list[Callable[[Any], object]] = [
            client.rules.add,
            client.policies.install,
            client.guards.add,
            client.set_mode,
            lambda value: client.queue.add("more", value),
            lambda value: client.queue.edit("id", when=value),
        ]
        for change in wrong:
            with pytest.raises(WrongUse):
                change(5)
        assert (client.rules.list(), client.policies.list(), client.guards.list()) == ((), (), ())
        assert client.queue.list() == ()
        gate.opened.set()


async def test_a_queued_message_stays_a_prompt() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("one"), gate.step), Turn(says("two")))
    async with Client(options) as client:
        await client.send("hi")
        message_id = client.queue.add("more", "idle")
        for blocks in ([ToolResult(tool_use_id="c1")], [Text(text=" ")], []):
            with pytest.raises(WrongUse):
                client.queue.edit(message_id, blocks)
        client.queue.edit(message_id, [Text(text="other")])
        assert [entry.message.text for entry in client.queue.list()] == ["other"]
        gate.opened.set()
