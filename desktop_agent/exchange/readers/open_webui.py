"""Open WebUI: one database, `webui.db` in its data folder, in which each chat is a JSON document with a tree.

From the source (open-webui/open-webui, read at the versions stored in 2026): backend/open_webui/models/chats.py (table
`chat`) and chat_messages.py (table `chat_message`, read only for chats whose document has no messages). From
documentation (docs.openwebui.com/reference/database-schema, of 0.9): the places. The data of a container, or of a
Python environment, is only found where `DATA_DIR` or `DATABASE_URL` says so. From examples alone: the markup
`<details type=…>` in which answers have their reasoning and calls.
"""

import html
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from desktop_agent.exchange.foreign_tree import EPOCH, Draft, Overview, parents_first
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, parts_in, text_in, texts_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.content import short_title, tool_call, usage_of
from desktop_agent.exchange.readers.files import NotReadable, parse_json
from desktop_agent.exchange.readers.foreign_database import ForeignDatabase, Row, list_rows, read_database
from desktop_agent.exchange.readers.reader import (
    FoundConversation,
    HistoryReader,
    Reading,
    ReadResult,
    ThreadReader,
    found_conversation,
)
from desktop_agent.types.blocks import Block, Text, Thinking, ToolResult, Unknown
from desktop_agent.types.messages import Role

_PROGRAM = "open-webui"
_LIST_COLUMNS = ("id", "title", "created_at", "updated_at")
_MESSAGE_COLUMNS = ("id", "role", "parent_id", "content", "model_id", "files", "usage", "created_at")
_OPENING = '<details type="'
_CLOSING = "</details>"
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_SUMMARY = re.compile(r"\s*<summary>[^<]*</summary>\s*")
_QUOTE = re.compile(r"^> ?", re.MULTILINE)


class OpenWebUiReader(HistoryReader):
    """Reads the chats of Open WebUI, of all its accounts on this machine. An id is the chat's own."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Open WebUI"

    def locations(self) -> tuple[Path, ...]:
        """Return the databases that the environment names, and the usual ones."""
        home, environment = self._machine.home, self._machine.environment
        url = environment.get("DATABASE_URL", "")
        named = [Path(url.removeprefix("sqlite:///"))] if url.startswith("sqlite:///") else []
        folder = environment.get("DATA_DIR", "")
        named += [Path(folder) / "webui.db"] if folder else []
        usual = [home / ".open-webui", home / "open-webui" / "data", home / "open-webui" / "backend" / "data"]
        return tuple(path for path in [*named, *(folder / "webui.db" for folder in usual)] if path.is_absolute())

    def is_present(self) -> bool:
        """Return whether one of the databases is there."""
        return any(path.is_file() for path in self.locations())

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        seen: set[str] = set()
        for path in self.locations():
            for row in list_rows(path, "chat", _LIST_COLUMNS, reading):
                chat_id = text_in(row, "id")
                if chat_id and chat_id not in seen:
                    seen.add(chat_id)
                    yield found_conversation(chat_id, _overview(row))

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a chat with all its branches."""
        row, chat = self._find(conversation_id)
        overview = _overview(row)
        overview.model = next(iter(texts_in(chat, "models")), "")
        messages = _Messages(reading, overview.created_at or EPOCH)
        messages.read(object_in(chat, "history", "messages"))
        current = text_in(chat, "history", "currentId")
        return ReadResult(overview, messages.tree, messages.tails.get(current))

    def _find(self, chat_id: str) -> tuple[Row, dict[str, Any]]:
        for path in self.locations():
            if path.exists():
                chat = read_database(path, self._limits, lambda database: _read_chat(database, chat_id))
                if chat is not None:
                    return chat
        raise NotReadable("it is not there any more")


def _overview(row: Row) -> Overview:
    title, created, updated = short_title(text_in(row, "title")), row.get("created_at"), row.get("updated_at")
    return Overview(title=title, created_at=parse_time(created), updated_at=parse_time(updated))


def _read_chat(database: ForeignDatabase, chat_id: str) -> tuple[Row, dict[str, Any]] | None:
    row = next(database.select("chat", (*_LIST_COLUMNS, "chat"), "WHERE id = ?", chat_id), None)
    if row is None:
        return None
    chat = object_of(parse_json(text_in(row, "chat")))
    if not object_in(chat, "history", "messages"):
        rows = database.select("chat_message", _MESSAGE_COLUMNS, "WHERE chat_id = ? ORDER BY created_at, id", chat_id)
        messages = {message["id"]: message for message in (_newer_message(row, chat_id) for row in rows)}
        chat["history"] = {"messages": messages, "currentId": next(reversed(messages), None)}
    return row, chat


