"""A conversation with all its branches: what is exported, imported, and read from other programs' histories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from pydantic import model_validator

from desktop_agent.types.blocks import Text
from desktop_agent.types.frozen_model import EMPTY, FrozenModel, TupleOf
from desktop_agent.types.messages import Message, Role, prompt_words

FOUND_PREFIX = "found-"
"""The prefix of the ids of conversations that are only in another program's files. Nothing stored has it."""

MAX_TITLE_LENGTH = 500
"""Characters of a title that is written in the window or comes from a file: the list measures it at each paint."""

UNTITLED = "Conversation"
"""The name of an untitled conversation where there is no window."""

MAX_OUTLINE_LENGTH = 200
"""Characters of the line in an outline."""

BranchPoints = Mapping[str | None, Sequence[str]]
"""The ids of the children of each message that has several, oldest first; None stands before the first message."""


class ConversationOrigin(FrozenModel):
    """Where a conversation came from: the program, and its id there."""

    program: str
    id: str


class TreeMessage(FrozenModel):
    """A message and the id of the one before it; None for the first of a branch."""

    message: Message
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class MessageOutline:
    """What a view of all branches needs of a message. `line` is the first line of its text that is not empty."""

    id: str
    parent: str | None
    role: Role
    is_injected: bool
    created_at: datetime
    line: str = ""
    tool_calls: int = 0

    @classmethod
    def of(cls, message: Message, parent: str | None) -> Self:
        """Return the outline of a message below its parent."""
        lines = [outline_of(block.text) for block in message.blocks if isinstance(block, Text)]
        return cls(
            message.id,
            parent,
            message.role,
            message.injected_by is not None,
            message.created_at,
            next((line for line in lines if line), ""),
            len(message.tool_uses),
        )

    @property
    def is_prompt(self) -> bool:
        return self.role is Role.USER and not self.is_injected

    @property
    def is_seen(self) -> bool:
        """Whether people see it as a message of its own: a prompt of theirs, or an answer."""
        return self.is_prompt or self.role is Role.ASSISTANT


def outline_of(text: str) -> str:
    """Return the first line of a text that is not empty, cut to the length of an outline."""
    # Most lines are short, and a text may be of megabytes.
    begin = text[: 4 * MAX_OUTLINE_LENGTH].lstrip() or text.lstrip()
    # It may be a file that is attached.
    begin = prompt_words(text).lstrip() if begin.startswith("[") else begin
    return begin[:MAX_OUTLINE_LENGTH].partition("\n")[0].rstrip()


class ConversationTree(FrozenModel):
    """All messages of one conversation, each after its parent. `head` ends the branch in view.

    Children of one parent are versions of one another, oldest first. Ids are unique within the conversation. Pictures
    have any source; what a StoredSource names lies beside the tree, in a folder or an archive. `folder` has the names
    of the folders that the conversation is in, outermost first.
    """

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    messages: TupleOf[TreeMessage] = EMPTY
    head: str | None = None
    model: str | None = None
    workspace: str | None = None
    origin: ConversationOrigin | None = None
    title_is_automatic: bool = True
    folder: TupleOf[str] = EMPTY
    pinned_at: datetime | None = None
    archived_at: datetime | None = None
    tags: TupleOf[str] = EMPTY

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        known: set[str] = set()
        for node in self.messages:
            if node.message.id in known:
                message = f"the id {node.message.id!r} occurs twice"
                raise ValueError(message)
            if node.parent is not None and node.parent not in known:
                message = f"{node.message.id!r} stands before its parent"
                raise ValueError(message)
            known.add(node.message.id)
        if self.head is not None and self.head not in known:
            message = f"the head {self.head!r} is no message"
            raise ValueError(message)
        return self

    def branch_points(self) -> BranchPoints:
        """Return where it branches, and what follows the head."""
        children: dict[str | None, list[str]] = {}
        for node in self.messages:
            children.setdefault(node.parent, []).append(node.message.id)
        return {parent: ids for parent, ids in children.items() if len(ids) > 1 or parent == self.head}

    def branch(self) -> tuple[Message, ...]:
        """Return the messages from the first one to the head, oldest first."""
        nodes = {node.message.id: node for node in self.messages}
        branch: list[Message] = []
        message_id = self.head
        while message_id is not None:
            node = nodes[message_id]
            branch.append(node.message)
            message_id = node.parent
        return tuple(reversed(branch))
