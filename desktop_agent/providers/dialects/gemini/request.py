"""Build the JSON body of generateContent, and choose how the model should think.

Levels from Gemini 3 on, a budget of tokens in 2.5, never both (ai.google.dev/gemini-api/docs/thinking).
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from desktop_agent.data_files import load_table
from desktop_agent.providers.dialects.gemini.messages import (
    MAX_INLINE_BYTES,
    EncodedHistory,
    Recipient,
    encode_history,
    last_question_index,
    wire_name,
)
from desktop_agent.providers.dialects.request_building import (
    EFFORTS,
    answer_limit,
    check_capabilities,
    effort_for_tokens,
    images_of,
    nearest_effort,
)
from desktop_agent.providers.transport.json_codec import is_object
from desktop_agent.types.blocks import Base64Source, JsonObject
from desktop_agent.types.errors import CapabilityMissing, ImageRefused, Sentence, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import (
    Capabilities,
    Effort,
    ModelRequest,
    ProviderConfig,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)
from desktop_agent.types.tool_calls import ToolSpec

# Every model with levels has these; MINIMAL is refused by those that lack it.
_USUAL_LEVELS: tuple[Effort, ...] = ("low", "medium", "high")
# ai.google.dev/gemini-api/docs/openai, "Thinking": what levels mean in tokens.
_TOKENS: dict[Effort, int] = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}
_DYNAMIC = -1
_MODELS: list[dict[str, Any]] = load_table(__name__, "models.toml")["models"]


@dataclass(frozen=True, slots=True)
class ThinkingAbility:
    """How thinking is set for a model: by level, by budget (least and most tokens), or not at all."""

    way: Literal["level", "budget", "none"] = "none"
    levels: tuple[Effort, ...] = _USUAL_LEVELS
    budget: tuple[int, int] = (0, 24_576)
    can_be_off: bool = False

    @property
    def checks_signatures(self) -> bool:
        """Whether it refuses calls of the current turn without a signature: from Gemini 3 on."""
        return self.way == "level"


@dataclass(frozen=True, slots=True)
class ThinkingOptions:
    """The `thinkingConfig` to send, empty for none, and notes about what was changed."""

    config: dict[str, Any]
    adjustments: tuple[Sentence, ...] = ()


def thinking_ability(model: str, known: Capabilities) -> ThinkingAbility:
    """Return how thinking is set for this model. `model` is its name without `models/`."""
    if known.reasoning is False:
        return ThinkingAbility()
    by_name, modes = _ability_by_name(model), known.reasoning_modes
    if modes is None and known.efforts is None and known.budget is None:
        return by_name
    by_level = bool(known.efforts) or (known.budget is None and "effort" in (modes or ()))
    return ThinkingAbility(
        way="level" if by_level else "budget",
        levels=known.efforts or by_name.levels,
        budget=known.budget or by_name.budget,
        can_be_off=not by_level and (by_name.can_be_off if modes is None else "disabled" in modes),
    )


def _ability_by_name(model: str) -> ThinkingAbility:
    """Return the ability of a model that no catalogue has."""
    row = next((row for row in _MODELS if re.match(row["pattern"], model)), _MODELS[-1])
    least, most = row["budget"]
    return ThinkingAbility(row["way"], budget=(least, most), can_be_off=row["can_be_off"])


def thinking_options(config: ProviderConfig, model: str, ability: ThinkingAbility) -> ThinkingOptions:
    """Return what to send for the requested reasoning."""
    reasoning = config.reasoning
    if ability.way == "none":
        is_requested = not (reasoning is None or isinstance(reasoning, ReasoningDisabled))
        note = Sentence("{model} does not reason, so it was not asked to.", {"model": model})
        return ThinkingOptions({}, (note,) if is_requested else ())
    if isinstance(reasoning, ReasoningBetweenTools):
        note = Sentence("{model} cannot reason between tools only; it decides by itself.", {"model": model})
        setting = ThinkingOptions({}, (note,))
    else:
        choose = _by_level if ability.way == "level" else _by_budget
        setting = choose(reasoning, model, ability)
    if config.show_reasoning and setting.config.get("thinkingBudget") != 0:
        return ThinkingOptions({"includeThoughts": True, **setting.config}, setting.adjustments)
    return setting


_Choice = ReasoningDisabled | ReasoningEffort | ReasoningAdaptive | ReasoningBudget | None


def _by_level(reasoning: _Choice, model: str, ability: ThinkingAbility) -> ThinkingOptions:
    words: str | None = None
    requested = ""
    match reasoning:
        case None | ReasoningAdaptive():
            return ThinkingOptions({})
        case ReasoningDisabled():
            level = min(ability.levels, key=EFFORTS.index)
            words = "{model} cannot stop reasoning; it was asked for its lowest level, {level}."
        case ReasoningBudget():
            level = nearest_effort(effort_for_tokens(reasoning.tokens, low=1024), ability.levels)
            words = "{model} takes no number of tokens to reason with; it was asked for the level {level}."
        case ReasoningEffort():
            level, requested = nearest_effort(reasoning.level, ability.levels), reasoning.level
            words = None if level == requested else "{model} has no reasoning level {asked}; it was asked for {level}."
    values = {"model": model, "asked": requested, "level": level}
    return ThinkingOptions({"thinkingLevel": level.upper()}, () if words is None else (Sentence(words, values),))


def _by_budget(reasoning: _Choice, model: str, ability: ThinkingAbility) -> ThinkingOptions:
    least, most = ability.budget
    words: str | None = None
    requested = ""
    match reasoning:
        case None:
            return ThinkingOptions({})
        case ReasoningAdaptive():
            tokens = _DYNAMIC
        case ReasoningDisabled() if ability.can_be_off:
            tokens = 0
        case ReasoningDisabled():
            tokens = least
            words = "{model} cannot stop reasoning; it was given its smallest limit, {tokens} tokens."
        case ReasoningBudget():
            tokens = min(max(reasoning.tokens, least), most)
            if tokens != reasoning.tokens:
                words = "{model} reasons with {least} to {most} tokens; it was given {tokens}."
        case ReasoningEffort():
            tokens, requested = min(max(_TOKENS.get(reasoning.level, most), least), most), reasoning.level
            words = "{model} has no reasoning levels; for {asked} it was given {tokens} tokens."
    values = {"model": model, "asked": requested, "least": str(least), "most": str(most), "tokens": str(tokens)}
    return ThinkingOptions({"thinkingBudget": tokens}, () if words is None else (Sentence(words, values),))


MAX_STOP_SEQUENCES = 5  # ai.google.dev/api/generate-content, GenerationConfig


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body, notes about what differs from the request, and how many contents come before the last question."""

    fields: JsonObject
    adjustments: tuple[Sentence, ...] = ()
    prefix_size: int = 0


