"""What servers answer, as parts of a result."""

import base64
import io

import pytest
from mcp_types import CallToolResult, ImageContent, ResourceLink, TextContent
from PIL import Image as Pictures

from desktop_agent.tools.mcp.offering.results import MOST_PICTURES, parts_of_result
from desktop_agent.vocabulary.blocks import Image, Json, Text
from desktop_agent.vocabulary.errors import ToolFailed


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def picture(kind: str = "PNG") -> str:
    made = io.BytesIO()
    Pictures.new("RGB", (2, 2)).save(made, kind)
    return base64.b64encode(made.getvalue()).decode()


async def test_a_picture_is_what_it_contains_whatever_its_label_says():
    content = [ImageContent(type="image", data=picture("JPEG"), mime_type="image/png")]
    (part,) = await parts_of_result(CallToolResult(content=content))
    assert isinstance(part, Image)
    assert part.source.media_type == "image/jpeg"


async def test_pictures_that_are_too_large_together_are_left_out():
    data = picture() + "A" * (MOST_PICTURES // 2 - 1000)
    data = data[: len(data) // 4 * 4].replace("=", "A")
    content = [ImageContent(type="image", data=data, mime_type="image/png")] * 3
    kinds = [type(part) for part in await parts_of_result(CallToolResult(content=content))]
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
    assert await parts_of_result(CallToolResult(content=content, structured_content=structured)) == expected


async def test_a_link_is_named_and_a_failure_is_one():
    link = ResourceLink(type="resource_link", uri="file:///a.txt", name="a")
    (part,) = await parts_of_result(CallToolResult(content=[link]))
    assert part == Text(text="[resource: file:///a.txt “a”]")
    with pytest.raises(ToolFailed, match="no such thing"):
        await parts_of_result(CallToolResult(content=[text("no such thing")], is_error=True))
    with pytest.raises(ToolFailed):
        await parts_of_result(CallToolResult(content=[], is_error=True))
