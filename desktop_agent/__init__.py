"""The runtime of Desktop Agent: a library and a headless command. No Qt anywhere in it.

    from desktop_agent import AgentOptions, Client, Hooks, Message, query, tool

Each name is loaded when it is first asked for, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from desktop_agent.faces.backing.stopping import InterruptHandle
    from desktop_agent.faces.chat_loop import ChatLoopHandle, LoopStep
    from desktop_agent.faces.client import Client
    from desktop_agent.faces.collecting import Response, ToolCallAssembler, collect_response, collect_text
    from desktop_agent.faces.provider_face import Provider
    from desktop_agent.faces.query import query
    from desktop_agent.faces.two_phase import AgentResponse, NeedsToolExecution, StreamingResponse, TwoPhaseAgent
    from desktop_agent.tools.decorator import tool
    from desktop_agent.tools.tool import RunningCall, Tool
    from desktop_agent.vocabulary.blocks import Image, Json, Text, Thinking, ToolResult, ToolUse
    from desktop_agent.vocabulary.conduct.guards import Guard
    from desktop_agent.vocabulary.conduct.hooks import HookAllow, HookAsk, HookDeny, HookEdit, Hooks
    from desktop_agent.vocabulary.conduct.limits import Limits
    from desktop_agent.vocabulary.conduct.modes import Mode
    from desktop_agent.vocabulary.conduct.prompt_policies import PromptPolicy
    from desktop_agent.vocabulary.conduct.rules import Rule, RuleEffect, RuleScope
    from desktop_agent.vocabulary.conduct.specialists import Specialist
    from desktop_agent.vocabulary.engine_events import RunEnd
    from desktop_agent.vocabulary.errors import AgentError
    from desktop_agent.vocabulary.messages import Message
    from desktop_agent.vocabulary.options import AgentOptions
    from desktop_agent.vocabulary.requests import ProviderConfig
    from desktop_agent.vocabulary.tool_calls import AllowOnce, Deny

__all__ = [
    "AgentError",
    "AgentOptions",
    "AgentResponse",
    "AllowOnce",
    "ChatLoopHandle",
    "Client",
    "Deny",
    "Guard",
    "HookAllow",
    "HookAsk",
    "HookDeny",
    "HookEdit",
    "Hooks",
    "Image",
    "InterruptHandle",
    "Json",
    "Limits",
    "LoopStep",
    "Message",
    "Mode",
    "NeedsToolExecution",
    "PromptPolicy",
    "Provider",
    "ProviderConfig",
    "Response",
    "Rule",
    "RuleEffect",
    "RuleScope",
    "RunEnd",
    "RunningCall",
    "Specialist",
    "StreamingResponse",
    "Text",
    "Thinking",
    "Tool",
    "ToolCallAssembler",
    "ToolResult",
    "ToolUse",
    "TwoPhaseAgent",
    "collect_response",
    "collect_text",
    "query",
    "tool",
]

_PLACES = {
    "faces.backing.stopping": ("InterruptHandle",),
    "faces.chat_loop": ("ChatLoopHandle", "LoopStep"),
    "faces.client": ("Client",),
    "faces.collecting": ("Response", "ToolCallAssembler", "collect_response", "collect_text"),
    "faces.provider_face": ("Provider",),
    "faces.query": ("query",),
    "faces.two_phase": ("AgentResponse", "NeedsToolExecution", "StreamingResponse", "TwoPhaseAgent"),
    "tools.decorator": ("tool",),
    "tools.tool": ("RunningCall", "Tool"),
    "vocabulary.blocks": ("Image", "Json", "Text", "Thinking", "ToolResult", "ToolUse"),
    "vocabulary.conduct.guards": ("Guard",),
    "vocabulary.conduct.hooks": ("HookAllow", "HookAsk", "HookDeny", "HookEdit", "Hooks"),
    "vocabulary.conduct.limits": ("Limits",),
    "vocabulary.conduct.modes": ("Mode",),
    "vocabulary.conduct.prompt_policies": ("PromptPolicy",),
    "vocabulary.conduct.rules": ("Rule", "RuleEffect", "RuleScope"),
    "vocabulary.conduct.specialists": ("Specialist",),
    "vocabulary.engine_events": ("RunEnd",),
    "vocabulary.errors": ("AgentError",),
    "vocabulary.messages": ("Message",),
    "vocabulary.options": ("AgentOptions",),
    "vocabulary.requests": ("ProviderConfig",),
    "vocabulary.tool_calls": ("AllowOnce", "Deny"),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