def bare_model_name(model: str) -> str:
    """Return a model's name without `models/`; servers and people write it both ways."""
    return model.removeprefix("models/")


def build_body(request: ModelRequest, account: str, known: Capabilities) -> RequestBody:
    """Build the body. `extra_options` come last and win, inside of generationConfig too.

    Raises CapabilityMissing if the model is known to lack something, ImageRefused, and WrongUse for what the API does
    not take.
    """
    _check(request, known)
    model = bare_model_name(request.model)
    ability = thinking_ability(model, known)
    history = encode_history(request.messages, Recipient(model, account, ability.checks_signatures))
    if not history.items:
        raise WrongUse("There is nothing to answer: the conversation has no words yet.", "Write a message first.")
    thinking = thinking_options(request.config, model, ability)
    limit, cut = answer_limit(request, known)
    generation = _generation(request.config, known, limit)
    if thinking.config:
        generation["thinkingConfig"] = thinking.config
    fields: JsonObject = {"contents": history.items, **_instructions(request), **_tools(request, known)}
    if generation:
        fields["generationConfig"] = generation
    if history.continuation is not None:
        fields["continuationToken"] = history.continuation
    adjustments = (*thinking.adjustments, *cut, *_dropped_options(request, known), *_unsigned_note(history, model))
    return RequestBody(
        _with_extra_options(fields, request.config.extra_options),
        adjustments,
        last_question_index(history.items),
    )


