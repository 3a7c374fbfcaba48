"""Builds one model request from a conversation, pictures included."""

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from desktop_agent.conversation.history import compacted_view, newest_summary, normalised_history, summary_of
from desktop_agent.conversation.picture_preparation import FitLimits, FittedPicture, PictureFitter
from desktop_agent.providers.dialects.request_building import FROM_ANSWER
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
    ResultPart,
    StoredSource,
    Text,
    ToolResult,
    UrlSource,
    decode_base64,
)
from desktop_agent.types.errors import ImageRefused, ImagesNotSupported, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Limits
from desktop_agent.types.providers import ImageLimits, ModelRequest, ProviderConfig
from desktop_agent.types.tool_calls import ToolSpec

PictureReader = Callable[[StoredSource], Awaitable[bytes]]
_NOT_READ = Sentence("Pictures from before are not sent: this model does not read them.")
_NOT_FETCHED = Sentence("Pictures on the web are not sent: this server does not fetch them.")
_LEFT_OUT = Sentence("Older pictures are not sent: this model takes fewer of them in one conversation.")


@dataclass(frozen=True, slots=True)
class PictureSupport:
    """Where pictures are read from, and the model's picture limits. `fitter` makes them fit."""

    read: PictureReader
    fitter: PictureFitter
    limits: ImageLimits
    model_reads_pictures: bool = True


async def prepare_pictures(
    messages: Sequence[Message], pictures: PictureSupport, counts: Mapping[int, int] | None = None
) -> tuple[list[Message], list[Sentence]]:
    """Return the messages with stored pictures replaced by their bytes, and the reasons for changes, each once.

    `counts` is the result of `count_pictures` for these messages, where known. Pictures that the model cannot read
    become text, so that a conversation can go on with any model; those in answers go into the next prompt, see
    ImageLimits. Raises ImagesNotSupported where the model cannot read one in the newest prompt.
    """
    prepared = list(messages)
    counts = count_pictures(prepared) if counts is None else counts
    if not counts:
        return prepared, []
    work = _PictureWork(pictures, sum(counts.values()))
    prompt = next((index for index in reversed(range(len(prepared))) if prepared[index].role is Role.USER), None)
    for index in counts:
        prepared[index] = await work.message(prepared[index], is_prompt=index == prompt)
    return move_answer_pictures(prepared, pictures.limits, counts), work.reasons


def move_answer_pictures(
    messages: Sequence[Message], limits: ImageLimits, counts: Mapping[int, int] | None = None
) -> list[Message]:
    """Return the messages with the pictures of answers in the prompts after them; see ImageLimits.

    `counts` is the result of `count_pictures` for these messages, where known.
    """
    moved = list(messages)
    counts = count_pictures(moved) if counts is None else counts
    # From the end: the first in a prompt are then the oldest.
    for index in reversed([index for index in counts if moved[index].role is Role.ASSISTANT]):
        _move_into_prompt(moved, index, limits.in_answers_of)
    return moved


def _move_into_prompt(messages: list[Message], index: int, in_answers_of: str) -> None:
    """Move pictures of an answer to the beginning of the prompt after it; without one they are left out.

    Those that `in_answers_of` made stay, if they have the state that it wants back.
    """
    answer = messages[index]
    moved = [
        block
        for block in answer.blocks
        if isinstance(block, Image) and not (block.metadata and block.provider == in_answers_of)
    ]
    kept = tuple(block for block in answer.blocks if not any(block is picture for picture in moved))
    messages[index] = answer.model_copy(update={"blocks": kept})
    prompt = next((later for later in range(index, len(messages)) if messages[later].role is Role.USER), None)
    if moved and prompt is not None:
        blocks = (Text(text=FROM_ANSWER), *moved, *messages[prompt].blocks)
        messages[prompt] = messages[prompt].model_copy(update={"blocks": blocks})


def count_pictures(messages: Iterable[Message], first: int = 0) -> dict[int, int]:
    """Return the number of pictures by message index, for messages that have any. Indexes count from `first`."""
    return {index: count for index, message in enumerate(messages, first) if (count := _picture_count(message.blocks))}


def _picture_count(blocks: Sequence[Block]) -> int:
    """Count pictures by type name: isinstance for each block of a long history costs the most of a turn."""
    count = 0
    for block in blocks:
        if block.type == "image":
            count += 1
        elif block.type == "tool_result":
            count += sum(part.type == "image" for part in block.content)
    return count


