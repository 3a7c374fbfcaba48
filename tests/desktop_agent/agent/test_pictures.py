"""The pictures of a request: made to fit the model, or said in words."""

import base64
import io
from typing import Any

import pytest
from PIL import Image as Pillow

from desktop_agent.agent.model_request import PictureSupport, prepare_pictures
from desktop_agent.conversation.picture_preparation import PictureFitter
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text, ToolResult, UrlSource
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd
from desktop_agent.types.errors import AgentError, ImageRefused, ImagesNotSupported, StorageFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, RequestAdjusted
from desktop_agent.types.providers import Capabilities, ImageLimits, ModelInfo
from tests.fakes.agent_run import Desk
from tests.fakes.scripted_provider import Turn


def png(width: int = 60, height: int = 40) -> bytes:
    out = io.BytesIO()
    Pillow.effect_noise((width, height), 80).save(out, "PNG")
    return out.getvalue()


DATA = png()
STORED = Image(
    source=StoredSource(digest="0" * 64, media_type="image/png", size=len(DATA), width=60, height=40), name="cat.png"
)
INLINE = Image(source=Base64Source(media_type="image/png", data=base64.b64encode(DATA).decode()))


async def read(_: StoredSource) -> bytes:
    return DATA


def prompt_with(*images: Image) -> Message:
    return Message.user_with_blocks([Text(text="see"), *images])


def answer(*blocks: Text | Image) -> Message:
    return Message(role=Role.ASSISTANT, blocks=blocks)


def pixels(block: Any) -> tuple[int, int]:
    assert isinstance(block, Image)
    assert isinstance(block.source, Base64Source)
    return Pillow.open(io.BytesIO(base64.b64decode(block.source.data))).size


async def prepared_parts(
    *messages: Message, fitter: PictureFitter | None = None, **limits: Any
) -> tuple[list[Any], list[str]]:
    """Return the prepared parts, without the text of prompts, and the reasons for changes."""
    pictures = PictureSupport(read, fitter or PictureFitter(), ImageLimits(**limits))
    prepared, reasons = await prepare_pictures(messages, pictures)
    blocks = [block for message in prepared for block in message.blocks if block != Text(text="see")]
    parts = [part for block in blocks for part in (block.content if isinstance(block, ToolResult) else [block])]
    return parts, [str(reason) for reason in reasons]


async def test_what_fits_goes_as_it_is() -> None:
    parts, reasons = await prepared_parts(prompt_with(STORED, INLINE), max_edge=60)
    assert [base64.b64decode(part.source.data) for part in parts] == [DATA, DATA]
    assert reasons == []
    assert parts[0].name == "cat.png"


async def test_what_does_not_is_made_to_fit_also_in_results_and_each_reason_is_said_once() -> None:
    result = ToolResult(tool_use_id="1", content=(Text(text="see"), STORED))
    parts, reasons = await prepared_parts(prompt_with(STORED, INLINE), Message.tool_results([result]), max_edge=30)
    assert [pixels(part) for part in parts if isinstance(part, Image)] == [(30, 20)] * 3
    assert len(reasons) == 2
    assert "“cat.png”" in reasons[0]


def named(name: str, **more: Any) -> Image:
    return STORED.model_copy(update={"name": name, **more})


async def sent(*messages: Message, **limits: Any) -> list[list[str]]:
    """Return the names of pictures and the texts of each message, in order."""
    prepared, _ = await prepare_pictures(messages, PictureSupport(read, PictureFitter(), ImageLimits(**limits)))
    return [
        [
            block.name or "" if isinstance(block, Image) else getattr(block, "text", block.type)
            for block in message.blocks
        ]
        for message in prepared
    ]


async def test_pictures_of_answers_go_with_the_next_prompt() -> None:
    first, second = Message.user("Draw a cat."), Message.user("Make it red.")
    answers = [answer(Text(text="Here:"), named("one")), answer(named("two"), named("three"))]
    note = "[From your answer above:]"
    assert await sent(first, *answers, second) == [
        ["Draw a cat."],
        ["Here:"],
        [],
        [note, "one", note, "two", "three", "Make it red."],
    ]
    assert await sent(first, *answers) == [["Draw a cat."], ["Here:"], []]


async def test_a_picture_with_the_state_of_its_provider_stays_in_the_answer() -> None:
    own, other, bare = (
        named("own", provider="p", metadata={"s": 1}),
        named("other", provider="q", metadata={"s": 1}),
        named("bare", provider="p"),
    )
    messages = [answer(own, other, bare), Message.user("Go on.")]
    assert await sent(*messages, in_answers_of="p") == [
        ["own"],
        ["[From your answer above:]", "other", "bare", "Go on."],
    ]


async def test_state_goes_only_with_the_bytes_that_it_came_with() -> None:
    own = named("own", provider="p", metadata={"s": 1})
    for edge, state in ((60, {"s": 1}), (30, {})):
        parts, _ = await prepared_parts(Message.user_with_blocks([own]), max_edge=edge)
        assert [part.metadata for part in parts] == [state]


async def test_a_model_that_sees_nothing_is_told_of_pictures_in_answers() -> None:
    pictures = PictureSupport(read, PictureFitter(), ImageLimits(), model_reads_pictures=False)
    prepared, reasons = await prepare_pictures([answer(named("one")), Message.user("Go on.")], pictures)
    assert [message.text for message in prepared] == [
        "[The picture “one” that stood here is not sent any more.]",
        "Go on.",
    ]
    assert len(reasons) == 1


