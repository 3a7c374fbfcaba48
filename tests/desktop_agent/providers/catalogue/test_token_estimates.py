"""Token estimates: near the figures of vendors, and in the right order."""

import base64
from io import BytesIO

import pytest
from PIL import Image as Picture

from desktop_agent.providers.catalogue.catalogue import (
    ESTIMATE_MARGIN,
    estimate_token_count,
    image_token_count,
    text_token_count,
)
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
    ImageDetail,
    Json,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    UrlSource,
)
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import ModelRequest, ProviderConfig
from desktop_agent.types.tool_calls import ToolSpec

PROSE = (
    "A letter that nobody reads is still a letter, and somebody had to write it. The harbour was quiet that morning; "
    "two boats lay on the sand, and the third, which belonged to the baker's brother, had gone out before dawn. "
)
CODE = "def total(items):\n    return sum(item.price * item.count for item in items if item.count > 0)\n"
CHINESE = "港口那天早上很安静，沙滩上停着两条船，第三条船天亮之前就出海了。"


def request(*blocks: Block, tools: tuple[ToolSpec, ...] = (), system: str | None = None) -> ModelRequest:
    messages = (Message.user_with_blocks(blocks),) if blocks else ()
    return ModelRequest("m", messages, tools, config=ProviderConfig(system_prompt=system))


def encoded(width: int, height: int, form: str = "PNG", **options: object) -> Base64Source:
    buffer = BytesIO()
    Picture.new("RGB", (width, height)).save(buffer, form, **options)
    data = base64.b64encode(buffer.getvalue()).decode()
    return Base64Source.model_validate({"media_type": f"image/{form.lower()}", "data": data})


def test_prose_is_near_what_vendors_say() -> None:
    assert 4 * (1 - ESTIMATE_MARGIN) < len(PROSE) / text_token_count(PROSE) < 4 * (1 + ESTIMATE_MARGIN)
    anthropic = estimate_token_count(request(Text(text=PROSE * 20)), "anthropic").tokens
    for characters in (3.5, 3.5 / 1.3):  # up to 4.6, and from 4.7 on
        assert abs(len(PROSE * 20) / characters / anthropic - 1) < ESTIMATE_MARGIN


def test_other_kinds_of_text_are_denser() -> None:
    def density(text: str) -> float:
        return text_token_count(text) / len(text)

    assert density(PROSE) < density(CODE) < density('{"a":[1,2,{"b":"c"}],"d":null}') < density(CHINESE)
    assert density("мы идём домой") > density("we go home now")
    assert text_token_count("") == 0
    assert text_token_count("\ud800") > 0


def test_everything_that_is_sent_counts() -> None:
    empty = estimate_token_count(request()).tokens
    assert empty == 0
    spec = ToolSpec("look", "Looks closely at a thing.", {"type": "object", "properties": {"at": {"type": "string"}}})
    sealed = Thinking(text="", provider="p", metadata={"data": "x" * 600})
    bigger = [
        request(system=PROSE),
        request(tools=(spec,)),
        request(Text(text=PROSE)),
        request(Thinking(text=PROSE, provider="p")),
        request(sealed),
        request(ToolUse(id="1", name="look", input={"at": PROSE})),
        request(ToolUse(id="1", name="look", malformed=PROSE)),
        request(ToolResult(tool_use_id="1", content=(Text(text=PROSE), Json(value={"a": PROSE})))),
        request(Unknown(raw={"a": PROSE})),
    ]
    for larger in bigger:
        assert estimate_token_count(larger).tokens > 20
        assert estimate_token_count(larger).margin == ESTIMATE_MARGIN


def test_a_picture_counts_by_its_size_and_not_by_its_bytes() -> None:
    picture = Image(source=encoded(560, 280))
    alone = estimate_token_count(request(picture), "anthropic").tokens - 4
    assert alone == 20 * 10
    within = estimate_token_count(request(ToolResult(tool_use_id="1", content=(picture,))), "anthropic").tokens - 4
    assert within == alone


@pytest.mark.parametrize(
    ("width", "height", "vendor", "edge", "tokens"),
    [
        (280, 280, "anthropic", None, 100),
        (281, 280, "anthropic", None, 110),
        (5152, 2576, "anthropic", None, 92 * 46),  # scaled to 2576 by 1288
        (3136, 1568, "anthropic", 1568, 56 * 28),
        (320, 320, "openai", None, 100),
        (4096, 4096, "openai", None, 2500),
        (640, 320, "somebody", None, 200),
        (9000, 10, "gemini", None, 1120),
    ],
)
def test_the_formulas_of_vendors(width: int, height: int, vendor: str, edge: int | None, tokens: int) -> None:
    source = StoredSource(digest="0" * 64, media_type="image/png", size=1, width=width, height=height)
    assert image_token_count(Image(source=source), vendor, edge) == tokens


def test_less_detail_costs_less_where_it_is_offered() -> None:
    source = encoded(640, 640, "JPEG")
    assert image_token_count(Image(source=source, detail=ImageDetail.LOW), "openai") == 85
    assert image_token_count(Image(source=source, detail=ImageDetail.LOW), "anthropic") == 23 * 23


def test_sizes_behind_long_headers_and_sizes_nobody_knows() -> None:
    profile = encoded(320, 320, "JPEG", icc_profile=b"x" * 60_000)
    assert image_token_count(Image(source=profile)) == 100
    unknown = image_token_count(Image(source=UrlSource(url="https://example.org/a.png")))
    broken = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    damaged = image_token_count(Image(source=Base64Source(media_type="image/png", data=broken)))
    assert unknown == damaged == 32 * 32
