"""Calls that ran and of which nothing can be taken back: commands, what went out, tools of servers."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from desktop_agent.conversation.audit import audit_entries
from desktop_agent.storage.store import Store
from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.blocks import JsonObject, Outcome
from desktop_agent.vocabulary.conduct.audit import AuditEntry
from desktop_agent.vocabulary.conduct.checkpoints import IrreversibleCalls
from desktop_agent.vocabulary.engine_events import Envelope, ToolCallPending, ToolFinished
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

_PAGE_SIZE = 1_000
_MAX_EXAMPLES = 5
_MAX_EXAMPLE = 100
# Of the session itself, and without any effect outside of it.
_SESSION_TOOLS = {"ask_user", "change_mode"}


async def irreversible_calls_since(
    store: Store, conversation_id: str, since: datetime, tools: ToolRegistry, specialists: Collection[str]
) -> tuple[IrreversibleCalls, ...]:
    """Those of a conversation since a moment, by tool; also of its specialists, which are named.

    Raises StorageFailed.
    """
    rows: list[Envelope] = []
    after: int | None = -1
    while after is not None:
        page, after = await store.calls.since(conversation_id, since, after, _PAGE_SIZE)
        rows += page
    return await run_in_thread(
        lambda _sign: _irreversible_calls([each for each in rows if each.at >= since], tools, set(specialists))
    )


def _irreversible_calls(
    rows: Sequence[Envelope], tools: ToolRegistry, specialists: set[str]
) -> tuple[IrreversibleCalls, ...]:
    entries = audit_entries(("", "", row) for row in rows)
    agents = specialists.union(name for entry in entries for name in entry.agent_path)
    found: dict[str, list[AuditEntry]] = {}
    for entry in entries:
        if _has_run(entry) and entry.tool not in agents and _is_irreversible(entry.tool, tools):
            found.setdefault(entry.tool, []).append(entry)
    files = _changed_files(rows)
    return tuple(
        IrreversibleCalls(name, len(each), tuple(_examples(each)), tuple(files.get(name, ())))
        for name, each in found.items()
    )


def _changed_files(envelopes: Sequence[Envelope]) -> dict[str, list[str]]:
    """The first files that calls changed, as far as somebody looked, by tool."""
    names: dict[tuple[str, str | None, str], str] = {}
    found: dict[str, list[str]] = {}
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, ToolCallPending):
            names[envelope.run_id, envelope.turn_id, event.id] = event.name
        elif isinstance(event, ToolFinished) and event.changes is not None:
            name = names.get((envelope.run_id, envelope.turn_id, event.id), "")
            paths = (*event.changes.changed, *event.changes.created, *event.changes.deleted)
            found[name] = list(dict.fromkeys([*found.get(name, ()), *paths]))[:_MAX_EXAMPLES]
    return found


def _has_run(entry: AuditEntry) -> bool:
    return entry.state == "allowed" and entry.outcome not in {Outcome.DENIED, Outcome.LIMIT}


def _is_irreversible(name: str, tools: ToolRegistry) -> bool:
    tool = tools.get(name)
    if tool is None:
        # What it did nobody here knows any more.
        return name not in _SESSION_TOOLS
    if tool.changes is not None or tool.undo is not None:
        return False
    reaches_out = {Effect.NETWORK, Effect.EXECUTE} & tool.effects
    return bool(reaches_out) or tool.tool_class is not ToolClass.READ_ONLY


def _examples(entries: list[AuditEntry]) -> Iterator[str]:
    words = dict.fromkeys(word for each in entries if (word := _example_of(each.input)))
    yield from list(words)[:_MAX_EXAMPLES]


def _example_of(arguments: JsonObject) -> str:
    """The first thing that the call was given: a command, an address."""
    first = next((each for each in arguments.values() if isinstance(each, str) and each.strip()), "")
    line = " ".join(first[: 4 * _MAX_EXAMPLE].split())
    return line if len(line) <= _MAX_EXAMPLE else line[: _MAX_EXAMPLE - 1] + "…"
