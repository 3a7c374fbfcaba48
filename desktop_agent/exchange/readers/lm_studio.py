"""LM Studio: a JSON file for each chat, `~/.lmstudio/conversations/**/*.conversation.json`.

The places are documented (lmstudio.ai/docs/app/basics/chat, read in 2026), with the advice not to rely on the
structure. That is from examples of 2025 and 2026 alone: chats that other programs write for it and read from it
(`versions` with `currentlySelected`, `singleStep` and `multiStep`, `contentBlock`, `toolCallRequest`).
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import Overview
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.content import first_text, omission_of, short_title, tool_call
from desktop_agent.exchange.readers.files import file_id, locate, modified_at, open_file, parse_json
from desktop_agent.exchange.readers.reader import (
    FoundConversation,
    HistoryReader,
    Reading,
    ReadResult,
    ThreadReader,
    found_conversation,
)
from desktop_agent.types.blocks import Block, Text, Thinking, ToolResult
from desktop_agent.types.messages import Role

_PROGRAM = "lm-studio"
_SUFFIX = ".conversation.json"
_DEPTH = 8


class LmStudioReader(HistoryReader):
    """Reads the chats of LM Studio. An id is the place of the file below its folder."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "LM Studio"

    def locations(self) -> tuple[Path, ...]:
        """Return the folder of chats, and that of versions before 0.3.6."""
        return (
            self._machine.home / ".lmstudio" / "conversations",
            self._machine.home / ".cache" / "lm-studio" / "conversations",
        )

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        files = (
            (file_id(root, path, _SUFFIX), path)
            for root in self.locations()
            for path in reading.walk(root, _DEPTH, lambda name: name.endswith(_SUFFIX))
        )
        yield from reading.describe_files(files, self._describe)

    def _describe(self, chat_id: str, file: BinaryIO, changed: datetime) -> FoundConversation | None:
        # One object over the whole file, with its name at the beginning and its model at the end.
        chat = object_of(parse_json(file.read(self._limits.document)))
        if not chat:
            self.report.omit(Omission.UNREADABLE_FILE)
        messages = list_in(chat, "messages")
        return found_conversation(chat_id, _overview(chat), changed, len(messages)) if messages else None

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a chat with all versions of its messages."""
        path, _ = locate(self.locations(), conversation_id, (_SUFFIX,))
        with open_file(path) as file:
            changed = modified_at(file)
        chat = object_of(reading.document(path))
        overview = _overview(chat)
        messages = _Messages(reading, overview.created_at or changed)
        for number, message in enumerate(list_in(chat, "messages")):
            messages.add(number, message)
        if not overview.title:
            overview.title = short_title(messages.prompt)
        return ReadResult(overview, messages.tree, messages.thread.tail, changed)


def _overview(chat: dict[str, Any]) -> Overview:
    times = [parse_time(chat.get(key)) for key in ("userLastMessagedAt", "assistantLastMessagedAt")]
    return Overview(
        title=short_title(text_in(chat, "name")),
        created_at=parse_time(chat.get("createdAt")),
        updated_at=max((time for time in times if time), default=None),
        model=text_in(chat, "lastUsedModel", "identifier"),
    )


class _Messages(ThreadReader):
    """Puts the messages together: the versions of one are branches, and the chat goes on after the selected one."""

    def __init__(self, reading: Reading, time: datetime) -> None:
        super().__init__(reading)
        self.prompt = ""
        self._time = time
        self._number = 0

    def add(self, number: int, message: object) -> None:
        """Add all versions of a message after the tail."""
        start = end = self.thread.tail
        selected = object_of(message).get("currentlySelected")
        for index, version in enumerate(list_in(message, "versions")):
            self.thread.tail = start
            self.thread.close_answer()
            self._add_version(f"{number}.{index}", object_of(version))
            if index == selected or end == start:
                end = self.thread.tail
        self.thread.tail = end
        self.thread.close_answer()

    def _add_version(self, version_id: str, version: dict[str, Any]) -> None:
        # Counted anew, so that the ids below stay as they are when another version is added to a message.
        self._number = 0
        role = text_in(version, "role")
        if role == "assistant":
            sender = text_in(version, "senderInfo", "senderName")
            for step in list_in(version, "steps") or [{"type": "contentBlock", "content": list_in(version, "content")}]:
                self._add_step(version_id, object_of(step), sender)
        elif role in {"user", "system"}:
            blocks = list(chain.from_iterable(map(self._blocks, map(object_of, list_in(version, "content")))))
            self.thread.add_prompt(version_id, Role(role), self._time, blocks)
            if role == "user":
                self.prompt = self.prompt or first_text(blocks)
        else:
            self.report.omit(Omission.UNKNOWN, role)

    def _add_step(self, version_id: str, step: dict[str, Any], sender: str) -> None:
        kind = text_in(step, "type")
        if kind != "contentBlock":
            self.report.omit(omission_of(_PROGRAM, kind), kind)
            return
        is_thinking = text_in(step, "style", "type") == "thinking"
        for part in list_in(step, "content"):
            self._number += 1
            if text_in(part, "type") == "toolCallResult":
                text = text_in(part, "content") or text_in(part, "content", "text")
                result = ToolResult(tool_use_id=f"{version_id}/{_call_id(part)}", content=[Text(text=text)])
                self.thread.add_result(result, self._time)
                continue
            for block in self._blocks(object_of(part), version_id, is_thinking=is_thinking):
                self.thread.add_block(f"{version_id}.{self._number}", self._time, block, sender)

    def _blocks(self, part: dict[str, Any], version_id: str = "", *, is_thinking: bool = False) -> Iterator[Block]:
        kind, text = text_in(part, "type"), text_in(part, "text")
        match kind:
            case "text" if is_thinking and text.strip():
                yield Thinking(text=text, provider=_PROGRAM)
            case "text" if text.strip():
                yield Text(text=text)
            case "text":
                self.report.omit(Omission.HIDDEN, "empty")
            case "toolCallRequest":
                call_id = f"{version_id}/{_call_id(part)}"
                yield tool_call(_PROGRAM, call_id, text_in(part, "name") or "tool", object_in(part, "parameters"))
            case "file":
                # The file lies in another folder under a name of the program's own.
                yield from self._reading.picture_from_url(text_in(part, "url"))
            case _:
                self.report.omit(Omission.UNKNOWN, kind)


def _call_id(part: object) -> str:
    """Return the id of a call, which is a number that counts within one answer."""
    number = object_of(part).get("callId")
    return str(number) if isinstance(number, int) else text_in(part, "callId") or text_in(part, "toolCallRequestId")
