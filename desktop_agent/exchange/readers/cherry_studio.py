"""Cherry Studio: its own backups, `cherry-studio*.zip` with `data.json`. Its live data (IndexedDB) cannot be read here.

From the source (CherryHQ/cherry-studio, read at the versions stored in 2026): src/renderer/src/services/
BackupService.ts (a backup has `localStorage` and `indexedDB`), src/renderer/src/types/newMessage.ts (messages and their
blocks, since version 5 of the data). From examples alone: the names of topics, which are in `persist:cherry-studio`.
A person chooses where a backup lies; it is looked for where people keep files, and only the newest one is read.
"""

import zipfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from desktop_agent.exchange.foreign_tree import EPOCH, Draft, Overview
from desktop_agent.exchange.foreign_values import fenced_code, list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.content import omission_of, short_title, tool_call, usage_of
from desktop_agent.exchange.readers.files import NotReadable, open_file, parse_json
from desktop_agent.exchange.readers.reader import (
    LIMITS,
    FoundConversation,
    HistoryReader,
    Limits,
    Machine,
    Reading,
    ReadResult,
    ThreadReader,
    found_conversation,
)
from desktop_agent.types.blocks import Block, Json, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import MessageState, Role

_PROGRAM = "cherry-studio"
_ENTRY = "data.json"
_DEPTH = 1


class CherryStudioReader(HistoryReader):
    """Reads the newest backup of Cherry Studio. An id is the topic's own."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Cherry Studio"

    def __init__(self, machine: Machine, limits: Limits = LIMITS) -> None:
        super().__init__(machine, limits)
        self._last: tuple[tuple[Path, int, int, int], dict[str, Any]] | None = None
        """A backup has all topics: it is read once for them, for as long as it stays as it is."""

    def locations(self) -> tuple[Path, ...]:
        """Return the folders in which people keep backups."""
        names = ("Downloads", "Documents", "Desktop", "Cherry Studio", "CherryStudio")
        return tuple(self._machine.home / name for name in names)

    def is_present(self) -> bool:
        """Return whether there is a backup."""
        return self._newest_backup() is not None

    def _newest_backup(self) -> Path | None:
        backups = [
            (path.lstat().st_mtime_ns, path)
            for folder in self.locations()
            for path in Reading(self._limits).walk(folder, _DEPTH, _is_backup)
        ]
        return max(backups)[1] if backups else None

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        try:
            backup = self._read_backup()
        except (NotReadable, OSError):
            reading.report.omit(Omission.UNREADABLE_FILE)
            return
        names = _topic_names(backup)
        for topic in list_in(backup, "indexedDB", "topics"):
            topic_id, messages = text_in(topic, "id"), list_in(topic, "messages")
            if topic_id and messages:
                overview = _overview(topic_id, messages, names)
                yield found_conversation(topic_id, overview, message_count=len(messages))

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a topic; answers of several models to one prompt are branches."""
        backup = self._read_backup()
        topics = (object_of(topic) for topic in list_in(backup, "indexedDB", "topics"))
        topic = next((topic for topic in topics if topic.get("id") == conversation_id), None)
        if topic is None:
            raise NotReadable("it is not in the newest backup")
        messages = list_in(topic, "messages")
        blocks = {text_in(block, "id"): object_of(block) for block in list_in(backup, "indexedDB", "message_blocks")}
        overview = _overview(conversation_id, messages, _topic_names(backup))
        reader = _Messages(reading, blocks)
        for message in messages:
            reader.add(object_of(message))
        return ReadResult(overview, reader.tree, reader.thread.tail)

    def _read_backup(self) -> dict[str, Any]:
        """Return the newest backup. Raises NotReadable."""
        path = self._newest_backup()
        if path is None:
            raise NotReadable("there is no backup")
        status = path.lstat()
        state = path, status.st_ino, status.st_size, status.st_mtime_ns
        if self._last is None or self._last[0] != state:
            self._last = state, self._read_file(path)
        return self._last[1]

    def _read_file(self, path: Path) -> dict[str, Any]:
        try:
            with open_file(path) as file, zipfile.ZipFile(file) as archive, archive.open(_ENTRY) as entry:
                data = entry.read(self._limits.document + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            KeyError,
            NotImplementedError,
            RuntimeError,
            EOFError,
            ValueError,
        ) as error:
            raise NotReadable("the backup is damaged or of another kind") from error
        if len(data) > self._limits.document:
            raise NotReadable("the backup is too large")
        return object_of(parse_json(data))


def _is_backup(name: str) -> bool:
    return name.startswith(("cherry-studio", "CherryStudio")) and name.endswith(".zip")


