"""Conversations of a Claude account export (`conversations.json`; users, projects and memories are left alone).

Sources of the shapes: exports from 2026-03 to 2026-07 in public repositories, word for word, for `parent_message_uuid`,
the blocks of tools and the root's id; Sinity/polylogue, docs/providers/claude-ai.md, and older exports, which are a
list without parents. The vendor publishes no schema.
"""

from collections.abc import Iterator
from typing import Any

from desktop_agent.exchange.branch_view import one_line
from desktop_agent.exchange.foreign_tree import EPOCH, Draft, Overview, TreeBuilder, conversation_tree
from desktop_agent.exchange.foreign_values import flag_in, list_in, moment_in, object_in, object_of, text_in
from desktop_agent.exchange.import_report import ImportReport
from desktop_agent.types.blocks import (
    Block,
    Citation,
    Json,
    Outcome,
    ResultPart,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.types.conversation_tree import MAX_TITLE_LENGTH, ConversationOrigin, ConversationTree
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Role

PROGRAM = "claude"

_ROOT = "00000000-0000-4000-8000-000000000000"
_ROLES = {"human": Role.USER, "user": Role.USER, "assistant": Role.ASSISTANT}
# Blocks about limits, which nobody wrote.
_BOOKKEEPING = frozenset({"token_budget", "flag"})


def read_claude_conversation(raw: dict[str, Any], report: ImportReport) -> ConversationTree:
    """Return the conversation with all its branches."""
    title = " ".join(text_in(raw, "name").split())[:MAX_TITLE_LENGTH]
    overview = Overview(title, not title, moment_in(raw, "created_at"), model=text_in(raw, "model"))
    reader = _MessageReader(report, overview)
    ids: list[str] = []
    last: str | None = None
    for number, message in enumerate(map(object_of, list_in(raw, "chat_messages"))):
        parent = text_in(message, "parent_message_uuid") if "parent_message_uuid" in message else last
        last = text_in(message, "uuid") or f"message {number}"
        ids.append(last)
        reader.read(message, last, None if parent in {None, "", _ROOT} else parent)
    reader.tree.join_pieces()
    overview.updated_at = moment_in(raw, "updated_at") or overview.updated_at
    origin = ConversationOrigin(program=PROGRAM, id=text_in(raw, "uuid") or "\n".join(ids))
    head = text_in(raw, "current_leaf_message_uuid") or last
    return conversation_tree(origin, overview, reader.tree, head, EPOCH)


class _MessageReader:
    """Reads messages. An answer with calls and their results in it becomes several, as in a conversation of ours."""

    def __init__(self, report: ImportReport, overview: Overview) -> None:
        self.tree = TreeBuilder(report)
        self._report = report
        self._overview = overview
        self._time = overview.created_at or EPOCH

    def read(self, message: dict[str, Any], id_: str, parent: str | None) -> None:
        """Add the pieces of a message, each after the one before it; the last one has the message's id."""
        role = _ROLES.get(text_in(message, "sender"))
        if role is None:
            name = text_in(message, "sender")
            self._report.add(
                Sentence("A message by “{name}”, whom this version does not know, was left out.", {"name": name})
            )
            self.tree.pass_over(id_, parent)
            return
        time = moment_in(message, "created_at")
        self._overview.note_time(time)
        self._time = time or self._time
        groups = self._groups(message, role) or [(role, [])]
        for number, (group_role, blocks) in enumerate(groups, 1):
            piece = f"{id_}/{number}" if number < len(groups) else id_
            self.tree.add(Draft(piece, group_role, self._time, parent, blocks))
            parent = piece

    def _groups(self, message: dict[str, Any], role: Role) -> list[tuple[Role, list[Block]]]:
        groups: list[tuple[Role, list[Block]]] = []
        for block in self._blocks(message):
            block_role = Role.TOOL if isinstance(block, ToolResult) else role
            if groups and groups[-1][0] is block_role:
                groups[-1][1].append(block)
            else:
                groups.append((block_role, [block]))
        return groups

    def _blocks(self, message: dict[str, Any]) -> Iterator[Block]:
        content = list_in(message, "content")
        if not content and text_in(message, "text"):
            yield Text(text=text_in(message, "text"))
        calls: list[str] = []
        for raw in content:
            block = self._block(raw, calls)
            if isinstance(block, ToolUse):
                calls.append(block.id)
            if block is not None:
                yield block
        yield from self._attachments(message)

    def _block(self, raw: object, calls: list[str]) -> Block | None:
        match text_in(raw, "type"):
            case "text" | "voice_note":
                text = text_in(raw, "text")
                return Text(text=text, citations=tuple(_citations(raw))) if text.strip() else None
            case "thinking":
                summaries = "\n\n".join(text_in(summary, "summary") for summary in list_in(raw, "summaries"))
                text = text_in(raw, "thinking") or summaries
                return Thinking(text=text, provider=PROGRAM) if text else None
            case "tool_use":
                id_ = text_in(raw, "id") or f"call-{len(calls) + 1}"
                return ToolUse(id=id_, name=one_line(text_in(raw, "name")) or "tool", input=object_in(raw, "input"))
            case "tool_result":
                return self._result(raw, calls)
            case kind if kind in _BOOKKEEPING:
                return None
            case kind:
                self._report.add(
                    Sentence("Content of the kind “{kind}” is not known and was kept as it is.", {"kind": kind})
                )
                return Unknown(raw=raw)

    def _result(self, raw: object, calls: list[str]) -> Block:
        call = text_in(raw, "tool_use_id") or (calls[-1] if calls else "")
        if call not in calls:
            self._report.add(Sentence("A result without its call was kept as it is."))
            return Unknown(raw=raw)
        parts = list_in(raw, "content") or [{"type": "text", "text": text_in(raw, "content")}]
        outcome = Outcome.FAILED if flag_in(raw, "is_error") else Outcome.SUCCEEDED
        return ToolResult(tool_use_id=call, content=list(map(_result_part, parts)), outcome=outcome)

    def _attachments(self, message: dict[str, Any]) -> Iterator[Text]:
        names: set[str] = set()
        for file in list_in(message, "attachments"):
            name, text = text_in(file, "file_name"), text_in(file, "extracted_content")
            names.add(name)
            if text:
                yield Text(text=f"{one_line(name)}:\n\n{text}" if name else text)
            else:
                yield self._named(name)
        for file in list_in(message, "files") + list_in(message, "files_v2"):
            if (name := text_in(file, "file_name")) not in names:
                names.add(name)
                yield self._named(name)

    def _named(self, name: str) -> Text:
        self._report.add(Sentence("Only the name of an attached file is kept: the export does not contain the file."))
        return Text(text=f"[{one_line(name) or 'File'}]")


def _citations(raw: object) -> Iterator[Citation]:
    for citation in list_in(raw, "citations"):
        details = object_in(citation, "details") or citation
        url, title = text_in(details, "url"), text_in(citation, "title") or text_in(details, "title")
        if url.startswith(("http://", "https://")):
            yield Citation(title=title or None, url=url)


def _result_part(part: Any) -> ResultPart:
    """Return a part of a result; a page that was found is its words with their source."""
    if isinstance(part, str):
        return Text(text=part)
    kind, text = text_in(part, "type"), text_in(part, "text")
    if kind == "knowledge":
        url = text_in(part, "url")
        return Text(text=text, citations=(Citation(title=text_in(part, "title") or None, url=url or None),))
    return Text(text=text) if kind == "text" else Json(value=part)
