"""What undoing would do to files, what it cannot undo, and the note about it that the model reads."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from desktop_agent.conversation.transcript_notices import REDONE_STATES, UNDONE_STATES, undo_note
from desktop_agent.engine.permission_records import audit_entries
from desktop_agent.processes.worker_threads import CancelToken, run_in_thread
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import BlobStore, RestoreReport
from desktop_agent.tools.checkpoints.restore_preview import ForecastState, preview_restore
from desktop_agent.tools.checkpoints.restore_steps import skipped_because
from desktop_agent.tools.checkpoints.snapshots import parse_saved_path, take_snapshot
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import JsonObject, Outcome
from desktop_agent.types.checkpoints import (
    Checkpoint,
    CheckpointedCall,
    FileRestorePlan,
    FileState,
    IrreversibleCalls,
    RestorePlan,
)
from desktop_agent.types.engine_events import Envelope, ToolCallPending, ToolFinished
from desktop_agent.types.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import AuditEntry
from desktop_agent.types.tool_calls import DiffPreview, Effect, ToolClass

_PAGE_SIZE = 1_000
_MAX_EXAMPLES = 5
_MAX_EXAMPLE = 100
# Of the session itself, and without any effect outside of it.
_SESSION_TOOLS = {"ask_user", "change_mode"}


async def irreversible_calls_since(
    store: Store, conversation_id: str, since: datetime, tools: ToolRegistry, specialists: Collection[str]
) -> tuple[IrreversibleCalls, ...]:
    """Return the irreversible calls of a conversation since a moment, by tool, those of specialists included.

    Raises StorageFailed.
    """
    rows: list[Envelope] = []
    after: int | None = -1
    while after is not None:
        page, after = await store.calls.since(conversation_id, since, after, _PAGE_SIZE)
        rows += page
    return await run_in_thread(
        lambda _sign: _irreversible_calls([row for row in rows if row.at >= since], tools, set(specialists))
    )


def _irreversible_calls(
    rows: Sequence[Envelope], tools: ToolRegistry, specialists: set[str]
) -> tuple[IrreversibleCalls, ...]:
    entries = audit_entries(("", "", row) for row in rows)
    agents = specialists.union(name for entry in entries for name in entry.agent_path)
    entries_by_tool: dict[str, list[AuditEntry]] = {}
    for entry in entries:
        if _has_run(entry) and entry.tool not in agents and is_irreversible(entry.tool, tools):
            entries_by_tool.setdefault(entry.tool, []).append(entry)
    files = _changed_files(rows)
    return tuple(
        IrreversibleCalls(name, len(entries), tuple(_examples(entries)), tuple(files.get(name, ())))
        for name, entries in entries_by_tool.items()
    )


def _changed_files(envelopes: Sequence[Envelope]) -> dict[str, list[str]]:
    """Return, by tool, the first files that calls changed, as far as recorded."""
    names: dict[tuple[str, str | None, str], str] = {}
    files: dict[str, list[str]] = {}
    for envelope in envelopes:
        event = envelope.event
        if isinstance(event, ToolCallPending):
            names[envelope.run_id, envelope.turn_id, event.id] = event.name
        elif isinstance(event, ToolFinished) and event.changes is not None:
            name = names.get((envelope.run_id, envelope.turn_id, event.id), "")
            paths = (*event.changes.changed, *event.changes.created, *event.changes.deleted)
            files[name] = list(dict.fromkeys([*files.get(name, ()), *paths]))[:_MAX_EXAMPLES]
    return files


def _has_run(entry: AuditEntry) -> bool:
    return entry.state == "allowed" and entry.outcome not in {Outcome.DENIED, Outcome.LIMIT}


def is_irreversible(name: str, tools: ToolRegistry, *, has_checkpoints: bool = True) -> bool:
    """Return whether calls of this tool may have changed something that nothing here can undo."""
    tool = tools.get(name)
    if tool is None:
        # Nothing is known any more of what it did.
        return name not in _SESSION_TOOLS
    if has_checkpoints and (tool.changes is not None or tool.undo is not None):
        return False
    reaches_out = {Effect.NETWORK, Effect.EXECUTE} & tool.effects
    return bool(reaches_out) or tool.tool_class is not ToolClass.READ_ONLY


def _examples(entries: list[AuditEntry]) -> Iterator[str]:
    examples = dict.fromkeys(word for entry in entries if (word := _example_of(entry.input)))
    yield from list(examples)[:_MAX_EXAMPLES]


def _example_of(arguments: JsonObject) -> str:
    """Return the first argument of the call: a command, an address."""
    first = next((value for value in arguments.values() if isinstance(value, str) and value.strip()), "")
    line = " ".join(first[: 4 * _MAX_EXAMPLE].split())
    return line if len(line) <= _MAX_EXAMPLE else line[: _MAX_EXAMPLE - 1] + "…"


def match_saved_calls(
    checkpoints: Sequence[Checkpoint], history: Sequence[Message], specialists: Collection[str]
) -> list[CheckpointedCall]:
    """Return one entry for each checkpoint whose call is known, where the call changed something, or may have; and for
    each call of the history that changed nothing.

    Messages of specialists are in no history. What a specialist did belongs to the call that it worked for. Where an
    earlier version did not note that, time tells; of several that worked side by side, the call is unknown then.
    """
    ids = {message.id for message in history}
    times = [message.created_at for message in history]
    saved: list[CheckpointedCall] = []
    for checkpoint in checkpoints:
        if not checkpoint.has_effect and (checkpoint.undoes is not None or checkpoint.message_id not in ids):
            continue
        if checkpoint.message_id in ids:
            saved.append(_saved_call(checkpoint, checkpoint.message_id, checkpoint.tool_use_id))
            continue
        if checkpoint.caller_message_id:
            if checkpoint.caller_message_id in ids:
                saved.append(_saved_call(checkpoint, checkpoint.caller_message_id, checkpoint.caller_tool_use_id))
            continue
        position = bisect_right(times, checkpoint.created_at) - 1
        calls = list(_specialist_calls(history[position], specialists)) if position >= 0 else []
        if len(calls) == 1:
            saved.append(_saved_call(checkpoint, history[position].id, calls[0]))
    return saved


def _saved_call(checkpoint: Checkpoint, message_id: str, tool_use_id: str) -> CheckpointedCall:
    return CheckpointedCall(
        message_id,
        tool_use_id,
        checkpoint.id,
        checkpoint.restored,
        checkpoint.is_redo,
        checkpoint.note_id,
        checkpoint.lines if message_id == checkpoint.message_id else None,
        changed_nothing=not checkpoint.has_effect,
    )


def _specialist_calls(message: Message, specialists: Collection[str]) -> Iterator[str]:
    yield from (call.id for call in message.tool_uses if call.name in specialists)


def undo_note_for(done: Sequence[RestoreReport], note_id: str) -> Message | None:
    """Return the note about restores in a row, all of them undone or all redone; None where nothing changed."""
    is_redo = any(report.checkpoint.is_redo for report in done)
    put_back, removed = map(str, REDONE_STATES if is_redo else UNDONE_STATES)
    changed: dict[str, str] = {}
    for report in done:
        states = {displayed_path(file.path): file.before for file in report.checkpoint.files}
        for path in report.restored:
            changed[path] = put_back if path in states and states[path] != FileState() else removed
    skipped = [path for report in done for path in (*report.conflicts, *report.failed)]
    undone = [report.undone for report in done if report.is_new_undo and not is_redo]
    note = undo_note(changed, skipped, undone, is_redo=is_redo)
    return note and note.model_copy(update={"id": note_id})


def displayed_path(path: str) -> str:
    """Return a path for people and models: names on disk need not be Unicode."""
    return path.encode("utf-8", "replace").decode()


_MAX_DIFF_BYTES = 2_000_000
_NOT_TEXT = "“{path}” is not text, or too long to be shown line by line."
_EMPTY_FOLDER = "“{path}” is an empty folder."
_UNCHANGED = "“{path}” stays as it is."
_CHANGED_SINCE = "“{path}” is a different file now. Check again what would be undone."
_HAS_LINKS = "“{path}” also has other names on this disk. Under those, the current content stays."


async def forecast_restore(
    checkpoints: Sequence[Checkpoint], why_not_undone: Callable[[Checkpoint], Sentence | None]
) -> RestorePlan:
    """Forecast restoring these, newest first. `why_not_undone` is for calls that their tools should undo.

    The disk is read in a thread, and nothing is changed.
    """
    # As they are restored, but folder by folder: those of one folder change nothing in another.
    folders = sorted({checkpoint.workspace for checkpoint in checkpoints if checkpoint.files})
    files: list[FileRestorePlan] = []
    for folder in folders:
        own = [checkpoint for checkpoint in checkpoints if checkpoint.workspace == folder]
        files += await run_in_thread(lambda sign, own=own, folder=folder: tuple(_forecast_files(folder, own, sign)))
    undos = [(checkpoint.tool, why_not_undone(checkpoint)) for checkpoint in checkpoints if checkpoint.needs_undo]
    return RestorePlan(
        checkpoint_ids=tuple(checkpoint.id for checkpoint in checkpoints),
        files=tuple(files),
        undo_tools=tuple(name for name, _ in groupby(tool.split(" @ ")[0] for tool, why in undos if why is None)),
        undo_refusals=tuple(why for _, why in undos if why is not None),
    )


def _forecast_files(folder: str, checkpoints: Sequence[Checkpoint], sign: CancelToken) -> Iterator[FileRestorePlan]:
    try:
        workspace = Workspace(Path(folder))
    except WrongUse as error:
        for path in dict.fromkeys(file.path for checkpoint in checkpoints for file in checkpoint.files):
            why = skipped_because(path, error).why
            yield FileRestorePlan(folder, path, FileState(), FileState(), FileState(), why)
        return
    plain, willing = preview_restore(workspace, checkpoints, sign)
    for path in sorted(plain):
        forecast = _file_forecast(folder, path, plain[path], willing[path])
        if forecast.reason is not None or forecast.effect() != "left" or forecast.is_conflict:
            yield forecast


def _file_forecast(folder: str, path: str, plain: ForecastState, willing: ForecastState) -> FileRestorePlan:
    reason = plain.skipped if plain.then != willing.then else willing.skipped
    why = reason.why if reason else _link_warning(path, willing)
    return FileRestorePlan(folder, path, plain.now.state, plain.then, willing.then, why)


def _link_warning(path: str, forecast: ForecastState) -> Sentence | None:
    """Warn that replacing a file, which is done atomically, breaks its hard links."""
    if forecast.now.link_count < 2 or forecast.then in (forecast.now.state, FileState()):
        return None
    return Sentence(_HAS_LINKS, {"path": displayed_path(path)})


async def file_difference(file: FileRestorePlan, blobs: BlobStore, *, replaced: bool) -> DiffPreview | Sentence:
    """Return the lines that would change in a file, or a sentence where there are none. Raises StorageFailed."""
    then = file.overwritten_state if replaced else file.restored_state
    if then == file.current_state:
        return Sentence(_UNCHANGED, {"path": file.path})
    after = None if then.digest is None else _as_text(await blobs.get(then.digest))
    current = await run_in_thread(lambda sign: _read_current(file, sign))
    if isinstance(current, Sentence):
        return current
    before = None if current is None else _as_text(current)
    if (before is None and current is not None) or (after is None and then.digest is not None):
        return Sentence(_NOT_TEXT, {"path": file.path})
    if before is None and after is None:
        return Sentence(_EMPTY_FOLDER, {"path": file.path})
    return DiffPreview(file.path, before, after)


def _read_current(file: FileRestorePlan, sign: CancelToken) -> bytes | Sentence | None:
    """Return the current content; None for no file, a sentence where it is not as forecast."""
    try:
        snapshot = take_snapshot(Workspace(Path(file.folder)), parse_saved_path(file.name), sign, with_data=True)
    except (WrongUse, ToolFailed) as error:
        return error.sentence
    return snapshot.data if snapshot.state == file.current_state else Sentence(_CHANGED_SINCE, {"path": file.path})


def _as_text(data: bytes) -> str | None:
    if len(data) > _MAX_DIFF_BYTES or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
