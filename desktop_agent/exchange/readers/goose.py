"""Goose: a database for all sessions, `~/.local/share/goose/sessions/sessions.db`; before 1.10 JSON lines beside it.

From the source (block/goose, read at the versions stored in 2026): crates/goose/src/session/session_manager.rs
(tables), legacy.rs (the lines, the first of which says what is known of the session), crates/goose/src/conversation/
message.rs (contents of messages). From documentation alone: the places, `GOOSE_PATH_ROOT`, and the kinds of sessions.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import EPOCH, Overview
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.content import first_text, short_title, tool_call, unread_part
from desktop_agent.exchange.readers.files import file_id, locate, modified_at, open_file, parse_json, read_head_objects
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
from desktop_agent.types.messages import Role

_PROGRAM = "goose"
_SUFFIX = ".jsonl"
_HEAD = 200_000
_COLUMNS = (
    *("id", "name", "description", "user_set_name", "session_type", "working_dir", "created_at", "updated_at"),
    "model_config_json",
)
_MESSAGE_COLUMNS = ("message_id", "id", "role", "content_json", "created_timestamp", "metadata_json")
_OTHER_SESSIONS = {"sub_agent", "hidden"}
"""Kinds of sessions that no person had."""


class GooseReader(HistoryReader):
    """Reads the sessions of Goose. An id is the session's own, which is the same in both places."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Goose"

    @property
    def _folder(self) -> Path:
        root = self._machine.environment.get("GOOSE_PATH_ROOT", "")
        if Path(root).is_absolute():
            data = Path(root) / "data"
        elif self._machine.platform == "win32":
            data = self._machine.application_data / "Block" / "goose" / "data"
        else:
            data = self._machine.folder("XDG_DATA_HOME", ".local", "share") / "goose"
        return data / "sessions"

    @property
    def _database(self) -> Path:
        return self._folder / "sessions.db"

    def locations(self) -> tuple[Path, ...]:
        """Return the database and the folder of older sessions, in which it lies."""
        return self._database, self._folder

    def is_present(self) -> bool:
        """Return whether there is a folder of sessions."""
        return self._folder.is_dir()

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        """Yield the sessions of the database, then older ones that are not in it."""
        rows = list_rows(self._database, "sessions", _COLUMNS, reading)
        for row in rows:
            if text_in(row, "session_type") in _OTHER_SESSIONS:
                reading.report.omit(Omission.HIDDEN, text_in(row, "session_type"))
                continue
            yield found_conversation(text_in(row, "id"), _overview_of_row(row))
        known = {text_in(row, "id") for row in rows}
        paths = reading.walk(self._folder, 0, lambda name: name.endswith(_SUFFIX))
        files = ((file_id(self._folder, path, _SUFFIX), path) for path in paths)
        unknown = ((session_id, path) for session_id, path in files if session_id not in known)
        yield from reading.describe_files(unknown, self._describe)

    def _describe(self, session_id: str, file: BinaryIO, changed: datetime) -> FoundConversation | None:
        session = _Session(Reading(self._limits))
        for entry in read_head_objects(file, _HEAD):
            session.read_line(entry)
        if not len(session.tree):
            return None
        session.overview.updated_at = changed
        return found_conversation(session_id, session.overview, changed)

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        session = _Session(reading)
        changed = EPOCH
        row = None
        if self._database.exists():
            row, messages = read_database(
                self._database, self._limits, lambda database: _read_rows(database, conversation_id)
            )
            for message in messages:
                session.read(message)
        if row is not None:
            overview = _overview_of_row(row)
            session.overview.title = overview.title or session.overview.title
            session.overview.title_is_automatic = overview.title_is_automatic
            session.overview.workspace, session.overview.model = overview.workspace, overview.model
            session.overview.created_at = overview.created_at or session.overview.created_at
            session.overview.updated_at = overview.updated_at or session.overview.updated_at
        else:
            path, _ = locate((self._folder,), conversation_id, (_SUFFIX,))
            with open_file(path) as file:
                changed = modified_at(file)
                for entry in reading.objects(file):
                    session.read_line(entry)
        return ReadResult(session.overview, session.tree, session.thread.tail, changed)


def _overview_of_row(row: Row) -> Overview:
    return Overview(
        title=short_title(text_in(row, "name") or text_in(row, "description")),
        title_is_automatic=not row.get("user_set_name"),
        created_at=parse_time(row.get("created_at")),
        updated_at=parse_time(row.get("updated_at")),
        model=text_in(parse_json(text_in(row, "model_config_json")), "model_name"),
        workspace=text_in(row, "working_dir"),
    )


