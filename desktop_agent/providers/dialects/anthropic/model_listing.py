"""List Anthropic's models, and adapt reasoning and pictures to each model.

`capabilities.thinking.types.X.supported` is false exactly where a request for X is refused. Each downgrade is reported
in an adjustment.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from desktop_agent.providers.dialects.request_building import (
    EFFORTS,
    budget_adjustment,
    effort_for_tokens,
    nearest_effort,
)
from desktop_agent.providers.transport.error_responses import error_from_listing, has_error
from desktop_agent.providers.transport.json_codec import (
    flag_in,
    is_array,
    is_object,
    loads_or_none,
    object_in,
    objects_in,
    read_count,
    read_time,
    repair_text,
    text_in,
)
from desktop_agent.types.blocks import Base64Source, Image, UrlSource, decode_base64, read_image_size
from desktop_agent.types.errors import CapabilityMissing, ImageRefused, ImagesNotSupported, Sentence, WrongUse
from desktop_agent.types.providers import (
    Capabilities,
    Effort,
    ImageLimits,
    ModelInfo,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
    ReasoningMode,
)

MIN_BUDGET = 1024
_PAGE_SIZE = 1000
_MAX_PAGES = 20
_LISTED_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
_LISTED_MODES: tuple[ReasoningMode, ...] = ("adaptive", "between_tools", "disabled")


async def fetch_models(exchange: Callable[[str], Awaitable[bytes]]) -> tuple[ModelInfo, ...]:
    """Fetch all pages; `exchange` takes the query. Retired models are left out. Raises ProviderError."""
    models: dict[str, ModelInfo] = {}
    query, visited = f"limit={_PAGE_SIZE}", set[str]()
    for _ in range(_MAX_PAGES):
        page = _parse_page(await exchange(query))
        for entry in objects_in(page, "data"):
            if text_in(entry, "id") and entry.get("lifecycle") != "retired":
                models.setdefault(entry["id"], parse_model(entry))
        last = page.get("last_id")
        if page.get("has_more") is not True or not isinstance(last, str) or last in visited:
            break
        visited.add(last)
        query = f"limit={_PAGE_SIZE}&after_id={quote(last, safe='')}"
    return tuple(models.values())


def parse_model(entry: dict[str, Any]) -> ModelInfo:
    """Parse one entry of the listing."""
    title, retires = entry.get("display_name"), read_time(entry.get("retires_at"))
    return ModelInfo(
        id=repair_text(entry["id"]),
        title=repair_text(title) if isinstance(title, str) and title and title != entry["id"] else None,
        capabilities=_capabilities(entry),
        retires=None if retires is None else retires.date(),
    )


def _parse_page(body: bytes) -> dict[str, Any]:
    data = loads_or_none(body)
    if is_object(data) and is_array(data.get("data")) and not has_error(data.get("error")):
        return data
    raise error_from_listing(body)


def _capabilities(entry: dict[str, Any]) -> Capabilities:
    capabilities = object_in(entry, "capabilities")
    thinking, effort = object_in(capabilities, "thinking"), object_in(capabilities, "effort")
    longest = read_count(entry.get("max_tokens")) or None
    modes = _modes(thinking, effort)
    efforts: tuple[Effort, ...] = tuple(level for level in _LISTED_EFFORTS if _supported(effort, level))
    can_budget = modes is not None and "budget" in modes and longest is not None and longest > MIN_BUDGET
    return Capabilities(
        images=_supported(capabilities, "image_input"),
        reasoning=flag_in(thinking, "supported"),
        context_window=read_count(entry.get("max_input_tokens")) or None,
        max_output_tokens=longest,
        reasoning_modes=modes,
        efforts=efforts or None,
        budget=(MIN_BUDGET, longest - 1) if can_budget and longest is not None else None,
        structured_output=_supported(capabilities, "structured_outputs"),
    )


def _modes(thinking: dict[str, Any], effort: dict[str, Any]) -> frozenset[ReasoningMode] | None:
    types = object_in(thinking, "types")
    if not types:
        return None
    modes: set[ReasoningMode] = {mode for mode in _LISTED_MODES if _supported(types, mode)}
    if _supported(types, "enabled"):
        modes.add("budget")
    if flag_in(effort, "supported"):
        modes.add("effort")
    return frozenset(modes)


def _supported(data: dict[str, Any], name: str) -> bool | None:
    return flag_in(object_in(data, name), "supported")


_USUAL_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "max")
_UP_TO_HIGH = ("low", "medium", "high")
_BUDGETS: dict[Effort, int] = dict(zip(EFFORTS, (1024, 2048, 8192, 16_384, 32_768, 1_000_000), strict=True))
# Thinking can be off, but not with the two highest levels.
_OFF_UP_TO_HIGH = frozenset({"claude-opus-5"})


@dataclass(frozen=True, slots=True)
class ThinkingOptions:
    """The `thinking` field and the effort to send, None for neither, and notes about what was changed."""

    thinking: dict[str, Any] | None = None
    effort: str | None = None
    adjustments: tuple[Sentence, ...] = ()

    @property
    def kind(self) -> str:
        return "" if self.thinking is None else self.thinking["type"]


@dataclass(frozen=True, slots=True)
class ThinkingAbility:
    """What the model of one request accepts. `room` is its max_tokens: a budget must be smaller."""

    model: str
    known: Capabilities
    shows: bool
    room: int

    @property
    def modes(self) -> frozenset[ReasoningMode] | None:
        return self.known.reasoning_modes

    @property
    def always_thinks(self) -> bool:
        return self.modes is not None and "adaptive" in self.modes and "disabled" not in self.modes

    @property
    def takes_forced_calls(self) -> bool:
        return not self.always_thinks if self.known.forced_tools is None else self.known.forced_tools

    def takes(self, mode: ReasoningMode) -> bool:
        """Whether this mode can be requested; of an unknown model anything can."""
        return self.modes is None or mode in self.modes

    @property
    def adaptive(self) -> dict[str, Any]:
        """Return the field that lets the model decide; current models show nothing unless it requests that."""
        return {"type": "adaptive", "display": "summarized"} if self.shows else {"type": "adaptive"}

    @property
    def levels(self) -> tuple[Effort, ...]:
        """Return the efforts that can be sent, lowest first; none if the model accepts no effort."""
        known = self.known.efforts or _USUAL_EFFORTS
        return tuple(level for level in EFFORTS if level in known) if self.takes("effort") else ()


def thinking_options(reasoning: Reasoning | None, ability: ThinkingAbility) -> ThinkingOptions:
    """Return what to send for this reasoning."""
    match reasoning:
        case None:
            return _default_options(ability)
        case ReasoningDisabled():
            return _off_options(ability)
        case ReasoningEffort():
            return _effort_options(reasoning.level, ability)
        case ReasoningAdaptive():
            return _adaptive_options(ability)
        case ReasoningBetweenTools():
            return _between_tools_options(ability)
        case ReasoningBudget():
            return _budget_options(reasoning.tokens, ability)


def resolve_conflicts(
    setting: ThinkingOptions, ability: ThinkingAbility, *, forced: bool, effort: str | None
) -> ThinkingOptions:
    """Adapt the setting to a forced call, and to an `effort` that the person put into the body."""
    if forced and setting.kind in ("adaptive", "enabled") and ability.known.reasons_by_default is not True:
        setting = _with_adjustments(replace(setting, thinking=None), _NO_THINKING_WHEN_FORCED)
    is_bound = setting.kind == "between_tools" or (setting.kind == "disabled" and ability.model in _OFF_UP_TO_HIGH)
    if is_bound and effort is not None and effort not in _UP_TO_HIGH:
        setting = _with_adjustments(replace(setting, thinking=None), Sentence(_ON_AT_THIS_LEVEL, {"level": effort}))
    return setting


_LEVEL = "The level of reasoning “{level}” is not taken here; “{sent}” was asked for instead."
_NO_REASONING = Sentence("This model does not reason, so no reasoning was asked for.")
_NOT_OFF = Sentence("This model always reasons; it was asked to reason as little as it can.")
_BETWEEN = Sentence("This model's reasoning cannot be switched off altogether; it may comment between tool calls.")
_ON_AT_THIS_LEVEL = "Reasoning cannot be switched off at the level “{level}”; the model reasons."
_AS_IT_LIKES = Sentence("This model decides by itself how much to reason.")
_AS_A_BUDGET = Sentence("This model takes a budget for reasoning instead of a level.")
_BUDGET_CHANGED = "The budget for reasoning was changed to {tokens} tokens, which is what fits."
_NO_ROOM = Sentence("The answer's limit leaves no room for reasoning, so none was asked for.")
_NO_THINKING_WHEN_FORCED = Sentence("No reasoning was asked for, because the model must call a tool.")


def _with_adjustments(setting: ThinkingOptions, *sentences: Sentence) -> ThinkingOptions:
    return replace(setting, adjustments=(*setting.adjustments, *sentences))


def _default_options(ability: ThinkingAbility) -> ThinkingOptions:
    """Request a summary from a model that thinks anyway; switch nothing else on or off."""
    by_default = ability.known.reasons_by_default
    thinks = ability.always_thinks if by_default is None else by_default
    if ability.shows and thinks and ability.modes is not None and "adaptive" in ability.modes:
        return ThinkingOptions(ability.adaptive)
    return ThinkingOptions()


def _off_options(ability: ThinkingAbility) -> ThinkingOptions:
    if ability.takes("disabled"):
        return ThinkingOptions({"type": "disabled"})
    if ability.takes("between_tools"):
        return ThinkingOptions({"type": "between_tools"}, adjustments=(_BETWEEN,))
    if not ability.always_thinks:
        return ThinkingOptions()
    return ThinkingOptions(ability.adaptive, next(iter(ability.levels), None), (_NOT_OFF,))


def _adaptive_options(ability: ThinkingAbility) -> ThinkingOptions:
    if ability.takes("adaptive"):
        return ThinkingOptions(ability.adaptive)
    if ability.takes("budget"):
        return _with_adjustments(_budget_options(_BUDGETS["medium"], ability), _AS_A_BUDGET)
    return ThinkingOptions(adjustments=(_NO_REASONING,))


def _between_tools_options(ability: ThinkingAbility) -> ThinkingOptions:
    if ability.takes("between_tools"):
        return ThinkingOptions({"type": "between_tools"})
    setting = _adaptive_options(ability)
    return _with_adjustments(setting, _AS_IT_LIKES) if setting.thinking is not None else setting


def _effort_options(level: Effort, ability: ThinkingAbility) -> ThinkingOptions:
    budget = _budget_options(_BUDGETS[level], ability) if ability.takes("budget") else None
    if not ability.levels:
        if ability.takes("adaptive"):
            return ThinkingOptions(ability.adaptive, adjustments=(_AS_IT_LIKES,))
        if budget is None:
            return ThinkingOptions(adjustments=(_NO_REASONING,))
        return budget if budget.thinking is None else replace(budget, adjustments=(_AS_A_BUDGET,))
    sent = nearest_effort(level, ability.levels)
    changed = () if sent == level else (Sentence(_LEVEL, {"level": level, "sent": sent}),)
    if ability.modes is None:
        return ThinkingOptions(None, sent, changed)
    thinking = ability.adaptive if "adaptive" in ability.modes else budget and budget.thinking
    return ThinkingOptions(thinking, sent, changed)


def _budget_options(tokens: int, ability: ThinkingAbility) -> ThinkingOptions:
    if not ability.takes("budget"):
        if not ability.levels:
            return _adaptive_options(ability)
        setting = _effort_options(effort_for_tokens(tokens), ability)
        return replace(setting, adjustments=(budget_adjustment(tokens, setting.effort or ""),))
    least, most = ability.known.budget or (MIN_BUDGET, tokens)
    least = max(least, MIN_BUDGET)
    # Leave some tokens for the answer itself.
    most = min(max(most, least), ability.room - 1 if ability.room <= 2 * MIN_BUDGET else ability.room - MIN_BUDGET)
    if most < least:
        return ThinkingOptions(adjustments=(_NO_ROOM,))
    fitting_tokens = min(max(tokens, least), most)
    changed = () if fitting_tokens == tokens else (Sentence(_BUDGET_CHANGED, {"tokens": str(fitting_tokens)}),)
    return ThinkingOptions({"type": "enabled", "budget_tokens": fitting_tokens}, adjustments=changed)


# The limit is for base64 text, so a file may have three quarters of it.
_LONGEST_BASE64 = 10 * 1024 * 1024
_MAX_EDGE = 8000
_MANY, _MAX_EDGE_OF_MANY = 20, 2000
_SMALL_WINDOW = 200_000
# The size of a JPEG may come after a preview and a colour profile; in characters of base64, a multiple of four.
_HEADER = 4 * 48 * 1024


def picture_limits_for(known: Capabilities) -> ImageLimits:
    """Return what pictures may be sent to a model with these capabilities."""
    # Models up to 4.6 scale down further; only those with thinking by budget can be recognised.
    is_older = known.reasoning_modes is not None and "budget" in known.reasoning_modes
    return ImageLimits(
        max_bytes=_LONGEST_BASE64 // 4 * 3,
        max_edge=_MAX_EDGE,
        max_count=_max_count(known),
        many_images=_MANY,
        many_images_max_edge=_MAX_EDGE_OF_MANY,
        downscale_edge=1568 if is_older else 2576,
    )


def _max_count(known: Capabilities) -> int:
    return 100 if known.context_window is not None and known.context_window <= _SMALL_WINDOW else 600


class PictureEncoder:
    """Encodes the pictures of one request and counts them. `known` is what is known about its model."""

    def __init__(self, model: str, known: Capabilities) -> None:
        self._model = model
        self._known = known
        # The longest edge, None for a picture on the web, and the name of each.
        self._sent: list[tuple[int | None, str]] = []

    def encode(self, image: Image) -> dict[str, Any]:
        """Return a picture's block. Raises ImagesNotSupported, ImageRefused, and WrongUse if it is not loaded."""
        if self._known.images is False:
            raise ImagesNotSupported(Sentence("{model} does not read pictures.", {"model": self._model}))
        source, name = image.source, image.name or ""
        if isinstance(source, UrlSource):
            self._sent.append((None, name))
            return {"type": "image", "source": {"type": "url", "url": source.url}}
        if not isinstance(source, Base64Source):
            raise WrongUse("A stored picture must be loaded before a request is made.")
        if len(source.data) > _LONGEST_BASE64:
            raise ImageRefused.too_large(name, "7.5 MB")
        edge = _longest_edge(source.data)
        if edge is not None and edge > _MAX_EDGE:
            raise ImageRefused.too_large(name, Sentence("{pixels} pixels on one side", {"pixels": str(_MAX_EDGE)}))
        self._sent.append((edge, name))
        return {"type": "image", "source": {"type": "base64", "media_type": source.media_type, "data": source.data}}

    def check_all(self) -> None:
        """Check the limits for all pictures together. Raises CapabilityMissing and ImageRefused."""
        max_count = _max_count(self._known)
        if len(self._sent) > max_count:
            raise CapabilityMissing(
                Sentence("A request can hold at most {count} pictures.", {"count": str(max_count)}),
                "Start a new conversation, or remove some of the pictures.",
            )
        for edge, name in self._sent if len(self._sent) > _MANY else ():
            if edge is not None and edge > _MAX_EDGE_OF_MANY:
                raise ImageRefused.too_large(
                    name,
                    Sentence(
                        "{pixels} pixels beside {count} others",
                        {"pixels": str(_MAX_EDGE_OF_MANY), "count": str(_MANY)},
                    ),
                )


def _longest_edge(data: str) -> int | None:
    size = read_image_size(base64.b64decode(data[:_HEADER])) if len(data) % 4 == 0 else None
    if size is None and len(data) > _HEADER:
        size = read_image_size(decode_base64(data))
    return None if size is None else max(size)
