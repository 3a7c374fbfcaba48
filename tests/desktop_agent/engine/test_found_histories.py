"""What other programs left on the disk: read where it is, copied to be continued, and what was passed over is said."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.engine import Engine
from desktop_agent.engine.exchange.conversation_exchange import ConversationExchange
from desktop_agent.engine.exchange.found_histories import FoundHistories, FoundProgram
from desktop_agent.exchange.readers.reader import HistoryUnreadable
from desktop_agent.types.errors import StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from tests.desktop_agent.exchange.readers.foreign_homes import (
    CLAUDE_SESSION,
    LM_STUDIO_CHAT,
    codex_entry,
    codex_message,
    codex_session,
    lm_studio_chat,
    lm_studio_version,
    write_claude_code,
    write_codex,
    write_lm_studio,
)


def said(text: str) -> dict[str, Any]:
    """An answer of LM Studio."""
    content = [{"type": "text", "text": text}]
    return lm_studio_version("assistant", steps=[{"type": "contentBlock", "content": content}])


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
    (listed,) = await histories.conversations("claude-code")
    session, lock = await histories.open("claude-code", listed.id, "found-1")
    assert (session.record.id, str(lock.sentence)) == ("found-1", "From Claude Code, read only.")
    assert len(session.history) > 3
    with pytest.raises(StorageFailed, match="read only"):
        session.send(Message.user("Go on"))
    await session.close()
    assert await engine.store.list_conversations() == ()


async def test_other_versions_are_shown_and_nothing_else_can_be_done_with_them(engine: Engine) -> None:
    session, _ = await FoundHistories(engine).open("claude-code", CLAUDE_SESSION, "found-1")
    newest = [message.id for message in session.history]
    (versions,) = session.branches.versions.values()
    assert (versions.ids, versions.index) == (("u2", "u3"), 1)
    await session.branches.show("u2")
    assert [message.text for message in session.history if message.id in versions.ids] == ["Make it y."]
    # The other program's last message is a result of a tool: nothing is offered for it.
    assert not any(isinstance(item, NoticeItem) for item in session.transcript)
    assert (await session.branches.load_tree()).head == session.history[-1].id
    for change in (session.branches.branch_from, session.branches.regenerate):
        with pytest.raises(StorageFailed, match="read only"):
            change("u2")
    with pytest.raises(StorageFailed, match="read only"):
        await session.branches.delete("u2")
    await session.branches.show("u3")
    assert [message.id for message in session.history] == newest
    with pytest.raises(WrongUse, match="no message"):
        await session.branches.show("unknown")
    await session.close()
    assert await engine.store.list_conversations() == ()


async def test_what_follows_a_turn_that_was_rolled_back_can_be_shown(engine: Engine, tmp_path: Path) -> None:
    """As of Codex: nothing was written after it."""
    rolled_back = codex_entry("event_msg", 20, type="thread_rolled_back", num_turns=1)
    write_codex(tmp_path / "home", [*codex_session(), codex_message("user", "Never mind", second=19), rolled_back])
    histories = FoundHistories(engine)
    (listed,) = await histories.conversations("codex")
    session, _ = await histories.open("codex", listed.id, "found-1")
    assert "Never mind" not in [message.text for message in session.history]
    (following,) = session.branches.continuations
    await session.branches.show(following)
    assert session.history[-1].text == "Never mind"
    await session.close()


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


async def test_importing_again_adds_nothing_to_what_is_there(engine: Engine, tmp_path: Path) -> None:
    """Neither twice, where messages have no ids of their own, nor what is new: it may have been continued here."""
    exchange, home = ConversationExchange(engine.store), tmp_path / "home"
    write_lm_studio(home)
    (id_,) = (await exchange.import_found("lm-studio")).added
    before = await engine.store.load_tree(id_)
    chat = lm_studio_chat()
    chat["messages"][1]["versions"].append(said("Four."))
    more = lm_studio_version("user", {"type": "text", "text": "More"})
    chat["messages"].append({"versions": [more], "currentlySelected": 0})
    write_lm_studio(home, chat)
    result = await exchange.import_found("lm-studio")
    assert (result.added, result.present) == ([], 1)
    assert await engine.store.load_tree(id_) == before
    # A copy has what is there now.
    copy = await engine.store.load_tree(await FoundHistories(engine).copy("lm-studio", LM_STUDIO_CHAT))
    assert len(copy.messages) == len(before.messages) + 2


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
    (compressed,) = [note for note in result.report.notes if "zstd" in str(note[0])]
    assert "(.jsonl.zst), which this program cannot unpack. Unpack them" in str(compressed[0])
    assert compressed[1] == 1