def _read_rows(database: ForeignDatabase, session_id: str) -> tuple[Row | None, list[dict[str, Any]]]:
    row = next(database.select("sessions", _COLUMNS, "WHERE id = ?", session_id), None)
    messages = [
        {
            "id": text_in(message, "message_id") or f"message-{message['id']}",
            "role": message["role"],
            "created": message["created_timestamp"],
            "content": parse_json(text_in(message, "content_json")),
            "metadata": parse_json(text_in(message, "metadata_json")),
        }
        for message in database.select("messages", _MESSAGE_COLUMNS, "WHERE session_id = ? ORDER BY id", session_id)
    ]
    return row, messages


class _Session(ThreadReader):
    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.overview = Overview()
        self._count = 0

    def read_line(self, entry: dict[str, Any]) -> None:
        """Read a line of an older session: what is known of it, or a message."""
        if "role" in entry:
            self.read(entry)
        else:
            self.overview.title = short_title(text_in(entry, "description")) or self.overview.title
            self.overview.workspace = text_in(entry, "working_dir")

    def read(self, message: dict[str, Any]) -> None:
        self._count += 1
        time = parse_time(message.get("created")) or EPOCH
        if object_in(message, "metadata").get("userVisible") is False:
            self.report.omit(Omission.HIDDEN, "message")
            return
        self.overview.note_time(parse_time(message.get("created")))
        message_id = text_in(message, "id") or f"message-{self._count}"
        parts = [object_of(part) for part in list_in(message, "content")]
        if text_in(message, "role") == "assistant":
            self.thread.close_answer()
            for block in chain.from_iterable(map(self._blocks, parts)):
                self.thread.add_block(message_id, time, block)
        else:
            self._read_prompt(message_id, parts, time)

    def _read_prompt(self, message_id: str, parts: list[dict[str, Any]], time: datetime) -> None:
        """Read what the person wrote; in the same message are the results of the calls before it."""
        blocks: list[Block] = []
        for part in parts:
            if text_in(part, "type") == "toolResponse":
                self.thread.add_result(self._result(part), time)
            else:
                blocks += self._blocks(part)
        if self.thread.add_prompt(message_id, Role.USER, time, blocks):
            self.overview.title = self.overview.title or short_title(first_text(blocks))

    def _blocks(self, part: dict[str, Any]) -> Iterator[Block]:
        kind = text_in(part, "type")
        match kind:
            case "text" if text_in(part, "text").strip():
                yield Text(text=text_in(part, "text"))
            case "thinking" if text_in(part, "thinking").strip():
                # Without its signature: the session does not say whose it is.
                yield Thinking(text=text_in(part, "thinking"), provider=_PROGRAM)
            case "image":
                yield from self._images(part)
            case "toolRequest" | "frontendToolRequest" if text_in(part, "id"):
                call = object_in(part, "toolCall", "value")
                arguments = object_in(call, "arguments")
                yield tool_call(_PROGRAM, text_in(part, "id"), text_in(call, "name") or "tool", arguments)
            case "text" | "thinking":
                self.report.omit(Omission.HIDDEN, "empty")
            case _:
                yield from unread_part(_PROGRAM, kind, part, self.report)

    def _images(self, part: object) -> tuple[Image, ...]:
        return self._reading.picture(text_in(part, "data"))

    def _result(self, part: dict[str, Any]) -> ToolResult:
        """Return a result; its value is a list of contents, since 1.15 an object that has it."""
        result = object_in(part, "toolResult")
        value = object_in(result, "value")
        pieces = list_in(value, "content") if value else list_in(result, "value")
        content: list[ResultPart] = [Text(text=text_in(result, "error"))] if text_in(result, "error") else []
        content += chain.from_iterable(map(self._result_parts, pieces))
        failed = text_in(result, "status") == "error" or value.get("isError") is True
        outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
        return ToolResult(tool_use_id=text_in(part, "id"), content=content, outcome=outcome)

    def _result_parts(self, piece: object) -> Iterator[ResultPart]:
        if text_in(piece, "type") == "image":
            yield from self._images(piece)
        elif text := text_in(piece, "text") or text_in(piece, "resource", "text"):
            yield Text(text=text)
        else:
            self.report.omit(Omission.UNKNOWN, text_in(piece, "type"))
