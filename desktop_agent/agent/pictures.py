"""The pictures of one request: loaded, made to fit the model, or said in words where that cannot be."""

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from desktop_agent.conversation.picture_fitting import FitLimits, FittedPicture, PictureFitter
from desktop_agent.vocabulary.blocks import Block, Image, ResultPart, Text, ToolResult
from desktop_agent.vocabulary.errors import ImageRefused, ImagesNotSupported, Sentence, StorageFailed
from desktop_agent.vocabulary.images import Base64Source, StoredSource, UrlSource, decode_base64
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.requests import ImageLimits

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