async def test_many_pictures_must_be_smaller_than_few() -> None:
    parts, reasons = await prepared_parts(prompt_with(STORED, STORED), many_images=2, many_images_max_edge=30)
    assert [pixels(part) for part in parts] == [(60, 40)] * 2
    assert not reasons
    parts, reasons = await prepared_parts(prompt_with(STORED, STORED, STORED), many_images=2, many_images_max_edge=30)
    assert [pixels(part) for part in parts] == [(30, 20)] * 3
    # Those that are not sent are no part of the crowd.
    parts, _ = await prepared_parts(
        prompt_with(STORED, STORED, STORED), many_images=2, many_images_max_edge=30, max_count=2
    )
    assert [pixels(part) for part in parts[1:]] == [(60, 40)] * 2


async def test_too_many_pictures_lose_the_oldest() -> None:
    parts, reasons = await prepared_parts(prompt_with(STORED), prompt_with(INLINE), prompt_with(STORED), max_count=1)
    assert [type(part) for part in parts] == [Text, Text, Image]
    assert "“cat.png”" in parts[0].text
    assert len(reasons) == 1


async def test_a_damaged_picture_becomes_words_and_the_person_is_told() -> None:
    broken = Image(
        source=Base64Source(media_type="image/png", data=base64.b64encode(DATA[:50]).decode()), name="bad.png"
    )
    parts, reasons = await prepared_parts(prompt_with(broken), max_edge=30)
    assert parts == [Text(text="[The picture “bad.png” is damaged and cannot be read.]")]
    assert reasons == ["The picture “bad.png” is damaged and cannot be read."]


@pytest.mark.parametrize("error", [ImageRefused("It is gone."), StorageFailed("It is gone.", "Try again.")])
async def test_a_picture_that_cannot_be_read_becomes_words_and_the_person_is_told(error: AgentError) -> None:
    async def missing(_: StoredSource) -> bytes:
        raise error

    (prepared,), (reason,) = await prepare_pictures(
        [prompt_with(STORED)], PictureSupport(missing, PictureFitter(), ImageLimits())
    )
    assert prepared.blocks[1] == Text(text=f"[{error}]")
    assert str(reason) == "It is gone."


async def test_addresses_go_only_where_they_are_taken() -> None:
    remote = Image(source=UrlSource(url="https://pictures.example/x.png"))
    assert await prepared_parts(prompt_with(remote), max_edge=1) == ([remote], [])
    with pytest.raises(ImagesNotSupported):
        await prepared_parts(prompt_with(remote), accepts_urls=False)


async def test_what_an_earlier_model_saw_is_said_in_words_to_one_that_cannot_see() -> None:
    remote = Image(source=UrlSource(url="https://pictures.example/x.png"))
    shot = Message.tool_results([ToolResult(tool_use_id="c", content=(STORED,))])
    words = Text(text="[The picture “cat.png” that stood here is not sent any more.]")
    blind = PictureSupport(read, PictureFitter(), ImageLimits(), model_reads_pictures=False)
    prepared, reasons = await prepare_pictures(
        [prompt_with(STORED), Message.assistant("A cat."), prompt_with(), shot], blind
    )
    assert prepared[0].blocks[1] == words
    assert prepared[3].blocks[0].content == (words,)  # type: ignore[union-attr]
    assert [str(reason) for reason in reasons] == ["Pictures from before are not sent: this model does not read them."]
    with pytest.raises(ImagesNotSupported):
        await prepare_pictures([prompt_with(), prompt_with(STORED), shot], blind)
    parts, whys = await prepared_parts(prompt_with(remote), prompt_with(), accepts_urls=False)
    assert parts == [Text(text="[The picture that stood here is not sent any more.]")]
    assert whys == ["Pictures on the web are not sent: this server does not fetch them."]


async def test_the_same_history_gives_the_same_bytes_turn_after_turn() -> None:
    fitter, history = PictureFitter(), [prompt_with(STORED), prompt_with(INLINE)]
    first, _ = await prepared_parts(*history, fitter=fitter, max_edge=30)
    second, _ = await prepared_parts(*history, prompt_with(), fitter=fitter, max_edge=30)
    third, _ = await prepared_parts(*history, fitter=PictureFitter(), max_edge=30)
    assert first == second == third


async def test_the_turn_asks_the_provider_and_says_what_it_changed() -> None:
    desk = Desk(Turn(ContentDelta("A cat.")), pictures=ImageLimits(max_edge=30))
    desk.memory.messages = [prompt_with(INLINE)]
    assert await desk.execute() is RunEnd.COMPLETED
    assert pixels(desk.provider.requests[0].messages[0].blocks[1]) == (30, 20)
    (adjusted,) = desk.memory.of(RequestAdjusted)
    assert "30 x 20" in str(adjusted.adjustments[0])
    assert desk.memory.messages[-1].adjustments == adjusted.adjustments


async def test_an_address_where_none_is_taken_fails_with_its_sentence() -> None:
    desk = Desk(pictures=ImageLimits(accepts_urls=False))
    desk.memory.messages = [Message.user_with_image("see", "https://pictures.example/x.png")]
    assert await desk.execute() is RunEnd.FAILED
    assert desk.memory.of(ErrorOccurred)[0].kind == "capability"


async def test_a_model_that_cannot_see_is_known_by_its_capabilities() -> None:
    desk = Desk(models=(ModelInfo("m", capabilities=Capabilities(images=False)),))
    desk.memory.messages = [prompt_with(STORED)]
    assert await desk.execute() is RunEnd.FAILED
    assert str(desk.memory.of(ErrorOccurred)[0].sentence) == "This model does not read pictures."
