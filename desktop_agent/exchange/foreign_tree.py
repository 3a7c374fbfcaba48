"""Build trees of the messages of other programs: stable ids, parents first, answers in pieces joined."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from desktop_agent.exchange.import_report import ImportReport
from desktop_agent.types.blocks import Block, Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, MessageState, Role

MAX_TITLE_LENGTH = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def derived_id(program: str, *foreign: str) -> str:
    """Return our id of what a program calls so: the same at every import. Equal names of two programs differ."""
    text = "\0".join((program, *foreign))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class ForeignMessage:
    """A message by its foreign id and that of the one before it.

    One without a `role` is not shown: what follows it then follows the one before it. Answers that follow each other,
    and results of one call, are joined.
    """

    id: str
    parent: str | None
    role: Role | None
    blocks: Sequence[Block] = ()
    created_at: datetime | None = None
    model: str | None = None
    is_whole: bool = True


@dataclass(slots=True)
class ForeignConversation:
    """A conversation by its foreign id. Messages are in the order in which versions of one another were written."""

    program: str
    id: str
    title: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    model: str | None = None
    messages: list[ForeignMessage] = field(default_factory=list[ForeignMessage])
    head: str | None = None


@dataclass(slots=True)
class _Node:
    """A message of ours in the making."""

    id: str
    parent: "_Node | None"
    role: Role
    blocks: list[Block]
    created_at: datetime
    model: str | None
    is_whole: bool


def build_tree(conversation: ForeignConversation, report: ImportReport) -> ConversationTree:
    """Return the tree. What follows an unknown message, or itself, begins a branch of its own, and is counted."""
    nodes: dict[str, _Node | None] = {}
    made: list[_Node] = []
    created = conversation.created_at or _first_moment(conversation.messages)
    child_counts = _shown_children(conversation.messages)
    for message in _parents_first(conversation.messages, report):
        above = nodes.get(message.parent) if message.parent is not None else None
        if message.role is None:
            nodes[message.id] = above
        elif above is not None and child_counts.get(message.parent, 0) == 1 and _joins(above, message):
            _join(above, message)
            nodes[message.id] = above
        else:
            node = _Node(
                derived_id(conversation.program, conversation.id, message.id),
                above,
                message.role,
                list(message.blocks),
                message.created_at or (above.created_at if above else created),
                message.model,
                message.is_whole,
            )
            nodes[message.id] = node
            made.append(node)
    last = made[-1] if made else None
    head = nodes.get(conversation.head, last) if conversation.head is not None else last
    updated = conversation.updated_at or max((node.created_at for node in made), default=created)
    return ConversationTree(
        id=derived_id(conversation.program, conversation.id),
        title=" ".join(conversation.title.split())[:MAX_TITLE_LENGTH],
        created_at=created,
        updated_at=max(updated, created),
        messages=[TreeMessage(message=_message(node), parent=node.parent.id if node.parent else None) for node in made],
        head=head.id if head else None,
        model=conversation.model,
        origin=ConversationOrigin(program=conversation.program, id=conversation.id),
        title_is_automatic=not conversation.title.strip(),
    )


def _first_moment(messages: Sequence[ForeignMessage]) -> datetime:
    return min((message.created_at for message in messages if message.created_at), default=_EPOCH)


def _parents_first(messages: Sequence[ForeignMessage], report: ImportReport) -> Iterator[ForeignMessage]:
    by_id: dict[str, ForeignMessage] = {}
    for message in messages:
        if by_id.setdefault(message.id, message) is not message:
            report.add(Sentence("A message whose id another one has was left out."))
    children: dict[str | None, list[ForeignMessage]] = {}
    for message in by_id.values():
        if message.parent is not None and message.parent not in by_id:
            report.add(Sentence("A message that follows none of this conversation was put at its beginning."))
            message.parent = None
        children.setdefault(message.parent, []).append(message)
    yielded: set[str] = set()
    for start in (*children.get(None, ()), *by_id.values()):
        if start.id in yielded:
            continue
        if start.parent is not None:
            # Nobody reached it from a beginning.
            report.add(Sentence("Messages that follow each other in a circle were put in a row."))
        waiting = [start]
        while waiting:
            message = waiting.pop()
            if message.id not in yielded:
                yielded.add(message.id)
                yield message
                waiting += reversed(children.get(message.id, ()))


def _shown_children(messages: Iterable[ForeignMessage]) -> dict[str | None, int]:
    """Count children, hidden ones too: they may have several that are shown."""
    counts: dict[str | None, int] = {}
    for message in messages:
        counts[message.parent] = counts.get(message.parent, 0) + 1
    return counts


def _joins(above: _Node, message: ForeignMessage) -> bool:
    if above.role is not message.role:
        return False
    if message.role is Role.TOOL:
        return _calls_of(above.blocks) == _calls_of(message.blocks)
    return message.role is Role.ASSISTANT and not any(isinstance(block, ToolUse) for block in above.blocks)


def _calls_of(blocks: Iterable[Block]) -> set[str]:
    return {block.tool_use_id for block in blocks if isinstance(block, ToolResult)}


def _join(above: _Node, message: ForeignMessage) -> None:
    above.model = message.model or above.model
    above.is_whole = message.is_whole
    first = above.blocks[0] if above.blocks else None
    if message.role is not Role.TOOL or not isinstance(first, ToolResult):
        above.blocks += message.blocks
        return
    results = [block for block in message.blocks if isinstance(block, ToolResult)]
    content = (*first.content, *(part for result in results for part in result.content))
    above.blocks = [first.model_copy(update={"content": content, "outcome": results[-1].outcome})]


def _message(node: _Node) -> Message:
    return Message(
        id=node.id,
        role=node.role,
        blocks=list(_apart(node)),
        state=MessageState.COMPLETE if node.is_whole else MessageState.INTERRUPTED,
        created_at=node.created_at,
        model=node.model,
    )


def _apart(node: _Node) -> Iterator[Block]:
    """Set texts of one message apart: they are shown as one, without anything between them."""
    before: Block | None = None
    for block in node.blocks:
        is_next = isinstance(before, Text) and isinstance(block, Text) and not block.text.startswith("\n")
        yield block.model_copy(update={"text": f"\n\n{block.text}"}) if is_next and isinstance(block, Text) else block
        # A prompt is shown with its pictures above its text.
        if node.role is not Role.USER or isinstance(block, Text):
            before = block
