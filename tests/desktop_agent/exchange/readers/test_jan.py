"""Threads of Jan become conversations."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.jan import JanReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, Machine
from desktop_agent.types.blocks import Image, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import MessageState
from tests.desktop_agent.exchange.readers.foreign_homes import JAN_THREAD, jan_messages, write_jan


def reader(home: Path, platform: str = "linux") -> JanReader:
    return JanReader(Machine(home, {}, platform))


def test_the_places_follow_the_platform(tmp_path: Path) -> None:
    data = Path("Jan/data/threads")
    assert reader(tmp_path).locations() == (
        tmp_path / ".local/share" / data,
        tmp_path / ".config" / data,
        tmp_path / "jan/threads",
    )
    assert reader(tmp_path, "darwin").locations()[0] == tmp_path / "Library/Application Support" / data
    assert reader(tmp_path, "win32").locations()[0] == tmp_path / "AppData/Roaming" / data


def test_threads_with_messages_are_listed(tmp_path: Path) -> None:
    path = write_jan(tmp_path)
    assert reader(tmp_path).is_present()
    (found,) = reader(tmp_path).list_conversations()
    assert (found.id, found.title, found.model) == (JAN_THREAD, "Looking", "jan-v1")
    assert found.created_at == datetime.fromtimestamp(1_758_816_800, UTC)
    assert found.updated_at == datetime.fromtimestamp(1_758_816_900, UTC)
    path.unlink()
    assert list(reader(tmp_path).list_conversations()) == []


def test_a_thread_becomes_prompts_answers_and_results(tmp_path: Path) -> None:
    write_jan(tmp_path)
    branch = reader(tmp_path).load(JAN_THREAD).tree.branch()
    assert [message.role.value for message in branch] == [
        *("user", "assistant", "tool", "assistant", "assistant", "tool"),
    ]
    assert [type(block) for block in branch[0].blocks] == [Text, Image]
    assert branch[1].blocks == (
        Thinking(text="I see.", provider="jan"),
        ToolUse(id="c1", name="search", input={"q": "x"}),
    )
    assert branch[2].blocks == (ToolResult(tool_use_id="c1", content=(Text(text="Found"),)),)
    assert branch[3].text == "Found it."
    assert branch[4].blocks == (
        Thinking(text="Hm.", provider="jan"),
        Text(text="Well"),
        ToolUse(id="c2", name="open", input={"u": 1}),
    )
    assert branch[4].state is MessageState.INTERRUPTED
    assert branch[5].blocks == (ToolResult(tool_use_id="c2", content=(Text(text="no"),), outcome=Outcome.FAILED),)
    assert branch[3].model == "jan-v1"


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    odd = {"role": "user", "content": [{"type": "hologram"}, {"type": "text", "text": {"value": " "}}]}
    write_jan(tmp_path, [*jan_messages(), odd, {"role": "ghost"}, {"role": "tool"}])
    assert reader(tmp_path).load(JAN_THREAD).report.omissions == {
        (Omission.UNKNOWN, "hologram"): 1,
        (Omission.HIDDEN, "empty"): 1,
        (Omission.UNKNOWN, "ghost"): 1,
        (Omission.HIDDEN, "tool"): 1,
    }


@pytest.mark.parametrize("thread_id", ["none", "..", "", "a/b"])
def test_a_thread_that_is_not_there_is_refused(tmp_path: Path, thread_id: str) -> None:
    write_jan(tmp_path)
    with pytest.raises(HistoryUnreadable, match="Jan"):
        reader(tmp_path).load(thread_id)
