"""What is known about models besides what their servers report: capabilities, prices, and estimates of tokens.

The person's own table overrides the shipped one. No vendor's tokenizer comes with the program: estimates follow the
vendors' published rules, and `ESTIMATE_MARGIN` says how far off they may be.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from desktop_agent.data_files import load_table
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import (
    Base64Source,
    Block,
    Image,
    ImageDetail,
    ImageSource,
    Json,
    ServerStep,
    StoredSource,
    Summary,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    decode_base64,
    read_image_size,
)
from desktop_agent.types.errors import ImageRefused
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import ModelInfo, ModelRequest, Price, TokenCount

if TYPE_CHECKING:
    from desktop_agent.providers.catalogue.tables import ModelTable


# Gateways that put the maker's name before the model: the maker's row applies.
_GATEWAYS = frozenset({"openrouter", "litellm"})
# Gateways that charge the maker's prices.
_SAME_PRICES = frozenset({"openrouter"})
_MAKERS = {"google": "gemini", "x-ai": "xai", "mistralai": "mistral"}
# The same models behind another interface.
_SAME_VENDOR = {"google-openai": "gemini"}


class Catalogue:
    """Finds models by vendor and id.

    `vendor` is anthropic, gemini, openai, or the family of a compatible server (dialects.server_families). With
    `shipped` the program's table is used too, after `own`, the person's; until `warm_up` has read it, it is empty.
    `today` selects prices that change on a day.
    """

    def __init__(
        self,
        own: "ModelTable | None" = None,
        *,
        shipped: bool = False,
        today: Callable[[], date] = lambda: datetime.now(UTC).date(),
    ) -> None:
        self._own = own
        self._uses_shipped = shipped
        self._shipped: ModelTable | None = None
        self._today = today

    async def warm_up(self) -> None:
        """Read the shipped table in a thread, unless it was read before."""
        if self._uses_shipped and self._shipped is None:
            self._shipped = await asyncio.to_thread(_shipped_table)

    def set_overrides(self, own: "ModelTable | None") -> None:
        """Replace the person's own table."""
        self._own = own

    def override_price(self, vendor: str, model: str) -> Price | None:
        """Return the price of this model in the person's own table, if there is one."""
        model_info = self._row(self._own, vendor, model)
        return None if model_info is None else model_info.price

    def find(self, vendor: str, model: str) -> ModelInfo | None:
        """Return what the tables say about a model."""
        known = self.merged(vendor, ModelInfo(model))
        return known if known != ModelInfo(model) else None

    def merged(self, vendor: str, listed: ModelInfo) -> ModelInfo:
        """Combine facts: the person's come first, then the server's, then the shipped table's."""
        own, shipped = (self._row(table, vendor, listed.id) for table in (self._own, self._shipped))
        known = listed if shipped is None else _overlay(listed, shipped)
        return known if own is None else replace(_overlay(own, known), id=listed.id)

    def _row(self, table: "ModelTable | None", vendor: str, model: str) -> ModelInfo | None:
        if table is None:
            return None
        model = model.removeprefix("models/")
        model_info = table.find(_SAME_VENDOR.get(vendor, vendor), model, self._today())
        if model_info is None and vendor in _GATEWAYS and "/" in model:
            return self._row_of_maker(table, vendor, model)
        return model_info

    def _row_of_maker(self, table: "ModelTable", gateway: str, model: str) -> ModelInfo | None:
        """Look up `maker/model`, as gateways name it. A variant after a colon (`:free`) has another price."""
        maker, _, name = model.partition("/")
        name, _, variant = name.partition(":")
        model_info = table.find(_MAKERS.get(maker, maker), name, self._today())
        if model_info is None:
            return None
        price = model_info.price if gateway in _SAME_PRICES and not variant else None
        # Only the makers' own servers tie reasoning to its prefix.
        return replace(model_info, price=price, capabilities=replace(model_info.capabilities, binds_prefix=None))


def _overlay(upper: ModelInfo, lower: ModelInfo) -> ModelInfo:
    return replace(
        upper,
        title=upper.title or lower.title,
        capabilities=upper.capabilities.over(lower.capabilities),
        price=_overlay_price(upper.price, lower.price),
        retires=upper.retires or lower.retires,
    )


def _overlay_price(upper: Price | None, lower: Price | None) -> Price | None:
    """Combine prices number by number: a person who changes one keeps the others."""
    if upper is None or lower is None:
        return upper or lower
    prices = {name: getattr(upper, name) for name in Price.model_fields if name != "long"}
    update: dict[str, object] = {name: value for name, value in prices.items() if value is not None}
    return lower.model_copy(update={**update, "long": _overlay_price(upper.long, lower.long)})


def _shipped_table() -> "ModelTable":
    from desktop_agent.providers.catalogue.tables import load_shipped_table

    return load_shipped_table()


