"""Messages, constructors for those that people write by hand, and texts that are attached to prompts."""

import base64
import re
import uuid
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self

from pydantic import Field, ValidationError

from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
    ImageDetail,
    ImageSource,
    JsonObject,
    Text,
    ToolResult,
    ToolUse,
    UrlSource,
    detect_media_type,
)
from desktop_agent.types.errors import ImageRefused, Sentence
from desktop_agent.types.frozen_model import EMPTY, FrozenModel, TupleOf
from desktop_agent.types.provider_events import Origin, StopReason, Usage


def new_id() -> str:
    """Return a random identifier, 32 hexadecimal digits."""
    return uuid.uuid4().hex


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Role(StrEnum):
    """Who wrote a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageState(StrEnum):
    """Whether a message is whole. `interrupted`: Stop, a crash, a limit or a broken stream ended it early."""

    COMPLETE = "complete"
    INTERRUPTED = "interrupted"


class Message(FrozenModel):
    """One message of a conversation. `model` and what follows belong to answers; `stop_details`: see MessageDelta.

    `adjustments`: what had to be asked differently, and why. `injected_by`: the author of a prompt that is not the
    person's, such as the name of a guard.
    """

    id: str = Field(default_factory=new_id)
    role: Role
    blocks: TupleOf[Block] = EMPTY
    state: MessageState = MessageState.COMPLETE
    created_at: datetime = Field(default_factory=now)
    model: str | None = None
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    stop_details: JsonObject | None = None
    origin: Origin | None = None
    adjustments: TupleOf[Sentence] = EMPTY
    injected_by: str | None = None

    @property
    def text(self) -> str:
        """All visible text, joined."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The calls, in order."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))

    @property
    def is_blank(self) -> bool:
        """Whether it holds no more than blank text."""
        return all(isinstance(block, Text) and not block.text.strip() for block in self.blocks)

    @classmethod
    def user(cls, text: str) -> Self:
        """Return a prompt."""
        return cls(role=Role.USER, blocks=(Text(text=text),))

    @classmethod
    def user_with_blocks(cls, blocks: Sequence[Block]) -> Self:
        """Return a prompt of prepared blocks."""
        return cls(role=Role.USER, blocks=tuple(blocks))

    @classmethod
    def assistant(cls, text: str) -> Self:
        """Return an answer, for example to prime a conversation."""
        return cls(role=Role.ASSISTANT, blocks=(Text(text=text),))

    @classmethod
    def system(cls, text: str) -> Self:
        """Return instructions above the conversation."""
        return cls(role=Role.SYSTEM, blocks=(Text(text=text),))

    @classmethod
    def tool_results(cls, results: Sequence[ToolResult]) -> Self:
        """Return the results of one turn's calls, in call order."""
        return cls(role=Role.TOOL, blocks=tuple(results))

    @classmethod
    def user_with_image(cls, text: str, url: str) -> Self:
        """Return a prompt with an image by its web address. Raises ImageRefused."""
        return cls.user_with_image_detail(text, url, ImageDetail.AUTO)

    @classmethod
    def user_with_image_detail(cls, text: str, url: str, detail: ImageDetail) -> Self:
        """Return a prompt with an image by its web address, and how closely to look. Raises ImageRefused."""
        return cls._with_source(text, _image_source(UrlSource, url=url), detail)

    @classmethod
    def user_with_base64_image(
        cls, text: str, data: str, media_type: str, detail: ImageDetail = ImageDetail.AUTO
    ) -> Self:
        """Return a prompt with an image in strict base64. Raises ImageRefused when content and type disagree."""
        source = _image_source(Base64Source, media_type=media_type, data=data)
        return cls._with_source(text, source, detail)

    @classmethod
    def user_with_file(cls, text: str, data: bytes, name: str) -> Self:
        """Return a prompt with the bytes of an image file, whose content decides its type. Raises ImageRefused."""
        media_type = detect_media_type(data)
        if media_type is None:
            raise ImageRefused.unsupported(name)
        source = Base64Source(media_type=media_type, data=base64.b64encode(data).decode("ascii"))
        return cls._with_source(text, source, ImageDetail.AUTO, name)

    @classmethod
    def _with_source(cls, text: str, source: ImageSource, detail: ImageDetail, name: str | None = None) -> Self:
        return cls(role=Role.USER, blocks=(Text(text=text), Image(source=source, detail=detail, name=name)))


