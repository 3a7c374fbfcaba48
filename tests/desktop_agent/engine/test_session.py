"""One open conversation: send, stop, decide."""

import asyncio
import base64
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow

from desktop_agent.conversation.items import AnswerItem, NoticeItem, PictureItem, ToolCallItem, UserItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.engine.titles import TITLE_LENGTH
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.types.blocks import Base64Source, Image, Outcome, StoredSource, Text, UrlSource
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    Envelope,
    ErrorOccurred,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.errors import QuotaExhausted, RemedyAction, Sentence, ToolInputInvalid, WrongUse
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import (
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    Origin,
    ProviderEvent,
    StopReason,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import DISK, Shaky, Stage, check_invariants, results_of, shaky_store
from tests.frame.patience import PATIENCE


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


async def test_send_asks_shows_keeps_and_ends(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("Hel"), ContentDelta("lo"), UsageUpdate(Usage(total_tokens=3))))
    session = stage.session
    assert session.is_new
    session.send(Message.user("Say hello"))
    assert session.working
    assert isinstance(session.transcript[0], UserItem)  # shown at once
    await stage.idle()
    assert not session.working
    assert not session.is_new
    assert session.usage == Usage(total_tokens=3)
    assert [message.text for message in session.history] == ["Say hello", "Hello"]
    assert await stage.stored() == session.history
    assert stage.of(RunStarted) == [RunStarted(session.history[0].id)]
    assert stage.of(RunFinished) == [RunFinished(RunEnd.COMPLETED)]
    check_invariants(session.history, stage.events)
    stage.provider.assert_finished()
    await session.close()


async def test_nothing_is_sent_or_tried_again_while_working(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(wait, ContentDelta("a")))
    stage.session.send(Message.user("p"))
    await wait.reached.wait()  # type: ignore[union-attr]
    with pytest.raises(WrongUse):
        stage.session.send(Message.user("q"))
    with pytest.raises(WrongUse):
        stage.session.retry()
    wait.until.set()
    await stage.idle()
    assert [message.text for message in stage.session.history] == ["p", "a"]
    assert sum(isinstance(item, UserItem) for item in stage.session.transcript) == 1


async def test_the_next_prompt_may_be_sent_as_soon_as_the_end_is_told(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    sent: list[Message] = []

    def on_event(envelope) -> None:
        if isinstance(envelope.event, RunFinished) and not sent:
            sent.append(Message.user("again"))
            stage.session.send(sent[0])

    stage.session.subscribe(on_event=on_event)
    await stage.say()
    assert [message.text for message in stage.session.history] == ["go", "one", "again", "two"]
    assert await stage.stored() == stage.session.history
    check_invariants(stage.session.history, stage.events)
    journal = (await shaky.store.load(stage.session.record.id)).journal
    assert journal == ()


async def test_a_failed_run_leaves_a_session_that_tries_again(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(QuotaExhausted("empty")), Turn(ContentDelta("now")))
    await stage.say()
    assert stage.of(ErrorOccurred)[0].kind == "quota"
    assert stage.of(RunFinished) == [RunFinished(RunEnd.FAILED)]
    stage.session.retry()
    await stage.idle()
    assert [message.text for message in stage.session.history] == ["go", "now"]
    assert stage.of(RunStarted)[1].message_id == stage.session.history[0].id
    assert stage.provider.requests[0].messages == stage.provider.requests[1].messages


@pytest.mark.parametrize(
    "came_to_nothing",
    [
        (MessageDelta(StopReason.END_TURN, "stop", {"empty": True}), Done()),
        (ThinkingDelta("hm"), MessageDelta(StopReason.MALFORMED_TOOL_CALL), Done()),
    ],
    ids=["silence", "a call that could not be read"],
)
async def test_an_answer_that_came_to_nothing_can_be_asked_for_again(
    shaky: Shaky, came_to_nothing: tuple[ProviderEvent, ...]
) -> None:
    stage = Stage(shaky, Turn(*came_to_nothing), Turn(ContentDelta("now")))
    await stage.say()
    notice = stage.session.transcript[len(stage.session.transcript) - 1]
    assert isinstance(notice, NoticeItem)
    assert notice.action is RemedyAction.RETRY
    stage.session.retry()
    await stage.idle()
    assert stage.session.history[-1].text == "now"
    first, second = stage.provider.requests
    assert first.messages == second.messages


async def test_what_was_adjusted_is_told_once_and_not_again_when_it_was_opened_again(shaky: Shaky) -> None:
    started = AnswerStarted(Origin(provider="p"), (Sentence("{names} was left out.", {"names": "top_k"}),))
    stage = Stage(shaky, Turn(started, ContentDelta("a")), Turn(started, ContentDelta("b")))
    await stage.say()
    await stage.say()
    assert sum(isinstance(item, NoticeItem) for item in stage.session.transcript) == 1
    reopened = Transcript(await stage.stored())
    assert [type(item) for item in reopened] == [type(item) for item in stage.session.transcript]
    assert reopened.apply(Envelope(1, "run", None, "turn", now(), started)) == []


async def test_there_must_be_something_to_try_again(shaky: Shaky) -> None:
    stage = Stage(shaky)
    with pytest.raises(WrongUse):
        stage.session.retry()
    assert not stage.session.working


async def test_a_provider_that_cannot_be_opened_ends_the_run_well(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("a")))

    async def refuse(*_: object) -> None:
        raise WrongUse("No model is chosen.")

    object.__setattr__(stage.session._runs._setup, "open_provider", refuse)
    await stage.say()
    assert stage.of(ErrorOccurred)[0].kind == "wrong_use"
    assert not stage.session.working


