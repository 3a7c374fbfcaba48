"""How reasoning is switched on Chat Completions, family by family and, for OpenAI's own, model by model.

Nothing is sent that a server is known to refuse. Graceful downgrades, all of them:
- no documented switch (LM Studio, vLLM, LiteLLM, strangers): OpenAI's word, which is dropped when it is refused;
  Mistral refuses every unknown field, so nothing is sent;
- a level that a model lacks becomes the nearest one that it has; a budget becomes a level where only levels exist;
- "off" where a model always reasons becomes its lowest level (xAI: nothing is sent);
- OpenAI models that refuse tools beside reasoning get effort "none" with tools (5.4: no effort);
- sampling and stop sequences are left out where a reasoning model refuses them.
What has no downgrade is an error before the network: models that take tools, or everything, on Responses only.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.dialects.servers import Quirks
from desktop_agent.vocabulary.errors import CapabilityMissing, ToolCallingNotSupported
from desktop_agent.vocabulary.requests import (
    ModelRequest,
    Reasoning,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

_LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
_STOP = frozenset({"stop"})


@dataclass(frozen=True, slots=True)
class Switching:
    """Fields to send, and fields of the rest of the body that this model would refuse."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    refused: frozenset[str] = frozenset()
    is_reasoning_model: bool = False


@dataclass(frozen=True, slots=True)
class _OpenAIModel:
    """One line of OpenAI's table. `tools`: what to do about effort when tools are offered."""

    levels: tuple[str, ...]
    can_be_off: bool
    on_by_default: bool
    tools: str = "free"  # free | none (send effort none) | silent (send no effort) | responses (refused here)
    sampling: bool = True  # taken while reasoning is off


_LOW_TO_XHIGH = ("low", "medium", "high", "xhigh")
_OPENAI_MODELS: tuple[tuple[re.Pattern[str], _OpenAIModel], ...] = (
    (
        re.compile(r"gpt-6-astra|gpt-6\.1-sol"),
        _OpenAIModel(_LOW_TO_XHIGH, can_be_off=False, on_by_default=True, tools="responses", sampling=False),
    ),
    (
        re.compile(r"gpt-6|gpt-5\.[5-9]"),
        _OpenAIModel(_LOW_TO_XHIGH, can_be_off=True, on_by_default=True, tools="none"),
    ),
    (re.compile(r"gpt-5\.4"), _OpenAIModel(_LOW_TO_XHIGH, can_be_off=True, on_by_default=False, tools="silent")),
    (re.compile(r"gpt-5\.[23]"), _OpenAIModel(_LOW_TO_XHIGH, can_be_off=True, on_by_default=False)),
    (re.compile(r"gpt-5\.1"), _OpenAIModel(("low", "medium", "high"), can_be_off=True, on_by_default=False)),
    (re.compile(r"gpt-5"), _OpenAIModel(("minimal", "low", "medium", "high"), can_be_off=False, on_by_default=True)),
    (re.compile(r"o\d"), _OpenAIModel(("low", "medium", "high"), can_be_off=False, on_by_default=True)),
)
_RESPONSES_ONLY = re.compile(r"(gpt-\d|o\d)[\w.]*-(?:\w+-)*pro\b")
_CHAT_VARIANT = re.compile(r"gpt-5[\w.]*-chat")


def switching(request: ModelRequest, quirks: Quirks) -> Switching:
    """What to send for this request. Raises CapabilityMissing or ToolCallingNotSupported."""
    wish = request.config.reasoning
    match quirks.switch:
        case "openai":
            return _openai(request)
        case "xai":
            return _xai(request)
        case "openrouter" if wish is not None:
            return Switching({"reasoning": _openrouter(wish)})
        case "deepseek" if wish is not None:
            return Switching(_deepseek(wish))
        case "ollama" if wish is not None:
            return Switching({"reasoning_effort": "none" if isinstance(wish, ReasoningDisabled) else _level(wish)})
        case "llamacpp" if isinstance(wish, ReasoningDisabled):
            return Switching({"chat_template_kwargs": {"enable_thinking": False}})
        case "none" if wish is not None and quirks.family != "mistral":
            # Asked for by the person, so it is sent; a server that refuses the field is asked again without it.
            return Switching({"reasoning_effort": "none" if isinstance(wish, ReasoningDisabled) else _level(wish)})
        case _:
            return Switching()


