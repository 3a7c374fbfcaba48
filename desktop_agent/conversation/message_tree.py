"""All branches of a conversation as people see them: prompts and answers, and what a deletion takes along."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from desktop_agent.types.conversation_tree import MessageOutline
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Role

_OPENING_ENTRIES = 2
"""The first prompt and its answer, after which conversations are named."""

EntryKind = Literal["prompt", "answer", "note"]


@dataclass(slots=True, eq=False)
class TreeEntry:
    """A prompt or a whole answer. `note`: it is neither, as where files were put back and nothing was said.

    `first_id` and `last_id` are those of its first and last message, `children` its versions of what follows, oldest
    first. `below` counts the entries after it on all branches.
    """

    first_id: str
    last_id: str
    created_at: datetime
    kind: EntryKind = "note"
    line: str = ""
    tool_calls: int = 0
    is_in_view: bool = False
    children: "list[TreeEntry]" = field(default_factory=list["TreeEntry"])
    below: int = 0

    def takes(self, message: MessageOutline) -> bool:
        """Return whether this message, the only one after the last, is part of the same prompt or answer."""
        return not message.is_seen or self.kind == "note" or (self.kind == "answer" and not message.is_prompt)

    def add(self, message: MessageOutline, *, is_in_view: bool) -> None:
        """Take in a message."""
        self.last_id = message.id
        self.is_in_view = is_in_view
        self.tool_calls += message.tool_calls
        if message.is_seen and self.kind == "note":
            self.kind, self.line = ("prompt" if message.is_prompt else "answer"), ""
        if message.is_seen or self.kind == "note":
            self.line = self.line or message.line


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a deletion of a prompt or an answer removes: the messages `ids`, from `root` on, on all branches.

    `head` is the message that ends the branch in view then. `following` counts the prompts and answers after it,
    `elsewhere` those of them that are on other branches than the one in view. `checkpoints` are those of its calls that
    are not undone. `is_opening`: the conversation may be named after what is removed.
    """

    root: str
    ids: frozenset[str]
    head: str | None
    is_prompt: bool
    following: int
    elsewhere: int
    tool_calls: int
    is_opening: bool
    checkpoints: tuple[str, ...] = ()


class MessageTree:
    """The messages of a conversation, each after its parent; one whose parent is not among them is left out."""

    def __init__(self, messages: Iterable[MessageOutline], head: str | None) -> None:
        self._messages: dict[str, MessageOutline] = {}
        self._children: dict[str | None, list[str]] = {None: []}
        for message in messages:
            if message.parent in self._children:
                self._messages[message.id] = message
                self._children[message.parent].append(message.id)
                self._children[message.id] = []
        self.head = head
        self._in_view = set(self._path(head))
        self.roots = self._build_entries()

    def deletion(self, message_id: str) -> Deletion:
        """Return what is deleted with this message: with part of an answer the whole of it. Raises WrongUse."""
        if message_id not in self._messages:
            sentence = Sentence("There is no message “{id}” in this conversation.", {"id": message_id})
            raise WrongUse(sentence, "It may have been deleted meanwhile. Choose one that is shown.")
        own = self._beginning_of(message_id)
        root = self._version_of(own)
        ids = list(self._below(root))
        counted = [id_ for id_ in ids if id_ != own and self._begins_entry(id_)]
        before = sum(1 for id_ in self._path(self._messages[root].parent) if self._begins_entry(id_))
        return Deletion(
            root=root,
            ids=frozenset(ids),
            head=self._head_without(root) if self.head in set(ids) else self.head,
            is_prompt=self._messages[own].is_prompt,
            following=len(counted),
            elsewhere=sum(1 for id_ in counted if id_ not in self._in_view),
            tool_calls=sum(self._messages[id_].tool_calls for id_ in ids),
            is_opening=before < _OPENING_ENTRIES,
        )

    def _beginning_of(self, message_id: str) -> str:
        """Return the first message of the answer that this one is part of, or the message itself."""
        first = message_id
        if self._messages[message_id].role in {Role.ASSISTANT, Role.TOOL}:
            for id_ in self._path(message_id):
                if self._messages[id_].is_prompt:
                    break
                first = id_ if self._messages[id_].role is Role.ASSISTANT else first
        return first

    def _version_of(self, message_id: str) -> str:
        """Return the first message of the version whose first visible message is this one; else the message itself."""
        first = message_id
        while len(self._children[self._messages[first].parent]) == 1:
            parent = self._messages[first].parent
            if parent is None or self._messages[parent].is_seen or self._messages[parent].role is Role.TOOL:
                return message_id
            first = parent
        return first

    def _head_without(self, root: str) -> str | None:
        """Return the end of the version before this one, else after it; without other versions, the message above."""
        parent = self._messages[root].parent
        versions = self._children[parent]
        if len(versions) == 1:
            return parent
        index = versions.index(root)
        ids = set(self._below(versions[index - 1] if index else versions[1]))
        return next(id_ for id_ in reversed(self._messages) if id_ in ids)

    def _begins_entry(self, message_id: str) -> bool:
        message = self._messages[message_id]
        if message.role is not Role.ASSISTANT:
            return message.is_prompt
        above = (self._messages[id_] for id_ in self._path(message.parent))
        return next((other.is_prompt for other in above if other.is_seen), True)

    def _below(self, root: str) -> Iterator[str]:
        stack = [root]
        while stack:
            id_ = stack.pop()
            yield id_
            stack += self._children[id_]

    def _path(self, message_id: str | None) -> Iterator[str]:
        """Yield the messages from this one to the first."""
        while message_id is not None and message_id in self._messages:
            yield message_id
            message_id = self._messages[message_id].parent

    def _build_entries(self) -> Sequence[TreeEntry]:
        roots: list[TreeEntry] = []
        entries: dict[str, TreeEntry] = {}
        entries_with_parents: list[tuple[TreeEntry, TreeEntry | None]] = []
        for message in self._messages.values():
            parent = None if message.parent is None else entries[message.parent]
            entry = parent
            if entry is None or len(self._children[message.parent]) > 1 or not entry.takes(message):
                entry = TreeEntry(message.id, message.id, message.created_at)
                (roots if parent is None else parent.children).append(entry)
                entries_with_parents.append((entry, parent))
            entry.add(message, is_in_view=message.id in self._in_view)
            entries[message.id] = entry
        for entry, parent in reversed(entries_with_parents):
            if parent is not None:
                parent.below += 1 + entry.below
        return roots
