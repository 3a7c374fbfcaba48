"""The branch in view as a reader sees it: turns of speakers, and calls together with their results."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import groupby

from desktop_agent.types.blocks import Block, Citation, JsonObject, Summary, Text, ToolResult, ToolUse
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.messages import Message, MessageState, Role

_MAX_NAME = 200


class Speaker(StrEnum):
    """Whose turn it is. `program`: a guard, an undo, a summary; nobody typed it."""

    PERSON = "person"
    ASSISTANT = "assistant"
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call with its result, None where none came; and the message that it stands in."""

    call: ToolUse
    result: ToolResult | None = None
    message_id: str = ""

    @property
    def arguments(self) -> JsonObject:
        """The arguments that it ran with."""
        edited = None if self.result is None else self.result.ran_with
        return self.call.input if edited is None else edited


@dataclass(slots=True)
class Turn:
    """What one speaker said until another one did. `author` is the part of the program that said it."""

    speaker: Speaker
    at: datetime
    model: str | None = None
    author: str = ""
    parts: list[Block | ShownCall] = field(default_factory=list[Block | ShownCall])
    is_whole: bool = True


def branch_turns(tree: ConversationTree) -> Iterator[Turn]:
    """Yield the turns of the branch in view. Instructions are left out, as in the window."""
    branch = tree.branch()
    results = {
        block.tool_use_id: block for message in branch for block in message.blocks if isinstance(block, ToolResult)
    }
    turn: Turn | None = None
    for message in branch:
        parts = list(_joined_texts(_shown_parts(message, results)))
        if not parts and message.state is MessageState.COMPLETE:
            continue
        speaker = _speaker(message)
        if turn is None or speaker is not Speaker.ASSISTANT or turn.speaker is not speaker:
            if turn is not None:
                yield turn
            turn = Turn(speaker, message.created_at, message.model, message.injected_by or "")
        turn.parts += parts
        turn.model = message.model or turn.model
        turn.is_whole = message.state is MessageState.COMPLETE
    if turn is not None:
        yield turn


def models_of(tree: ConversationTree) -> list[str]:
    """Return the models that answered in the branch in view, each once and on one line."""
    answered = [message.model for message in tree.branch() if message.model] or [tree.model or ""]
    return [name for name in dict.fromkeys(map(one_line, answered)) if name]


def one_line(name: str) -> str:
    """Return a name of a stranger on one line, cut where it is too long for one."""
    return " ".join(name[: 10 * _MAX_NAME].split())[:_MAX_NAME]


def cited_sources(citations: tuple[Citation, ...]) -> list[Citation]:
    """Return each source once, in the order of its first citation."""
    sources: dict[tuple[str, str], Citation] = {}
    for citation in citations:
        if citation.url or citation.title:
            sources.setdefault((citation.url or "", "" if citation.url else citation.title or ""), citation)
    return list(sources.values())


# Colours and other commands of a terminal (ECMA-48, 5.4 and 5.6).
_TERMINAL_COMMAND = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


def plain_output(text: str) -> str:
    """Return what a tool wrote without commands for a terminal."""
    return _TERMINAL_COMMAND.sub("", text) if "\x1b" in text else text


def _speaker(message: Message) -> Speaker:
    if message.role is Role.USER and message.injected_by is None:
        return Speaker.PERSON
    return Speaker.ASSISTANT if message.role is Role.ASSISTANT else Speaker.PROGRAM


def _shown_parts(message: Message, results: dict[str, ToolResult]) -> Iterator[Block | ShownCall]:
    for block in message.blocks:
        match block:
            case ToolUse():
                yield ShownCall(block, results.get(block.id), message.id)
            case ToolResult():
                continue
            case Text() if not block.text:
                continue
            case _:
                if message.role is not Role.SYSTEM or isinstance(block, Summary):
                    yield block


def _joined_texts(parts: Iterable[Block | ShownCall]) -> Iterator[Block | ShownCall]:
    """Yield the parts of one message with neighbouring texts as one: servers cut cited text inside of sentences."""
    for _, neighbours in groupby(parts, lambda part: isinstance(part, Text)):
        run = list(neighbours)
        texts = [part for part in run if isinstance(part, Text)]
        yield from [_one_text(texts)] if texts else run


def _one_text(texts: list[Text]) -> Text:
    citations = [citation for text in texts for citation in text.citations]
    return Text(text="".join(text.text for text in texts), citations=citations)


def duration_words(seconds: float) -> str:
    """Return how long something took, as the window says it: in whole seconds."""
    minutes, rest = divmod(max(1, round(seconds)), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
