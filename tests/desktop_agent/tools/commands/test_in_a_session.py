"""A command in a conversation: what the person sees before, sees while it runs, and what Stop leaves."""

import asyncio
from pathlib import Path

from desktop_agent.engine.session import Session
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.engine_events import ToolFinished, ToolProgress
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, CommandPreview, FileChanges, Preview, Risk
from tests.desktop_agent.engine.test_taking_back import Office, card
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import LIMIT, results_of
from tests.frame.children import Children


def asks(line: str) -> Turn:
    return Turn(ToolUse(id="1", name="run_command", input={"command": line}))


async def allow_the_call(session: Session) -> Preview | None:
    """Allow the one call, having seen what is shown of it."""
    session.send(Message.user("go"))
    id_ = await card(session)
    preview = session.approvals.open_approvals[0].preview
    session.approvals.answer(id_, AllowOnce())
    return preview


async def test_the_card_shows_the_commands_and_their_bounds(tmp_path: Path) -> None:
    async with Office(tmp_path, asks("echo live && rm -f gone"), Turn(ContentDelta("Done."))) as office:
        (office.work / "gone").touch()
        session = office.new_session()
        preview = await allow_the_call(session)
        async with asyncio.timeout(LIMIT):
            await session.wait_idle()
        assert isinstance(preview, CommandPreview)
        assert (preview.line, preview.folder) == ("echo live && rm -f gone", str(office.work))
        assert [part.text for part in preview.parts] == ["echo live", "rm -f gone"]
        assert Risk.DELETES in preview.parts[1].risks
        assert str(preview.confinement).startswith(("Confined by ", "Not confined: "))
        assert "".join(event.text for event in office.of(ToolProgress)) == "live\n"
        (result,) = results_of(session.history).values()
        assert (result.outcome, result.content) == (Outcome.SUCCEEDED, (Text(text="live\n[exit code 0.]"),))
        assert not (office.work / "gone").exists()
        (finished,) = office.of(ToolFinished)
        assert finished.changes == FileChanges(deleted=("gone",), count=1)


async def test_stop_ends_everything_that_it_started(tmp_path: Path, new_children: Children) -> None:
    async with Office(tmp_path, asks("sleep 500 & sleep 500 & echo begun; wait; touch late")) as office:
        session = office.new_session()
        await allow_the_call(session)
        async with asyncio.timeout(LIMIT):
            while not office.of(ToolProgress):
                await asyncio.sleep(0.01)
        assert new_children()
        session.interrupt()
        async with asyncio.timeout(LIMIT):
            await session.wait_idle()
        assert not new_children()
        (result,) = results_of(session.history).values()
        assert result.outcome is Outcome.CANCELLED
        assert not (office.work / "late").exists()
