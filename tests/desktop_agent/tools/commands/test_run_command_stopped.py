"""A command that is stopped: nothing is left running, and the model reads what it had done until then."""

import asyncio
from pathlib import Path

import psutil
import pytest

from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import ToolFinished, ToolProgress
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import FileChanges
from tests.desktop_agent.engine.test_taking_back import Office
from tests.fakes.scripted_provider import Turn
from tests.frame.patience import PATIENCE

ALLOWED = Rule(effect=RuleEffect.ALLOW, tool="run_command", scope=RuleScope.ALWAYS)
LINE = "echo half > half.txt; echo first; echo second; sleep 987654 & sleep 987654"


def running(text: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if text in (process.info["cmdline"] or [])]


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="no bash here")
async def test_stop_ends_everything_and_says_what_it_had_written(tmp_path: Path) -> None:
    call = ToolUse(id="1", name="run_command", input={"command": LINE})
    async with Office(tmp_path, Turn(call)) as office:
        session = office.new_session()
        session.permission_policy.add(ALLOWED)
        session.send(Message.user("go"))
        async with asyncio.timeout(PATIENCE):
            while (
                "second" not in "".join(event.text for event in office.of(ToolProgress)) or len(running("987654")) < 2
            ):
                await asyncio.sleep(0.01)
        session.interrupt()
        await session.wait_idle()
        (finished,) = office.of(ToolFinished)

    result: ToolResult = finished.result
    text = result.content[0].text
    assert result.outcome is Outcome.CANCELLED
    assert finished.changes == FileChanges(created=("half.txt",), count=1)
    assert "3 processes were ended. Since it began, files of the workspace: created half.txt." in text
    assert "until then:\nfirst\nsecond\n3 processes" in text
    assert (tmp_path / "work/half.txt").read_text() == "half\n"
    assert not running("987654")