def _topic_names(backup: dict[str, Any]) -> dict[str, str]:
    """Return the names of topics. They are JSON in a text within JSON in a text."""
    stored = parse_json(text_in(backup, "localStorage", "persist:cherry-studio"))
    assistants = object_of(parse_json(text_in(stored, "assistants")))
    topics = [topic for assistant in list_in(assistants, "assistants") for topic in list_in(assistant, "topics")]
    topics += list_in(assistants, "defaultAssistant", "topics")
    return {text_in(topic, "id"): short_title(text_in(topic, "name")) for topic in topics}


def _overview(topic_id: str, messages: list[Any], names: dict[str, str]) -> Overview:
    overview = Overview(title=names.get(topic_id, ""))
    for message in (messages[0], messages[-1]) if messages else ():
        overview.note_time(parse_time(object_of(message).get("createdAt")))
    overview.model = next((name for message in reversed(messages) if (name := _model(message))), "")
    return overview


def _model(message: object) -> str:
    return text_in(message, "model", "id") or text_in(message, "modelId")


class _Messages(ThreadReader):
    def __init__(self, reading: Reading, blocks: dict[str, dict[str, Any]]) -> None:
        super().__init__(reading)
        self._parts_by_id = blocks
        self._prompts: set[str] = set()

    def add(self, message: dict[str, Any]) -> None:
        """Add the next message. Answers to the same prompt are versions; the selected one, else the first, goes on."""
        message_id, role = text_in(message, "id"), text_in(message, "role")
        kind = "clear" if message.get("type") == "clear" else role
        if kind not in {"user", "assistant", "system"} or not message_id:
            self.report.omit(Omission.HIDDEN, kind)
            return
        time = parse_time(message.get("createdAt")) or EPOCH
        self.thread.close_answer()
        if role == "assistant":
            self._add_answer(message, message_id, time)
            return
        blocks = chain.from_iterable(map(self._blocks, self._parts(message)))
        if self.thread.add_prompt(message_id, Role(role), time, blocks):
            self._prompts.add(message_id)

    def _parts(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        keys = (key for key in list_in(message, "blocks") if isinstance(key, str))
        parts = [self._parts_by_id[key] for key in keys if key in self._parts_by_id]
        text = text_in(message, "content")
        if not parts and text.strip():
            # Before version 5 of the data, a message had its text itself.
            return [{"type": "main_text", "content": text}]
        return parts

    def _add_answer(self, message: dict[str, Any], message_id: str, time: datetime) -> None:
        prompt_id, tail = text_in(message, "askId"), self.thread.tail
        is_version = prompt_id in self._prompts and tail != prompt_id
        if is_version:
            self.thread.tail = prompt_id
        self._add_blocks(message, message_id, time)
        if is_version and message.get("foldSelected") is not True:
            self.thread.tail = tail

    def _add_blocks(self, message: dict[str, Any], message_id: str, time: datetime) -> None:
        draft: Draft | None = None
        for number, part in enumerate(self._parts(message)):
            for block in self._blocks(part):
                block_id = message_id if draft is None else f"{message_id}-{number}"
                draft = self.thread.add_block(block_id, time, block, _model(message))
                if draft is None:
                    return
                if isinstance(block, ToolUse) and part.get("content") is not None:
                    self.thread.add_result(_result(block.id, part["content"], text_in(part, "status")), time)
        if draft is not None:
            _complete(draft, message)

    def _blocks(self, part: dict[str, Any]) -> Iterator[Block]:
        kind, text = text_in(part, "type"), text_in(part, "content")
        match kind:
            case "main_text" if text.strip():
                yield Text(text=text)
            case "code" if text.strip():
                yield Text(text=fenced_code(text, text_in(part, "language")))
            case "thinking" if text.strip():
                yield Thinking(text=text, provider=_PROGRAM)
            case "main_text" | "code" | "thinking":
                self.report.omit(Omission.HIDDEN, "empty")
            case "image":
                yield from self._reading.picture_from_url(text_in(part, "url"), text_in(part, "file", "name"))
            case "tool" if text_in(part, "id"):
                yield tool_call(_PROGRAM, part["id"], text_in(part, "toolName") or "tool", object_in(part, "arguments"))
            case _:
                self.report.omit(omission_of(_PROGRAM, kind), kind)


def _complete(draft: Draft, message: dict[str, Any]) -> None:
    is_stopped = text_in(message, "status") in {"paused", "error"}
    draft.state = MessageState.INTERRUPTED if is_stopped else MessageState.COMPLETE
    usage = object_in(message, "usage")
    draft.usage = usage_of(input_tokens=usage.get("prompt_tokens"), output_tokens=usage.get("completion_tokens"))


def _result(call_id: str, content: Any, status: str) -> ToolResult:
    outcome = Outcome.FAILED if status == "error" else Outcome.SUCCEEDED
    part = Text(text=content) if isinstance(content, str) else Json(value=content)
    return ToolResult(tool_use_id=call_id, content=[part], outcome=outcome)
