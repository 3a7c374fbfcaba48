"""Edited prompts, answers asked for anew, and going from one branch of a conversation to another."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import AnswerItem, Removed, ToolCallItem, UserItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import in_memory_session, reopen_session
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import Shaky, Stage, check_invariants, shaky_store


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "data") as shaky:
        yield shaky


def stage_for(shaky: Shaky, *answers: str, **more: Any) -> Stage:
    return Stage(shaky, *(Turn(ContentDelta(answer)) for answer in answers), setup={"store": shaky.store}, **more)


def texts(session: Session) -> list[str]:
    return [message.text for message in session.history]


def shown(transcript: Transcript) -> list[str]:
    return [str(item.text) for item in transcript if isinstance(item, UserItem | AnswerItem)]


def counts(session: Session) -> dict[str, tuple[int, int]]:
    """Return "2 of 3" as (2, 3), by the text of the message that has these versions."""
    by_id = {message.id: message.text for message in session.history}
    return {by_id[id_]: (place.index + 1, len(place.ids)) for id_, place in session.branches.versions.items()}


async def reopened(stage: Stage) -> Session:
    await stage.session.close()
    return await reopen_session(stage.shaky.store, stage.session.record.id, stage.session._runs._setup)


async def test_an_edited_prompt_is_sent_in_place_of_the_first_and_both_are_kept(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "other")
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    first = session.history
    session.branches.edit_prompt(first[2].id, Message.user("c"))
    await stage.idle()
    assert texts(session) == shown(session.transcript) == ["a", "one", "c", "other"]
    assert [message.text for message in stage.provider.requests[-1].messages] == ["a", "one", "c"]
    assert counts(session) == {"c": (2, 2)}
    second = await reopened(stage)
    assert second.history == session.history
    assert counts(second) == {"c": (2, 2)}
    await second.branches.show(first[2].id)
    assert second.history == first
    assert shown(second.transcript) == ["a", "one", "b", "two"]
    assert counts(second) == {"b": (1, 2)}
    await second.close()
    assert await stage.stored() == first


async def test_an_answer_is_asked_for_anew_as_often_as_one_likes(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "three")
    session = stage.session
    await stage.say("a")
    for _ in range(2):
        session.branches.regenerate(session.history[-1].id)
        await stage.idle()
    assert texts(session) == shown(session.transcript) == ["a", "three"]
    assert counts(session) == {"three": (3, 3)}
    versions = session.branches.versions[session.history[1].id]
    assert versions.neighbour(1) is None
    before = versions.neighbour(-1)
    assert before is not None
    await session.branches.show(before)
    assert texts(session) == ["a", "two"]
    assert counts(session) == {"two": (2, 3)}
    check_invariants(session.history, stage.events)
    await session.close()


async def test_the_whole_answer_is_asked_for_anew_from_any_part_of_it(shaky: Shaky) -> None:
    turns = [Turn(call("1", "look")), Turn(ContentDelta("one")), Turn(call("1", "look")), Turn(ContentDelta("two"))]
    stage = Stage(shaky, *turns, tools=(tool("look", read_only=True),), setup={"store": shaky.store})
    session = stage.session
    await stage.say("a")
    first = session.history
    assert len(first) == 4
    session.branches.regenerate(first[-1].id)
    await stage.idle()
    assert texts(session) == ["a", "", "", "two"]
    calls = [item for item in session.transcript if isinstance(item, ToolCallItem)]
    assert [item.message_id for item in calls] == [session.history[1].id]
    assert calls[0].result is not None
    check_invariants(session.history, stage.events)
    await session.branches.show(first[1].id)
    assert session.history == first
    assert shown(session.transcript) == ["a", "one"]
    await session.close()


async def test_one_goes_back_and_on_from_there(shaky: Shaky) -> None:
    turns = [Turn(call("1", "look")), Turn(ContentDelta("one")), Turn(ContentDelta("two")), Turn(ContentDelta("new"))]
    stage = Stage(shaky, *turns, tools=(tool("look", read_only=True),), setup={"store": shaky.store})
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    first = session.history
    session.branches.branch_from(first[1].id)  # the call: its result stays with it
    assert session.history == first[:3]
    assert session.branches.continuations == (first[3].id,)
    await stage.say("c")
    assert texts(session) == ["a", "", "", "c", "new"]
    assert counts(session) == {"c": (2, 2)}
    await session.close()


async def test_what_came_after_is_found_again_where_one_went_back(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "new")
    await stage.say("a")
    await stage.say("b")
    first = stage.session.history
    stage.session.branches.branch_from(first[1].id)
    session = await reopened(stage)
    assert session.history == first[:2]
    assert session.branches.continuations == (first[2].id,)
    assert counts(session) == {}
    session.send(Message.user("c"))
    await session.wait_idle()
    assert counts(session) == {"c": (2, 2)}
    assert session.branches.continuations == ()
    await session.branches.show(first[2].id)
    assert session.history == first
    await session.close()


async def test_versions_of_versions_are_found_again(shaky: Shaky) -> None:
    stage = stage_for(shaky, "1", "2", "3", "4")
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    session.branches.edit_prompt(session.history[0].id, Message.user("x"))
    await stage.idle()
    session.branches.regenerate(session.history[-1].id)
    await stage.idle()
    assert texts(session) == ["x", "4"]
    assert counts(session) == {"x": (2, 2), "4": (2, 2)}
    second = await reopened(stage)
    assert counts(second) == {"x": (2, 2), "4": (2, 2)}
    first = second.branches.versions[second.history[0].id].ids[0]
    await second.branches.show(first)
    assert texts(second) == ["a", "1", "b", "2"]
    assert counts(second) == {"a": (1, 2)}
    await second.close()


async def test_what_stays_in_view_is_not_drawn_again(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "three")
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    items = list(session.transcript)[:3]
    changes: list[Any] = []
    session.subscribe(on_changes=changes.extend)
    session.branches.regenerate(session.history[-1].id)
    await stage.idle()
    assert changes[0] == Removed(3, 1)
    assert all(item is old for item, old in zip(session.transcript, items, strict=False))
    await session.close()


async def test_an_interrupted_answer_offers_to_go_on_when_it_is_shown_again(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(ContentDelta("half"), wait), Turn(ContentDelta("whole")), setup={"store": shaky.store})
    session = stage.session
    session.send(Message.user("a"))
    await wait.reached.wait()  # type: ignore[union-attr]
    session.interrupt()
    await stage.idle()
    half = session.history[-1]
    assert half.state is MessageState.INTERRUPTED
    session.branches.regenerate(half.id)
    await stage.idle()
    assert not session.transcript._passing.offers_continue
    await session.branches.show(half.id)
    assert session.transcript._passing.offers_continue
    await session.close()


async def test_nothing_is_changed_while_a_run_is_active_and_by_what_is_wrong(shaky: Shaky) -> None:
    wait = Wait(asyncio.Event(), asyncio.Event())
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(wait, ContentDelta("two")), setup={"store": shaky.store})
    session = stage.session
    await stage.say("a")
    prompt, answer = session.history
    branches = session.branches
    wrong: list[Callable[[], object]] = [
        lambda: branches.edit_prompt(answer.id, Message.user("x")),
        lambda: branches.edit_prompt("nothing", Message.user("x")),
        lambda: branches.edit_prompt(prompt.id, Message.user_with_blocks(())),
        lambda: branches.edit_prompt(prompt.id, prompt),
        lambda: branches.regenerate(prompt.id),
        lambda: branches.regenerate("nothing"),
        lambda: branches.branch_from("nothing"),
    ]
    for act in wrong:
        with pytest.raises(WrongUse):
            act()
    with pytest.raises(WrongUse, match="no message"):
        await branches.show("nothing")
    session.send(Message.user("b"))
    await wait.reached.wait()  # type: ignore[union-attr]
    for act in (lambda: branches.regenerate(answer.id), lambda: branches.branch_from(prompt.id)):
        with pytest.raises(WrongUse, match="still working"):
            act()
    with pytest.raises(WrongUse, match="still working"):
        await branches.show(answer.id)
    wait.until.set()
    await stage.idle()
    assert texts(session) == ["a", "one", "b", "two"]
    assert counts(session) == {}
    await session.close()
    with pytest.raises(WrongUse):
        branches.regenerate(answer.id)


async def test_no_prompt_is_edited_while_others_wait(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one")
    session = stage.session
    await stage.say("a")
    first = session.history
    session.queue.add(Message.user("later"), "idle")
    with pytest.raises(WrongUse, match="wait to be sent"):
        session.branches.edit_prompt(first[0].id, Message.user("b"))
    assert session.history == first
    assert [entry.message.text for entry in session.queue.entries] == ["later"]
    await session.close()


async def test_a_conversation_in_memory_keeps_its_versions_too(shaky: Shaky) -> None:
    stage = stage_for(shaky, "one", "two", "three")
    session = in_memory_session(replace(stage.session._runs._setup, store=None), model="m")
    session.send(Message.user("a"))
    await session.wait_idle()
    first = session.history
    session.branches.edit_prompt(first[0].id, Message.user("b"))
    await session.wait_idle()
    second = session.history
    session.branches.regenerate(second[1].id)
    await session.wait_idle()
    assert counts(session) == {"b": (2, 2), "three": (2, 2)}
    await session.branches.show(second[1].id)
    assert session.history == second
    await session.branches.show(first[0].id)
    assert session.history == first
    with pytest.raises(WrongUse, match="no message"):
        await session.branches.show("nothing")
    await session.close()
    await stage.session.close()


async def test_what_was_chosen_further_below_is_kept_while_one_walks_above(shaky: Shaky) -> None:
    stage = stage_for(shaky, "1", "2", "3", "4")
    session = stage.session
    await stage.say("a")
    await stage.say("b")
    session.branches.regenerate(session.history[-1].id)
    await stage.idle()
    (below,) = session.branches.versions.values()
    await session.branches.show(below.ids[0])
    assert texts(session) == ["a", "1", "b", "2"]
    session.branches.regenerate(session.history[1].id)
    await stage.idle()
    assert texts(session) == ["a", "4"]
    (above,) = session.branches.versions.values()
    await session.branches.show(above.ids[0])
    assert texts(session) == ["a", "1", "b", "2"]
    assert counts(session) == {"1": (1, 2), "2": (1, 2)}
    await session.branches.show(above.ids[1])
    # Where that is gone, or the conversation was opened anew, it is the newest.
    await session.branches.delete(below.ids[0])
    await session.branches.show(above.ids[0])
    assert texts(session) == ["a", "1", "b", "3"]
    await session.close()
