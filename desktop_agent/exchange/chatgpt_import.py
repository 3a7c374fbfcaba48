"""Conversations of a ChatGPT account export.

Sources of the shapes: mohamed-chs/convoviz, docs/dev/chatgpt-spec.md 3.0 (2026-02-05), for the mapping, content types
and names of files; daugaard47/ChatGPT_Conversations_To_Markdown, pull request 23 (2026-04-09), for the numbered
`conversations-000.json`; exports up to 2026-09 in public repositories for thoughts, recaps and references. The vendor
publishes no schema.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, cast

from desktop_agent.exchange.foreign_tree import EPOCH, Draft, Overview, TreeBuilder, conversation_tree
from desktop_agent.exchange.foreign_values import fenced_code, flag_in, list_in, moment_in, object_in, text_in, texts_in
from desktop_agent.exchange.import_report import ImportReport
from desktop_agent.types.blocks import (
    Block,
    Citation,
    Image,
    Json,
    JsonObject,
    Outcome,
    ResultPart,
    ServerStep,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.types.conversation_tree import MAX_TITLE_LENGTH, ConversationOrigin, ConversationTree
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import MessageState, Role

PROGRAM = "chatgpt"

FindPicture = Callable[[str, str], Image | None]
"""Returns the picture whose file name in the export begins with an id, under a name; None if there is none."""

_ASSET = re.compile(r"(?:file-service|sediment)://(file[-_]\w+)")
# How the service marks citations in texts: characters for private use around them.
_MARKED = re.compile("\ue200[^\ue200\ue201]*\ue201")
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL}
_EVERYBODY = ("", "all")
_INSTRUCTIONS = frozenset({"user_editable_context", "model_editable_context"})
_RECORDINGS = frozenset(
    {"audio_asset_pointer", "real_time_user_audio_video_asset_pointer", "video_container_asset_pointer"}
)
_UNKNOWN_KIND = "Content of the kind “{kind}” is not known and was kept as it is."
_MAX_CITATIONS = 1000
_MAX_NAME_LENGTH = 200


def read_chatgpt_conversation(raw: dict[str, Any], find_picture: FindPicture, report: ImportReport) -> ConversationTree:
    """Return the conversation with all its branches. Hidden messages are left out and counted."""
    mapping = object_in(raw, "mapping")
    title = " ".join(text_in(raw, "title").split())[:MAX_TITLE_LENGTH]
    overview = Overview(title, not title, moment_in(raw, "create_time"), model=text_in(raw, "default_model_slug"))
    reader = _MessageReader(mapping, find_picture, report, overview)
    for id_ in _in_order(mapping):
        reader.read(id_)
    reader.tree.join_pieces()
    overview.updated_at = moment_in(raw, "update_time") or overview.updated_at
    foreign_id = text_in(raw, "conversation_id") or text_in(raw, "id") or "\n".join(mapping)
    origin = ConversationOrigin(program=PROGRAM, id=foreign_id)
    return conversation_tree(origin, overview, reader.tree, text_in(raw, "current_node") or None, EPOCH)


def _in_order(mapping: dict[str, Any]) -> Iterator[str]:
    """Yield the ids, each after its parent; children in the order that it has them in, which is that of versions."""
    children = {id_: texts_in(node, "children") for id_, node in mapping.items()}
    below = set(chain.from_iterable(children.values()))
    for start in (*(id_ for id_ in mapping if id_ not in below), *mapping):
        waiting = [start]
        while waiting:
            id_ = waiting.pop()
            if id_ in children:
                yield id_
                waiting += reversed(children.pop(id_))


class _MessageReader:
    """Reads the nodes of one conversation into a tree."""

    def __init__(
        self, mapping: dict[str, Any], find_picture: FindPicture, report: ImportReport, overview: Overview
    ) -> None:
        self.tree = TreeBuilder(report)
        self._mapping = mapping
        self._find_picture = find_picture
        self._report = report
        self._overview = overview
        self._time = overview.created_at or EPOCH

    def read(self, id_: str) -> None:
        """Add the message of a node; what follows one that is not shown follows the one before it."""
        message = object_in(self._mapping[id_], "message")
        parent = text_in(self._mapping[id_], "parent") or None
        time = moment_in(message, "create_time")
        self._overview.note_time(time)
        self._time = time or self._time
        role = self._shown_role(message)
        if role is Role.TOOL:
            role, blocks = self._output(message, parent)
        else:
            blocks = [] if role is None else self._blocks(message, id_)
        if role is None or not blocks:
            self.tree.pass_over(id_, parent)
            return
        draft = Draft(id_, role, self._time, parent, blocks)
        if role is Role.ASSISTANT:
            draft.model = text_in(message, "metadata", "model_slug") or None
        if text_in(message, "status") in {"in_progress", "error"}:
            draft.state = MessageState.INTERRUPTED
        self.tree.add(draft)

    def _shown_role(self, message: dict[str, Any]) -> Role | None:
        """Return who wrote it; None for what the service itself does not show either."""
        if not message:
            return None
        kind = text_in(object_in(message, "content"), "content_type")
        name = text_in(object_in(message, "author"), "role")
        is_hidden = flag_in(object_in(message, "metadata"), "is_visually_hidden_from_conversation")
        if name == "system" or is_hidden or kind in _INSTRUCTIONS:
            self._report.add(Sentence("A hidden message of the service, such as its instructions, was left out."))
            return None
        if name not in _ROLES:
            self._report.add(
                Sentence("A message by “{name}”, whom this version does not know, was left out.", {"name": name})
            )
        return _ROLES.get(name)

    def _blocks(self, message: dict[str, Any], id_: str) -> list[Block]:
        content, metadata = object_in(message, "content"), object_in(message, "metadata")
        recipient = text_in(message, "recipient")
        if text_in(object_in(message, "author"), "role") == "assistant" and recipient not in _EVERYBODY:
            return [ToolUse(id=id_, name=recipient[:_MAX_NAME_LENGTH], input=_arguments(content))]
        match text_in(content, "content_type"):
            case "thoughts":
                return _thinking("\n\n".join(filter(None, map(_thought, list_in(content, "thoughts")))))
            case "reasoning_recap":
                return _thinking(text_in(content, "content"))
            case "code":
                return [Text(text=fenced_code(text_in(content, "text"), text_in(content, "language")))]
            case "text" | "multimodal_text":
                return [*self._parts(content, metadata), *self._other_attachments(content, metadata)]
            case kind:
                self._report.add(Sentence(_UNKNOWN_KIND, {"kind": kind}))
                return [Unknown(raw=content)]

    def _parts(self, content: dict[str, Any], metadata: dict[str, Any]) -> Iterator[Text | Image | Unknown]:
        names = {text_in(file, "id"): text_in(file, "name") for file in list_in(metadata, "attachments")}
        for part in list_in(content, "parts"):
            kind = text_in(part, "content_type")
            if isinstance(part, str):
                if text := _resolve_references(part, metadata):
                    yield Text(text=text, citations=_citations(metadata))
            elif kind == "audio_transcription":
                yield Text(text=text_in(part, "text"))
            elif kind == "image_asset_pointer":
                yield self._picture(text_in(part, "asset_pointer"), names)
            elif kind in _RECORDINGS:
                self._report.add(Sentence("A recording was left out. Its words are kept if the export has them."))
            else:
                self._report.add(Sentence(_UNKNOWN_KIND, {"kind": kind}))
                yield Unknown(raw=part)

    def _picture(self, pointer: str, names: dict[str, str]) -> Text | Image:
        match = _ASSET.match(pointer)
        picture = self._find_picture(match[1], names.get(match[1], "")) if match else None
        if picture is not None:
            return picture
        self._report.add(Sentence("A picture is not in the export; its place is marked."))
        return Text(text=_named_file(names.get(match[1], "") if match else ""))

    def _other_attachments(self, content: dict[str, Any], metadata: dict[str, Any]) -> Iterator[Text]:
        """Name the attached files that are no pictures of the message: the export does not have their content."""
        shown = {
            match[1]
            for part in list_in(content, "parts")
            if (match := _ASSET.match(text_in(part, "asset_pointer"))) is not None
        }
        for file in list_in(metadata, "attachments"):
            if text_in(file, "id") not in shown:
                self._report.add(
                    Sentence("Only the name of an attached file is kept: the export does not contain the file.")
                )
                yield Text(text=_named_file(text_in(file, "name")))

    def _output(self, message: dict[str, Any], parent: str | None) -> tuple[Role, list[Block]]:
        """Return what a tool wrote as the result of the call above it, or as a step of the service's own."""
        content = object_in(message, "content")
        parts = list(self._output_parts(content, object_in(message, "metadata")))
        call = self._call_above(parent)
        if call is not None:
            outcome = Outcome.FAILED if text_in(content, "content_type") == "system_error" else Outcome.SUCCEEDED
            return Role.TOOL, [ToolResult(tool_use_id=call, content=parts, outcome=outcome)]
        if not parts:
            return Role.TOOL, []
        text = "\n\n".join(part.text for part in parts if isinstance(part, Text))
        name = text_in(object_in(message, "author"), "name") or "tool"
        pictures = [part for part in parts if isinstance(part, Image)]
        return Role.ASSISTANT, [ServerStep(provider=PROGRAM, name=name, text=text, raw=content), *pictures]

    def _call_above(self, parent: str | None) -> str | None:
        """Return the id of the call that this is a result of; other results of it may stand between."""
        for _ in range(len(self._mapping)):
            message = object_in(self._mapping.get(parent or ""), "message")
            author = text_in(object_in(message, "author"), "role")
            if author == "assistant":
                return parent if text_in(message, "recipient") not in _EVERYBODY else None
            if author != "tool":
                return None
            parent = text_in(self._mapping.get(parent or ""), "parent")
        return None

    def _output_parts(self, content: dict[str, Any], metadata: dict[str, Any]) -> Iterator[ResultPart]:
        match text_in(content, "content_type"):
            case "execution_output" | "system_error" | "code":
                yield from _texts(text_in(content, "text"))
            case "tether_quote" | "sonic_webpage":
                source = Citation(title=text_in(content, "title") or None, url=text_in(content, "url") or None)
                yield Text(text=text_in(content, "text"), citations=(source,))
            case "tether_browsing_display":
                yield from _texts(text_in(content, "result") or text_in(content, "summary"))
            case "text" | "multimodal_text":
                for part in self._parts(content, metadata):
                    yield Json(value=part.raw) if isinstance(part, Unknown) else part
            case kind:
                self._report.add(Sentence(_UNKNOWN_KIND, {"kind": kind}))
                yield Json(value=content)


