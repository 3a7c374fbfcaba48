"""Claude Code: a file of JSON lines for each session, `~/.claude/projects/FOLDER/SESSION.jsonl`.

The places are documented (code.claude.com/docs/en/sessions and /claude-directory, read in August 2026). The entries are
not: their documentation calls them internal. Their shapes are from schemas and notes made of real sessions:
oneryalcin/agent-schemas, claude-code/v2.1.144/session.schema.json (2026-05-19); skillsynchq/txcript,
docs/formats/claude-code.md (2026-08-21, up to 2.1.227); for subagents in files of their own, the crate agent-top-core
0.15.2 (2.1.259); for entries that a second compaction repeats, anthropics/claude-code issue 92089.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import Calls, Draft, Overview, TreeBuilder
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, parts_in, text_in
from desktop_agent.exchange.import_report import Omission
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
from desktop_agent.types.blocks import Block, Image, Outcome, ResultPart, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.messages import MessageState, Role
from desktop_agent.types.provider_events import StopReason

_PROGRAM = "claude-code"
_SUFFIX = ".jsonl"
_HEAD = 1_000_000
_TAIL = 16_384
_MAX_SIDECHAINS = 500
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "agent-name": "agentName"}
"""Entries that name the session, the strongest first, and the field that has the name."""

_TAGS = frozenset(
    {
        *("command-name", "command-message", "command-args", "local-command-stdout", "local-command-stderr"),
        *("local-command-caveat", "bash-input", "bash-stdout", "bash-stderr", "system-reminder", "task-notification"),
    }
)
"""The program's own markup in prompts."""

_WORD = re.compile(r"[\w-]{1,100}")
_SIDECHAIN = re.compile(r"agent-.*\.jsonl")
_OPENING_TAG = re.compile(r"\s*<([a-z-]{1,40})>")
_INTERRUPTION = "[Request interrupted by user"
_DENIAL = "The user doesn't want to proceed with this tool use"


class ClaudeCodeReader(HistoryReader):
    """Reads the sessions of Claude Code. An id is the project's folder and the session's name."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Claude Code"

    def locations(self) -> tuple[Path, ...]:
        """Return the folders of projects; the variable stands in place of both usual ones."""
        folder = self._machine.environment.get("CLAUDE_CONFIG_DIR")
        if folder:
            return (Path(folder) / "projects",)
        settings = self._machine.folder("XDG_CONFIG_HOME", ".config")
        return self._machine.home / ".claude" / "projects", settings / "claude" / "projects"

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        """Yield the sessions, by folder; those without a message, and subagents, are passed over."""
        files = (
            (file_id(root, path, _SUFFIX), path)
            for root in self.locations()
            for path in reading.walk(root, 1, _is_session)
            if path.parent != root
        )
        yield from reading.describe_files(files, _describe)

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a session with its branches and subagents."""
        session = _Session(reading)
        path, _ = locate(self.locations(), conversation_id, (_SUFFIX,))
        with open_file(path) as file:
            changed = modified_at(file)
            session.read(reading.objects(file))
        _read_sidechains(session, path, reading)
        return ReadResult(session.head.titled_overview(), session.tree, session.tail, changed)