_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Pricing:
    """The price of one model, for one answer. `long_lived`: what is written to the cache stays there longer."""

    price: Price
    long_lived: bool = False

    def cost(self, usage: Usage) -> float | None:
        """Return US dollars, or None if a needed count or price is unknown.

        The prompt's tokens are billed in three shares: read from the cache, written to it, and all others. A server
        that reports no cache has none, so an unknown share counts as empty. Output includes reasoning.
        """
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        price = self._price_for(usage.input_tokens)
        if price is None:
            return None
        read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        shares = (
            (max(0, usage.input_tokens - read - written), price.input),
            (usage.output_tokens, price.output),
            (read, price.cache_read),
            (written, price.cache_write_long if self.long_lived else price.cache_write),
        )
        total = 0.0
        for tokens, dollars in shares:
            if tokens and dollars is None:
                return None
            total += tokens * (dollars or 0.0)
        return total / _MILLION

    def saved(self, usage: Usage) -> float:
        """Return the US dollars that the cache saved, less what writing it cost more; 0 where a price is unknown."""
        price = self._price_for(usage.input_tokens or 0)
        if price is None or price.input is None:
            return 0.0
        written = price.cache_write_long if self.long_lived else price.cache_write
        shares = ((usage.cache_read_tokens or 0, price.cache_read), (usage.cache_write_tokens or 0, written))
        return sum(tokens * (price.input - dollars) for tokens, dollars in shares if dollars is not None) / _MILLION

    def _price_for(self, prompt: int) -> Price | None:
        is_long = self.price.beyond is not None and prompt > self.price.beyond
        return self.price.long if is_long else self.price


ESTIMATE_MARGIN = 0.3
# The size of a JPEG may come after a preview and a colour profile; in characters of base64, a multiple of four.
_HEADER = 4 * 48 * 1024
_DEFAULT_SIZE = (1024, 1024)


@cache
def _estimates() -> dict[str, Any]:
    """Return the table of estimates.toml; read with the first estimate."""
    return load_table(__name__, "estimates.toml")


@cache
def _character_weights() -> tuple[bytes, tuple[float, ...]]:
    """Return the class of each byte, and the tokens for a character of each class."""
    classes = bytearray(256)
    rows = _estimates()["characters"]
    for number, row in enumerate(rows):
        for first, last in row["bytes"]:
            classes[first : last + 1] = bytes([number]) * (last + 1 - first)
    return bytes(classes), tuple(row["tokens"] for row in rows)


def estimate_token_count(request: ModelRequest, vendor: str = "", *, useful_edge: int | None = None) -> TokenCount:
    """Estimate the tokens of instructions, tools and messages; `margin` says how far off the estimate may be.

    `vendor` as in the catalogue; `useful_edge`: ImageLimits.downscale_edge, if it depends on the model.
    """
    text = text_token_count(request.config.system_prompt or "")
    text += sum(text_token_count(dumps([tool.name, tool.description, tool.input_schema])) for tool in request.tools)
    table = _estimates()
    tokens = float(len(request.messages) * table["per_message"] + len(request.tools) * table["per_tool"])
    for message in request.messages:
        for part in _weights_and_images(message.blocks):
            if isinstance(part, Image):
                tokens += image_token_count(part, vendor, useful_edge)
            else:
                text += part
    return TokenCount(math.ceil(tokens + text * table["text_factors"].get(vendor, 1.0)), ESTIMATE_MARGIN)


def text_token_count(text: str | bytes) -> float:
    """Estimate the tokens of a text by its kinds of characters; takes some nanoseconds for each."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    class_of_byte, weights = _character_weights()
    classes = data.translate(class_of_byte)
    return sum(classes.count(number) * weight for number, weight in enumerate(weights))


def image_token_count(image: Image, vendor: str = "", useful_edge: int | None = None) -> int:
    """Estimate the tokens of one picture, by its size if that is known."""
    table = _estimates()
    if vendor in table["per_image"]:
        return table["per_image"][vendor]
    rule: dict[str, int] = table["images"].get(vendor, table["images"]["other"])
    if image.detail is ImageDetail.LOW and "low_detail" in rule:
        return rule["low_detail"]
    width, height = _image_size(image.source) or _DEFAULT_SIZE
    scale = min(1.0, (useful_edge or rule["edge"]) / max(width, height))
    across, down = (math.ceil(edge * scale / rule["square"]) for edge in (width, height))
    return min(across * down, rule["most"])


def _weights_and_images(blocks: Iterable[Block | Json]) -> Iterator[float | Image]:
    """Yield the tokens of each text, and the pictures, which count differently for each vendor."""
    for block in blocks:
        match block:
            case Image():
                yield block
            case Text() | Summary():
                yield text_token_count(block.text)
            case Thinking():
                yield text_token_count(block.text) or len(dumps(block.metadata)) / _estimates()["sealed"]
            case ToolUse():
                yield text_token_count(block.name) + text_token_count(block.malformed or dumps(block.input))
            case ToolResult():
                yield from _weights_and_images(block.content)
            case Json():
                yield text_token_count(dumps(block.value))
            case ServerStep() | Unknown():
                yield text_token_count(dumps(block.raw))


def _image_size(source: ImageSource) -> tuple[int, int] | None:
    if isinstance(source, StoredSource):
        return source.width, source.height
    if not isinstance(source, Base64Source):
        return None
    try:
        return read_image_size(decode_base64(source.data[:_HEADER]))
    except ImageRefused:
        return None
