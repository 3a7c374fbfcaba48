"""From a conversation to one request for the model, pictures included."""

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from desktop_agent.conversation.history import compacted_view, newest_summary, normalised_history, summary_of
from desktop_agent.conversation.picture_preparation import FitLimits, FittedPicture, PictureFitter
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
from desktop_agent.types.errors import ImageRefused, ImagesNotSupported, Sentence, StorageFailed
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Limits
from desktop_agent.types.providers import ImageLimits, ModelRequest, ProviderConfig
from desktop_agent.types.tool_calls import ToolSpec

PictureReader = Callable[[StoredSource], Awaitable[bytes]]
_NOT_READ = Sentence("Pictures from before are not sent: this model does not read them.")
_LEFT_OUT = Sentence("Older pictures are not sent: this model takes fewer of them in one conversation.")


@dataclass(frozen=True, slots=True)
class PictureSupport:
    """Where pictures come from, and what the model takes of them. `seen`: it reads pictures, as far as is known."""

    read: PictureReader
    fitter: PictureFitter
    limits: ImageLimits
    model_reads_pictures: bool = True


async def prepare_pictures(
    messages: Sequence[Message], pictures: PictureSupport, places: Mapping[int, int] | None = None
) -> tuple[list[Message], list[Sentence]]:
    """The messages with bytes in place of stored pictures, and what had to be changed, each reason once.

    `places` is what `count_pictures` says of these messages, where that is known.

    What the model cannot read is said in words, so that a conversation can go on with any model; but with the newest
    prompt it was just now asked to look. Raises ImagesNotSupported for that.
    """
    found = list(messages)
    counts = count_pictures(found) if places is None else places
    if not counts:
        return found, []
    work = _PictureWork(pictures, sum(counts.values()))
    prompt = next((at for at in reversed(range(len(found))) if found[at].role is Role.USER), None)
    for at in counts:
        found[at] = await work.message(found[at], is_prompt=at == prompt)
    return found, work.reasons


def count_pictures(messages: Iterable[Message], first: int = 0) -> dict[int, int]:
    """How many pictures stand at which place, where there are any; places are counted from `first`."""
    return {at: count for at, message in enumerate(messages, first) if (count := _picture_count(message.blocks))}


def _picture_count(blocks: Sequence[Block]) -> int:
    """By the names of the types: asking for the class of each block of a long history costs the most of a turn."""
    count = 0
    for block in blocks:
        if block.type == "image":
            count += 1
        elif block.type == "tool_result":
            count += sum(part.type == "image" for part in block.content)
    return count


class _PictureWork:
    """One request's pictures, oldest first."""

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
            return self._unreadable(image, ImagesNotSupported("This model does not read pictures."))
        if isinstance(image.source, UrlSource):
            return self._web_picture(image)
        try:
            fitted = await self._fit_picture(image, image.source)
        except (ImageRefused, StorageFailed) as error:
            self._add_reason(error.sentence)
            return Text(text=f"[{error}]")
        if fitted is None:
            return image
        for reason in fitted.reasons:
            self._add_reason(reason)
        encoded = base64.b64encode(fitted.data).decode("ascii")
        return image.model_copy(update={"source": Base64Source(media_type=fitted.media_type, data=encoded)})

    async def _fit_picture(self, image: Image, source: StoredSource | Base64Source) -> FittedPicture | None:
        """None: it goes as it is."""
        if isinstance(source, Base64Source):
            if not self._limits.needs_check:
                return None
            data = decode_base64(source.data)
        else:
            data = await self._pictures.read(source)
            # What is stored does not move: it was looked at when it was taken in.
            if self._limits.accepts(source.media_type, len(data), source.width, source.height):
                return FittedPicture(data, source.media_type)
        return await self._pictures.fitter.fit(data, source.media_type, self._limits, image.name or "")

    def _web_picture(self, image: Image) -> Image | Text:
        if self._pictures.limits.accepts_urls:
            return image
        return self._unreadable(
            image,
            ImagesNotSupported(
                "This server does not fetch pictures from the web.", "Attach the picture itself instead."
            ),
        )

    def _unreadable(self, image: Image, refusal: ImagesNotSupported) -> Text:
        if self._may_refuse:
            raise refusal
        self._add_reason(_NOT_READ)
        return _placeholder(image)

    def _add_reason(self, reason: Sentence) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)


