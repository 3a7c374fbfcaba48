"""What the requests of several dialects share: capability checks, reasoning efforts, results by call, prefix digests.

openai_models.toml lists what OpenAI's models accept. A catalogue may know better; a model without a row is unknown, not
incapable.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from desktop_agent.data_files import load_table
from desktop_agent.providers.transport.json_codec import dumps
from desktop_agent.types.blocks import Image, ToolResult
from desktop_agent.types.errors import ImagesNotSupported, Sentence, ToolCallingNotSupported
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.providers import (
    Capabilities,
    Effort,
    ModelRequest,
    ReasoningAdaptive,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)
from desktop_agent.types.tool_calls import ToolSpec

FROM_ANSWER = "[From your answer above:]"
"""Comes before pictures of an answer that go with the next prompt; for the model."""
JSON_ONLY = "Answer with a JSON object and nothing else."
EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class OpenAIModelFacts:
    """What one family of models accepts. No `efforts`: it does not reason.

    `sampling`: it accepts temperature and top_p while reasoning is off; while it is on, none does. `cache_options`: it
    accepts prompt_cache_options, with which a cached prompt may be kept for longer, or not at all. `chat_tools`: what
    Chat Completions accepts with tools: any effort, the word “none”, no word (“silent”), or no tools (“refused”).
    """

    efforts: tuple[Effort, ...] = ()
    can_be_off: bool = True
    reasons_by_default: bool = False
    sampling: bool = True
    cache_options: bool = False
    chat_tools: Literal["any", "none", "silent", "refused"] = "any"

    def reasons_at(self, effort: "EffortWord | None") -> bool:
        """Whether it reasons with this word; None is its own default."""
        return self.reasons_by_default if effort is None else effort != "none"


def _parse_openai_row(row: dict[str, Any]) -> tuple[re.Pattern[str], OpenAIModelFacts]:
    pattern: str = row.pop("pattern")
    return re.compile(pattern), OpenAIModelFacts(tuple(row.pop("efforts", ())), **row)


_OPENAI_ROWS = [_parse_openai_row(row) for row in load_table(__name__, "openai_models.toml")["models"]]


def openai_model_facts(model: str) -> OpenAIModelFacts | None:
    """Return what is known by a model's name, with or without a vendor before a slash; None if unknown."""
    name = model.rpartition("/")[2].lower()
    return next((facts for pattern, facts in _OPENAI_ROWS if pattern.match(name)), None)


def effort_for(reasoning: ReasoningEffort | ReasoningBudget) -> Effort:
    """Return the requested level; a budget becomes a level."""
    return reasoning.level if isinstance(reasoning, ReasoningEffort) else effort_for_tokens(reasoning.tokens)


def effort_for_tokens(tokens: int, low: int = 2048) -> Effort:
    """Return a budget as a level, roughly as providers convert them; `low` is the most for “low”."""
    return "low" if tokens <= low else "medium" if tokens <= 8192 else "high"


def nearest_effort(level: Effort, efforts: tuple[Effort, ...]) -> Effort:
    """Return the level, or the nearest that the model has; the lower one of two equally near."""
    position = EFFORTS.index(level)
    return min(efforts, key=lambda effort: (abs(EFFORTS.index(effort) - position), EFFORTS.index(effort)))


EffortWord = Effort | Literal["none"]
EffortChoice: TypeAlias = tuple[EffortWord | None, tuple[Sentence, ...]]
"""The word to send, None for the model's own, and notes about it."""
BETWEEN_TOOLS_IGNORED = Sentence("Reasoning only between calls cannot be asked for here, so the model decides.")
_GROK = re.compile(r"grok-(\d+)(?:\.(\d+))?(?!.*non-reasoning)")


def choose_effort(request: ModelRequest, efforts: tuple[Effort, ...] | None, *, can_be_off: bool) -> EffortChoice:
    """Return what to send for the requested reasoning. `efforts` None: unknown."""
    reasoning = request.config.reasoning
    if isinstance(reasoning, ReasoningEffort | ReasoningBudget):
        if efforts == ():
            return None, effort_ignored(request)
        requested = effort_for(reasoning)
        level = nearest_effort(requested, efforts) if efforts else requested
        return level, level_adjustments(request, reasoning, level)
    if not isinstance(reasoning, ReasoningDisabled) or efforts == ():
        return None, ()
    if can_be_off or efforts is None:
        return "none", ()
    values = {"model": request.model, "effort": efforts[0]}
    return efforts[0], (Sentence("“{model}” always reasons, so it reasons at “{effort}”.", values),)


def choose_openai_effort(request: ModelRequest, facts: OpenAIModelFacts) -> EffortChoice:
    """Choose the effort for a model of OpenAI's."""
    if isinstance(request.config.reasoning, ReasoningAdaptive) and not facts.reasons_by_default:
        values = {"model": request.model}
        return None, (Sentence("“{model}” does not choose by itself how much to reason, so it does not.", values),)
    return choose_effort(request, facts.efforts, can_be_off=facts.can_be_off)


def choose_xai_effort(request: ModelRequest, *, always_reasons_since: tuple[int, int]) -> EffortChoice:
    """Choose the effort for a Grok: efforts since 4.5. For one that reasons, reasoning cannot be turned off."""
    version = grok_version(request.model)
    if isinstance(request.config.reasoning, ReasoningDisabled):
        values = {"model": request.model}
        note = Sentence("“{model}” always reasons, so it reasons as it does by itself.", values)
        return None, (note,) if version >= always_reasons_since else ()
    efforts: tuple[Effort, ...] = ("low", "medium", "high", "xhigh")
    accepted = efforts if version >= (4, 7) else efforts[:3] if version >= (4, 5) else ()
    return choose_effort(request, accepted, can_be_off=False)


