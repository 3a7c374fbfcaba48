"""Builds a tree of the messages of another program, whatever order, cycles or gaps its file has."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.types.blocks import Block, Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import FOUND_PREFIX, ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import StopReason, Usage

MAX_MESSAGES = 100_000
"""Of one conversation."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands for a time that is not known."""

_MAX_ID_LENGTH = 200


def derived_id(program: str, *foreign: str) -> str:
    """Return our id of something in another program: the same at every import, and another one for each program."""
    text = "\0".join((program, *foreign))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def found_id(program: str, conversation_id: str) -> str:
    """Return the id by which screens and searches name a conversation that another program has on this disk."""
    return FOUND_PREFIX + derived_id(program, conversation_id)


@dataclass(slots=True)
class Draft:
    """A message that still grows. `parent` is an id of the file: of a message, or of an entry that is not shown."""

    id: str
    role: Role
    created_at: datetime
    parent: str | None = None
    blocks: list[Block] = field(default_factory=list[Block])
    model: str | None = None
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    state: MessageState = MessageState.COMPLETE
    injected_by: str | None = None

    def finish(self, message_id: str) -> Message:
        """Return the message."""
        return Message(
            id=message_id,
            role=self.role,
            blocks=list(self._separated_blocks()),
            created_at=self.created_at,
            model=self.model,
            usage=self.usage,
            stop_reason=self.stop_reason,
            state=self.state,
            injected_by=self.injected_by,
        )

    def _separated_blocks(self) -> Iterator[Block]:
        """Yield the blocks, with blank lines between texts: those of one message are shown as one."""
        before: Block | None = None
        for block in self.blocks:
            if isinstance(before, Text) and isinstance(block, Text) and not block.text.startswith("\n"):
                yield block.model_copy(update={"text": f"\n\n{block.text}"})
            else:
                yield block
            # A prompt is shown with its pictures above its text.
            if self.role is not Role.USER or isinstance(block, Text):
                before = block

    def take(self, other: "Draft") -> bool:
        """Add another piece of the same answer, or another result of the same call; return False for anything else."""
        if self.role is not other.role or not self.blocks:
            return False
        first = self.blocks[0]
        if self.role is Role.TOOL and isinstance(first, ToolResult) and _calls_of(self) == _calls_of(other):
            results = [block for block in other.blocks if isinstance(block, ToolResult)]
            content = (*first.content, *(part for result in results for part in result.content))
            self.blocks = [first.model_copy(update={"content": content, "outcome": results[-1].outcome})]
        elif self.role is Role.ASSISTANT and not any(isinstance(block, ToolUse) for block in self.blocks):
            self.blocks += other.blocks
        else:
            return False
        self.model, self.state = other.model or self.model, other.state
        return True


def _calls_of(draft: Draft) -> set[str]:
    return {block.tool_use_id for block in draft.blocks if isinstance(block, ToolResult)}


