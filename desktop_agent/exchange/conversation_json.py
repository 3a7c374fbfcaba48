"""Our own JSON of conversations: everything that the store keeps of them, without loss, documented and versioned.

The format is described in docs/exchange.md, and as a JSON Schema, made from the models, in docs/exchange.schema.json.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, cast

from pydantic import Field, TypeAdapter
from pydantic_core import to_jsonable_python

from desktop_agent.exchange.foreign_values import list_in, object_in, object_of, text_in
from desktop_agent.exchange.import_report import ImportReport, Skipped
from desktop_agent.types.blocks import Block, Summary, Unknown
from desktop_agent.types.conversation_tree import FOUND_PREFIX, MAX_TITLE_LENGTH, ConversationTree, TreeMessage
from desktop_agent.types.errors import Sentence
from desktop_agent.types.folders import clean_path, clean_tags
from desktop_agent.types.frozen_model import FrozenModel
from desktop_agent.types.messages import Message, Role

FORMAT = "desktop-agent-conversations"
VERSION = 1

IMPORTED_NOTE = "Noted in the file that was imported: {note}"
_MAX_ID_LENGTH = 200
_SURROGATE = re.compile("[\ud800-\udfff]")


class ConversationsFile(FrozenModel):
    """One or many conversations, in the order in which they were exported."""

    format: Literal["desktop-agent-conversations"]
    version: Literal[1] = Field(description="A reader refuses a version above its own.")
    conversations: tuple[ConversationTree, ...]


def conversations_schema() -> dict[str, Any]:
    """Return the JSON Schema of a file of ours."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ConversationsFile.model_json_schema(mode="serialization"),
    }


def write_conversations(trees: Iterable[ConversationTree], write: Callable[[bytes], object]) -> int:
    """Write a whole file, a line for each conversation, and return their number. Equal trees give equal bytes."""
    write(f'{{"format":"{FORMAT}","version":{VERSION},"conversations":['.encode())
    count = 0
    for tree in trees:
        write(b",\n" if count else b"\n")
        write(_tree_json(tree))
        count += 1
    write(b"\n]}\n")
    return count


def _tree_json(tree: ConversationTree) -> bytes:
    # Not mode="json": it replaces lone surrogates in the keys of objects.
    data = _change_notes(tree, _unmark_note).model_dump()
    try:
        text = _dumps(data)
    except ValueError:
        text = _dumps(_without_infinities(data))
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Halves of a pair side by side are read as one character anyway; single ones survive as escapes only.
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", joined).encode()


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=to_jsonable_python)


def _without_infinities(value: Any) -> Any:
    """JSON has no NaN and no infinities: they become null."""
    clean: Any = value
    if isinstance(value, float):
        clean = value if math.isfinite(value) else None
    elif isinstance(value, dict):
        clean = {key: _without_infinities(inner) for key, inner in cast("dict[str, Any]", value).items()}
    elif isinstance(value, list | tuple):
        clean = [_without_infinities(inner) for inner in cast("Sequence[Any]", value)]
    return clean


def read_conversation(raw: dict[str, Any], report: ImportReport) -> ConversationTree | Skipped:
    """Return the conversation of one entry; what this version does not know of it is kept as such, or reported."""
    try:
        tree = ConversationTree.model_validate(raw)
    except ValueError:
        tree = _read_partly(raw, report)
    return _checked(tree, report) if isinstance(tree, ConversationTree) else tree


def _checked(tree: ConversationTree, report: ImportReport) -> ConversationTree | Skipped:
    """Refuse ids that this program never makes, and count what the window would not show."""
    ids = [node.message.id for node in tree.messages]
    is_plain = all(0 < len(id_) <= _MAX_ID_LENGTH for id_ in (tree.id, *ids))
    if not is_plain or tree.id.startswith(FOUND_PREFIX):
        return Skipped(tree.title[:200], Sentence("Its ids are not those of a conversation."))
    tree = _change_notes(_with_plain_places(_with_zones(tree), report), _mark_note)
    instructions = [node.message.blocks for node in tree.messages if node.message.role is Role.SYSTEM]
    hidden = sum(not all(isinstance(block, Summary) for block in blocks) for blocks in instructions)
    if hidden:
        report.add(Sentence("Instructions that are in a conversation, and are not shown in it, were kept."), hidden)
    return tree