class _PictureWork:
    """The pictures of one request, oldest first."""

    def __init__(self, pictures: PictureSupport, count: int) -> None:
        limits = pictures.limits
        self.reasons: list[Sentence] = []
        self._may_refuse = False
        self._pictures = pictures
        self._left_out = max(0, count - limits.max_count) if limits.max_count is not None else 0
        self._limits = FitLimits(
            limits, crowded=limits.many_images is not None and count - self._left_out > limits.many_images
        )

    async def message(self, message: Message, *, is_prompt: bool) -> Message:
        self._may_refuse = is_prompt
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, Image):
                blocks.append(await self._picture(block))
            elif isinstance(block, ToolResult):
                blocks.append(await self._result(block))
            else:
                blocks.append(block)
        return message.model_copy(update={"blocks": tuple(blocks)})

    async def _result(self, result: ToolResult) -> ToolResult:
        parts: list[ResultPart] = [
            await self._picture(part) if isinstance(part, Image) else part for part in result.content
        ]
        return result.model_copy(update={"content": tuple(parts)})

    async def _picture(self, image: Image) -> Image | Text:
        if self._left_out:
            self._left_out -= 1
            self._add_reason(_LEFT_OUT)
            return _placeholder(image)
        if not self._pictures.model_reads_pictures:
            return self._unreadable(image, ImagesNotSupported("This model does not read pictures."), _NOT_READ)
        if isinstance(image.source, UrlSource):
            return self._web_picture(image)
        try:
            return await self._fit_picture(image, image.source)
        except (ImageRefused, StorageFailed) as error:
            self._add_reason(error.sentence)
            return Text(text=f"[{error}]")

    async def _fit_picture(self, image: Image, source: StoredSource | Base64Source) -> Image:
        """Return the picture with bytes that fit."""
        if isinstance(source, Base64Source):
            if not self._limits.needs_check:
                return image
            data = decode_base64(source.data)
            fits = False
        else:
            data = await self._pictures.read(source)
            # Stored pictures are not animated: that was checked on import.
            fits = self._limits.accepts(source.media_type, len(data), source.width, source.height)
        fitted = FittedPicture(data, source.media_type)
        if not fits:
            fitted = await self._pictures.fitter.fit(data, source.media_type, self._limits, image.name or "")
        for reason in fitted.reasons:
            self._add_reason(reason)
        encoded = base64.b64encode(fitted.data).decode("ascii")
        sent = Base64Source(media_type=fitted.media_type, data=encoded)
        # Opaque state belongs to the bytes with which it came.
        state = image.metadata if fitted.data == data else {}
        return image.model_copy(update={"source": sent, "metadata": state})

    def _web_picture(self, image: Image) -> Image | Text:
        if self._pictures.limits.accepts_urls:
            return image
        return self._unreadable(
            image,
            ImagesNotSupported(
                "This server does not fetch pictures from the web.", "Attach the picture itself instead."
            ),
            _NOT_FETCHED,
        )

    def _unreadable(self, image: Image, refusal: ImagesNotSupported, reason: Sentence) -> Text:
        """Return a text in its place, and say why; in the newest prompt it is refused."""
        if self._may_refuse:
            raise refusal
        self._add_reason(reason)
        return _placeholder(image)

    def _add_reason(self, reason: Sentence) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)