def _image_source(kind: type[Base64Source | UrlSource], **values: object) -> ImageSource:
    """Raises ImageRefused instead of pydantic's own error."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        for problem in error.errors(include_input=False, include_url=False):
            refused = problem.get("ctx", {}).get("error")
            if isinstance(refused, ImageRefused):
                raise refused.with_traceback(None) from None
        raise ImageRefused.unsupported() from None


# Each is one line with certain words in it. Looking for the words first takes a tenth of the time in a large text.
_HEAD_WORDS, _END_WORDS = "”, up to ", ": end of “"
_HEAD = re.compile(rf"\[(?P<file>The file )?“(?P<words>[^\n]*){_HEAD_WORDS}(?P<sign>[0-9a-f]{{8}}):\]\n")
_END = re.compile(rf"\[(?P<sign>[0-9a-f]{{8}}){_END_WORDS}(?P<title>[^\n]*)”\.\](?:\n|\Z)")


@dataclass(frozen=True, slots=True)
class AttachedText:
    """A file, which has no `uri` and no `server`, or a text resource of an MCP server."""

    title: str
    text: str
    uri: str = ""
    server: str = ""
    server_id: str = ""

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text) if self.text.isascii() else len(self.text.encode("utf-8", "surrogatepass"))


def label_attached(attached: AttachedText) -> str:
    """Label it for the model. The random end mark cannot occur in its text."""
    sign, title = new_id()[:8], _on_one_line(attached.title)
    head = f"[The file “{title}”, up to {sign}:]"
    if attached.server:
        uri, server = _on_one_line(attached.uri), _on_one_line(attached.server)
        head = f"[“{title}”, {uri}, from the server “{server}”, up to {sign}:]"
    return f"\n\n{head}\n{attached.text}\n[{sign}: end of “{title}”.]\n"


def split_attached(text: str) -> tuple[str, tuple[AttachedText, ...]]:
    """Return what was typed in a prompt, and what is attached to it, in its order."""
    typed, attached, end = list[str](), list[AttachedText](), 0
    for begin, after, found in _find_attached(text):
        typed.append(text[end:begin].removesuffix("\n\n"))
        attached.append(found)
        end = after
    if not attached:
        return text, ()
    return "".join((*typed, text[end:])), tuple(attached)


def prompt_words(text: str) -> str:
    """Return what was typed in a prompt, or the name of what is attached where that is all."""
    typed, attached = split_attached(text)
    return typed if typed.strip() or not attached else attached[0].title


def _find_attached(text: str) -> Iterator[tuple[int, int, AttachedText]]:
    """Yield where each label begins, where the end mark is over, and what is between them."""
    heads = list(_find_lines(_HEAD, _HEAD_WORDS, text))
    ends, position = defaultdict[str, deque[re.Match[str]]](deque), 0
    for end in _find_lines(_END, _END_WORDS, text) if heads else ():
        ends[end["sign"]].append(end)
    for head in heads:
        waiting = ends[head["sign"]]
        # Of an empty text, too: two line ends follow the label.
        while waiting and waiting[0].start() <= head.end():
            waiting.popleft()
        if head.start() < position or not waiting:
            continue
        end = waiting[0]
        if (source := _read_label(head, end["title"])) is not None:
            position = end.end()
            yield head.start(), position, AttachedText(end["title"], text[head.end() : end.start() - 1], *source)


def _find_lines(pattern: re.Pattern[str], words: str, text: str) -> Iterator[re.Match[str]]:
    position = 0
    while (found := text.find(words, position)) >= 0:
        match = pattern.match(text, text.rfind("\n", position, found) + 1 or position)
        if match is not None:
            yield match
        position = text.find("\n", found) + 1
        if not position:
            return


def _read_label(head: re.Match[str], title: str) -> tuple[str, str] | None:
    """Return the address and the server in a label; None where it is not that of the title in the end mark."""
    words = head["words"]
    if head["file"]:
        return ("", "") if words == title else None
    about, separator, server = words.rpartition(", from the server “")
    uri = about.removeprefix(f"{title}”, ")
    return (uri, server) if separator and uri != about else None


def _on_one_line(words: str) -> str:
    return " ".join(words.split())
