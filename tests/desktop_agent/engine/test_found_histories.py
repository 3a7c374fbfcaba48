"""What other programs left on the disk: read where it is, copied to be continued, and what was passed over is said."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange
from desktop_agent.engine.exchange.found_histories import FoundHistories, FoundProgram
from desktop_agent.exchange.readers.reader import HistoryUnreadable
from desktop_agent.types.errors import StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from tests.desktop_agent.exchange.readers.foreign_homes import CLAUDE_SESSION, write_claude_code, write_codex


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    write_claude_code(tmp_path / "home")
    engine = await Engine.open(tmp_path / "data")
    yield engine
    await engine.close()


async def test_a_session_shows_it_and_refuses_everything(engine: Engine) -> None:
    histories = FoundHistories(engine)
    assert await histories.programs() == (FoundProgram("claude-code", "Claude Code", 1),)
    (found,) = await histories.conversations("claude-code")
    session, held = await histories.open("claude-code", found.id, "found-1")
    assert (session.record.id, str(held.sentence)) == ("found-1", "From Claude Code, read only.")
    assert len(session.history) > 3
    with pytest.raises(StorageFailed, match="read only"):
        session.send(Message.user("Go on"))
    await session.close()
    assert await engine.store.list_conversations() == ()


async def test_each_copy_is_a_conversation_with_all_branches_and_no_folder_that_is_gone(engine: Engine) -> None:
    histories = FoundHistories(engine)
    first, second = [await histories.copy("claude-code", CLAUDE_SESSION) for _ in range(2)]
    assert first != second
    tree = await engine.store.load_tree(first)
    assert tree.workspace is None
    assert len(tree.messages) > len(tree.branch())
    record = await engine.store.record(first)
    assert record.origin is not None
    assert (record.origin.id, record.state.outside[0].kind) == (CLAUDE_SESSION, "file")


async def test_what_is_gone_or_unknown_is_refused(engine: Engine) -> None:
    with pytest.raises(HistoryUnreadable, match="not there any more"):
        await FoundHistories(engine).copy("claude-code", "folder/gone")
    with pytest.raises(WrongUse, match="No histories of “nobody”"):
        await FoundHistories(engine).conversations("nobody")


async def test_an_import_says_what_the_list_passed_over(engine: Engine, tmp_path: Path) -> None:
    path = write_codex(tmp_path / "home")
    path.with_name("rollout-old.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    result = await ConversationExchange(engine.store).import_found("codex")
    assert len(result.added) == 1
    assert ("Compressed conversations, which cannot be read here.", 1) in [
        (str(sentence), count) for sentence, count in result.report.notes
    ]