def _texts(text: str) -> Iterator[Text]:
    if text:
        yield Text(text=text)


def _thinking(text: str) -> list[Block]:
    return [Thinking(text=text, provider=PROGRAM)] if text else []


def _thought(thought: object) -> str:
    """Return a summary above what was thought; older exports have the summary in parts."""
    summary = text_in(thought, "summary") or " ".join(text_in(part, "text") for part in list_in(thought, "summary"))
    return "\n\n".join(filter(None, (f"**{summary}**" if summary else "", text_in(thought, "content"))))


def _arguments(content: dict[str, Any]) -> JsonObject:
    """Return the arguments of a call: a JSON object where it wrote one, else its text under the name of its kind."""
    parts = [part for part in list_in(content, "parts") if isinstance(part, str)]
    text = text_in(content, "text") or "\n".join(parts)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return cast("JsonObject", value)
    return {"code" if text_in(content, "content_type") == "code" else "text": text}


def _named_file(name: str) -> str:
    return f"[{' '.join(name.split())[:200] or 'Picture'}]"


def _resolve_references(text: str, metadata: dict[str, Any]) -> str:
    """Return the text with what the service shows in place of its marks: links, or nothing."""
    for reference in list_in(metadata, "content_references")[:_MAX_CITATIONS]:
        marked = text_in(reference, "matched_text")
        if marked.strip() and "\ue200" in marked:
            text = text.replace(marked, text_in(reference, "alt"))
    return _MARKED.sub("", text)


def _citations(metadata: dict[str, Any]) -> tuple[Citation, ...]:
    """Return the sources of a text, each once."""
    candidates = [object_in(citation, "metadata") for citation in list_in(metadata, "citations")]
    for reference in list_in(metadata, "content_references"):
        candidates += [reference, *list_in(reference, "items")]
    sources: dict[str, Citation] = {}
    for source in candidates[:_MAX_CITATIONS]:
        url = text_in(source, "url")
        if url.startswith(("http://", "https://")):
            sources.setdefault(url, Citation(title=text_in(source, "title") or None, url=url))
    return tuple(sources.values())
