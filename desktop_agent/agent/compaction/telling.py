"""A piece of a conversation as plain text that fits: what a model is given to summarise.

Text, because servers refuse calls where no tools are offered, and reasoning where it was not made.
"""

import json
from collections.abc import Callable, Iterable, Sequence

from desktop_agent.conversation.compacted import INJECTED_BY
from desktop_agent.conversation.grouping import Group, groups
from desktop_agent.vocabulary.blocks import Block, Image, Json, ServerStep, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.messages import Message, Role

# Characters of one result and of one call's arguments: what was read can be read again, what was said cannot.
LONGEST_RESULT = 2_000
LONGEST_ARGUMENTS = 1_000
_SHORTEST = 200


def told(older: Sequence[Message], room: int, weigh: Callable[[str], int]) -> str:
    """The messages as text of at most `room` tokens, as `weigh` counts them.

    An earlier summary stays; of the rest the oldest is left out first, with a word about it.
    """
    summaries = [message for message in older if message.injected_by == INJECTED_BY]
    first = _fitted("\n\n".join(message.text for message in summaries), room // 2, weigh)
    texts = [_group(group) for group in groups([each for each in older if each.injected_by != INJECTED_BY])]
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
        kept.append(_fitted(texts[-1], left, weigh))
        missing -= 1
    if missing:
        kept.append(f"[{missing} older parts of the conversation are left out here: they were too long.]")
    return "\n\n".join(part for part in (first, *reversed(kept)) if part)


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a long text, with a word about what is missing between them."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[len(text) - tail :]}"


def _fitted(text: str, room: int, weigh: Callable[[str], int]) -> str:
    """Shortened until it fits; a little always stays."""
    short, most = text, len(text)
    while most > _SHORTEST and (needed := weigh(short)) > room:
        # Somewhat less than in proportion: characters do not all weigh the same.
        most = max(_SHORTEST, min(most * 9 // 10, int(most * max(room, 0) / needed * 0.95)))
        short = shortened(text, most)
    return short


def _group(group: Group) -> str:
    return "\n\n".join(text for message in group if (text := _message(message)))


def _message(message: Message) -> str:
    said = "\n".join(text for block in message.blocks if (text := _block(block)))
    if not said or message.role is Role.TOOL:
        return said
    return f"## {_speaker(message)}\n{said}"


def _speaker(message: Message) -> str:
    if message.role is Role.ASSISTANT:
        return "The assistant"
    return "The person" if message.injected_by is None else f"The program ({message.injected_by})"


def _block(block: Block) -> str:
    match block:
        case Text():
            return block.text.strip()
        case Image():
            return _picture(block)
        case ToolUse():
            arguments = json.dumps(block.input, ensure_ascii=False) if block.malformed is None else block.malformed
            return f"[call of {block.name}: {shortened(arguments, LONGEST_ARGUMENTS)}]"
        case ToolResult():
            return f"[its result, {block.outcome.value}: {shortened(_parts(block.content), LONGEST_RESULT)}]"
        case ServerStep():
            return f"[{block.name}: {shortened(block.text, LONGEST_RESULT)}]"
        case _:
            return ""


def _parts(parts: Iterable[Text | Json | Image]) -> str:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, Image):
            texts.append(_picture(part))
        else:
            texts.append(part.text if isinstance(part, Text) else json.dumps(part.value, ensure_ascii=False))
    return "\n".join(texts)


def _picture(image: Image) -> str:
    return f"[picture “{image.name}”]" if image.name else "[picture]"