class TreeBuilder:
    """Collects drafts under the file's own ids. What follows an unknown id follows the draft before it in the file."""

    def __init__(self, report: ImportReport, max_messages: int = MAX_MESSAGES) -> None:
        self.report = report
        self._max_messages = max_messages
        self._drafts: dict[str, Draft] = {}
        self._drafts_by_id: dict[str, Draft] = {}
        self._parents: dict[str, str | None] = {}

    def __len__(self) -> int:
        return len(self._drafts)

    def knows(self, entry_id: str | None) -> bool:
        """Return whether the id was given already."""
        return entry_id in self._parents

    def add(self, draft: Draft) -> bool:
        """Add a draft; one whose id is known, or that is one too many, is counted and left out."""
        if draft.id in self._parents:
            self.report.omit(Omission.REPEATED)
            return False
        if len(self._drafts) >= self._max_messages:
            self.report.omit(Omission.TOO_MANY)
            return False
        self._drafts[draft.id] = draft
        self.add_alias(draft.id, draft)
        return True

    def add_alias(self, entry_id: str, draft: Draft) -> None:
        """Let what follows this entry follow the draft, of which the entry is a part."""
        self._drafts_by_id[entry_id] = draft
        self._parents[entry_id] = draft.parent

    def pass_over(self, entry_id: str | None, parent: str | None) -> None:
        """Let what follows this entry, which is not shown, follow its parent."""
        if entry_id is not None and entry_id not in self._parents:
            self._parents[entry_id] = parent

    def draft(self, entry_id: str | None) -> Draft | None:
        """Return the draft that the id stands for, or that stands before it."""
        return self._find(entry_id)[0]

    def _find(self, entry_id: str | None) -> tuple[Draft | None, bool]:
        """Return the draft, and whether the way to it ended at an id that nothing has."""
        seen: set[str] = set()
        while entry_id is not None and entry_id not in seen:
            draft = self._drafts_by_id.get(entry_id)
            if draft is not None and draft.blocks:
                return draft, False
            if entry_id not in self._parents:
                return None, True
            seen.add(entry_id)
            entry_id = self._parents[entry_id]
        return None, False

    def join_pieces(self) -> None:
        """Join the pieces of an answer, and the results of a call, where no other branch begins between them."""
        children = Counter(self._parents.values())
        for draft in self._drafts.values():
            before = self.draft(draft.parent)
            if before is not None and before is not draft and children[draft.parent] == 1 and before.take(draft):
                # An empty draft is passed over.
                draft.blocks = []

    def build(self, head: str | None) -> tuple[tuple[TreeMessage, ...], str | None]:
        """Return the messages, each after its parent, and the message id of the head, else of the last one."""
        drafts = [draft for draft in self._drafts.values() if draft.blocks]
        parents = dict(self._resolved_parents(drafts))
        ids = {draft.id: _short_id(draft.id) for draft in drafts}
        messages = tuple(
            TreeMessage(
                message=self._drafts[entry_id].finish(ids[entry_id]), parent=None if parent is None else ids[parent]
            )
            for entry_id, parent in parents_first(parents, self.report)
        )
        head_draft = self.draft(head) or next(reversed(drafts), None)
        return messages, ids[head_draft.id] if head_draft else None

    def _resolved_parents(self, drafts: list[Draft]) -> Iterator[tuple[str, str | None]]:
        previous: str | None = None
        for draft in drafts:
            parent, is_missing = self._find(draft.parent)
            if is_missing:
                self.report.omit(Omission.MISSING_PARENT)
                yield draft.id, previous
            else:
                yield draft.id, None if parent is None else parent.id
            previous = draft.id


def parents_first(parents: Mapping[str, str | None], report: ImportReport) -> Iterator[tuple[str, str | None]]:
    """Yield all ids with their parents, each after its parent. A cycle is broken where it is met, and counted."""
    written: set[str] = set()
    for entry_id in parents:
        chain: list[str] = []
        waiting: set[str] = set()
        parent: str | None = entry_id
        while parent is not None and parent not in written and parent not in waiting:
            chain.append(parent)
            waiting.add(parent)
            parent = parents[parent]
        if parent in waiting:
            report.omit(Omission.CIRCLE)
            parent = None
        for link in reversed(chain):
            written.add(link)
            yield link, parent
            parent = link


def _short_id(entry_id: str) -> str:
    """Return the id itself, or its digest where it is empty, too long or no plain text."""
    return entry_id if 0 < len(entry_id) <= _MAX_ID_LENGTH and entry_id.isprintable() else derived_id("", entry_id)


@dataclass(slots=True)
class Overview:
    """What is known of a conversation as a whole."""

    title: str = ""
    title_is_automatic: bool = True
    created_at: datetime | None = None
    updated_at: datetime | None = None
    model: str = ""
    workspace: str = ""

    def note_time(self, time: datetime | None) -> None:
        """Note the time of a message."""
        self.created_at = self.created_at or time
        self.updated_at = max(filter(None, (time, self.updated_at)), default=None)


