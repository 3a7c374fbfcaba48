"""Codex CLI: a rollout of JSON lines for each session, `~/.codex/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`.

From the source (openai/codex, read at the versions stored in 2026): codex-rs/rollout/src/list.rs (places and names),
compression.rs (`.jsonl.zst`, which the standard library of Python 3.11 cannot read), policy.rs (what is written),
session_index.rs (names that people gave); codex-rs/protocol/src/models.rs (`ResponseItem`) and protocol.rs
(`SessionMeta`, `TurnContextItem`, `CompactedItem`, `ThreadRolledBackEvent`). From notes alone, skillsynchq/txcript,
docs/formats/codex.md (2026-08-21): which of the two logs in a file has what. Rollouts of early 2025 have bare items.
"""

import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from desktop_agent.exchange.foreign_tree import Draft, Overview, Thread, TreeBuilder, conversation_tree
from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, parse_time, text_in
from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.exchange.readers.content import (
    is_hidden,
    picture,
    picture_from_url,
    short_title,
    tool_call,
    usage_of,
)
from desktop_agent.exchange.readers.files import (
    NotReadable,
    describe_files,
    file_id,
    locate,
    modified_at,
    open_file,
    parse_json,
    read_head_objects,
    read_objects,
    read_tail,
    walk_files,
)
from desktop_agent.exchange.readers.reader import (
    LIMITS,
    FoundConversation,
    HistoryUnreadable,
    Limits,
    LoadedConversation,
    Machine,
)
from desktop_agent.types.blocks import (
    Block,
    Outcome,
    ResultPart,
    ServerStep,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.types.conversation_tree import ConversationOrigin
from desktop_agent.types.messages import MessageState, Role

_PROGRAM = "codex"
_SUFFIX = ".jsonl"
_HEAD = 1_000_000
_TAIL = 16_384
_REQUEST = "## My request for Codex:"
"""What an editor puts between its own context and the person's words."""

_CONTEXT_TAGS = (
    *("environment_context", "user_instructions", "permissions instructions", "collaboration_mode", "turn_aborted"),
    *(
        "skill",
        "plugins",
        "subagents",
        "subagent_notification",
        "user_shell_command",
        "sandbox_mode",
        "approval_policy",
    ),
)
_CONTEXT = re.compile(rf"\s*(?:<(?:{'|'.join(_CONTEXT_TAGS)})>|# AGENTS\.md instructions for )")
"""The beginning of what the program itself writes as if it were the person."""

_EXIT_CODE = re.compile(r"(?:Exit code: |Process exited with code )(-?\d+)")
_PATCH_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")


class CodexReader:
    """Reads the sessions of Codex CLI. An id is the place of the rollout below its folder."""

    program: ClassVar[str] = _PROGRAM
    title: ClassVar[str] = "Codex"

    def __init__(self, machine: Machine, limits: Limits = LIMITS) -> None:
        self._home = machine.folder("CODEX_HOME", ".codex")
        self._limits = limits
        self.report = ImportReport()

    def locations(self) -> tuple[Path, ...]:
        """Return the folders of sessions and of archived ones."""
        return self._home / "sessions", self._home / "archived_sessions"

    def is_present(self) -> bool:
        """Return whether there is a folder of sessions."""
        return any(folder.is_dir() for folder in self.locations())

    def list_conversations(self) -> Iterator[FoundConversation]:
        """Yield the sessions, by folder; compressed ones and those of subagents are counted and passed over."""
        self.report = ImportReport()
        names = self._names()

        def describe(session_id: str, file: BinaryIO) -> FoundConversation | None:
            return self._describe(session_id, file, names)

        yield from describe_files(self._files(), describe, self.report)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for root in self.locations():
            for path in walk_files(root, 3, _is_rollout, self._limits, self.report):
                if path.suffix == _SUFFIX:
                    yield file_id(root, path, _SUFFIX), path
                elif not path.with_suffix("").exists():
                    self.report.omit(Omission.COMPRESSED)

    def _names(self) -> dict[str, str]:
        """Return the names that sessions were given, by session; the last one counts."""
        try:
            with open_file(self._home / "session_index.jsonl") as file:
                entries = list(read_objects(file, self._limits, self.report))
        except (NotReadable, OSError):
            return {}
        return {text_in(entry, "id"): short_title(text_in(entry, "thread_name")) for entry in entries}

    def _describe(self, session_id: str, file: BinaryIO, names: dict[str, str]) -> FoundConversation | None:
        overview, thread_id, prompt = Overview(), "", ""
        for entry in read_head_objects(file, _HEAD):
            kind, payload = _unwrap(entry)
            overview.created_at = overview.created_at or parse_time(entry.get("timestamp"))
            if kind == "session_meta" and not thread_id:
                if "subagent" in object_in(payload, "source"):
                    self.report.omit(Omission.HIDDEN, "subagent")
                    return None
                thread_id, overview.workspace = text_in(payload, "id"), text_in(payload, "cwd")
            overview.model = overview.model or (text_in(payload, "model") if kind == "turn_context" else "")
            prompt = prompt or _prompt_of(payload)
            if prompt and overview.model:
                break
        if not prompt:
            return None
        changed = modified_at(file)
        newest = (parse_time(object_of(parse_json(line)).get("timestamp")) for line in reversed(read_tail(file, _TAIL)))
        return FoundConversation(
            id=session_id,
            title=names.get(thread_id) or short_title(prompt),
            created_at=overview.created_at or changed,
            updated_at=next((time for time in newest if time), changed),
            workspace=overview.workspace or None,
            model=overview.model or None,
        )

    def load(self, conversation_id: str) -> LoadedConversation:
        """Return a session; turns that were rolled back are branches. Raises HistoryUnreadable."""
        rollout = _Rollout(self._limits)
        try:
            path, _ = locate(self.locations(), conversation_id, (_SUFFIX,))
            with open_file(path) as file:
                changed = modified_at(file)
                for entry in read_objects(file, self._limits, rollout.report):
                    rollout.read(entry)
        except (NotReadable, OSError) as error:
            raise HistoryUnreadable.of(self.title, str(error)) from None
        name = self._names().get(rollout.thread_id)
        overview = rollout.overview
        overview.title, overview.title_is_automatic = name or overview.title, not name
        origin = ConversationOrigin(program=self.program, id=conversation_id)
        tree = conversation_tree(origin, overview, rollout.tree, rollout.thread.tail, changed)
        return LoadedConversation(tree, rollout.tree.report)


def _is_rollout(name: str) -> bool:
    return name.startswith("rollout-") and name.endswith((_SUFFIX, ".jsonl.zst"))


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


class _Rollout:
    """The entries of one rollout, put together."""

    def __init__(self, limits: Limits) -> None:
        self.report = ImportReport()
        self.tree = TreeBuilder(self.report, limits.messages)
        self.thread = Thread(self.tree)
        self.overview = Overview()
        self.thread_id = ""
        self._limits = limits
        self._prompts: list[Draft] = []
        self._answer: Draft | None = None
        self._model = ""
        self._count = 0
        self._time = datetime.fromtimestamp(0, UTC)

    def read(self, entry: dict[str, Any]) -> None:
        """Read the next entry."""
        self._count += 1
        time = parse_time(entry.get("timestamp"))
        self._time = time or self._time
        kind, payload = _unwrap(entry)
        match kind:
            case "session_meta" if not self.thread_id:
                self.thread_id = text_in(payload, "id")
                self.overview.workspace = text_in(payload, "cwd")
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
                self._leave_out(kind)

    def _leave_out(self, kind: str) -> None:
        self.report.omit(Omission.HIDDEN if is_hidden(_PROGRAM, kind) else Omission.UNKNOWN, kind)

    def _read_event(self, event: dict[str, Any]) -> None:
        """Read an event; most repeat what the items say."""
        match text_in(event, "type"):
            case "thread_rolled_back":
                turns = event.get("num_turns")
                if isinstance(turns, int) and 0 < turns <= len(self._prompts):
                    self.thread.tail = self._prompts[-turns].parent
                    del self._prompts[-turns:]
            case "turn_aborted" if self._answer is not None:
                self._answer.state = MessageState.INTERRUPTED
            case "token_count" if self._answer is not None:
                usage = object_in(event, "info", "last_token_usage")
                known = usage_of(
                    {
                        "input_tokens": usage.get("input_tokens"),
                        "output_tokens": usage.get("output_tokens"),
                        "cache_read_tokens": usage.get("cached_input_tokens"),
                        "reasoning_tokens": usage.get("reasoning_output_tokens"),
                        "total_tokens": usage.get("total_tokens"),
                    }
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
            case _:
                for block in self._blocks(kind, item):
                    self._add_block(block)

    def _add_block(self, block: Block) -> None:
        draft = self.thread.add_block(f"item-{self._count}", self._time, block)
        if draft is not None:
            draft.model = draft.model or self._model or None
            self._answer = draft

    def _read_message(self, item: dict[str, Any]) -> None:
        role = text_in(item, "role")
        parts = list_in(item, "content")
        if role == "assistant":
            for block in self._message_blocks(parts):
                self._add_block(block)
        elif role == "user":
            draft = Draft(f"item-{self._count}", Role.USER, self._time, None, list(self._message_blocks(parts)))
            if draft.blocks and self.thread.add(draft):
                self._prompts.append(draft)
                self.overview.title = self.overview.title or short_title(_prompt_of(item))
        else:
            self.report.omit(Omission.HIDDEN, role or "message")

    def _message_blocks(self, parts: list[Any]) -> Iterator[Block]:
        for part in parts:
            text = text_in(part, "text")
            if text_in(part, "type") == "input_image":
                image = picture_from_url(text_in(part, "image_url"), self._limits, self.report)
                if image is not None:
                    yield image
            elif _CONTEXT.match(text) and text_in(part, "type") == "input_text":
                self.report.omit(Omission.HIDDEN, "context")
            elif text.strip():
                yield Text(text=text)
            elif not text:
                self.report.omit(Omission.UNKNOWN, text_in(part, "type"))

    def _blocks(self, kind: str, item: dict[str, Any]) -> Iterator[Block]:
        """Yield what an item adds to an answer."""
        call_id = text_in(item, "call_id") or text_in(item, "id")
        match kind:
            case "reasoning":
                yield from self._reasoning(item)
            case "function_call" if call_id:
                arguments = text_in(item, "arguments")
                yield _call(call_id, text_in(item, "name"), parse_json(arguments), arguments)
            case "local_shell_call" if call_id:
                yield _call(call_id, "local_shell", object_in(item, "action"), "")
            case "custom_tool_call" if call_id:
                yield _custom_call(call_id, text_in(item, "name"), text_in(item, "input"))
            case "web_search_call":
                action = object_in(item, "action")
                words = next((text_in(action, key) for key in ("query", "url", "pattern") if text_in(action, key)), "")
                # Under this program's name, so that it is sent to no server.
                yield ServerStep(provider=_PROGRAM, name="web_search", text=words, raw=item)
            case "image_generation_call":
                image = picture(text_in(item, "result"), self._limits, self.report)
                if image is not None:
                    yield image
            case _ if is_hidden(_PROGRAM, kind):
                self.report.omit(Omission.HIDDEN, kind)
            case _:
                self.report.omit(Omission.UNKNOWN, kind)
                yield Unknown(raw=item)

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
            text, failed_by_code = _plain_output(output)
            failed = failed or failed_by_code
            parts.append(Text(text=text))
        else:
            for part in list_in(item, "output"):
                if text_in(part, "type") != "input_image":
                    parts.append(Text(text=text_in(part, "text")))
                elif image := picture_from_url(text_in(part, "image_url"), self._limits, self.report):
                    parts.append(image)
        outcome = Outcome.FAILED if failed else Outcome.SUCCEEDED
        return ToolResult(tool_use_id=text_in(item, "call_id"), content=parts, outcome=outcome)


def _plain_output(output: str) -> tuple[str, bool]:
    """Return what a call wrote, and whether it failed. Some outputs are JSON with the text and the exit code."""
    value = object_of(parse_json(output)) if output.startswith('{"output"') else {}
    if isinstance(value.get("output"), str):
        exit_code = object_in(value, "metadata").get("exit_code")
        return value["output"], isinstance(exit_code, int) and exit_code != 0
    code = _EXIT_CODE.search(output[:300])
    return output, code is not None and code[1] != "0"


def _call(call_id: str, name: str, arguments: object, raw: str) -> ToolUse:
    """Return a call; a command that is a list of words is written as a line."""
    values = object_of(arguments)
    if arguments != values:
        return tool_call(_PROGRAM, call_id, name, raw)
    key = "cmd" if name == "exec_command" else "command"
    words = [word for word in list_in(values, key) if isinstance(word, str)]
    if words[:1] == ["apply_patch"] and len(words) == 2:
        return _custom_call(call_id, "apply_patch", words[1])
    if words:
        is_shell = len(words) == 3 and words[1] in {"-lc", "-c"}
        values = {**values, key: words[2] if is_shell else shlex.join(words)}
    return tool_call(_PROGRAM, call_id, name, values)


def _custom_call(call_id: str, name: str, text: str) -> ToolUse:
    """Return a call whose argument is a text: a patch of one place in one file is our edit."""
    change = _single_change(text) if name == "apply_patch" else None
    if change is None:
        return ToolUse(id=call_id, name=name[:200], input={"input": text})
    return ToolUse(id=call_id, name=change[0], input=change[1])


def _single_change(patch: str) -> tuple[str, dict[str, Any]] | None:
    lines = patch.strip().split("\n")
    header = _PATCH_FILE.fullmatch(lines[1].rstrip()) if len(lines) >= 3 else None
    body = lines[2:-1]
    if header is None or lines[0] != "*** Begin Patch" or any(line.startswith("*** ") for line in body):
        return None
    action, path = header[1], header[2].strip()
    if action == "Delete":
        return ("delete_file", {"path": path}) if not body else None
    if action == "Add":
        return "write_file", {"path": path, "content": "".join(f"{line[1:]}\n" for line in body)}
    hunk = body[1:] if body[:1] and body[0].startswith("@@") else body
    if any(line.startswith("@@") for line in hunk):
        return None
    old = "\n".join(line[1:] for line in hunk if not line.startswith("+"))
    new = "\n".join(line[1:] for line in hunk if not line.startswith("-"))
    return ("edit_file", {"path": path, "old_text": old, "new_text": new}) if old else None
