"""ModelRequest to the JSON body of Chat Completions, for the family of servers that will read it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from desktop_agent.providers.dialects.openai_chat.messages import messages_for
from desktop_agent.providers.dialects.openai_chat.reasoning import Switching, switching
from desktop_agent.providers.dialects.servers import Quirks
from desktop_agent.vocabulary.blocks import Image, ToolResult
from desktop_agent.vocabulary.errors import ImagesNotSupported, ToolCallingNotSupported
from desktop_agent.vocabulary.requests import Capabilities, ModelRequest
from desktop_agent.vocabulary.tool_calls import ToolSpec

# Fields that may be dropped, once, when a server answers that it does not take them. A limit on tokens, a stop
# sequence and a forced tool are not among them: they are promises to the person.
OPTIONAL = frozenset(
    {
        "stream_options",
        "prompt_cache_key",
        "reasoning_effort",
        "reasoning",
        "thinking",
        "chat_template_kwargs",
        "temperature",
        "top_p",
        "top_k",
    }
)


@dataclass(frozen=True, slots=True)
class Body:
    """The body and the names of its fields that may be dropped."""

    fields: dict[str, Any]
    droppable: frozenset[str]


def body_for(request: ModelRequest, quirks: Quirks, known: Capabilities, without: Iterable[str] = ()) -> Body:
    """The body to send; `without` names fields that this server refused before (`max_tokens`: by that name).

    Raises ImagesNotSupported and ToolCallingNotSupported where the server's listing says so, CapabilityMissing, and
    WrongUse for what cannot be sent at all. `extra_options` are merged last and win.
    """
    _check(request, known)
    switch = switching(request, quirks)
    left_out = {*switch.refused, *without}
    fields: dict[str, Any] = {
        "model": request.model,
        "messages": messages_for(request, quirks, developer=quirks.family == "openai" and switch.is_reasoning_model),
        "stream": True,
    }
    optional = {**_sampling(request), **_limits(request, quirks, left_out), **_extras(request, quirks, switch)}
    if not quirks.top_k:
        left_out.add("top_k")
    fields |= {name: value for name, value in optional.items() if name not in left_out}
    fields |= _tools(request, quirks)
    own = frozenset(request.config.extra_options)
    # extra_options are the person's own words: they win, and they are never dropped.
    return Body(fields | request.config.extra_options, (OPTIONAL & fields.keys()) - own)


def refused_fields(words: frozenset[str], body: Body) -> frozenset[str]:
    """Which fields of the body an error's words complain about and the next attempt should go without."""
    named = words & body.droppable
    if "reasoning_effort" in body.droppable and words & {"think", "thinking", "reasoning"}:
        named |= {"reasoning_effort"}
    if "max_tokens" in body.fields and "max_completion_tokens" in words:
        named |= {"max_tokens"}
    return frozenset(named)


def _check(request: ModelRequest, known: Capabilities) -> None:
    if request.tools and known.tools is False:
        raise ToolCallingNotSupported(f"{request.model} does not call tools, says its server.")
    if known.images is False and any(_has_image(message.blocks) for message in request.messages):
        raise ImagesNotSupported(f"{request.model} does not read pictures, says its server.")


def _has_image(blocks: Iterable[Any]) -> bool:
    return any(
        isinstance(block, Image) or (isinstance(block, ToolResult) and _has_image(block.content)) for block in blocks
    )


def _sampling(request: ModelRequest) -> dict[str, Any]:
    config = request.config
    values = {"temperature": config.temperature, "top_p": config.top_p, "top_k": config.top_k}
    return {name: value for name, value in values.items() if value is not None}


def _limits(request: ModelRequest, quirks: Quirks, left_out: Iterable[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if request.config.max_tokens is not None:
        name = "max_completion_tokens" if "max_tokens" in left_out else quirks.max_tokens_field
        fields[name] = request.config.max_tokens
    if request.config.stop_sequences:
        fields["stop"] = list(request.config.stop_sequences)
    return fields


def _extras(request: ModelRequest, quirks: Quirks, switch: Switching) -> dict[str, Any]:
    fields = dict(switch.fields)
    if quirks.ask_for_usage:
        fields["stream_options"] = {"include_usage": True}
        if quirks.family == "openai":
            fields["stream_options"]["include_obfuscation"] = False
    if quirks.cache_key and request.conversation_id:
        fields["prompt_cache_key"] = request.conversation_id
    return fields


def _tools(request: ModelRequest, quirks: Quirks) -> dict[str, Any]:
    """Tools and the choice among them. A server that ignores the choice gets no tools when none may be called;
    there `required` and a named tool are wishes that cannot be sent."""
    choice = request.tool_choice
    if not request.tools or (choice.mode == "none" and not quirks.tool_choice):
        return {}
    fields: dict[str, Any] = {"tools": [_tool(spec) for spec in request.tools]}
    if choice.mode != "auto" and quirks.tool_choice:
        words = {"none": "none", "required": quirks.required_word}
        fields["tool_choice"] = words.get(choice.mode) or {"type": "function", "function": {"name": choice.name}}
    return fields


def _tool(spec: ToolSpec) -> dict[str, Any]:
    # Mistral refuses "$schema", and nobody needs it.
    schema = {name: value for name, value in spec.input_schema.items() if name != "$schema"}
    function: dict[str, Any] = {"name": spec.name, "parameters": schema}
    if spec.description:
        function["description"] = spec.description
    return {"type": "function", "function": function}
