"""What of a conversation could not be written, and the one readable file that it can be saved to instead.

The file is Markdown: for each conversation what was said, for people, and behind it one fenced block of JSON lines with
all that is needed to restore it: a line `{"conversation": …}`, a line `{"message": …}` for each message of the branch,
and a line `{"event": …}` for each row of the journal that was not written. What was being written stands at the end;
where there are pictures in it, a block with one line `{"draft": …}`, a message, has them.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from desktop_agent.storage.json_form import event_to_json, message_to_json
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.vocabulary.blocks import Block, Image, Json, Summary, Text, Thinking, ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import Envelope
from desktop_agent.vocabulary.errors import StorageFailed
from desktop_agent.vocabulary.messages import Message

_SPEAKER_NAMES = {"user": "You", "assistant": "Model", "tool": "Tools", "system": "Program"}
_BACKTICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class UnsavedConversation:
    """One conversation: all messages of its branch, and the rows of its journal that still wait.

    `reason` is what the disk said last.
    """

    record: ConversationRecord
    messages: tuple[Message, ...]
    events: tuple[Envelope, ...]
    reason: StorageFailed


def unsaved_as_markdown(unsaved: Sequence[UnsavedConversation], draft: Message | None = None) -> str:
    """The file. `draft` is what was being written and could not be kept either."""
    parts = [part for each in unsaved for part in _conversation_parts(each)]
    if draft is not None:
        parts += ["# What was being written", *filter(None, map(_block_text, draft.blocks))]
        if any(isinstance(block, Image) for block in draft.blocks):
            parts.append(_fenced(f'{{"draft": {message_to_json(draft)}}}'))
    return "\n\n".join(parts) + "\n"


def _conversation_parts(unsaved: UnsavedConversation) -> Iterator[str]:
    yield f"# {unsaved.record.title}"
    for message in unsaved.messages:
        yield f"## {_SPEAKER_NAMES[message.role.value]}"
        yield from filter(None, map(_block_text, message.blocks))
    yield _fenced("\n".join(_json_lines(unsaved)))


def _fenced(lines: str) -> str:
    # A fence is longer than any run of backticks inside it (CommonMark, section 4.5).
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(lines)), default=0))
    return f"{fence}jsonl\n{lines}\n{fence}"


def _block_text(block: Block | Json) -> str:
    match block:
        case Text():
            return block.text
        case Thinking():
            return "\n".join(f"> {line}" for line in block.text.splitlines())
        case ToolUse():
            return f"Tool call `{block.name}`: {_to_json(block.input)}"
        case ToolResult():
            return "\n".join(filter(None, map(_block_text, block.content)))
        case Image():
            return f"(a picture: {block.name or 'without a name'})"
        case Summary():
            return block.text
        case Json():
            return _to_json(block.value)
        case _:
            return ""


def _json_lines(unsaved: UnsavedConversation) -> Iterator[str]:
    record = unsaved.record
    about = {"id": record.id, "title": record.title, "model": record.model, "workspace": record.workspace}
    yield _to_json({"conversation": about})
    for message in unsaved.messages:
        yield f'{{"message": {message_to_json(message)}}}'
    for row in unsaved.events:
        place = {"run": row.run_id, "seq": row.seq, "at": row.at.isoformat()}
        yield f'{{"event": {event_to_json(row.event)}, "place": {_to_json(place)}}}'


def _to_json(value: Any) -> str:
    return json.dumps(value, default=str)
