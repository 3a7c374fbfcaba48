"""The branches of a conversation: which messages have other versions, and which these are."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from desktop_agent.types.conversation_tree import BranchPoints, MessageOutline, TreeMessage
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Message, Role


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions at one place of a conversation, as the id of the first message of each, oldest first.

    `index` is that of the version in view.
    """

    ids: tuple[str, ...]
    index: int

    def neighbour(self, step: Literal[-1, 1]) -> str | None:
        """Return the id of the version before or after the one in view; None at either end."""
        index = self.index + step
        return self.ids[index] if 0 <= index < len(self.ids) else None


class Branches:
    """The places where a conversation branches, updated while messages are added to the branch in view.

    Of a conversation that is not `stored`, the messages out of view are kept here, at first those of `nodes`. `above`
    is the id of the message before the first one in memory.
    """

    def __init__(
        self, points: BranchPoints, *, stored: bool, above: str | None = None, nodes: Sequence[TreeMessage] = ()
    ) -> None:
        self._children = {parent: list(children) for parent, children in points.items()}
        self.above = above
        self.deletions = 0
        """How often messages were deleted: what was read before the last deletion may no longer exist."""
        self._is_stored = stored
        self._out_of_view = {node.message.id: node for node in nodes}
        self._departures = 0
        self._last_heads: dict[str, tuple[int, str]] = {}
        """By id of a message that went out of view: when, as a count, and the end of the branch it was seen in."""
        self._last_heads_below: dict[str, tuple[int, str]] = {}
        """The same for the message above those in memory and all before it, by the id of that message; newest last."""

    def leave(self, branch: Sequence[Message], count: int) -> None:
        """Note that only the first `count` messages of this branch, fewer than all, stay in view."""
        parent = branch[count - 1].id if count else self.above
        self._children.setdefault(parent, [branch[count].id])
        self._record_heads(branch[count:])
        if not self._is_stored:
            self._out_of_view |= {node.message.id: node for node in _tree_messages(branch)}

    def leave_all(self, branch: Sequence[Message]) -> None:
        """Note that another branch comes in view, which parts from this one above the messages in memory.

        `branch` is empty where the whole conversation had been left before.
        """
        if not branch:
            return
        self._record_heads(branch)
        if self.above is not None:
            self._last_heads_below.pop(self.above, None)
            self._last_heads_below[self.above] = (self._departures, branch[-1].id)

    def _record_heads(self, messages: Sequence[Message]) -> None:
        self._departures += 1
        last = (self._departures, messages[-1].id)
        self._last_heads |= dict.fromkeys((message.id for message in messages), last)

    def last_heads(self, message_id: str) -> Iterator[tuple[str | None, str]]:
        """Yield what may be the end of the branch in which a message was seen last, each with another message.

        It is the first end whose other message is this message or comes after it. The last other message is None: its
        end is always right.
        """
        time, head = self._last_heads.get(message_id, (0, message_id))
        for below, (departure, last) in reversed(self._last_heads_below.items()):
            if departure > time:
                yield below, last
        yield None, head

    def newest_branch(self, message_id: str, in_view: Sequence[Message]) -> Sequence[Message]:
        """Return the newest of the branches that have this message, of a conversation that is not stored.

        Raises WrongUse.
        """
        nodes = {node.message.id: node for node in self.nodes(in_view)}
        for leaf in reversed(nodes):
            branch: list[Message] = []
            node: TreeMessage | None = nodes[leaf]
            while node is not None:
                branch.append(node.message)
                node = nodes[node.parent] if node.parent is not None else None
            if any(message.id == message_id for message in branch):
                return branch[::-1]
        sentence = Sentence("There is no message “{id}” in this conversation.", {"id": message_id})
        raise WrongUse(sentence, "It may have been deleted meanwhile. Choose one that is shown.")

    def nodes(self, in_view: Sequence[Message]) -> tuple[TreeMessage, ...]:
        """Return the messages of all branches of a conversation that is not stored, each after its parent."""
        return tuple((self._out_of_view | {node.message.id: node for node in _tree_messages(in_view)}).values())

    def prepend(self, points: BranchPoints, above: str | None) -> None:
        """Add the branching places before the messages in memory; `above` as in the class."""
        self._children = {parent: list(children) for parent, children in points.items()} | self._children
        self.above = above

    def add(self, parent: str | None, child: str) -> None:
        """Note a message that was added to the branch in view."""
        children = self._children.get(parent)
        if children is not None and child not in children:
            children.append(child)

    def forget(self, ids: Collection[str]) -> None:
        """Note that these messages were deleted."""
        self.deletions += 1
        for id_ in ids:
            self._children.pop(id_, None)
            self._out_of_view.pop(id_, None)
        self._last_heads = _without(self._last_heads, ids)
        self._last_heads_below = _without(self._last_heads_below, ids)
        for parent, children in self._children.items():
            self._children[parent] = [child for child in children if child not in ids]

    def outline(self, in_view: Sequence[Message]) -> Sequence[MessageOutline]:
        """Return an outline of all messages, each after its parent, of a conversation that is not stored."""
        nodes = self._out_of_view | {node.message.id: node for node in _tree_messages(in_view)}
        return [MessageOutline.of(node.message, node.parent) for node in nodes.values()]

    def versions(self, messages: Sequence[Message]) -> Mapping[str, Versions]:
        """Return the versions of the branch in view, by the id of the first message of each that people see."""
        return dict(self._versions(messages)) if self._children else {}

    def continuations(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """Return the ids of the messages that other branches have below the last one that people see, oldest first."""
        ids: list[str] = []
        index = len(messages)
        while index >= 0:
            parent = messages[index - 1] if index else None
            in_view = messages[index].id if index < len(messages) else None
            children = self._children.get(parent.id if parent else None, ())
            ids = [*(child for child in children if child != in_view), *ids]
            index = -1 if parent is not None and _is_seen(parent) else index - 1
        return tuple(ids)

    def _versions(self, messages: Sequence[Message]) -> Iterator[tuple[str, Versions]]:
        versions: Versions | None = None
        parent = self.above
        for message in messages:
            children = self._children.get(parent, [])
            if len(children) > 1 and message.id in children:
                versions = Versions(tuple(children), children.index(message.id))
            if versions is not None and _is_seen(message):
                yield message.id, versions
                versions = None
            parent = message.id


def _without(heads: Mapping[str, tuple[int, str]], ids: Collection[str]) -> dict[str, tuple[int, str]]:
    return {id_: last for id_, last in heads.items() if id_ not in ids and last[1] not in ids}


def _tree_messages(branch: Sequence[Message]) -> Iterator[TreeMessage]:
    parent = None
    for message in branch:
        yield TreeMessage(message=message, parent=parent)
        parent = message.id


def _is_seen(message: Message) -> bool:
    return message.role is Role.ASSISTANT or (message.role is Role.USER and message.injected_by is None)