async def test_what_cannot_be_sent_is_not_shown(shaky: Shaky) -> None:
    stage = Stage(shaky)

    def no_folder(_: object) -> None:
        raise WrongUse("There is no folder.")

    stage.tools_for = no_folder  # type: ignore[assignment]
    with pytest.raises(WrongUse):
        stage.session.send(Message.user("p"))
    assert len(stage.session.transcript) == 0
    assert stage.session.history == ()
    assert not stage.session.working
    assert stage.session.record.title == "New conversation"


async def test_stop_in_the_middle_keeps_what_came(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(ContentDelta("half an "), wait, ContentDelta("answer")), Turn(ContentDelta("whole")))
    stage.session.send(Message.user("p"))
    await wait.reached.wait()  # type: ignore[union-attr]
    stage.session.interrupt()
    stage.session.interrupt()
    await stage.idle()
    last = stage.session.history[-1]
    assert (last.text, last.state) == ("half an ", MessageState.INTERRUPTED)
    assert stage.of(RunFinished) == [RunFinished(RunEnd.CANCELLED)]
    assert stage.provider.closed_early == 1
    assert await stage.stored() == stage.session.history
    offer = stage.session.transcript[-1]
    assert isinstance(offer, NoticeItem)
    assert offer.action is RemedyAction.CONTINUE
    opened_again = SessionWriter(JournalQueue(shaky.store, stage.session.record, is_new=False), await stage.stored())
    assert [type(item) for item in opened_again.transcript] == [type(item) for item in stage.session.transcript]
    assert opened_again.transcript[-1] == offer
    await stage.say("on")
    assert not any(isinstance(item, NoticeItem) for item in stage.session.transcript)
    assert stage.session.history[-1].text == "whole"


async def test_stop_before_the_prompt_is_written_asks_nobody(shaky: Shaky) -> None:
    shaky.gate = asyncio.Event()
    stage = Stage(shaky, Turn(ContentDelta("never")))
    stage.session.send(Message.user("p"))
    await shaky.reached.wait()
    stage.session.interrupt()
    shaky.gate.set()
    await stage.idle()
    assert stage.provider.requests == []
    assert [message.text for message in await stage.stored()] == ["p"]
    offer = stage.session.transcript[-1]
    assert isinstance(offer, NoticeItem)
    assert offer.action is RemedyAction.RETRY
    check_invariants(stage.session.history, stage.events)
    assert stage.of(RunFinished) == [RunFinished(RunEnd.CANCELLED)]


async def test_stop_when_idle_does_nothing(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("a")), Turn(ContentDelta("b")))
    stage.session.interrupt()
    await stage.say()
    stage.session.interrupt()
    await stage.say()
    assert stage.of(RunFinished) == [RunFinished(RunEnd.COMPLETED)] * 2


async def test_decisions_count_once(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(call("1", "act")), Turn(ContentDelta("done")), tools=(tool("act"),))
    session = stage.session
    session.send(Message.user("p"))
    await stage.until(lambda: session.approvals.open_approvals)
    (approval,) = session.approvals.open_approvals
    with pytest.raises(ToolInputInvalid):
        session.approvals.answer(approval.approval_id, AllowOnce(edited_input={"word": 1}))
    assert session.approvals.open_approvals == (approval,)
    assert session.approvals.answer(approval.approval_id, Deny(message="no")).accepted
    assert not session.approvals.answer(approval.approval_id, AllowOnce()).accepted
    assert not session.approvals.answer("nobody", AllowOnce()).accepted
    await stage.idle()
    assert results_of(session.history)["1"].outcome is Outcome.DENIED
    assert not stage.of(ToolStarted)