def _newer_message(row: Row, chat_id: str) -> dict[str, Any]:
    """Return a row of `chat_message` in the shape of the document; its JSON columns are text."""
    return {
        "id": text_in(row, "id").removeprefix(f"{chat_id}-"),
        "parentId": row["parent_id"],
        "role": row["role"],
        "content": parse_json(text_in(row, "content")),
        "model": row["model_id"],
        "files": parse_json(text_in(row, "files")),
        "usage": parse_json(text_in(row, "usage")),
        "timestamp": row["created_at"],
    }


class _Messages(ThreadReader):
    """Puts the messages of a chat together. `tails` has the last of our messages for each of theirs."""

    def __init__(self, reading: Reading, time: datetime) -> None:
        super().__init__(reading)
        self.tails: dict[str, str | None] = {}
        self._time = time

    def read(self, messages: dict[str, Any]) -> None:
        """Read all messages, in whatever order they are."""
        parents: dict[str, str | None] = {}
        previous: str | None = None
        for message_id, message in messages.items():
            parent = text_in(message, "parentId") or None
            if parent is not None and parent not in messages:
                self.report.omit(Omission.MISSING_PARENT)
                parent = previous
            parents[message_id], previous = parent, message_id
        for message_id, parent in parents_first(parents, self.report):
            self.thread.tail = self.tails.get(parent) if parent is not None else None
            self.thread.close_answer()
            self._add(message_id, object_of(messages[message_id]))
            self.tails[message_id] = self.thread.tail

    def _add(self, message_id: str, message: dict[str, Any]) -> None:
        time = parse_time(message.get("timestamp")) or self._time
        match text_in(message, "role"):
            case "user" | "system" as role:
                blocks = [*self._text_blocks(message), *self._pictures(message)]
                self.thread.add_prompt(message_id, Role(role), time, blocks)
            case "assistant":
                self._add_answer(message_id, message, time)
            case role:
                self.report.omit(Omission.UNKNOWN, role)

    def _add_answer(self, message_id: str, message: dict[str, Any], time: datetime) -> None:
        draft: Draft | None = None
        for number, block in enumerate([*self._answer_blocks(message_id, message), *self._pictures(message)]):
            if isinstance(block, ToolResult):
                self.thread.add_result(block, time)
                continue
            block_id = message_id if draft is None else f"{message_id}-{number}"
            draft = self.thread.add_block(block_id, time, block, text_in(message, "model"))
            if draft is None:
                return
        if draft is not None:
            usage = object_in(message, "usage")
            draft.usage = usage_of(
                input_tokens=usage.get("prompt_tokens", usage.get("input_tokens")),
                output_tokens=usage.get("completion_tokens", usage.get("output_tokens")),
            )

    def _text_blocks(self, message: dict[str, Any]) -> Iterator[Block]:
        for part in parts_in(message, "content"):
            text = part if isinstance(part, str) else text_in(part, "text")
            if text.strip():
                yield Text(text=text)
            elif not isinstance(part, str):
                self.report.omit(Omission.UNKNOWN, text_in(part, "type"))

    def _pictures(self, message: dict[str, Any]) -> Iterator[Block]:
        for file in list_in(message, "files"):
            if text_in(file, "type") != "image":
                self.report.omit(Omission.HIDDEN, text_in(file, "type") or "file")
                continue
            yield from self._reading.picture_from_url(text_in(file, "url"), text_in(file, "name"))

    def _answer_blocks(self, message_id: str, message: dict[str, Any]) -> Iterator[Block]:
        """Yield the blocks of an answer, and the results between them."""
        for block in self._text_blocks(message):
            text, place, number = block.text if isinstance(block, Text) else "", 0, 0
            while (start := text.find(_OPENING, place)) >= 0 and (end := text.find(_CLOSING, start)) >= 0:
                if before := text[place:start].strip():
                    yield Text(text=before)
                number += 1
                yield from self._details(f"{message_id}/{number}", text[start:end])
                place = end + len(_CLOSING)
            if rest := text[place:].strip():
                yield Text(text=rest)

    def _details(self, call_id: str, markup: str) -> Iterator[Block]:
        head, _, body = markup.partition(">")
        attributes = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(head)}
        kind = attributes.get("type", "")
        if kind == "reasoning":
            inside = _QUOTE.sub("", html.unescape(_SUMMARY.sub("", body, count=1)).strip())
            if inside:
                yield Thinking(text=inside, provider=_PROGRAM)
        elif kind == "tool_calls":
            arguments = parse_json(attributes.get("arguments", ""))
            arguments = parse_json(arguments) if isinstance(arguments, str) else arguments
            yield tool_call(_PROGRAM, call_id, attributes.get("name", "") or "tool", object_of(arguments))
            if attributes.get("done") == "true":
                value = parse_json(attributes.get("result", ""))
                text = value if isinstance(value, str) else attributes.get("result", "")
                yield ToolResult(tool_use_id=call_id, content=[Text(text=text)])
        else:
            self.report.omit(Omission.UNKNOWN, kind)
            yield Unknown(raw=markup + _CLOSING)
