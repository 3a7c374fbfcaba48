"""Stop in the middle of each tool: nothing is left running, and person and model read what it had done until then."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import ToolCallItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome, ToolResult
from desktop_agent.types.engine_events import RunEnd, RunFinished, ToolFinished
from tests.desktop_agent.engine.stop_stand import Before, BySession, RunRecording, by_session, port_of, until
from tests.desktop_agent.engine.stop_states import Plain, State, begun
from tests.desktop_agent.engine.stop_tools import (
    CASES,
    HELPER,
    LEADER,
    Case,
    Gate,
    Scene,
    builtin,
    marked,
    own_tools,
    workspace_in,
)
from tests.fakes.session import LIMIT, check_invariants, results_of
from tests.fakes.stopping_server import FINE, Server, calls

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands need a shell that the program can read")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_stop_in_the_middle(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = _scene(case, tmp_path, monkeypatch)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    recording = scene.recording
    async with case.context(scene):
        arguments = case.arguments or scene.arguments
        answers = (calls(("c1", case.tool, arguments)), *case.after)
        async with (
            begun(Plain(), answers, tmp_path) as (place, url),
            by_session(
                State("", hooks=scene.hooks),
                url,
                tmp_path,
                recording,
                scene.tools,
                specialists=lambda: (LEADER, HELPER),
                questions=True,
                mode_requests=True,
            ) as face,
        ):
            before = Before(port_of(url), scene.may_stay)
            face.begin("go")
            await until(lambda: case.reached(scene))
            face.interrupt()
            await until(lambda: recording.ended_at)
            scene.release()
            async with asyncio.timeout(LIMIT):
                await face.until_idle()
            await before.until_gone(place.server)
            assert not marked()
            _check_files(case, scene.work)
            assert not list(temporary.iterdir())
            words = _check_result(case, recording, face.history)
            await _check_next(face, place.server, words)
            check_invariants(face.history, recording.events)


async def test_every_tool_that_a_conversation_offers_has_a_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the server is told, so that no tool comes in by another way."""
    scene = _scene(CASES[0], tmp_path, monkeypatch)
    async with (
        begun(Plain(), (FINE,), tmp_path) as (place, url),
        by_session(
            State(""),
            url,
            tmp_path,
            scene.recording,
            builtin(scene),
            specialists=lambda: (LEADER,),
            questions=True,
            mode_requests=True,
        ) as face,
    ):
        face.begin("go")
        await face.until_idle()
        offered = {tool["function"]["name"] for tool in place.server.asked[-1]["tools"]}
    assert {tool.name for tool in builtin_tools(Workspace(scene.work), "all")} <= offered
    assert offered == {case.tool for case in CASES if case.is_builtin}


def _scene(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    gate = Gate(case.at)
    gate.opens_at_stop(monkeypatch)
    scene = Scene(workspace_in(folder), monkeypatch, RunRecording(), gate)
    scene.tools = builtin(scene) if case.is_builtin else own_tools(scene)
    return scene


def _check_files(case: Case, work: Path) -> None:
    for name, content in case.files.items():
        place = work / name
        assert (place.read_text() if place.exists() else None) == content
    assert not [path for path in work.rglob("*") if path.name.endswith(".tmp")]


def _check_result(case: Case, recording: RunRecording, history: Any) -> str:
    """The words that model and person read; the same for both."""
    (root,) = {envelope.run_id for envelope in recording.events if envelope.run_id and envelope.parent_run_id is None}
    run = [envelope for envelope in recording.events if envelope.run_id]
    ends = [envelope for envelope in run if envelope.run_id == root and isinstance(envelope.event, RunFinished)]
    assert [envelope.event for envelope in ends] == [RunFinished(RunEnd.CANCELLED)]
    assert run[-1] is ends[0]
    (finished,) = [
        envelope.event for envelope in run if envelope.run_id == root and isinstance(envelope.event, ToolFinished)
    ]
    result: ToolResult = finished.result
    assert result.outcome is Outcome.CANCELLED
    assert results_of(history) == {"c1": result}
    (item,) = [item for item in _seen(recording) if isinstance(item, ToolCallItem) and item.tool_use_id == "c1"]
    assert item.result == result
    (part,) = result.content
    for words in case.says:
        assert words in part.text
    return part.text


def _seen(recording: RunRecording) -> Transcript:
    """What the window shows."""
    transcript = Transcript()
    for envelope in recording.events:
        transcript.apply(envelope)
    return transcript


async def _check_next(face: BySession, server: Server, words: str) -> None:
    """The conversation goes on, and the model reads them."""
    server.answers.clear()
    async with asyncio.timeout(LIMIT):
        face.begin("and now?")
        await until(lambda: not face.session.working)
        await face.until_idle()
    assert face.history[-1].text == "fine"
    (message,) = [message for message in server.asked[-1]["messages"] if message["role"] == "tool"]
    assert words.strip() in message["content"]
