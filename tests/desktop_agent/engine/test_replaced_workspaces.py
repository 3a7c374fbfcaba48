"""A command of one conversation puts a link in the place of another's workspace: nothing is done where it leads."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.checkpoints import FileState
from desktop_agent.types.engine_events import ApprovalRequested, Envelope
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.messages import Message
from desktop_agent.types.preferences import McpPreferences
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce
from tests.desktop_agent.engine.restoring import restore_one
from tests.desktop_agent.engine.test_engine import opened
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait
from tests.frame.patience import PATIENCE

SECRET = "only for me"
DONE = Turn(ContentDelta("Done."))


class Scene:
    """A conversation that works in `code`, and another in `code/proj`."""

    def __init__(self, engine: Engine, provider: ScriptedProvider, folder: Path) -> None:
        self.engine = engine
        self.provider = provider
        self.proj = folder / "code" / "proj"
        self.keys = folder / "keys"
        self.proj.mkdir(parents=True)
        self.keys.mkdir()
        (self.proj / "a.txt").write_text("mine")
        (self.keys / "a.txt").write_text(SECRET)
        self.attacker = engine.new_session(workspace=str(self.proj.parent))
        self.session = engine.new_session(workspace=str(self.proj))
        for session in (self.attacker, self.session):
            session.subscribe(on_event=allowing(session))

    async def replace(self) -> None:
        """Let the other conversation put a link in the place of the folder, by a command that is allowed."""
        line = f"mv proj aside && ln -s {shlex.quote(str(self.keys))} proj"
        await self.say(self.attacker, "tidy up", call("run_command", command=line), DONE)
        assert self.proj.resolve() == self.keys

    async def say(self, session: Session, text: str, *turns: Turn) -> None:
        self.play(*turns)
        session.send(Message.user(text))
        await session.wait_idle()
        assert session.error is None

    def play(self, *turns: Turn) -> None:
        self.provider._turns += turns

    def told(self) -> str:
        """Return all that the model ever read."""
        return repr(self.provider.requests)


def allowing(session: Session) -> Callable[[Envelope], None]:
    def on_event(envelope: Envelope) -> None:
        if isinstance(envelope.event, ApprovalRequested):
            session.approvals.answer(envelope.event.approval_id, AllowOnce())

    return on_event


def call(name: str, **arguments: str) -> Turn:
    return Turn(ToolUse(id=name, name=name, input=arguments))


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    engine, provider = await opened(tmp_path / "data", toolset="all")
    yield Scene(engine, provider, tmp_path)
    await engine.close()


async def test_no_run_begins_where_the_link_leads(scene: Scene) -> None:
    await scene.replace()
    request_count = len(scene.provider.requests)
    with pytest.raises(WrongUse) as refused:
        scene.session.send(Message.user("read a.txt"))
    assert str(refused.value.sentence) == f"“{scene.proj}” leads to “{scene.keys}” now."
    assert str(refused.value.remedy).startswith("Choose the folder again")
    assert (len(scene.provider.requests), len(scene.session.transcript)) == (request_count, 0)


@pytest.mark.parametrize("choice", ["the target", "none"])
async def test_the_conversation_goes_on_in_what_is_chosen_then(scene: Scene, choice: str) -> None:
    await scene.replace()
    scene.session.change_record(workspace=str(scene.keys) if choice == "the target" else None)
    await scene.say(scene.session, "read a.txt", call("read_file", path="a.txt"), DONE)
    assert (SECRET in scene.told()) == (choice == "the target")


async def test_a_run_at_work_does_not_follow_it(scene: Scene) -> None:
    started, swapped = asyncio.Event(), asyncio.Event()
    line = {"command": "cat a.txt; echo overwritten > a.txt"}
    scene.play(
        Turn(Wait(swapped, started), ToolUse(id="1", name="read_file", input={"path": "a.txt"})),
        call("list_files", path="."),
        call("search_files", pattern="only"),
        call("write_file", path="a.txt", content="overwritten"),
        call("run_command", **line),
        DONE,
    )
    scene.session.send(Message.user("work"))
    await asyncio.wait_for(started.wait(), PATIENCE)
    scene.proj.rename(scene.proj.with_name("aside"))
    scene.proj.symlink_to(scene.keys)
    swapped.set()
    await scene.session.wait_idle()
    blocks = [block for message in scene.session.history for block in message.blocks]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    assert len(results) == 5
    assert all(f"leads to “{scene.keys}” now" in str(result.content) for result in results), results
    assert SECRET not in scene.told()
    assert (scene.keys / "a.txt").read_text() == SECRET


async def test_an_undo_neither_shows_nor_changes_what_is_there(scene: Scene) -> None:
    await scene.say(scene.session, "write", call("write_file", path="a.txt", content=SECRET), DONE)
    checkpoints = scene.session.checkpoints
    assert checkpoints is not None
    (checkpoint,) = await checkpoints.list()
    (before,) = (await checkpoints.preview(checkpoint.id)).files
    await scene.replace()
    (file,) = (await checkpoints.preview(checkpoint.id)).files
    assert (file.current_state, file.effect()) == (FileState(), "left")
    assert "leads to" in str(file.reason)
    assert "leads to" in str(await checkpoints.difference(before))
    report = await restore_one(checkpoints, checkpoint.id, ticked=True)
    assert report.failed == ("a.txt",)
    assert (scene.keys / "a.txt").read_text() == SECRET


async def test_no_server_is_started_there(scene: Scene) -> None:
    connection = StdioConnection(command="/bin/sh", args=("-c", "touch started"))
    server = McpServer(id="s", title="S", connection=connection)
    preferences = scene.engine.preferences
    await scene.engine.change_preferences(preferences.model_copy(update={"mcp": McpPreferences(servers=(server,))}))
    await scene.replace()
    state = await scene.engine.mcp.test("s", scene.proj)
    assert "leads to" in str(state.reason)
    assert not (scene.keys / "started").exists()


async def test_the_demo_works_in_a_data_folder_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "data").symlink_to("disk")
    engine = await Engine.open(tmp_path / "data", RunDefaults())
    session = await engine.new_demo_session()
    session.send(Message.user("Hello"))
    await session.wait_idle()
    assert session.error is None
    await engine.close()
