"""Calls of which nothing can be taken back are named, from the journal."""

import threading
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from desktop_agent.engine import undo_forecast
from desktop_agent.engine.undo_forecast import irreversible_calls_since
from desktop_agent.storage import journal_rows
from desktop_agent.storage.store import Store
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import JsonObject, Outcome, ToolResult
from desktop_agent.types.checkpoints import IrreversibleCalls
from desktop_agent.types.engine_events import Envelope, Event, ToolCallPending, ToolFinished, ToolStarted
from desktop_agent.types.messages import now
from desktop_agent.types.permissions import AuditEntry
from desktop_agent.types.tool_calls import FileChanges, ToolClass

START = now()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    yield store
    await store.close()


class Log:
    """The journal of one conversation."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self.store = store
        self.id = conversation_id
        self.seq = 0
        self.run = "run"

    async def ran(
        self,
        name: str,
        arguments: JsonObject,
        *,
        at: float = 1,
        path: tuple[str, ...] = (),
        started: bool = True,
        outcome: Outcome = Outcome.SUCCEEDED,
        changes: FileChanges | None = None,
    ) -> None:
        id_ = f"call-{self.seq}"
        events = [ToolCallPending(id_, name, arguments, ToolClass.MUTATING, path)]
        if started:
            events.append(ToolStarted(id_, arguments))
        events.append(ToolFinished(id_, ToolResult(tool_use_id=id_, outcome=outcome), 1.0, changes))
        moment = START + timedelta(seconds=at)
        rows = []
        for event in events:
            self.seq += 1
            rows.append(Envelope(self.seq, self.run, None, "turn", moment, event))
        await self.store.append_journal(self.id, rows)

    async def found(self, tools: ToolRegistry, *specialists: str) -> list[IrreversibleCalls]:
        return list(await irreversible_calls_since(self.store, self.id, START, tools, specialists))


@pytest.fixture
async def log(store: Store) -> Log:
    return Log(store, (await store.create_conversation(title="t")).id)


@pytest.fixture
def tools(tmp_path: Path) -> ToolRegistry:
    (tmp_path / "work").mkdir()
    return ToolRegistry(builtin_tools(Workspace(tmp_path / "work"), "all"))


async def test_commands_pages_and_tools_that_are_gone_by_name(log: Log, tools: ToolRegistry) -> None:
    await log.ran("run_command", {"command": "make   all"})
    await log.ran("run_command", {"command": "make test"}, outcome=Outcome.FAILED)
    await log.ran("run_command", {"command": "make test"}, path=("helper",))
    await log.ran("fetch_page", {"url": "https://example.org/"})
    await log.ran("tracker__close_issue", {"number": 7})
    assert await log.found(tools) == [
        IrreversibleCalls("run_command", 3, ("make all", "make test")),
        IrreversibleCalls("fetch_page", 1, ("https://example.org/",)),
        IrreversibleCalls("tracker__close_issue", 1),
    ]


async def test_what_files_tell_what_only_reads_and_what_never_ran_are_left_out(log: Log, tools: ToolRegistry) -> None:
    await log.ran("write_file", {"path": "a", "content": "x"})
    await log.ran("read_file", {"path": "a"})
    await log.ran("ask_user", {"question": "?"})
    await log.ran("run_command", {"command": "rm x"}, started=False, outcome=Outcome.DENIED)
    await log.ran("run_command", {"command": "too early"}, at=-1)
    await log.ran("reviewer", {"task": "look"})
    await log.ran("read_file", {"path": "a"}, path=("writer",))
    await log.ran("writer", {"task": "write"})
    assert await log.found(tools, "reviewer") == []


async def test_files_that_a_command_is_known_to_have_changed(log: Log, tools: ToolRegistry) -> None:
    await log.ran("run_command", {"command": "make"}, changes=FileChanges(("out/",), ("a",), (), 2))
    await log.ran("run_command", {"command": "make"}, changes=FileChanges((), ("a",), ("b",), 2))
    assert await log.found(tools) == [IrreversibleCalls("run_command", 2, ("make",), ("a", "out/", "b"))]


async def test_of_another_conversation_nothing_is_said(log: Log, tools: ToolRegistry) -> None:
    other = Log(log.store, (await log.store.create_conversation(title="other")).id)
    await other.ran("run_command", {"command": "make"})
    assert await log.found(tools) == []


async def test_only_rows_of_this_conversation_since_then_are_read_and_off_the_event_loop(
    log: Log, tools: ToolRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Log(log.store, (await log.store.create_conversation(title="other")).id)
    for number in range(5):
        await log.ran("run_command", {"command": f"early {number}"}, at=-10)
        await other.ran("run_command", {"command": "make"})
        await log.ran("run_command", {"command": f"make {number}"})
    read: list[str] = []
    threads: set[int] = set()
    parse, fold = journal_rows.read_event, undo_forecast.audit_entries

    def counted(text: str) -> Event | None:
        read.append(text)
        return parse(text)

    def watched(rows: Iterable[tuple[str, str, Envelope]]) -> tuple[AuditEntry, ...]:
        threads.add(threading.get_ident())
        return fold(rows)

    monkeypatch.setattr(journal_rows, "read_event", counted)
    monkeypatch.setattr(undo_forecast, "audit_entries", watched)
    # Pages end in the middle of a call.
    monkeypatch.setattr(undo_forecast, "_PAGE_SIZE", 4)
    (calls,) = await log.found(tools)
    assert (calls.count, calls.examples[0]) == (5, "make 0")
    assert len(read) == 5 * 3
    assert threads.isdisjoint({threading.get_ident()})


async def test_of_several_runs_all_are_read_page_by_page(log: Log, tools: ToolRegistry) -> None:
    for number in range(3):
        log.run = f"run {number}"
        await log.ran("run_command", {"command": f"make {number}"})
    pages: list[int] = []
    after: int | None = -1
    while after is not None:
        page, after = await log.store.calls.since(log.id, START, after, 2)
        pages.append(len(page))
    assert sum(pages) == 3 * 3
    assert max(pages) == 2
    assert (await log.found(tools))[0].count == 3
