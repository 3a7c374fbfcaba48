"""opencode: a database for all sessions, `~/.local/share/opencode/opencode.db`; before 2026 JSON files in `storage`.

From the source (anomalyco/opencode, formerly sst/opencode, read at the versions stored in 2026):
packages/core/src/session/sql.ts (tables), packages/opencode/src/session/message-v2.ts (messages and their parts),
packages/opencode/src/storage/json-migration.ts (the files), packages/core/src/session/message.ts (the table
`session_message`, read only for sessions that have no rows in `message`). From notes alone, skillsynchq/txcript,
docs/formats/opencode.md (2026-08-21): `OPENCODE_DB`, and that the place is the same on every platform.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from desktop_agent.exchange.foreign_tree import EPOCH, Draft, Overview
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.content import (
    first_text,
    omission_of,
    short_title,
    sum_of,
    tool_call,
    unread_part,
    usage_of,
)
from desktop_agent.exchange.readers.files import NotReadable, parse_json, sorted_entries
from desktop_agent.exchange.readers.foreign_database import ForeignDatabase, Row, list_rows, read_database
from desktop_agent.exchange.readers.reader import (
    FoundConversation,
    HistoryReader,
    Reading,
    ReadResult,
    ThreadReader,
    found_conversation,
)
from desktop_agent.types.blocks import Block, Image, Outcome, ResultPart, Text, Thinking, ToolResult
from desktop_agent.types.messages import MessageState, Role
from desktop_agent.types.provider_events import StopReason

_PROGRAM = "opencode"
_MAX_CHILDREN = 100
_AUTOMATIC_TITLE = ("New session - ", "Child session - ")
_STOP_REASONS = {"stop": StopReason.END_TURN, "tool-calls": StopReason.TOOL_USE, "length": StopReason.MAX_TOKENS}
_SESSION_COLUMNS = ("id", "parent_id", "directory", "title", "time_created", "time_updated", "model")


@dataclass(slots=True)
class _Entry:
    """A message as both places have it: what is known of it, and its parts in order."""

    id: str
    info: dict[str, Any]
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class OpencodeReader(HistoryReader):
    """Reads the sessions of opencode. An id is the session's own, which is the same in both places."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "opencode"

    @property
    def _folder(self) -> Path:
        return self._machine.folder("XDG_DATA_HOME", ".local", "share") / "opencode"

    def locations(self) -> tuple[Path, ...]:
        """Return the databases, one for each channel of the program, and the folder of files."""
        chosen = Path(self._machine.environment.get("OPENCODE_DB", ""))
        if chosen.is_absolute():
            return (chosen,)
        channels = [Path(entry.path) for entry in sorted_entries(self._folder) if _is_channel(entry.name)]
        return self._folder / "opencode.db", *channels, self._folder / "storage"

    def is_present(self) -> bool:
        """Return whether there is a database, or the folder of files."""
        return any(location.exists() for location in self.locations())

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        """Yield the sessions; those of subagents are counted and passed over."""
        seen: set[str] = set()
        for row in self._sessions(reading):
            session_id = text_in(row, "id")
            if not session_id or session_id in seen:
                continue
            seen.add(session_id)
            if row.get("parent_id"):
                reading.report.omit(Omission.HIDDEN, "subagent")
                continue
            yield found_conversation(session_id, _overview(row))

    def _sessions(self, reading: Reading) -> Iterator[Row]:
        for location in self.locations():
            if location.name == "storage":
                yield from self._session_files(reading)
            else:
                yield from list_rows(location, "session", _SESSION_COLUMNS, reading)

    def _session_files(self, reading: Reading) -> Iterator[Row]:
        folder = self._folder / "storage" / "session"
        for path in reading.walk(folder, 1, lambda name: name.endswith(".json")):
            try:
                yield _row_of_file(path, reading.document(path))
            except (NotReadable, OSError):
                reading.report.omit(Omission.UNREADABLE_FILE)

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a session, with its subagents as branches."""
        session = _Session(reading)
        row, entries = self._find(conversation_id, reading)
        session.read(entries)
        for child_id, caller in list(session.children.items())[:_MAX_CHILDREN]:
            with suppress(NotReadable, OSError):
                session.read_child(self._find(child_id, reading)[1], caller)
        overview = _overview(row)
        overview.title = overview.title or session.title
        overview.model = overview.model or session.model
        return ReadResult(overview, session.tree, session.thread.tail, overview.updated_at or EPOCH)

    def _find(self, session_id: str, reading: Reading) -> tuple[Row, list[_Entry]]:
        """Return a session and its messages. Raises NotReadable."""
        for location in self.locations():
            if location.name == "storage":
                return self._read_files(session_id, reading)
            if location.exists():
                session = read_database(location, self._limits, lambda database: _read_rows(database, session_id))
                if session is not None:
                    return session
        raise NotReadable("it is not there any more")

    def _read_files(self, session_id: str, reading: Reading) -> tuple[Row, list[_Entry]]:
        storage, file_names = self._folder / "storage", {f"{session_id}.json"}
        for path in reading.walk(storage / "session", 1, file_names.__contains__):
            row = _row_of_file(path, reading.document(path))
            messages = _files_in(storage / "message" / session_id, reading)
            parts = (part for message in messages for part in _files_in(storage / "part" / message.stem, reading))
            entries = {message.stem: _Entry(message.stem, {}) for message in messages}
            for file in reading.within_size([*messages, *parts]):
                with suppress(NotReadable, OSError):
                    value = object_of(reading.document(file))
                    if file in messages:
                        entries[file.stem].info = value
                    else:
                        entries[file.parent.name].parts.append(value)
            return row, sorted(entries.values(), key=lambda entry: (_created(entry.info), entry.id))
        raise NotReadable("it is not there any more")


def _files_in(folder: Path, reading: Reading) -> dict[Path, None]:
    """Return the files in a folder, by name. A link to a folder is not followed."""
    if folder.is_symlink():
        return {}
    return dict.fromkeys(reading.walk(folder, 0, lambda name: name.endswith(".json")))


def _is_channel(name: str) -> bool:
    return name.startswith("opencode-") and name.endswith(".db")


def _row_of_file(path: Path, value: object) -> Row:
    """Return what a session's file says, under the names of the table's columns."""
    return {
        "id": path.stem,
        "parent_id": text_in(value, "parentID"),
        "directory": text_in(value, "directory"),
        "title": text_in(value, "title"),
        "time_created": object_in(value, "time").get("created"),
        "time_updated": object_in(value, "time").get("updated"),
    }


def _overview(row: Row) -> Overview:
    title = text_in(row, "title")
    return Overview(
        title="" if title.startswith(_AUTOMATIC_TITLE) else short_title(title),
        created_at=parse_time(row.get("time_created")),
        updated_at=parse_time(row.get("time_updated")),
        model=text_in(parse_json(text_in(row, "model")), "id"),
        workspace=text_in(row, "directory"),
    )


def _created(info: dict[str, Any]) -> float:
    created = object_in(info, "time").get("created")
    return created if isinstance(created, int | float) else 0


def _read_rows(database: ForeignDatabase, session_id: str) -> tuple[Row, list[_Entry]] | None:
    row = next(database.select("session", _SESSION_COLUMNS, "WHERE id = ?", session_id), None)
    if row is None:
        return None
    entries: dict[str, _Entry] = {}
    order = "WHERE session_id = ? ORDER BY time_created, id"
    for message in database.select("message", ("id", "data"), order, session_id):
        entries[text_in(message, "id")] = _Entry(
            text_in(message, "id"), object_of(parse_json(text_in(message, "data")))
        )
    for part in database.select("part", ("message_id", "data"), "WHERE session_id = ? ORDER BY id", session_id):
        entry = entries.get(text_in(part, "message_id"))
        if entry is not None:
            entry.parts.append(object_of(parse_json(text_in(part, "data"))))
    if not entries:
        columns = ("id", "type", "data")
        for message in database.select("session_message", columns, "WHERE session_id = ? ORDER BY seq", session_id):
            entry = _newer_entry(message)
            entries[entry.id] = entry
    return row, list(entries.values())


def _newer_entry(row: Row) -> _Entry:
    """Return a row of `session_message` in the older shape."""
    kind, data = text_in(row, "type"), object_of(parse_json(text_in(row, "data")))
    model = {"modelID": text_in(data, "model", "id"), "providerID": text_in(data, "model", "providerID")}
    entry = _Entry(text_in(row, "id"), {**data, **model, "role": kind, "summary": kind == "compaction"})
    if kind == "user":
        files = [{"type": "file", "url": text_in(file, "uri")} for file in list_in(data, "files")]
        entry.parts = [{"type": "text", "text": text_in(data, "text")}, *files]
    elif kind == "assistant":
        entry.parts = [_newer_part(object_of(part)) for part in list_in(data, "content")]
    return entry


def _newer_part(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "tool":
        return part
    state = object_in(part, "state")
    output = "\n".join(text_in(piece, "text") for piece in list_in(state, "content"))
    older = {**state, "output": output, "error": text_in(state, "error", "message") or output}
    return {"type": "tool", "tool": text_in(part, "name"), "callID": text_in(part, "id"), "state": older}


class _Session(ThreadReader):
    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.children: dict[str, Draft] = {}
        self.title = self.model = ""
        self._author: str | None = None

    def read(self, entries: list[_Entry]) -> None:
        """Read the messages of the session, or of a subagent, at the end of the thread."""
        for entry in entries:
            time = parse_time(object_in(entry.info, "time").get("created")) or EPOCH
            role = text_in(entry.info, "role")
            if entry.info.get("summary") is True:
                self.report.omit(Omission.SUMMARY)
            elif role == "user":
                self._read_prompt(entry, time)
            elif role == "assistant":
                self._read_answer(entry, time)
            else:
                self.report.omit(omission_of(_PROGRAM, role), role)

    def read_child(self, entries: list[_Entry], caller: Draft) -> None:
        """Read the work of a subagent as a branch beside the result of its call."""
        tail, self.thread.tail, self._author = self.thread.tail, caller.id, "subagent"
        self.read(entries)
        self.thread.tail, self._author = tail, None

    def _read_prompt(self, entry: _Entry, time: datetime) -> None:
        blocks = [block for part in entry.parts for block in self._blocks(part, "")]
        if self.thread.add_prompt(entry.id, Role.USER, time, blocks, self._author) and self._author is None:
            self.title = self.title or short_title(first_text(blocks))

    def _read_answer(self, entry: _Entry, time: datetime) -> None:
        model, provider = text_in(entry.info, "modelID"), text_in(entry.info, "providerID")
        last: Draft | None = None
        self.thread.close_answer()
        for number, part in enumerate(entry.parts):
            for block in self._blocks(part, provider):
                block_id = entry.id if last is None else f"{entry.id}-{number}"
                last = self.thread.add_block(block_id, time, block, model) or last
            if text_in(part, "type") == "tool" and last is not None:
                self._read_result(part, time, last)
        if self._author is None:
            self.model = model or self.model
        if last is not None:
            _complete(last, entry.info)

    def _blocks(self, part: dict[str, Any], provider: str) -> Iterator[Block]:
        kind, text = text_in(part, "type"), text_in(part, "text")
        match kind:
            case "text" | "reasoning" if not text.strip():
                self.report.omit(Omission.HIDDEN, "empty")
            case "text" | "reasoning" if part.get("synthetic") is True or part.get("ignored") is True:
                self.report.omit(Omission.HIDDEN, "synthetic")
            case "text":
                yield Text(text=text)
            case "reasoning":
                yield Thinking(text=text, provider=provider)
            case "file":
                yield from self._images(part)
            case "tool" if text_in(part, "callID"):
                arguments = object_in(part, "state").get("input")
                yield tool_call(_PROGRAM, text_in(part, "callID"), text_in(part, "tool"), arguments)
            case _:
                yield from unread_part(_PROGRAM, kind, part, self.report)

    def _images(self, file: dict[str, Any]) -> tuple[Image, ...]:
        return self._reading.picture_from_url(text_in(file, "url"), text_in(file, "filename"))

    def _read_result(self, part: dict[str, Any], time: datetime, caller: Draft) -> None:
        """Read the end of a call, which is in the same part; a call that did not end has none."""
        state, call_id = object_in(part, "state"), text_in(part, "callID")
        if child := text_in(state, "metadata", "sessionId"):
            self.children[child] = caller
        status = text_in(state, "status")
        if not call_id or status not in {"completed", "error"}:
            return
        content: list[ResultPart] = [Text(text=text_in(state, "error" if status == "error" else "output"))]
        for file in list_in(state, "attachments"):
            content.extend(self._images(object_of(file)))
        outcome = Outcome.FAILED if status == "error" else Outcome.SUCCEEDED
        self.thread.add_result(ToolResult(tool_use_id=call_id, content=content, outcome=outcome), time)


def _complete(draft: Draft, info: dict[str, Any]) -> None:
    """Take what is known at the end of an answer. Cached input and reasoning are counted beside the rest there."""
    tokens = object_in(info, "tokens")
    read, written = object_in(tokens, "cache").get("read"), object_in(tokens, "cache").get("write")
    draft.usage = usage_of(
        input_tokens=sum_of((tokens.get("input"), read, written)),
        output_tokens=sum_of((tokens.get("output"), tokens.get("reasoning"))),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=tokens.get("reasoning"),
    )
    draft.stop_reason = _STOP_REASONS.get(text_in(info, "finish"))
    if text_in(info, "error", "name") == "MessageAbortedError":
        draft.state = MessageState.INTERRUPTED
