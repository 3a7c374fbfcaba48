"""Messages that are sent while the agent works, and prompts on their way: delivered once, or handed back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.conversation.items import NoticeItem, UserItem
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.engine.session_writer import MESSAGE_WAITS
from desktop_agent.types.engine_events import (
    Envelope,
    ErrorOccurred,
    RunEnd,
    RunFinished,
    RunStarted,
    UserMessageDelivered,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import QuotaExhausted, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import (
    HookDeny,
    HookEdit,
    Hooks,
    HookVerdict,
    StopTool,
    StopTurn,
    UserPromptSubmit,
    When,
)
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import Shaky, Stage, check_invariants, shaky_store
from tests.frame.patience import PATIENCE


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


def pause() -> Wait:
    return Wait(asyncio.Event(), asyncio.Event())


async def working(stage: Stage, wait: Wait, text: str = "go") -> Session:
    """The session, in the middle of an answer."""
    stage.session.send(Message.user(text))
    assert wait.reached is not None
    await wait.reached.wait()
    return stage.session


def texts_of(session: Session) -> list[str]:
    return [message.text for message in session.history if message.text]


def shown(session: Session) -> list[str]:
    return [item.text for item in session.transcript if isinstance(item, UserItem)]


def finished(stage: Stage) -> list[RunEnd]:
    return [event.reason for event in stage.of(RunFinished)]


async def test_a_message_that_is_soon_comes_after_the_results_of_the_turn(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(
        shaky, Turn(wait, call("1", "look")), Turn(ContentDelta("done")), tools=(tool("look", read_only=True),)
    )
    session = await working(stage, wait)
    message = Message.user("and this")
    session.steer(message)
    assert [entry.id for entry in session.queue.entries] == [message.id]
    assert shown(session) == ["go"]
    wait.until.set()
    await stage.idle()
    assert [message.role for message in session.history] == ["user", "assistant", "tool", "user", "assistant"]
    assert texts_of(session) == ["go", "and this", "done"]
    assert shown(session) == ["go", "and this"]
    assert stage.of(UserMessageQueued) == [UserMessageQueued(message.id)]
    assert stage.of(UserMessageDelivered) == [UserMessageDelivered(message.id)]
    assert len(stage.of(RunStarted)) == 1
    check_invariants(session.history, stage.events)
    assert await stage.stored() == session.history
    assert session.record.state.queue == ()


async def test_one_that_waits_until_it_is_idle_gets_a_run_of_its_own(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(wait, ContentDelta("one")), Turn(ContentDelta("two")), Turn(ContentDelta("three")))
    session = await working(stage, wait)
    first, second = Message.user("a"), Message.user("b")
    session.steer(first, "idle")
    session.steer(second, "idle")
    wait.until.set()
    await stage.idle()
    assert texts_of(session) == ["go", "one", "a", "two", "b", "three"]
    assert [event.message_id for event in stage.of(RunStarted)] == [session.history[0].id, first.id, second.id]
    assert session.queue.entries == ()
    check_invariants(session.history, stage.events)


async def test_it_may_name_the_turn_that_it_is_for(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(wait, ContentDelta("one")), Turn(ContentDelta("two")))
    session = await working(stage, wait)
    turn_id = stage.events[-1].turn_id
    with pytest.raises(WrongUse, match="another turn"):
        session.steer(Message.user("no"), expected_turn_id="another")
    assert session.queue.entries == ()
    session.steer(Message.user("yes"), expected_turn_id=turn_id)
    wait.until.set()
    await stage.idle()
    with pytest.raises(WrongUse, match="another turn"):
        session.steer(Message.user("too late"), expected_turn_id=turn_id)
    assert texts_of(session) == ["go", "one", "yes", "two"]


async def test_when_idle_it_is_sent(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")))
    stage.session.steer(Message.user("go"), "idle")
    await stage.idle()
    assert texts_of(stage.session) == ["go", "one"]


async def test_stop_hands_back_all_that_waits_whole(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(ContentDelta("half"), wait), Turn(ContentDelta("next")))
    session = await working(stage, wait)
    waiting = [Message.user("a"), Message.user("b")]
    session.steer(waiting[0])
    session.steer(waiting[1], "idle")
    session.interrupt()
    await stage.idle()
    assert [event.message_id for event in stage.of(UserMessageReturned)] == [message.id for message in waiting]
    assert [session.returned(message.id) for message in waiting] == waiting
    assert session.returned(waiting[0].id) is None  # once
    assert texts_of(session) == ["go", "half"]
    assert session.queue.entries == ()
    assert session.record.state.queue == ()
    await stage.say("on")
    assert texts_of(session) == ["go", "half", "on", "next"]


async def test_to_stop_the_turn_sends_what_waits(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(ContentDelta("half"), wait), Turn(ContentDelta("next")))
    session = await working(stage, wait)
    session.steer(Message.user("rather this"))
    assert session.interrupt(StopTurn())
    await stage.idle()
    assert texts_of(session) == ["go", "half", "rather this", "next"]
    assert finished(stage) == [RunEnd.CANCELLED, RunEnd.COMPLETED]
    assert stage.of(UserMessageReturned) == []


async def test_to_stop_a_call_leaves_the_run_and_the_queue_alone(shaky: Shaky) -> None:
    started = asyncio.Event()

    async def hang(word: str) -> str:
        started.set()
        await asyncio.Event().wait()
        return word

    stage = Stage(
        shaky,
        Turn(call("1", "look")),
        Turn(ContentDelta("a")),
        Turn(ContentDelta("b")),
        tools=(tool("look", hang, read_only=True),),
    )
    session = stage.session
    session.send(Message.user("go"))
    await started.wait()
    session.steer(Message.user("later"), "idle")
    assert not session.interrupt(StopTool("nobody"))
    assert session.interrupt(StopTool("1"))
    await stage.idle()
    assert finished(stage) == [RunEnd.COMPLETED] * 2
    assert [text for text in texts_of(session) if text in {"go", "a", "later", "b"}] == ["go", "a", "later", "b"]


async def test_a_run_that_failed_leaves_the_queue_until_somebody_goes_on(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(
        shaky, Turn(wait, QuotaExhausted("empty")), Turn(ContentDelta("now")), Turn(ContentDelta("that")), Turn()
    )
    session = await working(stage, wait)
    session.steer(Message.user("later"), "idle")
    wait.until.set()
    await stage.idle()
    assert finished(stage) == [RunEnd.FAILED]
    assert len(session.queue.entries) == 1
    session.continue_run()  # the prompt that failed goes first
    await stage.idle()
    assert texts_of(session) == ["go", "now", "later", "that"]


async def test_what_waits_outlasts_the_program(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(ContentDelta("half"), wait), Turn(ContentDelta("now")), Turn(ContentDelta("last")))
    session = await working(stage, wait)
    waiting = Message.user("kept")
    session.steer(waiting, "idle")
    await session.close()
    assert stage.of(UserMessageReturned) == []
    reopened = await reopen_session(shaky.store, session.record.id, session._runs._setup)
    assert [(entry.message, entry.when) for entry in reopened.queue.entries] == [(waiting, "idle")]
    assert MESSAGE_WAITS in [item.sentence for item in reopened.transcript if isinstance(item, NoticeItem)]
    reopened.continue_run()
    async with asyncio.timeout(PATIENCE):
        await reopened.wait_idle()
    assert texts_of(reopened) == ["go", "half", "now", "kept", "last"]
    await reopened.close()
    assert (await shaky.store.load(session.record.id)).record.state.queue == ()


async def test_a_message_whose_delivery_was_not_noted_is_not_delivered_again(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(wait, ContentDelta("one")), Turn(ContentDelta("two")))
    session = await working(stage, wait)
    session.steer(Message.user("kept"))
    await session._writer.flush()
    while_it_waited = session.record.state
    assert len(while_it_waited.queue) == 1
    wait.until.set()
    await stage.idle()
    await session.close()
    # The program ended after the message was written and before the queue was.
    await shaky.store.update_conversation(session.record.id, state=while_it_waited)
    reopened = await reopen_session(shaky.store, session.record.id, session._runs._setup)
    assert reopened.queue.entries == ()
    assert texts_of(reopened) == ["go", "one", "kept", "two"]
    await reopened.close()


async def test_a_prompt_that_a_hook_refuses_goes_back(shaky: Shaky) -> None:
    async def refuse(moment: UserPromptSubmit) -> HookVerdict | None:
        return HookDeny("not today") if moment.prompt.text == "bad" else None

    stage = Stage(shaky, Turn(ContentDelta("fine")), setup={"hooks": Hooks().add_user_prompt_submit(refuse)})
    session, whole = stage.session, []

    def fetch(envelope: Envelope) -> None:
        if isinstance(envelope.event, UserMessageReturned):
            whole.append(session.returned(envelope.event.message_id))

    session.subscribe(on_event=fetch)
    bad = Message.user("bad")
    session.send(bad)
    assert shown(session) == ["bad"]  # at once
    await stage.idle()
    assert whole == [bad]
    assert session.history == ()
    assert "not today" in str(stage.of(ErrorOccurred)[0].sentence)
    assert finished(stage) == [RunEnd.ABORTED]
    assert session.record.state.queue == ()
    await stage.say("good")
    assert texts_of(session) == ["good", "fine"]
    check_invariants(session.history, stage.events)


async def test_a_hook_changes_what_is_sent_and_kept(shaky: Shaky) -> None:
    async def edit(moment: UserPromptSubmit) -> HookVerdict | None:
        return HookEdit(prompt=Message.user("other words"))

    stage = Stage(shaky, Turn(ContentDelta("fine")), setup={"hooks": Hooks().add_user_prompt_submit(edit)})
    prompt = Message.user("my words")
    stage.session.send(prompt)
    await stage.idle()
    assert texts_of(stage.session) == ["other words", "fine"]
    assert stage.session.history[0].id == prompt.id
    assert await stage.stored() == stage.session.history
    assert stage.of(UserMessageReturned) == []


@pytest.mark.parametrize("when", ["soon", "idle"])
async def test_at_every_moment_the_disk_has_a_message_that_was_sent(shaky: Shaky, when: When) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(wait, ContentDelta("one")), Turn(ContentDelta("two")))
    session = await working(stage, wait)
    message = Message.user("do not lose me")
    session.steer(message, when)
    await session._writer.flush()
    looks: list[bool] = []

    async def look() -> None:
        loaded = await shaky.store.load(session.record.id)
        known = [*loaded.messages, *(entry.message for entry in loaded.record.state.queue)]
        looks.append(message.id in {entry.id for entry in known})

    shaky.after = look
    wait.until.set()
    await stage.idle()
    await session.close()
    assert len(looks) > 5
    assert all(looks)
    assert texts_of(session) == ["go", "one", "do not lose me", "two"]


async def test_a_prompt_is_kept_while_a_hook_looks_at_it(shaky: Shaky, monkeypatch: pytest.MonkeyPatch) -> None:
    # Not only when the journal is written next.
    monkeypatch.setattr("desktop_agent.storage.write_behind.FLUSH_INTERVAL", 3600)
    looking, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(_: UserPromptSubmit) -> HookVerdict | None:
        looking.set()
        await goes_on.wait()
        return None

    stage = Stage(shaky, Turn(ContentDelta("fine")), setup={"hooks": Hooks().add_user_prompt_submit(slow)})
    prompt = Message.user("do not lose me")
    stage.session.send(prompt)
    await looking.wait()
    await stage.until(lambda: stage.session._writer.journal_queue.is_flushed)
    # What a process finds that opens the conversation after this one died just now.
    loaded = await shaky.store.load(stage.session.record.id)
    assert loaded.messages == ()
    assert [entry.message for entry in loaded.record.state.queue] == [prompt]
    goes_on.set()
    await stage.idle()
    assert texts_of(stage.session) == ["do not lose me", "fine"]
    await stage.session.close()
    assert (await shaky.store.load(stage.session.record.id)).record.state.queue == ()


async def test_a_prompt_that_was_stopped_while_a_hook_looked_at_it_goes_back(shaky: Shaky) -> None:
    looking = asyncio.Event()

    async def slow(_: UserPromptSubmit) -> HookVerdict | None:
        looking.set()
        await asyncio.Event().wait()
        return None

    stage = Stage(shaky, setup={"hooks": Hooks().add_user_prompt_submit(slow)})
    prompt = Message.user("p")
    stage.session.send(prompt)
    await looking.wait()
    stage.session.interrupt()
    await stage.idle()
    assert [event.message_id for event in stage.of(UserMessageReturned)] == [prompt.id]
    assert stage.session.returned(prompt.id) == prompt
    assert stage.session.history == ()
    assert stage.session.record.state.queue == ()


async def test_a_prompt_that_is_stopped_before_anything_happened_goes_back(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("never")))
    prompt = Message.user("p")
    stage.session.send(prompt)
    stage.session.interrupt()
    await stage.idle()
    known = [message.id for message in stage.session.history]
    returned = [event.message_id for event in stage.of(UserMessageReturned)]
    assert known + returned == [prompt.id]
    assert stage.provider.requests == []


async def test_the_prompt_sent_when_the_end_is_told_is_not_taken_for_lost(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    sent: list[Message] = []

    def again(envelope: Envelope) -> None:
        if isinstance(envelope.event, RunFinished) and not sent:
            sent.append(Message.user("again"))
            stage.session.send(sent[0])

    stage.session.subscribe(on_event=again)
    await stage.say()
    assert stage.of(UserMessageReturned) == []
    assert texts_of(stage.session) == ["go", "one", "again", "two"]


async def test_a_prompt_that_a_hook_still_looks_at_waits_for_the_next_opening(shaky: Shaky) -> None:
    looking = asyncio.Event()

    async def slow(moment: UserPromptSubmit) -> HookVerdict | None:
        if moment.prompt.text == "mine":
            looking.set()
            await asyncio.Event().wait()
        return None

    stage = Stage(shaky, Turn(ContentDelta("hi")), setup={"hooks": Hooks().add_user_prompt_submit(slow)})
    await stage.say("one")
    prompt, behind = Message.user("mine"), Message.user("behind")
    stage.session.send(prompt)
    await looking.wait()
    stage.session.steer(behind, "idle")
    await stage.session.close()
    assert [entry.message for entry in stage.session.queue.entries] == [prompt, behind]
    assert stage.session.returned(prompt.id) is None
    loaded = await shaky.store.load(stage.session.record.id)
    assert [entry.message for entry in loaded.record.state.queue] == [prompt, behind]
    assert [type(event) for event in stage.of(UserMessageQueued)][-1:] == [UserMessageQueued]
    assert shown(stage.session) == ["one"]


async def test_what_waits_behind_a_run_that_failed_is_not_overtaken(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(wait, QuotaExhausted("empty")), *(Turn(ContentDelta(text)) for text in "xyz"))
    session = await working(stage, wait)
    session.steer(Message.user("first"), "idle")
    wait.until.set()
    await stage.idle()
    session.steer(Message.user("second"), "idle")
    await stage.idle()
    assert texts_of(session) == ["go", "first", "x", "second", "y"]
    assert len(stage.of(UserMessageQueued)) == 2
    await session.close()


async def test_a_prompt_that_is_sent_after_a_run_that_failed_comes_behind_what_waits(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(wait, QuotaExhausted("empty")), Turn(ContentDelta("x")))
    session = await working(stage, wait)
    session.steer(Message.user("first"), "idle")
    wait.until.set()
    await stage.idle()
    await stage.say("second")
    assert texts_of(session) == ["go", "first", "second", "x"]
    assert session.queue.entries == ()
    await session.close()


async def test_what_waits_goes_on_after_a_summary_that_came_to_nothing(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("hi")), Turn(ContentDelta("again")))
    await stage.say("one")
    stage.session.compact()
    stage.session.steer(Message.user("two"))
    await stage.idle()
    assert finished(stage) == [RunEnd.COMPLETED, RunEnd.FAILED, RunEnd.COMPLETED]
    assert texts_of(stage.session) == ["one", "hi", "two", "again"]
    await stage.session.close()


async def test_a_message_is_sent_once(shaky: Shaky) -> None:
    wait = pause()
    stage = Stage(shaky, Turn(ContentDelta("hi")), Turn(wait, ContentDelta("ok")), Turn(ContentDelta("last")))
    prompt = Message.user("same")
    stage.session.send(prompt)
    with pytest.raises(WrongUse, match="sent already"):
        stage.session.steer(prompt)
    await stage.idle()
    with pytest.raises(WrongUse, match="sent already"):
        stage.session.send(prompt)
    session = await working(stage, wait, "more")
    with pytest.raises(WrongUse, match="sent already"):
        session.steer(prompt)
    waiting = Message.user("waits")
    session.steer(waiting)
    with pytest.raises(WrongUse, match="waits already"):
        session.steer(waiting)
    wait.until.set()
    await stage.idle()
    session.edit_history(())
    with pytest.raises(WrongUse, match="sent already"):
        session.send(prompt)  # on the disk it stands in what was left
    await session.close()


async def test_only_a_prompt_that_says_something_is_sent(shaky: Shaky) -> None:
    stage = Stage(shaky)
    for message in (Message.assistant("no"), Message.system("no"), Message.user_with_blocks(())):
        with pytest.raises(WrongUse):
            stage.session.send(message)
    assert stage.session.history == ()
    assert stage.events == []
    await stage.session.close()