def _placeholder(image: Image) -> Text:
    name = f" “{image.name}”" if image.name else ""
    return Text(text=f"[The picture{name} that stood here is not sent any more.]")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """What stays the same for all questions of a run.

    `execute_tools` False: the caller runs the calls itself, and the run ends with them. `compact_at` is the share of
    the model's context window from which on older messages are summarised; None: never.
    """

    model: str
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None
    limits: Limits = field(default_factory=Limits)
    execute_tools: bool = True
    compact_at: float | None = 0.8


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """The question, and what was made to fit the model before it is sent."""

    request: ModelRequest
    adjustments: tuple[Sentence, ...] = ()


class PreparedHistory:
    """What a model reads of one conversation. What no later message can change is worked out once and remembered.

    A history whose beginning is not the one that was read last, message by message the same objects, is read afresh.
    """

    def __init__(self) -> None:
        self._forget()

    def read(self, history: tuple[Message, ...]) -> tuple[list[Message], dict[int, int]]:
        """The repaired history as it is sent, without what was given up; and how many pictures stand at which place."""
        if not self._is_prefix_of(history):
            self._forget()
        self._remember_settled(history)
        newer = normalised_history(history[len(self._settled) :])
        if self._is_changed_by(newer):
            read = without_abandoned(compacted_view(normalised_history(history)))
            return read, count_pictures(read)
        rest = without_abandoned(newer)
        return [*self._prepared, *rest], {**self._pictures, **count_pictures(rest, len(self._prepared))}

    def _forget(self) -> None:
        self._settled: tuple[Message, ...] = ()
        self._prepared: list[Message] = []
        self._pictures: dict[int, int] = {}
        self._first_kept: str | None = None

    def _is_prefix_of(self, history: tuple[Message, ...]) -> bool:
        count = len(self._settled)
        # Results at the place where the rest begins belong to what stands before it.
        goes_on = count == len(history) or (count < len(history) and history[count].role is not Role.TOOL)
        return count == 0 or (goes_on and all(map(is_, self._settled, history)))

    def _remember_settled(self, history: tuple[Message, ...]) -> None:
        """Remember what is before the last prompt, answer or instruction, if its end stays whatever follows it."""
        end = next((at for at in range(len(history) - 1, -1, -1) if history[at].role is not Role.TOOL), 0)
        newer = normalised_history(history[len(self._settled) : end])
        if not newer:
            return
        if not self._is_changed_by(newer):
            if _is_final(newer[-1]):
                self._append(without_abandoned(newer))
                self._settled = history[:end]
            return
        whole = normalised_history(history[:end])
        sent, newest = compacted_view(whole), newest_summary(whole)
        if sent and _is_final(sent[-1]):
            self._prepared, self._pictures = [], {}
            self._append(without_abandoned(sent))
            self._settled = history[:end]
            self._first_kept = newest.first_kept_id if newest is not None else None

    def _append(self, read: list[Message]) -> None:
        self._pictures |= count_pictures(read, len(self._prepared))
        self._prepared += read

    def _is_changed_by(self, newer: Sequence[Message]) -> bool:
        """Whether what stands before these is read otherwise because of them."""
        # What a summary kept stands before it; in a history where it stands behind, the summary begins to count there.
        return any(message.id == self._first_kept or summary_of(message) is not None for message in newer)


def _is_final(message: Message) -> bool:
    """Whether it is sent, whatever comes behind it: see `without_abandoned`."""
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
    """The repaired history with stored pictures as bytes that fit; a picture that is gone is said in words instead.

    `addenda` are added to the instructions. `prepared` remembers from one request to the next. Raises
    ImagesNotSupported.
    """
    read, places = (prepared or PreparedHistory()).read(history)
    messages, adjustments = await prepare_pictures(read, pictures, places)
    request = ModelRequest(
        model=settings.model,
        messages=tuple(messages),
        tools=tools,
        config=_with_addenda(settings.config, addenda),
        conversation_id=settings.conversation_id,
    )
    return BuiltRequest(request, tuple(adjustments))


def _with_addenda(config: ProviderConfig, addenda: Sequence[str]) -> ProviderConfig:
    if not addenda:
        return config
    parts = [part for part in (config.system_prompt, *addenda) if part]
    return config.model_copy(update={"system_prompt": "\n\n".join(parts)})


def without_abandoned(messages: Sequence[Message]) -> list[Message]:
    """Leave out answers that broke off and were asked for again: nobody answers its own half answer.

    They stay in the conversation. One that the person went on from (a prompt follows it) is part of what was said.
    An answer without anything in it says nothing to any model.
    """
    kept: list[Message] = []
    for message in reversed(messages):
        if message.role is Role.ASSISTANT and not message.blocks:
            continue
        next_is_prompt = bool(kept) and kept[-1].role is not Role.ASSISTANT
        if message.state is MessageState.INTERRUPTED and not message.tool_uses and not next_is_prompt:
            continue
        kept.append(message)
    kept.reverse()
    return kept