async def test_an_allowance_lasts_for_the_conversation(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(call("1", "act")), Turn(), Turn(call("2", "act")), Turn(), tools=(tool("act"),))
    stage.session.send(Message.user("p"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    stage.session.approvals.answer(stage.session.approvals.open_approvals[0].approval_id, AllowForConversation())
    await stage.idle()
    await stage.say("again")
    assert len(stage.of(ApprovalRequested)) == 1
    assert [event.outcome for event in stage.of(ToolFinished)] == [Outcome.SUCCEEDED] * 2


async def test_stop_while_a_card_waits_takes_it_back(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(call("1", "act"), call("2", "act")), Turn(ContentDelta("b")), tools=(tool("act"),))
    stage.session.send(Message.user("p"))
    await stage.until(lambda: len(stage.session.approvals.open_approvals) == 2)
    approval = stage.session.approvals.open_approvals[0]
    stage.session.interrupt()
    assert stage.session.approvals.open_approvals == ()
    assert not stage.session.approvals.answer(approval.approval_id, AllowOnce()).accepted
    await stage.idle()
    assert [event.outcome for event in stage.of(ToolFinished)] == [Outcome.CANCELLED] * 2
    assert [item.state for item in stage.session.transcript if isinstance(item, ToolCallItem)] == ["ended", "ended"]
    check_invariants(stage.session.history, stage.events)
    await stage.say()
    assert stage.session.history[-1].text == "b"


async def test_a_tool_that_ignores_stop_does_not_make_the_model_go_on(shaky: Shaky) -> None:
    started, ends = asyncio.Event(), asyncio.Event()

    async def stubborn(word: str) -> str:
        started.set()
        while not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                ends.set()
        return word

    stage = Stage(
        shaky,
        Turn(call("1", "act"), call("2", "nothing of that name")),
        Turn(ContentDelta("never")),
        tools=(tool("act", stubborn),),
    )
    stage.session.send(Message.user("p"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    stage.session.approvals.answer(stage.session.approvals.open_approvals[0].approval_id, AllowOnce())
    await started.wait()
    stage.session.interrupt()
    await stage.idle()
    assert len(stage.provider.requests) == 1
    assert stage.of(RunFinished) == [RunFinished(RunEnd.CANCELLED)]
    check_invariants(stage.session.history, stage.events)


async def test_a_preview_that_fails_does_not_hide_the_call(shaky: Shaky, caplog: pytest.LogCaptureFixture) -> None:
    async def preview(_: object) -> None:
        raise OSError("gone")

    broken = tool("act")
    object.__setattr__(broken, "preview", preview)
    stage = Stage(shaky, Turn(call("1", "act")), Turn(), tools=(broken,))
    stage.session.send(Message.user("p"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    assert "OSError" in str(stage.session.approvals.open_approvals[0].preview)
    stage.session.approvals.answer(stage.session.approvals.open_approvals[0].approval_id, AllowOnce())
    await stage.idle()
    assert results_of(stage.session.history)["1"].outcome is Outcome.SUCCEEDED
    assert "preview of tool act failed" in caplog.text


async def test_a_listener_that_fails_does_not_end_the_run(shaky: Shaky, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(shaky, Turn(ContentDelta("a")), Turn(ContentDelta("b")))

    def fail(_: object) -> None:
        raise RuntimeError("no screen")

    stage.session.subscribe(fail, fail)
    await stage.say()
    assert stage.of(RunFinished) == [RunFinished(RunEnd.COMPLETED)]
    await stage.say()
    assert stage.session.history[-1].text == "b"
    assert "a listener failed: RuntimeError" in caplog.text
    assert "no screen" not in caplog.text, "what it says may hold anything"


async def test_a_call_is_not_run_when_its_start_cannot_be_journalled(shaky: Shaky) -> None:
    ran: list[str] = []

    async def work(word: str) -> str:
        ran.append(word)
        return word

    stage = Stage(shaky, Turn(call("1", "look")), Turn(ContentDelta("b")), tools=(tool("look", work, read_only=True),))
    shaky.refuse = DISK
    await stage.say()
    assert ran == []
    assert results_of(stage.session.history)["1"].outcome is Outcome.FAILED
    assert stage.session.history[-1].text == "b"
    shaky.refuse = None
    await stage.session.close()
    assert await stage.stored() == stage.session.history


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Hello there", "Hello there"),
        ("\n\n  Second line \nthird", "Second line"),
        ("word " * 30, ("word " * 11 + "word") + "…"),
        ("x" * 100, "x" * TITLE_LENGTH + "…"),
    ],
)
async def test_the_first_prompt_gives_the_title(shaky: Shaky, prompt: str, title: str) -> None:
    stage = Stage(shaky, Turn(), Turn())
    await stage.say(prompt)
    assert stage.session.record.title == title
    assert stage.session.record.title_is_automatic
    await stage.say("another prompt")
    assert stage.session.record.title == title
    assert (await shaky.store.load(stage.session.record.id)).record.title == title


async def test_a_prompt_without_words_has_a_title_too(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn())
    image = Image(source=UrlSource(url="https://example.org/a.png"))
    stage.session.send(Message.user_with_blocks([Text(text=" "), image]))
    await stage.idle()
    assert stage.session.record.title == "Picture"


def png() -> bytes:
    file = BytesIO()
    Pillow.new("RGB", (7, 5), "red").save(file, "PNG")
    return file.getvalue()


async def test_a_picture_of_the_model_is_shown_stored_and_sent_with_the_next_prompt(shaky: Shaky) -> None:
    data = base64.b64encode(png()).decode()
    image = Image(source=Base64Source(media_type="image/png", data=data), provider="p")
    stage = Stage(shaky, Turn(ContentDelta("Here:"), image, ContentDelta("Done.")), Turn())
    await stage.say("Draw a cat.")
    shown = [type(item) for item in stage.session.transcript]
    assert shown == [UserItem, AnswerItem, PictureItem, AnswerItem]
    await stage.say("Make it red.")
    prompt = stage.provider.requests[1].messages[-1]
    assert [block.source.data for block in prompt.blocks if isinstance(block, Image)] == [data]
    assert prompt.text == "[From your answer above:]Make it red."
    await stage.session.close()
    stored = (await shaky.store.load(stage.session.record.id)).messages
    assert [type(item) for item in Transcript(stored)][:4] == shown
    (picture,) = (block for block in stored[1].blocks if isinstance(block, Image))
    assert isinstance(picture.source, StoredSource)
    assert await shaky.store.pictures.get(picture.source) == png()


async def test_a_title_of_the_persons_own_stays(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn())
    stage.session.change_record(title="Mine", title_is_automatic=False)
    await stage.say("Hello")
    assert stage.session.record.title == "Mine"


async def test_another_model_holds_from_the_next_prompt_on(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(), Turn())
    await stage.say()
    stage.session.change_record(model="another")
    await stage.say()
    assert [request.model for request in stage.provider.requests] == ["m", "another"]
    await stage.session.close()
    assert (await shaky.store.load(stage.session.record.id)).record.model == "another"


async def test_close_stops_what_runs_and_writes_it(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(ContentDelta("half"), wait))
    stage.session.send(Message.user("p"))
    await wait.reached.wait()  # type: ignore[union-attr]
    async with asyncio.timeout(PATIENCE):
        await stage.session.close()
    assert [message.text for message in await stage.stored()] == ["p", "half"]
    assert stage.of(RunFinished) == [RunFinished(RunEnd.CANCELLED)]


async def test_the_rounds_of_a_run_are_counted(shaky: Shaky) -> None:
    turns = [Turn(call(str(number), "look", word=str(number))) for number in range(3)]
    stage = Stage(shaky, *turns, Turn(ContentDelta("rest")), tools=(tool("look", read_only=True),), iterations=3)
    await stage.say()
    assert stage.of(RunFinished) == [RunFinished(RunEnd.LIMIT)]
    check_invariants(stage.session.history, stage.events)
    await stage.say("Continue.")
    assert stage.session.history[-1].text == "rest"


async def test_a_complete_answer_is_not_asked_for_again(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(ContentDelta("All of it.")))
    stage.session.send(Message.user("go"))
    await stage.idle()
    with pytest.raises(WrongUse, match="complete"):
        stage.session.retry()
    await stage.session.close()


async def test_a_prompt_without_an_answer_offers_to_try_again_when_it_is_opened(shaky: Shaky) -> None:
    stage = Stage(shaky, Turn(QuotaExhausted("no credit", status=429)))
    stage.session.send(Message.user("go"))
    await stage.idle()
    await stage.session.close()
    writer = SessionWriter(JournalQueue(shaky.store, stage.session.record, is_new=False), await stage.stored())
    notice = list(writer.transcript)[-1]
    assert isinstance(notice, NoticeItem)
    assert notice.action is RemedyAction.RETRY