def conversation_tree(
    origin: ConversationOrigin, overview: Overview, tree: TreeBuilder, head: str | None, changed: datetime
) -> ConversationTree:
    """Return the conversation; `changed`, when its file was changed, stands in for missing times."""
    messages, head = tree.build(head)
    created = overview.created_at or changed
    return ConversationTree(
        id=derived_id(origin.program, origin.id),
        title=overview.title,
        created_at=created,
        updated_at=max(created, overview.updated_at or changed),
        messages=messages,
        head=head,
        model=overview.model or None,
        workspace=overview.workspace or None,
        origin=origin,
        title_is_automatic=overview.title_is_automatic,
    )


class Calls:
    """Puts results into one message after the answer with their calls, whenever they come."""

    def __init__(self, tree: TreeBuilder) -> None:
        self._tree = tree
        self._callers: dict[str, Draft] = {}
        self._results: dict[str, Draft] = {}
        self._answered: set[tuple[str, str]] = set()

    def caller(self, call_id: str | None) -> Draft | None:
        """Return the answer with this call."""
        return self._callers.get(call_id or "")

    def note(self, draft: Draft, block: Block) -> None:
        """Note the block of an answer; of calls with one id the first counts."""
        if isinstance(block, ToolUse):
            self._callers.setdefault(block.id, draft)

    def add_result(self, result: ToolResult, created_at: datetime) -> Draft | None:
        """Return the message that has the result. One without a call, or a second one, is counted and left out."""
        caller = self._callers.get(result.tool_use_id)
        if caller is None:
            self._tree.report.omit(Omission.STRAY_RESULT)
            return None
        message = self._results.get(caller.id)
        if message is None:
            message = Draft(f"{caller.id}-results", Role.TOOL, created_at, caller.id)
            if not self._tree.add(message):
                return None
            self._results[caller.id] = message
        if (caller.id, result.tool_use_id) in self._answered:
            self._tree.report.omit(Omission.REPEATED)
        else:
            self._answered.add((caller.id, result.tool_use_id))
            message.blocks.append(result)
        return message


class Thread:
    """Adds messages to a tree one after another: an answer takes blocks until a result or a prompt comes.

    `tail` is the id of the last message; where it is set back, what is added then is another branch.
    """

    def __init__(self, tree: TreeBuilder) -> None:
        self._tree = tree
        self._calls = Calls(tree)
        self._answer: Draft | None = None
        self.tail: str | None = None

    def add(self, draft: Draft) -> bool:
        """Put a message after the tail."""
        draft.parent = self.tail
        if not self._tree.add(draft):
            return False
        self._answer = draft if draft.role is Role.ASSISTANT else None
        for block in draft.blocks:
            self._calls.note(draft, block)
        self.tail = draft.id
        return True

    def add_prompt(
        self, entry_id: str, role: Role, created_at: datetime, blocks: Iterable[Block], author: str | None = None
    ) -> Draft | None:
        """Put a prompt, or instructions, after the tail; None without content, or if there are too many messages."""
        draft = Draft(entry_id, role, created_at, blocks=list(blocks), injected_by=author)
        return draft if draft.blocks and self.add(draft) else None

    def close_answer(self) -> None:
        """Let the next block begin another answer."""
        self._answer = None

    def add_block(self, entry_id: str, created_at: datetime, block: Block, model: str = "") -> Draft | None:
        """Put a block at the end of the answer that is open, else of a new one; None if there are too many messages."""
        is_open = self._answer is not None and self._answer.id == self.tail
        if not is_open and not self.add(Draft(entry_id, Role.ASSISTANT, created_at)):
            return None
        draft = self._answer
        if draft is not None:
            draft.blocks.append(block)
            draft.model = draft.model or model or None
            self._calls.note(draft, block)
        return draft

    def add_result(self, result: ToolResult, created_at: datetime) -> None:
        """Put a result after the answer with its call."""
        message = self._calls.add_result(result, created_at)
        if message is not None and self.tail == message.parent:
            self.tail = message.id