def messages_before_question(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages before the person's last one."""
    prompts = [index for index, message in enumerate(messages) if message.role is Role.USER]
    return messages[: prompts[-1]] if prompts else ()


def _check(request: ModelRequest, known: Capabilities) -> None:
    model = request.model
    check_capabilities(request, known)
    if request.config.response_format is not None and known.structured_output is False:
        sentence = Sentence("{model} cannot be bound to JSON.", {"model": model})
        raise CapabilityMissing(sentence, "Choose another model, or ask in words.")
    if len(request.config.stop_sequences) > MAX_STOP_SEQUENCES:
        sentence = Sentence("Gemini takes at most {count} stop sequences.", {"count": str(MAX_STOP_SEQUENCES)})
        raise WrongUse(sentence, "Remove some of them.")
    images = [image for message in request.messages for image in images_of(message.blocks)]
    if sum(len(image.source.data) for image in images if isinstance(image.source, Base64Source)) > MAX_INLINE_BYTES:
        raise ImageRefused(
            "The pictures of this conversation are together larger than 100 MB.", "Remove some, or make them smaller."
        )


def _instructions(request: ModelRequest) -> JsonObject:
    """Return all instructions. They go above the conversation; there is no other place for them."""
    texts = [message.text for message in request.messages if message.role is Role.SYSTEM]
    text = "\n\n".join(filter(None, [request.config.system_prompt or "", *texts]))
    return {"systemInstruction": {"parts": [{"text": text}]}} if text else {}


def _generation(config: ProviderConfig, known: Capabilities, limit: int | None) -> JsonObject:
    sampling = {"temperature": config.temperature, "topP": config.top_p, "topK": config.top_k}
    values: JsonObject = {} if known.sampling is False else dict(sampling)
    values["maxOutputTokens"] = limit
    values["stopSequences"] = list(config.stop_sequences) or None
    if config.response_format is not None:
        values["responseMimeType"] = "application/json"
        values["responseJsonSchema"] = config.response_format.json_schema
    return {name: value for name, value in values.items() if value is not None}


def _tools(request: ModelRequest, known: Capabilities) -> JsonObject:
    """Return functions with their schemas as JSON Schema (`parameters` is only a subset), and the tool choice."""
    if not request.tools:
        return {}
    fields: JsonObject = {"tools": [{"functionDeclarations": [_function(tool) for tool in request.tools]}]}
    match request.tool_choice.mode:
        case "none":
            choice: JsonObject = {"mode": "NONE"}
        case "required" if known.forced_tools is not False:
            choice = {"mode": "ANY"}
        case "named" if known.forced_tools is not False:
            choice = {"mode": "ANY", "allowedFunctionNames": [wire_name(request.tool_choice.name or "")]}
        case _:
            return fields
    return {**fields, "toolConfig": {"functionCallingConfig": choice}}


def _function(tool: ToolSpec) -> JsonObject:
    schema = {name: value for name, value in tool.input_schema.items() if name != "$schema"}
    described = {"description": tool.description} if tool.description else {}
    return {"name": wire_name(tool.name), **described, "parametersJsonSchema": schema}


def _dropped_options(request: ModelRequest, known: Capabilities) -> list[Sentence]:
    config, model = request.config, {"model": bare_model_name(request.model)}
    notes: list[Sentence] = []
    if known.sampling is False and (config.temperature, config.top_p, config.top_k) != (None, None, None):
        notes.append(Sentence("{model} chooses its own temperature, so none was sent.", model))
    if request.tools and known.forced_tools is False and request.tool_choice.mode in ("required", "named"):
        notes.append(Sentence("{model} cannot be made to call a tool; it decides by itself.", model))
    return notes


def _unsigned_note(written: EncodedHistory, model: str) -> list[Sentence]:
    words = "Another model made calls in this turn, so {model} goes on without the reasoning behind them."
    return [Sentence(words, {"model": model})] if written.unsigned else []


def _with_extra_options(fields: JsonObject, extra: JsonObject) -> JsonObject:
    """Let the person's own options win. A level and a budget together are refused, so one removes the other."""
    generation, own = fields.get("generationConfig"), extra.get("generationConfig")
    if not is_object(own) or not is_object(generation):
        return fields | extra
    thinking, chosen = generation.get("thinkingConfig"), own.get("thinkingConfig")
    if is_object(thinking) and is_object(chosen) and chosen.keys() & {"thinkingLevel", "thinkingBudget"}:
        kept = {name: value for name, value in thinking.items() if name == "includeThoughts"}
        generation = {**generation, "thinkingConfig": kept}
    return fields | extra | {"generationConfig": _merge_objects(generation, own)}


def _merge_objects(defaults: JsonObject, overrides: JsonObject) -> JsonObject:
    merged = dict(defaults)
    for name, value in overrides.items():
        base = merged.get(name)
        merged[name] = _merge_objects(base, value) if is_object(base) and is_object(value) else value
    return merged
