"""A piece of a conversation as plain text that fits: what a model is given to summarise.

Text, because servers refuse calls where no tools are offered, and reasoning where it was not made.
"""

import json
from collections.abc import Callable, Iterable, Sequence

from desktop_agent.conversation.compacted import COMPACTION_AUTHOR
from desktop_agent.conversation.grouping import MessageGroup, group_messages
from desktop_agent.vocabulary.blocks import Block, Image, Json, ServerStep, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.messages import Message, Role

# Characters of one result and of one call's arguments: what was read can be read again, what was said cannot.
MAX_RESULT_CHARACTERS = 2_000
MAX_ARGUMENT_CHARACTERS = 1_000
_MIN_CHARACTERS = 200


def conversation_as_text(older: Sequence[Message], room: int, weigh: Callable[[str], int]) -> str:
    """The messages as text of at most `room` tokens, as `weigh` counts them.

    An earlier summary stays; of the rest the oldest is left out first, with a word about it.
    """
    summaries = [message for message in older if message.injected_by == COMPACTION_AUTHOR]
    first = _shorten_to_fit("\n\n".join(message.text for message in summaries), room // 2, weigh)
    texts = [
        _group_text(group)
        for group in group_messages([each for each in older if each.injected_by != COMPACTION_AUTHOR])
    ]
    left = room - weigh(first)
    kept: list[str] = []
    for text in reversed(texts):
        needed = weigh(text)
        if needed > left:
            break
        kept.append(text)
        left -= needed
    missing = len(texts) - len(kept)
    if missing and not kept:
        kept.append(_shorten_to_fit(texts[-1], left, weigh))
        missing -= 1
    if missing:
        kept.append(f"[{missing} older parts of the conversation are left out here: they were too long.]")
    return "\n\n".join(part for part in (first, *reversed(kept)) if part)


def shorten_middle(text: str, most: int) -> str:
    """The beginning and the end of a long text, with a word about what is missing between them."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[len(text) - tail :]}"


def _shorten_to_fit(text: str, room: int, weigh: Callable[[str], int]) -> str:
    """Shortened until it fits; a little always stays."""
    short, most = text, len(text)
    while most > _MIN_CHARACTERS and (needed := weigh(short)) > room:
        # Somewhat less than in proportion: characters do not all weigh the same.
        most = max(_MIN_CHARACTERS, min(most * 9 // 10, int(most * max(room, 0) / needed * 0.95)))
        short = shorten_middle(text, most)
    return short


def _group_text(group: MessageGroup) -> str:
    return "\n\n".join(text for message in group if (text := _message_text(message)))


def _message_text(message: Message) -> str:
    said = "\n".join(text for block in message.blocks if (text := _block_text(block)))
    if not said or message.role is Role.TOOL:
        return said
    return f"## {_speaker_of(message)}\n{said}"


def _speaker_of(message: Message) -> str:
    if message.role is Role.ASSISTANT:
        return "The assistant"
    return "The person" if message.injected_by is None else f"The program ({message.injected_by})"


def _block_text(block: Block) -> str:
    match block:
        case Text():
            return block.text.strip()
        case Image():
            return _picture_text(block)
        case ToolUse():
            arguments = json.dumps(block.input, ensure_ascii=False) if block.malformed is None else block.malformed
            return f"[call of {block.name}: {shorten_middle(arguments, MAX_ARGUMENT_CHARACTERS)}]"
        case ToolResult():
            result = shorten_middle(_parts_text(block.content), MAX_RESULT_CHARACTERS)
            return f"[its result, {block.outcome.value}: {result}]"
        case ServerStep():
            return f"[{block.name}: {shorten_middle(block.text, MAX_RESULT_CHARACTERS)}]"
        case _:
            return ""


def _parts_text(parts: Iterable[Text | Json | Image]) -> str:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Image):
            texts.append(_picture_text(part))
        else:
            texts.append(part.text if isinstance(part, Text) else json.dumps(part.value, ensure_ascii=False))
    return "\n".join(texts)


def _picture_text(image: Image) -> str:
    return f"[picture “{image.name}”]" if image.name else "[picture]"
