"""Codex CLI: a rollout of JSON lines for each session, `~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`.

From the source (openai/codex, read at the versions stored in 2026): codex-rs/rollout/src/list.rs (places and names),
compression.rs (`.jsonl.zst`, which the standard library of Python 3.11 cannot read), policy.rs (what is written),
session_index.rs (names that people gave); codex-rs/protocol/src/models.rs (`ResponseItem`) and protocol.rs
(`SessionMeta`, `TurnContextItem`, `CompactedItem`, `ThreadRolledBackEvent`). From notes alone, skillsynchq/txcript,
docs/formats/codex.md (2026-08-21): which of the two logs in a file has what. Rollouts of early 2025 have bare items.
Subagents have rollouts of their own among the others: core/src/tools/handlers/multi_agents/spawn.rs (the result of
`spawn_agent` names the thread) and multi_agents_v2/spawn.rs (its path), protocol.rs (`SessionMeta.source`); from notes
alone, langfuse/codex-observability-plugin pull request 79 (2026-09-15, `sub_agent_activity`), alibaba/loongsuite-pilot
pull request 244 (2026-08-16, what of its session a rollout repeats; that session's own `session_meta` begins it).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import EPOCH, Draft, Overview, Thread, TreeBuilder
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.codex_calls import PROGRAM, custom_call, plain_output, shell_call, web_search
from desktop_agent.exchange.readers.content import omission_of, short_title, unread_part, usage_of
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
from desktop_agent.types.blocks import Block, Outcome, ResultPart, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.messages import MessageState, Role

_SUFFIX = ".jsonl"
_HEAD = 1_000_000
_TAIL = 16_384
_MAX_SEARCHED = 5_000
"""Rollouts among which the subagents of one session are looked for."""
_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_REQUEST = "## My request for Codex:"
"""What an editor puts between its own context and the person's words."""

_CONTEXT_TAGS = (
    *("environment_context", "user_instructions", "permissions instructions", "collaboration_mode", "turn_aborted"),
    *("skill", "plugins", "subagents", "subagent_notification", "user_shell_command"),
    *("sandbox_mode", "approval_policy"),
)
_CONTEXT = re.compile(rf"\s*(?:<(?:{'|'.join(_CONTEXT_TAGS)})>|# AGENTS\.md instructions for )")
"""The beginning of what the program itself writes as if it were the person."""


