"""Jan: a folder for each thread, `Jan/data/threads/ID` with `thread.json` and `messages.jsonl`.

From the source (janhq/jan, read at the versions stored in 2026): src-tauri/src/core/threads/commands.rs and utils.rs
(files), core/src/types/message/messageEntity.ts (messages). From documentation (jan.ai/docs/data-folder, read in 2026):
the places, and `~/jan` before 0.6. A folder that a person chose is not found.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import Overview
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.content import short_title, tool_call
from desktop_agent.exchange.readers.files import locate, modified_at, open_file, parse_json
from desktop_agent.exchange.readers.reader import (
    FoundConversation,
    HistoryReader,
    Reading,
    ReadResult,
    ThreadReader,
    found_conversation,
)
from desktop_agent.types.blocks import Block, Json, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import MessageState, Role

_PROGRAM = "jan"


class JanReader(HistoryReader):
    """Reads the threads of Jan. An id is the name of the thread's folder."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Jan"

    def locations(self) -> tuple[Path, ...]:
        """Return the folders of threads; on Linux its documentation and its packages name different ones."""
        data = (self._machine.application_data, self._machine.application_settings)
        folders = [folder / "Jan" / "data" / "threads" for folder in data]
        return tuple(dict.fromkeys([*folders, self._machine.home / "jan" / "threads"]))

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        files = (
            (path.parent.name, path)
            for root in self.locations()
            for path in reading.walk(root, 1, "thread.json".__eq__)
            if path.with_name("messages.jsonl").exists()
        )
        yield from reading.describe_files(files, self._describe)

    def _describe(self, thread_id: str, file: BinaryIO, changed: datetime) -> FoundConversation | None:
        return found_conversation(
            thread_id, _overview(object_of(parse_json(file.read(self._limits.document)))), changed
        )

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        path, _ = locate(self.locations(), f"{conversation_id}/thread", (".json",))
        overview = _overview(object_of(reading.document(path)))
        with open_file(path.with_name("messages.jsonl")) as file:
            changed = modified_at(file)
            messages = _Messages(reading, overview)
            for message in reading.objects(file):
                messages.add(message)
        return ReadResult(overview, messages.tree, messages.thread.tail, changed)


def _overview(thread: dict[str, Any]) -> Overview:
    assistant = object_of(next(iter(list_in(thread, "assistants")), None))
    return Overview(
        title=short_title(text_in(thread, "title")),
        created_at=parse_time(thread.get("created")),
        updated_at=parse_time(thread.get("updated")),
        model=text_in(thread, "model", "id") or text_in(assistant, "model", "id"),
    )


class _Messages(ThreadReader):
    def __init__(self, reading: Reading, overview: Overview) -> None:
        super().__init__(reading)
        self._time = overview.created_at or datetime.fromtimestamp(1, UTC)
        self._count = 0

    def add(self, message: dict[str, Any]) -> None:
        self._count += 1
        message_id = text_in(message, "id") or f"message-{self._count}"
        time = parse_time(message.get("created_at")) or self._time
        parts = [object_of(part) for part in list_in(message, "content")]
        match text_in(message, "role"):
            case "user" | "system" as role:
                blocks = chain.from_iterable(map(self._blocks, parts))
                self.thread.add_prompt(message_id, Role(role), time, blocks)
            case "assistant":
                self._add_answer(message, message_id, time, [*parts, *_older_calls(message)])
            case role:
                self.report.omit(Omission.HIDDEN if role == "tool" else Omission.UNKNOWN, role)

    def _add_answer(
        self, message: dict[str, Any], message_id: str, time: datetime, parts: list[dict[str, Any]]
    ) -> None:
        is_stopped = text_in(message, "status") in {"stopped", "error"}
        self.thread.close_answer()
        for number, part in enumerate(parts):
            for block in self._blocks(part):
                block_id = message_id if number == 0 else f"{message_id}-{number}"
                draft = self.thread.add_block(block_id, time, block, text_in(message, "metadata", "modelId"))
                if draft is not None and is_stopped:
                    draft.state = MessageState.INTERRUPTED
                if isinstance(block, ToolUse) and part.get("output") is not None:
                    self.thread.add_result(_result(block.id, part["output"]), time)

    def _blocks(self, part: dict[str, Any]) -> Iterator[Block]:
        kind, text = text_in(part, "type"), text_in(part, "text", "value")
        match kind:
            case "text" if text.strip():
                yield from _split_thinking(text)
            case "reasoning" if text.strip():
                yield Thinking(text=text, provider=_PROGRAM)
            case "text" | "reasoning":
                self.report.omit(Omission.HIDDEN, "empty")
            case "image_url":
                yield from self._reading.picture_from_url(text_in(part, "image_url", "url"))
            case "tool_call":
                self._count += 1
                call_id = text_in(part, "tool_call_id") or f"call-{self._count}"
                yield tool_call(_PROGRAM, call_id, text_in(part, "tool_name") or "tool", object_in(part, "input"))
            case _:
                self.report.omit(Omission.UNKNOWN, kind)


def _split_thinking(text: str) -> Iterator[Block]:
    """Yield a text; older versions have the reasoning in it, between tags at its beginning."""
    thought, tag, rest = text.partition("</think>")
    if tag and thought.lstrip().startswith("<think>"):
        if inside := thought.lstrip().removeprefix("<think>").strip():
            yield Thinking(text=inside, provider=_PROGRAM)
        text = rest.lstrip()
    if text.strip():
        yield Text(text=text)


def _older_calls(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the calls that versions of 2025 have beside the content, in the newer shape."""
    for call in list_in(message, "metadata", "tool_calls"):
        function = object_in(call, "tool", "function")
        yield {
            "type": "tool_call",
            "tool_call_id": text_in(call, "tool", "id"),
            "tool_name": text_in(function, "name"),
            "input": parse_json(text_in(function, "arguments")),
            "output": object_of(call).get("response"),
        }


def _result(call_id: str, output: Any) -> ToolResult:
    pieces = [text_in(piece, "text") for piece in list_in(output, "content")]
    failed = bool(text_in(output, "error")) or object_of(output).get("isError") is True
    text = output if isinstance(output, str) else text_in(output, "error") or "\n".join(pieces)
    content = [Text(text=text)] if text else [Json(value=output)]
    return ToolResult(tool_use_id=call_id, content=content, outcome=Outcome.FAILED if failed else Outcome.SUCCEEDED)