def _is_session(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.startswith("agent-")


def _read_sidechains(session: "_Session", path: Path, reading: Reading) -> None:
    """Read the files of subagents, which lie in the session's own folder, before 2.1.233 beside the session."""
    folder = path.with_suffix("") / "subagents"
    is_linked = folder.is_symlink() or folder.parent.is_symlink()
    inside = () if is_linked else reading.walk(folder, 0, _SIDECHAIN.fullmatch)
    beside = [path.with_name(f"agent-{agent}{_SUFFIX}") for agent in session.agents if _WORD.fullmatch(agent)]
    for file_path in reading.within_size([*inside, *beside][:_MAX_SIDECHAINS]):
        with suppress(NotReadable, OSError), open_file(file_path) as file:
            agent = file_path.stem.removeprefix("agent-")
            call_id = session.agents.get(agent) or _caller_in_description(file_path, reading)
            session.read(reading.objects(file), call_id or "")


def _caller_in_description(path: Path, reading: Reading) -> str:
    with suppress(NotReadable):
        return text_in(reading.document(path.with_suffix(".meta.json")), "toolUseId")
    return ""


def _describe(session_id: str, file: BinaryIO, changed: datetime) -> FoundConversation | None:
    """Return what the list shows, from the beginning and the end of the file."""
    head = _Head()
    for entry in read_head_objects(file, _HEAD):
        if head.read(entry):
            break
    overview = head.overview
    for line in reversed(read_tail(file, _TAIL)):
        if overview.updated_at is None or b"-title" in line or b"agent-name" in line:
            entry = object_of(parse_json(line))
            overview.updated_at = overview.updated_at or parse_time(entry.get("timestamp"))
            head.read_title(entry, newest=True)
    if not head.has_message and fstat(file.fileno()).st_size <= _HEAD:
        return None
    return found_conversation(session_id, head.titled_overview(), changed)


@dataclass(slots=True)
class _Head:
    """What the first entries say of a session."""

    overview: Overview = field(default_factory=Overview)
    prompt: str = ""
    has_message: bool = False
    titles: dict[str, str] = field(default_factory=dict[str, str])
    _newest: set[str] = field(default_factory=set[str])

    def titled_overview(self) -> Overview:
        named = next((self.titles[kind] for kind in _TITLES if kind in self.titles), "")
        self.overview.title = named or short_title(self.prompt)
        self.overview.title_is_automatic = "custom-title" not in self.titles
        return self.overview

    def read(self, entry: dict[str, Any]) -> bool:
        """Read the next entry, and return whether all is known."""
        overview = self.overview
        overview.created_at = overview.created_at or parse_time(entry.get("timestamp"))
        overview.workspace = overview.workspace or text_in(entry, "cwd")
        self.read_title(entry)
        if entry.get("type") == "assistant":
            self.has_message = True
            overview.model = overview.model or text_in(entry, "message", "model").removeprefix("<synthetic>")
        elif entry.get("type") == "user":
            self.has_message = True
            if not self.prompt and not entry.get("isMeta") and not entry.get("isCompactSummary"):
                self.prompt = _first_text(object_in(entry, "message").get("content"))
        return bool(self.prompt and overview.created_at and overview.model)

    def read_title(self, entry: dict[str, Any], *, newest: bool = False) -> None:
        """Read a title; `newest`: the file is read from its end, so the first one of a kind counts."""
        kind = text_in(entry, "type")
        if kind not in _TITLES or kind in self._newest:
            return
        title = short_title(text_in(entry, _TITLES[kind]))
        if title:
            self.titles[kind] = title
            if newest:
                self._newest.add(kind)


def _first_text(content: object) -> str:
    texts = [part if isinstance(part, str) else text_in(part, "text") for part in parts_in(content)]
    return next((shown for text in texts if (shown := _shown_text(text)[0].strip())), "")


def _shown_text(text: str) -> tuple[str, str]:
    """Return what a person sees of a prompt, and the tag of what was left out: commands are written as tags."""
    tags = _read_tags(text)
    if tags is None:
        return text, ""
    if "command-name" in tags:
        return f"{tags['command-name'].strip()} {tags.get('command-args', '').strip()}".strip(), ""
    if "bash-input" in tags:
        return f"! {tags['bash-input'].strip()}", ""
    return "", next(iter(tags))


def _read_tags(text: str) -> dict[str, str] | None:
    """Return the contents of a text that is nothing but known tags, by tag; None for any other text."""
    tags: dict[str, str] = {}
    place = 0
    while opening := _OPENING_TAG.match(text, place):
        end = text.find(f"</{opening[1]}>", opening.end())
        if opening[1] not in _TAGS or end < 0:
            return None
        tags[opening[1]] = text[opening.end() : end]
        place = end + len(opening[1]) + 3
    return tags if tags and not text[place:].strip() else None


class _BlockReader:
    """Turns content of Anthropic's messages, as the session has it, into our blocks."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._report = reading.report

    def prompt_blocks(self, part: object) -> Iterator[Block]:
        """Yield what a person sees of a part of a prompt; nothing of a result."""
        kind = "text" if isinstance(part, str) else text_in(part, "type")
        if kind == "tool_result":
            return
        if kind != "text":
            yield from self._other_blocks(part, kind)
            return
        text, tag = _shown_text(part if isinstance(part, str) else text_in(part, "text"))
        if tag:
            self._report.omit(Omission.HIDDEN, tag)
        elif text.strip():
            yield Text(text=text)

    def answer_blocks(self, part: object) -> Iterator[Block]:
        """Yield the block of a part of an answer."""
        kind = text_in(part, "type")
        if kind == "text" and text_in(part, "text").strip():
            yield Text(text=text_in(part, "text"))
        elif kind == "thinking" and text_in(part, "thinking").strip():
            # Without its signature, which is bound to what was sent before it.
            yield Thinking(text=text_in(part, "thinking"), provider="anthropic")
        elif kind in {"text", "thinking", "redacted_thinking"}:
            self._report.omit(Omission.HIDDEN, kind)
        elif kind == "tool_use" and text_in(part, "id"):
            yield tool_call(_PROGRAM, text_in(part, "id"), text_in(part, "name"), object_of(part).get("input"))
        else:
            yield from self._other_blocks(part, kind)

    def result(self, part: object, call_id: str) -> ToolResult:
        blocks = list(chain.from_iterable(map(self._result_parts, parts_in(part, "content"))))
        outcome = Outcome.SUCCEEDED
        if object_of(part).get("is_error") is True:
            is_denied = any(isinstance(block, Text) and block.text.startswith(_DENIAL) for block in blocks[:1])
            outcome = Outcome.DENIED if is_denied else Outcome.FAILED
        return ToolResult(tool_use_id=call_id, content=blocks, outcome=outcome)

    def _result_parts(self, piece: object) -> Iterator[ResultPart]:
        kind = "text" if isinstance(piece, str) else text_in(piece, "type")
        if kind == "text":
            yield Text(text=piece if isinstance(piece, str) else text_in(piece, "text"))
        elif kind == "image":
            yield from self._images(piece)
        elif kind == "tool_reference":
            yield Text(text=text_in(piece, "tool_name"))
        else:
            self._report.omit(Omission.UNKNOWN, kind)

    def _images(self, part: object) -> tuple[Image, ...]:
        return self._reading.picture(text_in(part, "source", "data"))

    def _other_blocks(self, part: object, kind: str) -> Iterator[Block]:
        if kind == "image":
            yield from self._images(part)
        else:
            self._report.omit(Omission.UNKNOWN, kind)
            yield Unknown(raw=part)


class _Session:
    """The entries of a session's files, put together.

    One answer of the model is written as an entry for each block, under one `message.id`. Calls that run at the same
    time have their results in entries that follow different parts of that answer; here one message has them all.
    """

    def __init__(self, reading: Reading) -> None:
        self.report = reading.report
        self.tree = TreeBuilder(self.report, reading.limits.messages)
        self.agents: dict[str, str] = {}
        self.tail: str | None = None
        self._blocks = _BlockReader(reading)
        self.head = _Head()
        self._answers: dict[str, Draft] = {}
        self._calls = Calls(self.tree)
        self._callers_by_prompt: dict[str, Draft] = {}
        self._call_id: str | None = None
        self._time: datetime | None = None

    def read(self, entries: Iterable[dict[str, Any]], call_id: str | None = None) -> None:
        """Read one file; `call_id` is of the call that a subagent works for, "" if that is unknown."""
        self._call_id = call_id
        for entry in entries:
            self._time = parse_time(entry.get("timestamp")) or self._time
            self._read_entry(entry)

    def _read_entry(self, entry: dict[str, Any]) -> None:
        kind, entry_id = text_in(entry, "type"), text_in(entry, "uuid")
        if kind in _TITLES:
            self.head.read_title(entry)
        elif kind in {"user", "assistant"} and entry_id:
            self._read_message(entry, entry_id, kind)
        elif text_in(entry, "attachment", "type") == "queued_command" and entry_id:
            # What the person wrote while the model worked.
            prompt = object_in(entry, "attachment")
            message = {"content": prompt.get("prompt")}
            self._read_message({**entry, "isMeta": prompt.get("isMeta"), "message": message}, entry_id, "user")
        else:
            name = text_in(entry, "subtype") or text_in(entry, "attachment", "type") or kind
            self._pass_over(entry, omission_of(_PROGRAM, kind), name)

    def _read_message(self, entry: dict[str, Any], entry_id: str, kind: str) -> None:
        if self.tree.knows(entry_id):
            self.report.omit(Omission.REPEATED)
            return
        if not self._is_side(entry):
            self.head.read(entry)
            self.head.overview.note_time(self._time)
        (self._read_prompt if kind == "user" else self._read_answer)(entry, entry_id)
        if not self._is_side(entry):
            self.tail = entry_id

    def _is_side(self, entry: dict[str, Any]) -> bool:
        return self._call_id is not None or entry.get("isSidechain") is True

    def _pass_over(self, entry: dict[str, Any], omission: Omission, name: str = "") -> None:
        self.report.omit(omission, name)
        parent = text_in(entry, "parentUuid") or text_in(entry, "logicalParentUuid")
        self.tree.pass_over(text_in(entry, "uuid") or None, parent or None)

    def _draft(self, entry: dict[str, Any], entry_id: str, role: Role, blocks: list[Block]) -> Draft:
        time = self._time or datetime.now(UTC)
        draft = Draft(entry_id, role, time, text_in(entry, "parentUuid") or None, blocks)
        if draft.parent is None and self._is_side(entry):
            draft.parent = self._beginning_of_side(blocks)
            draft.injected_by = "subagent" if role is Role.USER else None
        return draft

    def _beginning_of_side(self, blocks: list[Block]) -> str | None:
        """Return what the work of a subagent follows: it is a branch beside the result of the call that it is for."""
        prompt = "".join(block.text for block in blocks if isinstance(block, Text))
        caller = self._calls.caller(self._call_id) or self._callers_by_prompt.get(prompt)
        return caller.id if caller else self.tail

    def _read_prompt(self, entry: dict[str, Any], entry_id: str) -> None:
        if entry.get("isMeta") is True:
            self._pass_over(entry, Omission.HIDDEN, "meta")
            return
        # Where the messages that it sums up are missing, it is the prompt with which the session goes on.
        if entry.get("isCompactSummary") is True and self.tree.draft(text_in(entry, "parentUuid")) is not None:
            self._pass_over(entry, Omission.SUMMARY)
            return
        parts = parts_in(entry, "message", "content")
        answered = self._add_results(entry, parts)
        blocks = list(chain.from_iterable(map(self._blocks.prompt_blocks, parts)))
        if self._is_interruption(entry, blocks):
            blocks = []
        if answered is not None and not blocks:
            self.tree.add_alias(entry_id, answered)
            return
        draft = self._draft(entry, entry_id, Role.USER, blocks)
        if answered is not None:
            draft.parent = answered.id
        self.tree.add(draft)

    def _is_interruption(self, entry: dict[str, Any], blocks: list[Block]) -> bool:
        """Return whether the prompt says only that the person stopped the answer before it, which is marked then."""
        if not (len(blocks) == 1 and isinstance(blocks[0], Text) and blocks[0].text.startswith(_INTERRUPTION)):
            return False
        self.report.omit(Omission.HIDDEN, "interruption")
        stopped = self.tree.draft(text_in(entry, "parentUuid"))
        if stopped is not None and stopped.role is Role.ASSISTANT:
            stopped.state = MessageState.INTERRUPTED
        return True

    def _add_results(self, entry: dict[str, Any], parts: list[Any]) -> Draft | None:
        """Put results after the answer with their calls, and return the message that has them."""
        message: Draft | None = None
        for part in parts:
            if text_in(part, "type") != "tool_result":
                continue
            call_id = text_in(part, "tool_use_id")
            result = self._blocks.result(part, call_id)
            message = self._calls.add_result(result, self._time or datetime.now(UTC)) or message
            if agent := text_in(entry, "toolUseResult", "agentId"):
                self.agents[agent] = call_id
        return message

    def _read_answer(self, entry: dict[str, Any], entry_id: str) -> None:
        message = object_in(entry, "message")
        if text_in(message, "model") == "<synthetic>" or entry.get("isApiErrorMessage") is True:
            self._pass_over(entry, Omission.HIDDEN, "API error")
            return
        message_id = text_in(message, "id")
        draft = self._answers.get(message_id)
        if draft is None:
            draft = self._draft(entry, entry_id, Role.ASSISTANT, [])
            if not self.tree.add(draft):
                return
            if message_id:
                self._answers[message_id] = draft
        else:
            self.tree.add_alias(entry_id, draft)
        for part in list_in(message, "content"):
            self._add_block(draft, part)
        _complete(draft, message)

    def _add_block(self, draft: Draft, part: object) -> None:
        for block in self._blocks.answer_blocks(part):
            if isinstance(block, ToolUse) and self._calls.caller(block.id) is not None:
                self.report.omit(Omission.REPEATED)
                continue
            draft.blocks.append(block)
            self._calls.note(draft, block)
            if prompt := text_in(part, "input", "prompt"):
                self._callers_by_prompt[prompt] = draft


def _complete(draft: Draft, message: dict[str, Any]) -> None:
    """Take what is known at the end of an answer; the last entry of it counts."""
    draft.model = text_in(message, "model") or draft.model
    with suppress(ValueError):
        draft.stop_reason = StopReason(text_in(message, "stop_reason"))
    usage = object_in(message, "usage")
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    known = usage_of(
        input_tokens=sum_of((usage.get("input_tokens"), read, written)),
        output_tokens=usage.get("output_tokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )
    draft.usage = known or draft.usage
