"""The contents of servers' answers, converted to parts of a tool result."""

import base64
import io
import struct
import zlib

import pytest
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent
from PIL import Image as Pictures

from desktop_agent.mcp.catalog import MAX_IMAGE_DATA, MAX_IMAGE_EDGE, MAX_TEXT, convert_call_result, redact_json
from desktop_agent.types.blocks import Image, Json, Text
from desktop_agent.types.errors import ToolFailed


def text(content: str) -> TextContent:
    return TextContent(type="text", text=content)


def picture(image_format: str = "PNG") -> str:
    buffer = io.BytesIO()
    Pictures.new("RGB", (2, 2)).save(buffer, image_format)
    return base64.b64encode(buffer.getvalue()).decode()


async def test_a_picture_is_what_it_contains_whatever_its_label_says():
    content = [ImageContent(type="image", data=picture("JPEG"), mime_type="image/png")]
    (part,) = await convert_call_result(CallToolResult(content=content))
    assert isinstance(part, Image)
    assert part.source.media_type == "image/jpeg"


async def test_pictures_that_are_too_large_together_are_left_out():
    data = picture() + "A" * (MAX_IMAGE_DATA // 2 - 1000)
    data = data[: len(data) // 4 * 4].replace("=", "A")
    content = [ImageContent(type="image", data=data, mime_type="image/png")] * 3
    kinds = [type(part) for part in await convert_call_result(CallToolResult(content=content))]
    assert kinds == [Image, Image, Text]


@pytest.mark.parametrize(
    ("content", "structured", "expected"),
    [
        ([text("3")], {"result": 3}, (Text(text="3"),)),
        ([text("three")], {"result": "three"}, (Text(text="three"),)),
        ([text('{"a": 1}')], {"a": 1}, (Json(value={"a": 1}),)),
        ([text("words")], {"a": 1}, (Text(text="words"), Json(value={"a": 1}))),
        ([], [1, 2], (Json(value=[1, 2]),)),
        ([], None, ()),
    ],
)
async def test_what_is_said_twice_is_given_once(content, structured, expected):
    assert await convert_call_result(CallToolResult(content=content, structured_content=structured)) == expected


async def test_a_link_is_named_and_a_failure_is_one():
    link = ResourceLink(type="resource_link", uri="file:///a.txt", name="a")
    (part,) = await convert_call_result(CallToolResult(content=[link]))
    assert part == Text(text="[resource: file:///a.txt “a”]")
    with pytest.raises(ToolFailed, match="no such thing"):
        await convert_call_result(CallToolResult(content=[text("no such thing")], is_error=True))
    with pytest.raises(ToolFailed):
        await convert_call_result(CallToolResult(content=[], is_error=True))


def png_that_says(width: int, height: int) -> str:
    inside = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + inside + struct.pack(">I", zlib.crc32(inside))
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (png_that_says(1, 2**31 - 1), "2,147,483,647 pixels"),
        (png_that_says(MAX_IMAGE_EDGE + 1, 1), "8,001"),
        (base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(), "damaged"),
        (base64.b64encode(b"\xff\xd8\xff\xe0").decode(), "damaged"),
    ],
)
async def test_a_picture_of_no_or_of_a_hostile_size_is_left_out(data, expected):
    content = [ImageContent(type="image", data=data, mime_type="image/png")]
    (part,) = await convert_call_result(CallToolResult(content=content))
    assert isinstance(part, Text)
    assert part.text.startswith("[left out: ")
    assert expected in part.text
    content = [ImageContent(type="image", data=png_that_says(MAX_IMAGE_EDGE, 1), mime_type="image/png")]
    assert isinstance((await convert_call_result(CallToolResult(content=content)))[0], Image)


async def test_what_a_server_repeats_of_its_secrets_is_taken_out_wherever_it_stands():
    def redact(content: str) -> str:
        return content.replace("s3cr3t", "•••")

    long = "x" * (MAX_TEXT - 3) + "s3cr3t"
    result = CallToolResult(content=[text("a s3cr3t"), text(long)], structured_content={"s3cr3t": [{"b": "s3cr3t"}, 4]})
    first, second, third = await convert_call_result(result, redact)
    assert first == Text(text="a •••")
    assert "s3c" not in second.text
    assert third == Json(value={"•••": [{"b": "•••"}, 4]})
    with pytest.raises(ToolFailed, match="echo •••") as caught:
        await convert_call_result(CallToolResult(content=[text("echo s3cr3t")], is_error=True), redact)
    assert "s3cr3t" not in str(caught.value)


def test_no_name_is_lost_where_secrets_go():
    secrets = {"k-S3CRET": 1, "k-[hidden]": [{"S3CRET": 2, "[hidden]": 3}]}
    expected = {"k-[hidden]": 1, "k-[hidden]⟨1⟩": [{"[hidden]": 2, "[hidden]⟨1⟩": 3}]}
    assert redact_json(secrets, lambda text: text.replace("S3CRET", "[hidden]")) == expected
