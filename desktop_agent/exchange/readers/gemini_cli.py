"""Gemini CLI: a file for each session, `~/.gemini/tmp/PROJECT/chats/session-TIME-ID.jsonl`, before 2026 `.json`.

From the source (google-gemini/gemini-cli, commit 5411f113 of 2026-08-21): packages/core/src/services/
chatRecordingTypes.ts (shapes) and chatRecordingService.ts (the log: messages are written again when they change, `$set`
changes what is known of the session, `$rewindTo` goes back; subagents lie in a folder of the session's id, each named
by the `agentId` of the call that it works for: packages/core/src/agents/local-executor.ts),
packages/core/src/utils/paths.ts (`GEMINI_CLI_HOME`) and sessionUtils.ts (what of a prompt is the program's own),
packages/core/src/config/projectRegistry.ts (`.project_root`).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import EPOCH, Calls, Draft, Overview, TreeBuilder
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.exchange.readers.content import omission_of, short_title, sum_of, tool_call, usage_of
from desktop_agent.exchange.readers.files import (
    NotReadable,
    file_id,
    locate,
    modified_at,
    open_file,
    parse_json,
    read_head_objects,
    read_tail,
)
from desktop_agent.exchange.readers.reader import (
    FoundConversation,
    HistoryReader,
    Reading,
    ReadResult,
    found_conversation,
)
from desktop_agent.types.blocks import Block, Image, Outcome, ResultPart, Text, Thinking, ToolResult, Unknown
from desktop_agent.types.messages import Role

_PROGRAM = "gemini-cli"
_SUFFIXES = (".jsonl", ".json")
_HEAD = 1_000_000
_TAIL = 16_384
_MAX_AGENTS = 1000
_AGENT = re.compile(r"[A-Za-z0-9_-]{1,100}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
"""What Gemini CLI replaces in the names of files."""

_CONTEXT = ("<session_context>", "<hook_context>")
_OUTCOMES = {"success": Outcome.SUCCEEDED, "error": Outcome.FAILED, "cancelled": Outcome.CANCELLED}


class GeminiCliReader(HistoryReader):
    """Reads the sessions of Gemini CLI. An id is the place of the file below `tmp`."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Gemini CLI"

    @property
    def _folder(self) -> Path:
        return self._machine.folder("GEMINI_CLI_HOME") / ".gemini" / "tmp"

    def locations(self) -> tuple[Path, ...]:
        """Return the folder with a folder for each project."""
        return (self._folder,)

    def is_present(self) -> bool:
        """Return whether there is a chat of any project."""
        return any(self._files(Reading(self._limits)))

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        """Yield the sessions, by project; those without a prompt are passed over."""
        files = ((file_id(self._folder, path, path.suffix), path) for path in self._files(reading))
        yield from reading.describe_files(files, self._describe)

    def _files(self, reading: Reading) -> Iterator[Path]:
        for path in reading.walk(self._folder, 2, _is_session):
            if path.parent.name == "chats" and not (path.suffix == ".json" and path.with_suffix(".jsonl").exists()):
                yield path

    def _describe(self, session_id: str, file: BinaryIO, changed: datetime) -> FoundConversation | None:
        log = _Log(ImportReport())
        if file.read(2) == b"{\n":
            file.seek(0)
            log.read(object_of(parse_json(file.read(self._limits.document))))
        else:
            log.read_ends(file)
        if not log.prompt or log.overview.get("kind") == "subagent":
            return None
        return found_conversation(session_id, self._overview(session_id, log), changed)

    def _overview(self, session_id: str, log: "_Log") -> Overview:
        """Return what is known of a session. The folder of its project lies in a file beside the chats."""
        overview = Overview(
            title=short_title(text_in(log.overview, "summary") or log.prompt),
            created_at=parse_time(log.overview.get("startTime")),
            updated_at=parse_time(log.overview.get("lastUpdated")),
            model=log.model,
        )
        with (
            suppress(NotReadable, OSError),
            open_file(self._folder / session_id.partition("/")[0] / ".project_root") as file,
        ):
            overview.workspace = file.read(4096).decode("utf-8", "replace").strip()
        return overview

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a session; what was rewound is a branch."""
        path, _ = locate(self.locations(), conversation_id, _SUFFIXES)
        log, changed = _read_log(path, reading)
        messages = _Messages(reading)
        for record in log.records():
            messages.add(*record)
        if session := _NOT_IN_NAMES.sub("_", text_in(log.overview, "sessionId")):
            _read_agents(path.parent / session, messages, reading)
        head = messages.tails.get(log.last or "", log.last)
        return ReadResult(self._overview(conversation_id, log), messages.tree, head, changed)


def _is_session(name: str) -> bool:
    return name.startswith("session-") and name.endswith(_SUFFIXES)


def _read_log(path: Path, reading: Reading) -> "tuple[_Log, datetime]":
    """Return the entries of a file, and when it was changed. Raises NotReadable and OSError."""
    log = _Log(reading.report)
    with open_file(path) as file:
        changed = modified_at(file)
        if path.suffix == ".json":
            log.read(object_of(reading.document(path)))
        else:
            for entry in reading.objects(file):
                log.read(entry)
    return log, changed


def _read_agents(folder: Path, messages: "_Messages", reading: Reading) -> None:
    """Read the files of subagents, and of those that they called: all lie in the folder of the session."""
    if folder.is_symlink():
        return
    size = reading.limits.file
    # The list grows while it is iterated.
    for agent, call_id in islice(messages.agents, _MAX_AGENTS):
        path = next((path for path in (folder / f"{agent}{end}" for end in _SUFFIXES) if path.is_file()), None)
        with suppress(NotReadable, OSError):
            if path is None:
                continue
            size -= path.lstat().st_size
            if size < 0:
                reading.report.omit(Omission.TOO_LARGE)
                return
            messages.add_agent(_read_log(path, reading)[0], call_id)


class _Log:
    """The entries of a session, replayed: which messages there were, and which are the conversation now."""

    def __init__(self, report: ImportReport) -> None:
        self.report = report
        self.overview: dict[str, Any] = {}
        self.current: dict[str, None] = {}
        self.prompt = self.model = ""
        self._records: dict[str, dict[str, Any]] = {}
        self._parents: dict[str, str | None] = {}

    @property
    def last(self) -> str | None:
        """Return the last message of the conversation as it is now."""
        return next(reversed(self.current), None)

    def records(self) -> Iterator[tuple[str, dict[str, Any], str | None]]:
        """Yield all messages that there were, with their ids and those of the messages before them."""
        for record_id, record in self._records.items():
            yield record_id, record, self._parents[record_id]

    def read_ends(self, file: BinaryIO) -> None:
        """Read the first entries, until a prompt and a model are known, and the last changes of what is known."""
        for entry in read_head_objects(file, _HEAD):
            self.read(entry)
            if self.prompt and self.model:
                break
        for line in read_tail(file, _TAIL):
            if line.startswith(b'{"$set"'):
                self.read({"$set": {**object_in(parse_json(line), "$set"), "messages": None}})

    def read(self, entry: dict[str, Any]) -> None:
        """Read the next entry, or a whole file of the older kind."""
        changes = object_in(entry, "$set")
        if "$rewindTo" in entry:
            target, ids = text_in(entry, "$rewindTo"), list(self.current)
            self.current = dict.fromkeys(ids[: ids.index(target)] if target in self.current else [])
        elif isinstance(entry.get("id"), str):
            self._put(entry)
        elif changes:
            self._replace(_records_in(changes))
            self._note(changes)
        elif "sessionId" in entry:
            self._note(entry)
            for record in _records_in(entry):
                self._put(record)
        else:
            self.report.omit(Omission.UNKNOWN, next(iter(entry), ""))

    def _note(self, values: dict[str, Any]) -> None:
        self.overview |= {key: value for key, value in values.items() if key != "messages"}

    def _put(self, record: dict[str, Any]) -> None:
        """Store a message, or its newer state."""
        record_id = record["id"]
        if record_id not in self._records:
            self._parents[record_id] = self.last
        self._records[record_id] = record
        self.current.setdefault(record_id)
        self.model = text_in(record, "model") or self.model
        if not self.prompt and record.get("type") == "user":
            self.prompt = _prompt_of(record)

    def _replace(self, records: list[dict[str, Any]]) -> None:
        """Apply a new list of messages: what is new in front of known ones is a summary."""
        known = [index for index, record in enumerate(records) if record["id"] in self._records]
        if records:
            self.current = {records[index]["id"]: None for index in known}
        last_known = max(known, default=0)
        for index, record in enumerate(records):
            if record["id"] in self._records:
                continue
            if index < last_known:
                self.report.omit(Omission.SUMMARY)
            else:
                self._put(record)


def _records_in(entry: dict[str, Any]) -> list[dict[str, Any]]:
    messages = map(object_of, list_in(entry, "messages"))
    return [message for message in messages if isinstance(message.get("id"), str)]


def _prompt_of(record: dict[str, Any]) -> str:
    shown = record.get("displayContent") or record.get("content")
    texts = [text_in(part, "text").strip() for part in _parts(shown)]
    return next((text for text in texts if text and not text.startswith(_CONTEXT)), "")


def _parts(content: object) -> list[dict[str, Any]]:
    """Return the parts of a content, which may be a text, a part, or a list of both."""
    pieces = list_in(content) or [content]
    return [{"text": piece} if isinstance(piece, str) else object_of(piece) for piece in pieces if piece]


class _Messages:
    """Puts the messages together. `tails` has the message with the results of a record's calls, `agents` the subagents
    with the calls that they work for.
    """

    def __init__(self, reading: Reading) -> None:
        self.tree = TreeBuilder(reading.report, reading.limits.messages)
        self.tails: dict[str, str] = {}
        self.agents: list[tuple[str, str]] = []
        self._caller: Draft | None = None
        self._calls = Calls(self.tree)
        self._reading = reading
        self._report = reading.report
        self._time = EPOCH

    def add(self, record_id: str, record: dict[str, Any], parent: str | None) -> None:
        """Add a message and the results of its calls."""
        self._time = parse_time(record.get("timestamp")) or self._time
        if parent is not None:
            parent = self.tails.get(parent, parent)
        elif self._caller is not None:
            parent = self._caller.id
        match text_in(record, "type"):
            case "user":
                self._add_prompt(record_id, record, parent)
            case "gemini":
                self._add_answer(record_id, record, parent)
            case kind:
                self._report.omit(omission_of(_PROGRAM, kind), kind)
                self.tree.pass_over(record_id, parent)

    def add_agent(self, log: _Log, call_id: str) -> None:
        """Add the work of a subagent as a branch beside the result of its call."""
        self._caller = self._calls.caller(call_id)
        for record in log.records() if self._caller is not None else ():
            self.add(*record)
        self._caller = None

    def _add_prompt(self, record_id: str, record: dict[str, Any], parent: str | None) -> None:
        blocks: list[Block] = []
        for part in _parts(record.get("content")):
            if text_in(part, "text").strip().startswith(_CONTEXT):
                self._report.omit(Omission.HIDDEN, "context")
            elif "functionResponse" not in part:
                blocks.extend(self._blocks(part))
        if blocks:
            author = None if self._caller is None else "subagent"
            self.tree.add(Draft(record_id, Role.USER, self._time, parent, blocks, injected_by=author))
        else:
            self.tree.pass_over(record_id, parent)

    def _add_answer(self, record_id: str, record: dict[str, Any], parent: str | None) -> None:
        calls = [object_of(call) for call in list_in(record, "toolCalls") if text_in(call, "id")]
        draft = Draft(record_id, Role.ASSISTANT, self._time, parent, list(self._answer_blocks(record, calls)))
        draft.model = text_in(record, "model") or None
        tokens = object_in(record, "tokens")
        draft.usage = usage_of(
            input_tokens=tokens.get("input"),
            output_tokens=sum_of((tokens.get("output"), tokens.get("thoughts"))),
            cache_read_tokens=tokens.get("cached"),
            reasoning_tokens=tokens.get("thoughts"),
            total_tokens=tokens.get("total"),
        )
        if not self.tree.add(draft):
            return
        for block in draft.blocks:
            self._calls.note(draft, block)
        for call in calls:
            self._add_result(record_id, call)
            if _AGENT.fullmatch(agent := text_in(call, "agentId")):
                self.agents.append((agent, call["id"]))

    def _answer_blocks(self, record: dict[str, Any], calls: list[dict[str, Any]]) -> Iterator[Block]:
        parts = _parts(record.get("content"))
        if not any(part.get("thought") for part in parts):
            yield from _thoughts(record)
        ids = {text_in(call, "id") for call in calls}
        for part in parts:
            if text_in(part, "functionCall", "id") not in ids or "functionCall" not in part:
                yield from self._blocks(part)
        for call in calls:
            yield tool_call(_PROGRAM, call["id"], text_in(call, "name"), call.get("args"))

    def _add_result(self, record_id: str, call: dict[str, Any]) -> None:
        outcome = _OUTCOMES.get(text_in(call, "status"))
        if outcome is None:
            return
        parts = _parts(call.get("result")) or _parts(call.get("resultDisplay"))
        content = list(chain.from_iterable(map(self._result_parts, parts)))
        result = ToolResult(tool_use_id=call["id"], content=content, outcome=outcome)
        message = self._calls.add_result(result, self._time)
        if message is not None:
            self.tails[record_id] = message.id

    def _result_parts(self, part: dict[str, Any]) -> Iterator[ResultPart]:
        response = object_in(part, "functionResponse", "response")
        if text := text_in(response, "output") or text_in(response, "error") or text_in(part, "text"):
            yield Text(text=text)
        for piece in (part, *list_in(part, "functionResponse", "parts")):
            yield from self._images(piece)

    def _blocks(self, part: dict[str, Any]) -> Iterator[Block]:
        text, call = text_in(part, "text"), object_in(part, "functionCall")
        if part.get("thought") and text.strip():
            yield Thinking(text=text, provider="gemini")
        elif text.strip():
            yield Text(text=text)
        elif text_in(call, "id"):
            yield tool_call(_PROGRAM, text_in(call, "id"), text_in(call, "name"), call.get("args"))
        elif "inlineData" in part:
            yield from self._images(part)
        elif "text" not in part:
            self._report.omit(Omission.UNKNOWN, next(iter(part), ""))
            yield Unknown(raw=part)

    def _images(self, part: object) -> Iterator[Image]:
        if data := text_in(part, "inlineData", "data"):
            yield from self._reading.picture(data)


def _thoughts(record: dict[str, Any]) -> Iterator[Thinking]:
    for thought in list_in(record, "thoughts"):
        subject, description = text_in(thought, "subject"), text_in(thought, "description")
        text = f"**{subject}** {description}" if subject else description
        if text.strip():
            yield Thinking(text=text, provider="gemini")