def _with_plain_places(tree: ConversationTree, report: ImportReport) -> ConversationTree:
    """Return the tree with title, names of folders and tags as they are stored; what does not fit is reported."""
    if len(tree.title) > MAX_TITLE_LENGTH:
        report.add(Sentence("A title that was too long was cut."))
    folder, tags = clean_path(tree.folder), clean_tags(tree.tags)
    if folder != tree.folder:
        report.add(Sentence("Names of folders that were too long, too many or empty were cut."))
    if len(tags) != len(tree.tags) or set(tags) != set(tree.tags):
        report.add(Sentence("Tags that were too long, too many or the same were left out or cut."))
    return tree.model_copy(update={"title": tree.title[:MAX_TITLE_LENGTH], "folder": folder, "tags": tags})


def _change_notes(tree: ConversationTree, change: Callable[[Sentence], Sentence]) -> ConversationTree:
    if not any(node.message.adjustments for node in tree.messages):
        return tree
    messages = _updated_messages(tree, lambda message: {"adjustments": tuple(map(change, message.adjustments))})
    return tree.model_copy(update={"messages": messages})


def _updated_messages(
    tree: ConversationTree, changes: Callable[[Message], dict[str, object]]
) -> tuple[TreeMessage, ...]:
    pairs = [(node, node.message.model_copy(update=changes(node.message))) for node in tree.messages]
    return tuple(node.model_copy(update={"message": message}) for node, message in pairs)


def _mark_note(note: Sentence) -> Sentence:
    """Return an adjustment as that of a file: the window shows adjustments as words of this program."""
    return Sentence(IMPORTED_NOTE, {"note": note})


def _unmark_note(note: Sentence) -> Sentence:
    marked = note.values.get("note") if note.template == IMPORTED_NOTE else None
    return marked if isinstance(marked, Sentence) else note


def _with_zones(tree: ConversationTree) -> ConversationTree:
    """Return the tree with every moment in a time zone: those that name none are in UTC."""
    names = ("created_at", "updated_at", "pinned_at", "archived_at")
    moments: dict[str, datetime] = {name: moment for name in names if (moment := getattr(tree, name)) is not None}
    if all(moment.tzinfo for moment in (*moments.values(), *(node.message.created_at for node in tree.messages))):
        return tree
    messages = _updated_messages(tree, lambda message: {"created_at": _zoned(message.created_at)})
    zoned = {name: _zoned(moment) for name, moment in moments.items()}
    return tree.model_copy(update={**zoned, "messages": messages})


def _zoned(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _read_partly(raw: dict[str, Any], report: ImportReport) -> ConversationTree | Skipped:
    fields = _known_fields(ConversationTree, raw, report)
    fields["messages"] = [_readable_node(node, report) for node in list_in(raw, "messages")]
    try:
        return ConversationTree.model_validate(fields)
    except ValueError:
        reason = Sentence("It lacks something that a conversation must have, or its messages are out of order.")
        return Skipped(text_in(raw, "title")[:200], reason)


def _readable_node(node: object, report: ImportReport) -> object:
    message = object_in(node, "message")
    if not message:
        return node
    known = _known_fields(Message, message, report)
    if "blocks" in known:
        known["blocks"] = [_readable_block(block, report) for block in list_in(known, "blocks")]
    return {"message": known, "parent": object_of(node).get("parent")}


def _known_fields(model: type[FrozenModel], raw: dict[str, Any], report: ImportReport) -> dict[str, Any]:
    unknown = [name for name in raw if name not in model.model_fields]
    for name in unknown:
        report.add(Sentence("A property “{name}”, which this version does not know, was left out.", {"name": name}))
    return {name: value for name, value in raw.items() if name in model.model_fields}


def _readable_block(raw: Any, report: ImportReport) -> Any:
    try:
        return _block_adapter().validate_python(raw)
    except ValueError:
        report.add(Sentence("Content that this version does not know was kept as it is."))
        return Unknown(raw=raw)


@cache
def _block_adapter() -> TypeAdapter[Block]:
    return TypeAdapter(Block)
