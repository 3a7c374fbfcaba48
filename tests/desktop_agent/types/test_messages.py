"""Messages: JSON and back without loss, makers, and pictures whose content decides."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from desktop_agent.types.blocks import (
    Base64Source,
    Image,
    ImageDetail,
    Json,
    Outcome,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
    decode_base64,
    detect_media_type,
)
from desktop_agent.types.errors import ImageRefused
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import StopReason, Usage

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=3)
SOURCES = st.one_of(
    st.builds(UrlSource, url=st.just("https://example.org/a.png")),
    st.just(Base64Source(media_type="image/png", data=base64.b64encode(PNG).decode())),
    st.builds(
        StoredSource,
        digest=st.just("0" * 64),
        media_type=st.just("image/png"),
        size=st.integers(0, 10),
        width=st.integers(1, 9),
        height=st.integers(1, 9),
    ),
)
IMAGES = st.builds(Image, source=SOURCES, detail=st.sampled_from(ImageDetail), name=st.none() | st.text())
TEXTS = st.builds(Text, text=st.text())
RESULTS = st.builds(
    ToolResult,
    tool_use_id=st.text(min_size=1),
    content=st.lists(TEXTS | IMAGES | st.builds(Json, value=JSON_VALUES), max_size=3).map(tuple),
    outcome=st.sampled_from(Outcome),
)
BLOCKS = st.one_of(
    TEXTS,
    IMAGES,
    RESULTS,
    st.builds(Thinking, text=st.text(), provider=st.text(), metadata=OBJECTS, seconds=st.none() | st.floats(0, 9)),
    st.builds(ToolUse, id=st.text(), name=st.text(), input=OBJECTS, malformed=st.none() | st.text()),
    st.builds(Unknown, raw=JSON_VALUES),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(Role),
    blocks=st.lists(BLOCKS, max_size=5).map(tuple),
    state=st.sampled_from(MessageState),
    model=st.none() | st.text(),
    stop_reason=st.none() | st.sampled_from(StopReason),
    usage=st.none() | st.builds(Usage, input_tokens=st.none() | st.integers(0, 9)),
)


@given(MESSAGES)
def test_json_and_back_is_the_same_message(message: Message) -> None:
    assert Message.model_validate_json(message.model_dump_json()) == message


def test_makers_make_what_they_say() -> None:
    assert (Message.user("a").role, Message.user("a").text) == (Role.USER, "a")
    assert Message.assistant("b").role is Role.ASSISTANT
    assert Message.system("c").role is Role.SYSTEM
    assert Message.user_with_blocks([Text(text="d")]).text == "d"
    url = Message.user_with_image("look", "https://example.org/x.png").blocks[1]
    assert url == Image(source=UrlSource(url="https://example.org/x.png"))
    close = Message.user_with_image_detail("look", "https://example.org/x.png", ImageDetail.HIGH).blocks[1]
    assert isinstance(close, Image)
    assert close.detail is ImageDetail.HIGH
    from_file = Message.user_with_file("look", PNG, "misnamed.jpg").blocks[1]
    assert isinstance(from_file, Image)
    assert isinstance(from_file.source, Base64Source)
    assert (from_file.source.media_type, from_file.name) == ("image/png", "misnamed.jpg")


def test_messages_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Message.user("a").role = Role.SYSTEM  # type: ignore[misc]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89arest", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPrest", "image/webp"),
        (b"BM bitmap", None),
        (b"<svg/>", None),
        (b"", None),
    ],
)
def test_content_says_what_a_picture_is(data: bytes, expected: str | None) -> None:
    assert detect_media_type(data) == expected


@pytest.mark.parametrize("text", ["not base64!", "AAAA\nAAAA", "AAA"])
def test_base64_is_strict(text: str) -> None:
    with pytest.raises(ImageRefused):
        decode_base64(text)


def test_a_wrong_label_is_refused_with_a_sentence() -> None:
    with pytest.raises(ImageRefused, match="labelled image/jpeg but contains image/png"):
        Message.user_with_base64_image("x", base64.b64encode(PNG).decode(), "image/jpeg")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/y.png", "javascript:1", ""])
def test_only_web_addresses_are_pictures_by_address(url: str) -> None:
    with pytest.raises(ImageRefused):
        Message.user_with_image("x", url)


def test_repr_of_a_message_holds_no_picture_bytes() -> None:
    message = Message.user_with_file("x", PNG, "a.png")
    assert base64.b64encode(PNG).decode() not in repr(message)