def budget_adjustment(tokens: int, effort: str) -> Sentence:
    """Return the note about sending a level for a budget."""
    values = {"tokens": str(tokens), "effort": effort}
    return Sentence("Reasoning has levels here: {tokens} tokens became “{effort}”.", values)


def level_adjustments(
    request: ModelRequest, reasoning: ReasoningEffort | ReasoningBudget, level: Effort
) -> tuple[Sentence, ...]:
    """Return the notes about sending this level for that request."""
    if isinstance(reasoning, ReasoningBudget):
        return (budget_adjustment(reasoning.tokens, level),)
    if level != reasoning.level:
        values = {"model": request.model, "wanted": reasoning.level, "effort": level}
        return (Sentence("“{model}” has no reasoning level “{wanted}”, so it reasons at “{effort}”.", values),)
    return ()


def effort_ignored(request: ModelRequest) -> tuple[Sentence, ...]:
    """Return the note that a level was requested but cannot be sent."""
    values = {"model": request.model}
    return (Sentence("How hard “{model}” reasons cannot be chosen, so that was left out.", values),)


def grok_version(model: str) -> tuple[int, int]:
    """Return the version of a Grok that reasons; (0, 0) for any other model."""
    match = _GROK.search(model)
    return (0, 0) if match is None else (int(match[1]), int(match[2] or 0))


def check_capabilities(request: ModelRequest, known: Capabilities) -> None:
    """Raise ToolCallingNotSupported and ImagesNotSupported for what the model is known to lack."""
    model = {"model": request.model}
    if request.tools and known.tools is False:
        raise ToolCallingNotSupported(Sentence("“{model}” does not call tools.", model))
    if known.images is False and any(images_of(message.blocks) for message in request.messages):
        raise ImagesNotSupported(Sentence("“{model}” does not read pictures.", model))


def answer_limit(request: ModelRequest, known: Capabilities) -> tuple[int | None, tuple[Sentence, ...]]:
    """Return the most tokens to request, None for the server's own limit, and notes about it.

    Some servers refuse more than the model can produce.
    """
    requested, most = request.config.max_tokens, known.max_output_tokens
    if requested is None or most is None or requested <= most:
        return requested, ()
    values = {"model": request.model, "most": str(most)}
    return most, (Sentence("“{model}” answers with at most {most} tokens, so that is the limit.", values),)


def tool_fields(
    request: ModelRequest,
    known: Capabilities,
    notes: list[Sentence],
    tools: list[dict[str, Any]],
    choices: Mapping[str, Any],
    *,
    takes_choice: bool,
) -> dict[str, Any]:
    """Return `tools` and `tool_choice`; `choices` are the wire's values by mode.

    A server that ignores the choice gets no tools if none may be called; `required` and a named tool cannot be sent to
    it.
    """
    mode = request.tool_choice.mode
    if not tools or (mode == "none" and not takes_choice):
        return {}
    if mode == "auto":
        return {"tools": tools}
    if mode != "none" and (known.forced_tools is False or not takes_choice):
        values = {"model": request.model}
        notes.append(Sentence("“{model}” cannot be made to call a tool, so it decides by itself.", values))
        return {"tools": tools}
    return {"tools": tools, "tool_choice": choices[mode]}


def images_of(blocks: Iterable[Any]) -> list[Image]:
    """Return all pictures in blocks and in results among them."""
    images = [block for block in blocks if isinstance(block, Image)]
    return images + [image for block in blocks if isinstance(block, ToolResult) for image in images_of(block.content)]


def account_digest(base_url: str, model: str) -> str:
    """Return a digest of server and model: reasoning state made elsewhere cannot be read by them."""
    return hashlib.blake2b(dumps([base_url, model]), digest_size=8).hexdigest()


class PrefixDigest:
    """A digest of the pieces of a request, added in the order in which the model reads them.

    Pieces are added as they are sent, without cache marks: those change nothing for the model.
    """

    def __init__(self, account: str) -> None:
        self._hash = hashlib.blake2b(account.encode(), digest_size=16)

    def add(self, piece: Any) -> None:
        """Add the next piece: anything that JSON can carry."""
        self._hash.update(dumps(piece))
        self._hash.update(b"\n")

    @property
    def value(self) -> str:
        return self._hash.hexdigest()


NO_RESULT = "No result: the call was interrupted before it ended."
"""The result that a model gets for a call without a result."""
# What Google's servers accept in place of an unknown signature (thought-signatures, FAQ).
NO_SIGNATURE = "skip_thought_signature_validator"


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def wire_name(name: str) -> str:
    """Return a tool's name in letters that servers accept: unchanged if valid, else with a digest."""
    if _NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NOT_IN_NAMES.sub('_', name)[:55]}_{digest}"


def names_by_wire_name(tools: Iterable[ToolSpec], encode: Callable[[str], str] = wire_name) -> dict[str, str]:
    """Map the names that are sent to those of the tools, where they differ."""
    return {encode(tool.name): tool.name for tool in tools if encode(tool.name) != tool.name}


def results_after(messages: tuple[Message, ...], index: int) -> dict[str, ToolResult]:
    """Return the results by call id, from after this message up to the next answer.

    Repeated ids belong to the message that they follow. The first result counts.
    """
    # No slice: each answer of a long history would copy all that follows.
    return first_results(messages[place] for place in range(index + 1, len(messages)))


def first_results(messages: Iterable[Message]) -> dict[str, ToolResult]:
    """Return the results by call id, up to the next answer; of several for one call the first."""
    results: dict[str, ToolResult] = {}
    for message in messages:
        if message.role is Role.ASSISTANT:
            break
        for block in message.blocks:
            if isinstance(block, ToolResult):
                results.setdefault(block.tool_use_id, block)
    return results