class CodexReader(HistoryReader):
    """Reads the sessions of Codex CLI. An id is the place of the rollout below its folder."""

    program: ClassVar[str] = PROGRAM
    title: ClassVar[str] = "Codex"

    @property
    def _home(self) -> Path:
        return self._machine.folder("CODEX_HOME", ".codex")

    def locations(self) -> tuple[Path, ...]:
        """Return the folders of sessions and of archived ones."""
        return self._home / "sessions", self._home / "archived_sessions"

    def _list(self, reading: Reading) -> Iterator[FoundConversation]:
        """Yield the sessions, by folder. Compressed ones, and subagents of sessions that are gone, are counted."""
        names = self._names(reading)
        files = list(self._files(reading))
        threads = {thread for _, path in files for thread in _ID.findall(path.name)}

        def describe(session_id: str, file: BinaryIO, changed: datetime) -> FoundConversation | None:
            overview = _overview(file, names, threads, reading)
            return None if overview is None else found_conversation(session_id, overview, changed)

        yield from reading.describe_files(files, describe)

    def _files(self, reading: Reading) -> Iterator[tuple[str, Path]]:
        for root in self.locations():
            for path in reading.walk(root, 3, _is_rollout):
                if path.suffix == _SUFFIX:
                    yield file_id(root, path, _SUFFIX), path
                elif not path.with_suffix("").exists():
                    reading.report.omit(Omission.COMPRESSED)

    def _names(self, reading: Reading) -> dict[str, str]:
        """Return the names that sessions were given, by session; the last one counts."""
        try:
            with open_file(self._home / "session_index.jsonl") as file:
                entries = list(reading.objects(file))
        except (NotReadable, OSError):
            return {}
        return {text_in(entry, "id"): short_title(text_in(entry, "thread_name")) for entry in entries}

    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Return a session; turns that were rolled back, and subagents, are branches."""
        agents = _Agents(reading)
        rollout = _Rollout(agents)
        path, _ = locate(self.locations(), conversation_id, (_SUFFIX,))
        with open_file(path) as file:
            changed = modified_at(file)
            rollout.read_file(file)
        self._read_agents(path, agents, rollout)
        name = self._names(reading).get(rollout.thread_id)
        overview = rollout.overview
        overview.title, overview.title_is_automatic = name or overview.title, not name
        return ReadResult(overview, agents.tree, rollout.thread.tail, changed)

    def _read_agents(self, path: Path, agents: "_Agents", session: "_Rollout") -> None:
        """Read the rollouts of subagents, and of those that they started: each begins after the one of its caller."""
        if not agents.is_any_missing:
            return
        others = [other for _, other in self._files(Reading(self._limits)) if other.name > path.name]
        later = sorted(others, key=lambda other: other.name)
        room = self._limits.file
        for other in later[:_MAX_SEARCHED]:
            if not agents.is_any_missing:
                return
            self._limits.pause()
            with suppress(NotReadable, OSError), open_file(other) as file:
                meta = next((_unwrap(entry)[1] for entry in read_head_objects(file, _HEAD)), object_of(None))
                if _caller_of(meta) not in agents.threads:
                    continue
                room -= fstat(file.fileno()).st_size
                if room < 0:
                    agents.reading.report.omit(Omission.TOO_LARGE)
                    return
                caller = agents.take_caller(meta)
                file.seek(0)
                _Rollout(agents, caller.id if caller else session.thread.tail).read_file(file)


def _overview(file: BinaryIO, names: dict[str, str], threads: set[str], reading: Reading) -> Overview | None:
    overview, thread_id, prompt = Overview(), "", ""
    for entry in read_head_objects(file, _HEAD):
        kind, payload = _unwrap(entry)
        overview.created_at = overview.created_at or parse_time(entry.get("timestamp"))
        if kind == "session_meta" and not thread_id:
            if "subagent" in object_in(payload, "source"):
                if _caller_of(payload) not in threads:
                    reading.report.omit(Omission.HIDDEN, "subagent")
                return None
            thread_id, overview.workspace = text_in(payload, "id"), text_in(payload, "cwd")
        overview.model = overview.model or (text_in(payload, "model") if kind == "turn_context" else "")
        prompt = prompt or _prompt_of(payload)
        if prompt and overview.model:
            break
    if not prompt:
        return None
    newest = (parse_time(object_of(parse_json(line)).get("timestamp")) for line in reversed(read_tail(file, _TAIL)))
    overview.title = names.get(thread_id) or short_title(prompt)
    overview.updated_at = next((time for time in newest if time), None)
    return overview


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith((_SUFFIX, ".jsonl.zst"))


def _caller_of(meta: dict[str, Any]) -> str:
    """Return the thread that started this one; empty for what the program starts by itself, as a review."""
    thread = text_in(meta, "source", "subagent", "thread_spawn", "parent_thread_id")
    return thread or (text_in(meta, "parent_thread_id") if object_in(meta, "source", "subagent") else "")


def _unwrap(entry: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the kind and content of an entry. Rollouts of early 2025 have the bare item."""
    if isinstance(entry.get("payload"), dict):
        return text_in(entry, "type"), object_in(entry, "payload")
    return ("response_item" if entry.get("type") else "session_meta"), entry


def _prompt_of(payload: dict[str, Any]) -> str:
    """Return what the person wrote, if the item is a prompt."""
    if payload.get("type") != "message" or payload.get("role") != "user":
        return ""
    texts = [text_in(part, "text") for part in list_in(payload, "content")]
    text = next((text for text in texts if text.strip() and not _CONTEXT.match(text)), "")
    return text.partition(_REQUEST)[2].strip() or text.strip()


