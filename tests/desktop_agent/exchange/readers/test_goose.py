"""Sessions of Goose become conversations, from its database and from its older files."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.goose import GooseReader
from desktop_agent.exchange.readers.reader import HistoryUnreadable, Machine
from desktop_agent.types.blocks import Image, Outcome, Text, Thinking, ToolResult, ToolUse
from tests.desktop_agent.exchange.readers.foreign_homes import GOOSE_SESSION, write_goose, write_older_goose


def reader(home: Path, platform: str = "linux", **environment: str) -> GooseReader:
    return GooseReader(Machine(home, environment, platform))


@pytest.fixture(params=["database", "files", "both"])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    if request.param != "files":
        write_goose(tmp_path)
    if request.param != "database":
        write_older_goose(tmp_path)
    return tmp_path


def test_the_places_follow_platform_and_environment(tmp_path: Path) -> None:
    usual = tmp_path / ".local/share/goose/sessions"
    assert reader(tmp_path).locations() == reader(tmp_path, "darwin").locations() == (usual / "sessions.db", usual)
    windows = tmp_path / "AppData/Roaming/Block/goose/data/sessions"
    assert reader(tmp_path, "win32").locations()[1] == windows
    assert reader(tmp_path, GOOSE_PATH_ROOT="/x").locations()[1] == Path("/x/data/sessions")
    assert not reader(tmp_path).is_present()
    write_goose(tmp_path)
    assert reader(tmp_path).is_present()


def test_sessions_are_listed_once_and_those_of_no_person_not(home: Path) -> None:
    (found,) = reader(home).list_conversations()
    assert (found.id, found.title, found.workspace) == (GOOSE_SESSION, "Listing", "/repo")
    assert found.created_at == datetime(2026, 4, 1, tzinfo=UTC)


def test_what_the_database_knows_is_listed(tmp_path: Path) -> None:
    write_goose(tmp_path)
    write_older_goose(tmp_path, "20250101_120000")
    goose = reader(tmp_path)
    new, old = goose.list_conversations()
    assert (new.updated_at, new.model) == (datetime(2026, 4, 1, 0, 10, tzinfo=UTC), "qwen3")
    assert old.id == "20250101_120000"
    assert goose.report.count(Omission.HIDDEN) == 1


def test_a_session_becomes_prompts_answers_and_results(home: Path) -> None:
    loaded = reader(home).load(GOOSE_SESSION)
    branch = loaded.tree.branch()
    assert [(message.role.value, message.text) for message in branch] == [
        ("user", "List it"),
        ("assistant", "Here."),
        ("tool", ""),
        ("assistant", "One file."),
    ]
    assert [type(block) for block in branch[1].blocks] == [Thinking, Text, ToolUse, ToolUse]
    assert branch[1].blocks[0] == Thinking(text="I list.", provider="goose")
    assert (branch[1].tool_uses[0].name, branch[1].tool_uses[0].input) == ("run_command", {"command": "ls"})
    listing, failed = branch[2].blocks
    assert isinstance(listing, ToolResult)
    assert [type(part) for part in listing.content] == [Text, Image]
    assert failed == ToolResult(tool_use_id="t2", content=(Text(text="no such tool"),), outcome=Outcome.FAILED)
    assert (loaded.tree.title, loaded.tree.workspace) == ("Listing", "/repo")
    assert loaded.report.omissions == {(Omission.HIDDEN, "message"): 1}


def test_a_name_that_a_person_gave_stays(tmp_path: Path) -> None:
    write_goose(tmp_path)
    assert reader(tmp_path).load(GOOSE_SESSION).tree.title_is_automatic is False


def test_a_session_that_runs_is_read_with_its_log(tmp_path: Path) -> None:
    connection = write_goose(tmp_path, keep_log=True)
    assert len(reader(tmp_path).load(GOOSE_SESSION).tree.branch()) == 4
    connection.close()


@pytest.mark.parametrize("session_id", ["none", "../sessions", ""])
def test_a_session_that_is_not_there_is_refused(home: Path, session_id: str) -> None:
    with pytest.raises(HistoryUnreadable, match="Goose"):
        reader(home).load(session_id)