def _openrouter(wish: Reasoning) -> dict[str, Any]:
    if isinstance(wish, ReasoningDisabled):
        return {"enabled": False}
    if isinstance(wish, ReasoningBudget):
        return {"max_tokens": wish.tokens}
    return {"effort": _nearest(wish.level, _LEVELS[:-1])}


def _deepseek(wish: Reasoning) -> dict[str, Any]:
    if isinstance(wish, ReasoningDisabled):
        return {"thinking": {"type": "disabled"}}
    # The server reads minimal as low and medium as high; only its own three words are sent.
    level = {"minimal": "low", "low": "low", "medium": "high", "high": "high"}.get(_level(wish), "max")
    return {"thinking": {"type": "enabled"}, "reasoning_effort": level}


def _xai(request: ModelRequest) -> Switching:
    wish = request.config.reasoning
    model = re.search(r"grok-(\d+)(?:\.(\d+))?", request.model)
    if model is None or int(model[1]) < 4 or "non-reasoning" in request.model:
        return Switching()
    version = (int(model[1]), int(model[2] or 0))
    if wish is None or isinstance(wish, ReasoningDisabled) or version < (4, 5):
        return Switching(refused=_STOP, is_reasoning_model=True)
    levels = _LOW_TO_XHIGH if version >= (4, 7) else _LOW_TO_XHIGH[:3]
    return Switching({"reasoning_effort": _nearest(_level(wish), levels)}, _STOP, is_reasoning_model=True)


def _openai(request: ModelRequest) -> Switching:
    name = request.model.rpartition("/")[2].lower()
    if _RESPONSES_ONLY.match(name):
        raise CapabilityMissing(
            f"{request.model} is served by OpenAI's Responses interface only.",
            "Choose another model, or the Responses dialect for this server.",
        )
    model = next((facts for pattern, facts in _OPENAI_MODELS if pattern.match(name)), None)
    if model is None or _CHAT_VARIANT.match(name):
        return Switching()
    if request.tools and model.tools == "responses":
        raise ToolCallingNotSupported(
            f"{request.model} calls tools by OpenAI's Responses interface only.",
            "Choose another model, the Responses dialect for this server, or turn tools off.",
        )
    effort = _openai_effort(request.config.reasoning, model, with_tools=bool(request.tools))
    reasons = model.on_by_default if effort is None else effort != "none"
    refused = _STOP if model.sampling and not reasons else _STOP | _SAMPLING
    return Switching({} if effort is None else {"reasoning_effort": effort}, refused, is_reasoning_model=True)


def _openai_effort(wish: Reasoning | None, model: _OpenAIModel, *, with_tools: bool) -> str | None:
    """The word to send, or None for the model's own default."""
    if with_tools and model.tools == "none":
        return "none"
    if wish is None or (with_tools and model.tools == "silent"):
        return None
    if isinstance(wish, ReasoningDisabled):
        return "none" if model.can_be_off else model.levels[0]
    return _nearest(_level(wish), model.levels)


def _level(wish: ReasoningEffort | ReasoningBudget) -> str:
    """A budget as a level, roughly as providers translate between the two."""
    if isinstance(wish, ReasoningEffort):
        return wish.level
    return "low" if wish.tokens <= 2048 else "medium" if wish.tokens <= 8192 else "high"


def _nearest(level: str, levels: tuple[str, ...]) -> str:
    wanted = _LEVELS.index(level)
    return min(levels, key=lambda each: abs(_LEVELS.index(each) - wanted))