class _Agents:
    """A session and its subagents: the tree of all their messages, and the calls whose subagents are still missing."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.tree = TreeBuilder(reading.report, reading.limits.messages)
        self.threads: set[str] = set()
        self.items: set[int] = set()
        """Hashes of the items that were read, by which other rollouts that repeat them are recognised."""
        self._callers: dict[str, Draft] = {}
        self._calls: dict[str, str] = {}

    @property
    def is_any_missing(self) -> bool:
        return bool(self._callers)

    def note_call(self, draft: Draft, block: Block) -> None:
        if isinstance(block, ToolUse) and block.name == "spawn_agent":
            self._callers[block.id] = draft

    def note_agent(self, call_id: str, thread: str, *names: str) -> None:
        """Note the thread that a call has started, or its name in the `thread` of the call."""
        self._calls |= {f"{thread} {name}" if name.startswith("/") else name: call_id for name in names if name}

    def note_result(self, item: dict[str, Any], thread: str) -> None:
        """Note the result of a call: one that names no subagent has started none."""
        call_id = text_in(item, "call_id")
        if call_id in self._callers:
            started = object_of(parse_json(text_in(item, "output")))
            self.note_agent(call_id, thread, text_in(started, "agent_id"), text_in(started, "task_name"))
            if call_id not in self._calls.values():
                del self._callers[call_id]

    def take_caller(self, meta: dict[str, Any]) -> Draft | None:
        """Return the answer whose call has started this thread; once."""
        path = text_in(meta, "source", "subagent", "thread_spawn", "agent_path")
        names = (text_in(meta, "id"), f"{_caller_of(meta)} {path}")
        call_id = next((self._calls[name] for name in names if name in self._calls), "")
        return self._callers.pop(call_id, None)


class _Rollout:
    """The entries of one rollout, put together. That of a subagent is a branch that begins after a message."""

    def __init__(self, agents: _Agents, begins_after: str | None = None) -> None:
        self.report = agents.reading.report
        self.thread = Thread(agents.tree)
        self.thread.tail = begins_after
        self.overview = Overview()
        self.thread_id = ""
        self._agents = agents
        self._author: str | None = None
        self._repeats = False
        self._begins_at = 0
        self._reading = agents.reading
        self._prompts: list[Draft] = []
        self._answer: Draft | None = None
        self._model = ""
        self._count = 0
        self._time = EPOCH

    def read_file(self, file: BinaryIO) -> None:
        for entry in self._reading.objects(file):
            self._read(entry)

    def _read(self, entry: dict[str, Any]) -> None:
        self._count += 1
        time = parse_time(entry.get("timestamp"))
        self._time = time or self._time
        kind, payload = _unwrap(entry)
        match kind:
            case "session_meta" if not self.thread_id:
                self._read_meta(payload)
            case "session_meta" if self._author:
                # The one of the session that started it, followed by a copy of what was said there.
                self._repeats = True
            case "response_item" if self._is_repeated(entry, payload):
                self.report.omit(Omission.REPEATED)
            case "turn_context":
                self._model = text_in(payload, "model")
                self.overview.model = self._model or self.overview.model
                self.overview.workspace = self.overview.workspace or text_in(payload, "cwd")
            case "response_item":
                self.overview.note_time(time)
                self._read_item(payload)
            case "event_msg":
                self._read_event(payload)
            case "compacted":
                self.report.omit(Omission.SUMMARY)
            case _:
                self.report.omit(omission_of(PROGRAM, kind), kind)

    def _read_meta(self, meta: dict[str, Any]) -> None:
        self.thread_id = text_in(meta, "id")
        self._agents.threads.add(self.thread_id)
        self.overview.workspace = text_in(meta, "cwd")
        if _caller_of(meta):
            self._author = "subagent"
            self._repeats = bool(text_in(meta, "forked_from_id"))
            start = meta.get("subagent_history_start_ordinal")
            self._begins_at = start if isinstance(start, int) else 0

    def _is_repeated(self, entry: dict[str, Any], item: dict[str, Any]) -> bool:
        """Return whether a subagent's rollout has this item from the session that started it."""
        ordinal = entry.get("ordinal")
        if self._begins_at and isinstance(ordinal, int):
            return ordinal < self._begins_at
        parts = [*list_in(item, "summary"), *list_in(item, "content")]
        texts = tuple(text_in(part, "text") for part in parts)
        key = hash((text_in(item, "type"), text_in(item, "role"), text_in(item, "call_id"), texts))
        if self._repeats:
            return key in self._agents.items
        self._agents.items.add(key)
        return False

    def _read_event(self, event: dict[str, Any]) -> None:
        """Read an event; most repeat what the items say."""
        match text_in(event, "type"):
            case "thread_rolled_back":
                turns = event.get("num_turns")
                if isinstance(turns, int) and 0 < turns <= len(self._prompts):
                    self.thread.tail = self._prompts[-turns].parent
                    del self._prompts[-turns:]
            case "sub_agent_activity" if text_in(event, "kind") == "started":
                self._agents.note_agent(text_in(event, "event_id"), self.thread_id, text_in(event, "agent_thread_id"))
            case "turn_aborted" if self._answer is not None:
                self._answer.state = MessageState.INTERRUPTED
            case "token_count" if self._answer is not None:
                usage = object_in(event, "info", "last_token_usage")
                known = usage_of(
                    input_tokens=usage.get("input_tokens"),
                    output_tokens=usage.get("output_tokens"),
                    cache_read_tokens=usage.get("cached_input_tokens"),
                    reasoning_tokens=usage.get("reasoning_output_tokens"),
                    total_tokens=usage.get("total_tokens"),
                )
                self._answer.usage = known or self._answer.usage
            case _:
                self.report.omit(Omission.HIDDEN, "event_msg")

    def _read_item(self, item: dict[str, Any]) -> None:
        kind = text_in(item, "type")
        match kind:
            case "message":
                self._read_message(item)
            case "function_call_output" | "custom_tool_call_output":
                self.thread.add_result(self._result(item), self._time)
                self._agents.note_result(item, self.thread_id)
            case _:
                for block in self._blocks(kind, item):
                    self._add_block(block)

    @property
    def _item_id(self) -> str:
        return f"{self.thread_id}-item-{self._count}" if self._author else f"item-{self._count}"

    def _add_block(self, block: Block) -> None:
        draft = self.thread.add_block(self._item_id, self._time, block, self._model)
        if draft is not None:
            self._agents.note_call(draft, block)
            self._answer = draft

    def _read_message(self, item: dict[str, Any]) -> None:
        role = text_in(item, "role")
        parts = list_in(item, "content")
        if role == "assistant":
            for block in self._message_blocks(parts):
                self._add_block(block)
        elif role == "user":
            blocks = self._message_blocks(parts)
            draft = self.thread.add_prompt(self._item_id, Role.USER, self._time, blocks, self._author)
            if draft is not None:
                self._prompts.append(draft)
                self.overview.title = self.overview.title or short_title(_prompt_of(item))
        else:
            self.report.omit(Omission.HIDDEN, role or "message")

    def _message_blocks(self, parts: list[Any]) -> Iterator[Block]:
        for part in parts:
            text = text_in(part, "text")
            if text_in(part, "type") == "input_image":
                yield from self._reading.picture_from_url(text_in(part, "image_url"))
            elif _CONTEXT.match(text) and text_in(part, "type") == "input_text":
                self.report.omit(Omission.HIDDEN, "context")
            elif text.strip():
                yield Text(text=text)
            elif not text:
                self.report.omit(Omission.UNKNOWN, text_in(part, "type"))

    def _blocks(self, kind: str, item: dict[str, Any]) -> Iterator[Block]:
        call_id = text_in(item, "call_id") or text_in(item, "id")
        match kind:
            case "reasoning":
                yield from self._reasoning(item)
            case "function_call" if call_id:
                arguments = text_in(item, "arguments")
                yield shell_call(call_id, text_in(item, "name"), parse_json(arguments), arguments)
            case "local_shell_call" if call_id:
                yield shell_call(call_id, "local_shell", object_in(item, "action"), "")
            case "custom_tool_call" if call_id:
                yield custom_call(call_id, text_in(item, "name"), text_in(item, "input"))
            case "web_search_call":
                yield web_search(item)
            case "image_generation_call":
                yield from self._reading.picture(text_in(item, "result"))
            case _:
                yield from unread_part(PROGRAM, kind, item, self.report)

    def _reasoning(self, item: dict[str, Any]) -> Iterator[Block]:
        parts = [*list_in(item, "summary"), *list_in(item, "content")]
        text = "\n\n".join(text_in(part, "text") for part in parts if text_in(part, "text").strip())
        if text:
            # Without its encrypted part, which only the same account can send back.
            yield Thinking(text=text, provider="openai-responses")
        else:
            self.report.omit(Omission.HIDDEN, "reasoning")

    def _result(self, item: dict[str, Any]) -> ToolResult:
        older = object_in(item, "output")
        failed = older.get("success") is False
        output = text_in(older, "content") if older else item.get("output")
        parts: list[ResultPart] = []
        if isinstance(output, str):
            text, failed_by_code = plain_output(output)
            failed = failed or failed_by_code
            parts.append(Text(text=text))
        else:
            for part in list_in(item, "output"):
                if text_in(part, "type") != "input_image":
                    parts.append(Text(text=text_in(part, "text")))
                else:
                    parts.extend(self._reading.picture_from_url(text_in(part, "image_url")))
        outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
        return ToolResult(tool_use_id=text_in(item, "call_id"), content=parts, outcome=outcome)
