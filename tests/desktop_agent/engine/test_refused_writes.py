"""Writes that the disk refuses, one reason after the other, and such as can never be made."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.engine.session_writer import SAVED_NOW
from desktop_agent.tools.decorator import tool
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, ToolFinished, ToolStarted
from desktop_agent.types.errors import DatabaseReplaced, DiskFull, StorageFailed, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import ToolClass
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Shaky, Stage, shaky_store


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


def notices(stage: Stage) -> list[str]:
    return [str(item.sentence) for item in stage.session.transcript if isinstance(item, NoticeItem)]


@pytest.mark.parametrize("overtaken", [WrittenElsewhere("It was written."), DatabaseReplaced("It was replaced.")])
async def test_who_is_overtaken_while_the_disk_refuses_is_told_and_sends_nothing_more(
    shaky: Shaky, overtaken: StorageFailed
) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    await stage.say("hello")
    shaky.refuse = DiskFull("The disk is full.")
    await stage.say("second")
    shaky.refuse = overtaken
    await stage.session.write_all()
    shaky.refuse = None
    assert [each.kind for each in stage.of(ErrorOccurred)] == [overtaken.kind]
    assert str(SAVED_NOW) not in notices(stage)
    with pytest.raises(WrongUse):
        stage.session.send(Message.user("third"))


async def test_what_can_never_be_written_is_not_called_saved(shaky: Shaky, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")))
    await stage.say("hello")
    real = shaky.store.commit

    async def commit(id_: str, *messages: Message, **more: Any) -> Any:
        if any(each.text == "second" for each in messages):
            raise ValueError("never")
        return await real(id_, *messages, **more)

    monkeypatch.setattr(shaky.store, "commit", commit)
    await stage.say("second")
    await stage.session.write_all()
    assert notices(stage) == ["A part of the conversation could not be written (ValueError)."]
    await stage.session.close()


async def test_an_answer_that_could_not_be_written_is_read_from_its_pieces_when_it_is_opened_again(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(shaky, Turn(ContentDelta("one")), Turn(ContentDelta("two")), Turn(ContentDelta("three")))
    await stage.say("hello")
    real, is_refused = shaky.store.commit, True

    async def commit(id_: str, *messages: Message, **more: Any) -> Any:
        if is_refused and any(each.text == "two" for each in messages):
            raise ValueError("never")
        return await real(id_, *messages, **more)

    monkeypatch.setattr(shaky.store, "commit", commit)
    await stage.say("second")
    await stage.say("third")
    await stage.session.close()
    said = ["hello", "one", "second", "third", "three"]
    assert [each.text for each in (await shaky.store.load(stage.session.record.id)).messages] == said
    for again in (True, False, False):
        is_refused = again
        session = await reopen_session(shaky.store, stage.session.record.id, stage.session._runs._setup)
        assert [each.text for each in session.history] == [*said, "two"]
        assert session.history[-1].state is MessageState.INTERRUPTED
        await session.close()
    loaded = await shaky.store.load(stage.session.record.id)
    assert [each.text for each in loaded.messages] == [*said, "two"]
    assert loaded.journal == ()


async def test_no_call_of_several_runs_where_their_start_cannot_be_journalled(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    @tool(tool_class=ToolClass.READ_ONLY)
    async def look(number: int) -> str:
        """Look."""
        ran.append(number)
        return "seen"

    rules = (Rule(effect=RuleEffect.ALLOW, tool=look.identity, scope=RuleScope.ALWAYS),)
    uses = [ToolUse(id=f"c{number}", name="look", input={"number": number}) for number in range(5)]
    stage = Stage(shaky, Turn(*uses), Turn(ContentDelta("done")), tools=(look,), setup={"rules": rules})
    real = shaky.store.append_journal

    async def journal(id_: str, rows: Any) -> Any:
        if any(isinstance(row.event, ToolStarted) for row in rows):
            raise ValueError("never")
        return await real(id_, rows)

    monkeypatch.setattr(shaky.store, "append_journal", journal)
    await stage.say()
    assert ran == []
    assert {each.result.outcome for each in stage.of(ToolFinished)} == {Outcome.FAILED}
    await stage.session.close()