def _placeholder(image: Image) -> Text:
    name = f" “{image.name}”" if image.name else ""
    return Text(text=f"[The picture{name} that stood here is not sent any more.]")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What stays the same for all requests of a run.

    `execute_tools` False: the caller executes the calls itself, and the run ends with them.
    """

    model: str
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None
    limits: Limits = field(default_factory=Limits)
    execute_tools: bool = True


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """A request, and the adjustments that were made to fit the model."""

    request: ModelRequest
    adjustments: tuple[Sentence, ...] = ()


class PreparedHistory:
    """A history as the model reads it, with what no later message can change computed once and cached.

    A history that does not begin with the very same message objects is computed afresh.
    """

    def __init__(self) -> None:
        self._forget()

    def read(self, history: tuple[Message, ...]) -> tuple[list[Message], dict[int, int]]:
        """Return the repaired history as it is sent, without abandoned answers; and its picture counts by index."""
        if not self._is_prefix_of(history):
            self._forget()
        self._extend_cache(history)
        newer = normalised_history(history[len(self._cached) :])
        if self._is_changed_by(newer):
            messages = without_abandoned(compacted_view(normalised_history(history)))
            return messages, count_pictures(messages)
        remaining = without_abandoned(newer)
        return [*self._prepared, *remaining], {**self._pictures, **count_pictures(remaining, len(self._prepared))}

    def _forget(self) -> None:
        self._cached: tuple[Message, ...] = ()
        self._prepared: list[Message] = []
        self._pictures: dict[int, int] = {}
        self._first_kept: str | None = None

    def _is_prefix_of(self, history: tuple[Message, ...]) -> bool:
        count = len(self._cached)
        # Tool results right after the cached part belong to it.
        ends_there = count == len(history) or (count < len(history) and history[count].role is not Role.TOOL)
        return count == 0 or (ends_there and all(map(is_, self._cached, history)))

    def _extend_cache(self, history: tuple[Message, ...]) -> None:
        """Cache all before the last message that is no tool result, unless later messages can change how it ends."""
        end = next((index for index in range(len(history) - 1, -1, -1) if history[index].role is not Role.TOOL), 0)
        newer = normalised_history(history[len(self._cached) : end])
        if not newer:
            return
        if not self._is_changed_by(newer):
            if _is_final(newer[-1]):
                self._append(without_abandoned(newer))
                self._cached = history[:end]
            return
        whole = normalised_history(history[:end])
        sent, newest = compacted_view(whole), newest_summary(whole)
        if sent and _is_final(sent[-1]):
            self._prepared, self._pictures = [], {}
            self._append(without_abandoned(sent))
            self._cached = history[:end]
            self._first_kept = newest.first_kept_id if newest is not None else None

    def _append(self, read: list[Message]) -> None:
        self._pictures |= count_pictures(read, len(self._prepared))
        self._prepared += read

    def _is_changed_by(self, newer: Sequence[Message]) -> bool:
        """Return whether these newer messages change how the older ones are read."""
        # A summary whose first kept message is missing is ignored; it counts once that message comes.
        return any(message.id == self._first_kept or summary_of(message) is not None for message in newer)


def _is_final(message: Message) -> bool:
    """Return whether the message is sent whatever follows it: see `without_abandoned`."""
    if message.role is Role.ASSISTANT and not message.blocks:
        return False
    return message.state is not MessageState.INTERRUPTED


async def build_request(
    history: tuple[Message, ...],
    settings: RunSettings,
    tools: tuple[ToolSpec, ...],
    pictures: PictureSupport,
    addenda: Sequence[str] = (),
    prepared: PreparedHistory | None = None,
) -> BuiltRequest:
    """Return the request: the repaired history, stored pictures as fitting bytes, missing pictures as text.

    `addenda` are added to the instructions. `prepared` caches from one request to the next. Raises
    ImagesNotSupported, and WrongUse where there is nothing to answer.
    """
    read, counts = (prepared or PreparedHistory()).read(history)
    if all(message.role is Role.SYSTEM for message in read):
        raise WrongUse("There is nothing to answer: the conversation has no words yet.", "Write a message first.")
    messages, adjustments = await prepare_pictures(read, pictures, counts)
    request = ModelRequest(
        model=settings.model,
        messages=tuple(messages),
        tools=tools,
        config=_extended_system_prompt(settings.config, addenda),
        conversation_id=settings.conversation_id,
    )
    return BuiltRequest(request, tuple(adjustments))


def _extended_system_prompt(config: ProviderConfig, addenda: Sequence[str]) -> ProviderConfig:
    if not addenda:
        return config
    parts = [part for part in (config.system_prompt, *addenda) if part]
    return config.model_copy(update={"system_prompt": "\n\n".join(parts)})


def without_abandoned(messages: Sequence[Message]) -> list[Message]:
    """Leave out answers that broke off and were asked for again: no model should answer its own half answer.

    They stay in the conversation. One that a prompt follows is kept: the person went on from it. An empty answer is
    left out too.
    """
    remaining: list[Message] = []
    for message in reversed(messages):
        if message.role is Role.ASSISTANT and not message.blocks:
            continue
        next_is_prompt = bool(remaining) and remaining[-1].role is not Role.ASSISTANT
        if message.state is MessageState.INTERRUPTED and not message.tool_uses and not next_is_prompt:
            continue
        remaining.append(message)
    remaining.reverse()
    return remaining
