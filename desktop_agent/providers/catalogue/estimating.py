"""How long a request is, roughly, where the server cannot be asked.

No vendor's tokenizer comes with the program, so nothing here is measured against one. Vendors give four characters of
English prose a token (OpenAI, Google) or three and a half (Anthropic up to 4.6; some 30 % more tokens from 4.7 on);
code, JSON and other scripts are denser. The weights below reproduce those figures for prose and keep the order of the
rest, and `ESTIMATE_MARGIN` spans what the vendors' figures leave open between each other.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from desktop_agent.providers.transport.json_text import dumps
from desktop_agent.vocabulary.blocks import (
    Block,
    Image,
    Json,
    ServerStep,
    Summary,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.vocabulary.errors import ImageRefused
from desktop_agent.vocabulary.images import (
    Base64Source,
    ImageDetail,
    ImageSource,
    StoredSource,
    decode_base64,
    read_image_size,
)
from desktop_agent.vocabulary.requests import ModelRequest, TokenCount

ESTIMATE_MARGIN = 0.3
# Around each message, and around each tool, vendors put marks of their own.
_PER_MESSAGE = 4
_PER_TOOL = 8
# Sealed reasoning is encrypted and in base64: about as much as it hides, at four characters a token.
_SEALED_PER_TOKEN = 6
_TEXT_FACTORS = {"anthropic": 1.3}
# The size of a JPEG may stand behind a preview and a colour profile; in characters of base64, a multiple of four.
_HEADER = 4 * 48 * 1024
_DEFAULT_SIZE = (1024, 1024)

# Tokens for a character, by the first byte of its UTF-8 form; the bytes that follow count nothing.
_WEIGHTS: tuple[tuple[bytes, float], ...] = (
    (bytes(range(0x80, 0xC0)), 0.0),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 0.245),
    (b" \t\r\n", 0.07),
    (b"0123456789", 0.4),
    (bytes(range(0xC0, 0xE0)), 0.33),  # accents, Greek, Cyrillic, Hebrew, Arabic
    (b"\xe0\xe1", 0.6),  # the scripts of India and South-East Asia
    (b"\xe2\xee\xef", 0.8),  # typographer's marks and symbols
    (bytes(range(0xE3, 0xEE)), 0.75),  # Chinese, Japanese, Korean
    (bytes(range(0xF0, 0x100)), 2.0),  # emoji
)
_OTHER_WEIGHT = 0.55  # punctuation, of which several often share a token


def _class_of_each_byte() -> bytes:
    table = bytearray(b"\xff" * 256)
    for number, (members, _) in enumerate(_WEIGHTS):
        for byte in members:
            table[byte] = number
    return bytes(table)


_CLASSES = _class_of_each_byte()


@dataclass(frozen=True, slots=True)
class _ImageTokenRule:
    """How a vendor counts pictures: in squares of `square` pixels after scaling down to `edge`, `most` at most."""

    square: int
    edge: int
    most: int
    low_detail: int | None = None


# Anthropic: vision guide. OpenAI: images and vision guide. Gemini counts the same for every picture: media resolution
# guide. Other servers: the squares that most open models use.
_IMAGE_RULES = {"anthropic": _ImageTokenRule(28, 2576, 8464), "openai": _ImageTokenRule(32, 2048, 2500, 85)}
_DEFAULT_IMAGE_RULE = _ImageTokenRule(32, 2048, 2500)
_TOKENS_PER_IMAGE = {"gemini": 1120}


def estimate_tokens(request: ModelRequest, vendor: str = "", *, useful_edge: int | None = None) -> TokenCount:
    """Tokens of instructions, tools and messages; `margin` says how far off they may be.

    `vendor` as in the catalogue; `downscale_edge` as in ImageLimits, where it depends on the model.
    """
    text = estimate_text_tokens(request.config.system_prompt or "")
    text += sum(estimate_text_tokens(dumps([each.name, each.description, each.input_schema])) for each in request.tools)
    tokens = float(len(request.messages) * _PER_MESSAGE + len(request.tools) * _PER_TOOL)
    for message in request.messages:
        for part in _weights_and_images(message.blocks):
            if isinstance(part, Image):
                tokens += estimate_image_tokens(part, vendor, useful_edge)
            else:
                text += part
    return TokenCount(math.ceil(tokens + text * _TEXT_FACTORS.get(vendor, 1.0)), ESTIMATE_MARGIN)


def estimate_text_tokens(text: str | bytes) -> float:
    """Tokens of a text, by what kinds of characters it has: some nanoseconds for each."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    classes = data.translate(_CLASSES)
    total = sum(classes.count(number) * each for number, (_, each) in enumerate(_WEIGHTS))
    return total + classes.count(0xFF) * _OTHER_WEIGHT


def estimate_image_tokens(image: Image, vendor: str = "", useful_edge: int | None = None) -> int:
    """Tokens of one picture, by its size where that is known."""
    if vendor in _TOKENS_PER_IMAGE:
        return _TOKENS_PER_IMAGE[vendor]
    how = _IMAGE_RULES.get(vendor, _DEFAULT_IMAGE_RULE)
    if how.low_detail is not None and image.detail is ImageDetail.LOW:
        return how.low_detail
    width, height = _image_size(image.source) or _DEFAULT_SIZE
    scale = min(1.0, (useful_edge or how.edge) / max(width, height))
    across, down = (math.ceil(edge * scale / how.square) for edge in (width, height))
    return min(across * down, how.most)


def _weights_and_images(blocks: tuple[Block, ...]) -> Iterator[float | Image]:
    """What the blocks weigh, and their pictures, which weigh differently for each vendor."""
    for block in blocks:
        match block:
            case Image():
                yield block
            case Text() | Summary():
                yield estimate_text_tokens(block.text)
            case Thinking():
                yield estimate_text_tokens(block.text) or len(dumps(block.metadata)) / _SEALED_PER_TOKEN
            case ToolUse():
                yield estimate_text_tokens(block.name) + estimate_text_tokens(block.malformed or dumps(block.input))
            case ToolResult():
                for part in block.content:
                    yield part if isinstance(part, Image) else estimate_text_tokens(_text_of(part))
            case ServerStep() | Unknown():
                yield estimate_text_tokens(dumps(block.raw))


def _text_of(part: Text | Json) -> str | bytes:
    return part.text if isinstance(part, Text) else dumps(part.value)


def _image_size(source: ImageSource) -> tuple[int, int] | None:
    if isinstance(source, StoredSource):
        return source.width, source.height
    if not isinstance(source, Base64Source):
        return None
    try:
        return read_image_size(decode_base64(source.data[:_HEADER]))
    except ImageRefused:
        return None
