"""The runtime of Desktop Agent: a library and a headless command. No Qt anywhere in it.

    from desktop_agent import AgentOptions, Client, Hooks, Message, query, tool

Each name is loaded when it is first asked for, so that importing this package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# One name a line would be pages.
# isort: off
# fmt: off
if TYPE_CHECKING:
    from desktop_agent.agent.conduct.questions import Question
    from desktop_agent.faces.backing.stopping import InterruptHandle
    from desktop_agent.faces.backing.streaming import EventStream
    from desktop_agent.faces.blocking import run
    from desktop_agent.faces.chat_loop import ChatLoopHandle, LoopDone, LoopStep, ToolCallsRequested
    from desktop_agent.faces.client import Client
    from desktop_agent.faces.collecting import (
        Response, StructuredResponse, ToolCallAssembler, collect_response, collect_text,
    )
    from desktop_agent.faces.controls import (
        ApprovalControl, Controls, GuardControl, MessageQueue, PolicyControl, QuestionControl, RuleControl,
    )
    from desktop_agent.faces.provider_face import Asked, ChatDone, ChatStream, Provider, ProviderStream
    from desktop_agent.faces.query import BlockStream, query
    from desktop_agent.faces.two_phase import AgentResponse, NeedsToolExecution, StreamingResponse, TwoPhaseAgent
    from desktop_agent.permissions.approvals import AnswerReport, AnswerStatus, Approval, Resolution
    from desktop_agent.tools.decorator import FunctionTool, ToolFacts, ToolOptions, tool
    from desktop_agent.tools.schemas.json_schema import JsonSchema
    from desktop_agent.tools.tool import AnyTool, ArgumentSchema, ModelSchema, RunningCall, Tool
    from desktop_agent.vocabulary.blocks import (
        Block, Citation, Image, Json, JsonObject, Outcome, ResultPart, ServerStep, Summary, Text, Thinking,
        ToolResult, ToolUse, Unknown,
    )
    from desktop_agent.vocabulary.conduct.conduct_events import (
        Authority, ContinuationInjected, DoomLoopSuspected, GuardAborted, ModeChangeRequested, ModeChanged,
        OutsideContentArrived, PolicyApplied, PolicyInstalled, PolicyRemoved, QuestionAnswered, QuestionAsked,
    )
    from desktop_agent.vocabulary.conduct.guards import (
        Guard, GuardAbort, GuardCheck, GuardContinue, GuardMoment, GuardPass, GuardStop, GuardVerdict,
    )
    from desktop_agent.vocabulary.conduct.hooks import (
        HookAllow, HookAsk, HookDeny, HookEdit, HookName, HookVerdict, Hooks, PostToolHook, PostToolUse,
        PreToolHook, PreToolUse, PromptHook, UserPromptSubmit,
    )
    from desktop_agent.vocabulary.conduct.interrupts import Interrupt, StopSession, StopTool, StopTurn
    from desktop_agent.vocabulary.conduct.limits import Limits
    from desktop_agent.vocabulary.conduct.modes import (
        ACCEPT_EDITS_MODE, BUILT_IN_MODES, Breadth, DEFAULT_MODE, Mode, PLAN_MODE,
    )
    from desktop_agent.vocabulary.conduct.prompt_policies import PolicyScope, PolicyTrigger, PromptPolicy
    from desktop_agent.vocabulary.conduct.queue import QueuedMessage, When
    from desktop_agent.vocabulary.conduct.rules import (
        ArgumentsPattern, CommandPattern, CommandSubject, CommandsPattern, HostPattern, HostSubject,
        PathPattern, PathSubject, Pattern, Rule, RuleEffect, RuleScope, Subject,
    )
    from desktop_agent.vocabulary.conduct.specialists import Specialist
    from desktop_agent.vocabulary.engine_events import (
        AnswerAwaited, ApprovalRequested, ApprovalResolved, CheckpointCreated, CheckpointRestored,
        ContextCompacted, CostUpdated, EngineEvent, Envelope, ErrorOccurred, Event, LimitReached,
        RetryScheduled, RunEnd, RunFinished, RunStarted, ToolCallPending, ToolFinished,
        ToolProgress, ToolResultsReceived, ToolStarted, TurnStarted, UserMessageDelivered, UserMessageQueued,
        UserMessageReturned,
    )
    from desktop_agent.vocabulary.errors import (
        AgentError, AuthenticationFailed, CachingNotSupported, CapabilityMissing, Conflict, ConnectionFailed,
        ContextLengthExceeded, ConversationInUse, DatabaseBusy, DatabaseDamaged, DatabaseReplaced, DatabaseTooNew,
        DiskFull, ExtraMissing,
        DuplicateToolResult, ImageRefused, ImagesNotSupported, InvalidRequest, KeyringLocked, KeyringMissing,
        LocksRefused, NotFound, OutputInvalid, OutsideWorkspace, Overloaded, PermissionRefused, ProviderError,
        QuotaExhausted, RateLimited, RemedyAction, SecretsUnavailable, Sentence, ServerFailed,
        SpecialistHasNoTools, StaleToolCall, StorageFailed, TimedOut, TooLarge, ToolCallingNotSupported,
        ToolFailed, ToolInputInvalid, ToolUseFailed, Truncated, TurnMismatch, UnknownToolCall,
        UnreadableAnswer, WrittenElsewhere, WrongUse,
    )
    from desktop_agent.vocabulary.images import (
        Base64Source, ImageDetail, ImageSource, MediaType, StoredSource, UrlSource,
    )
    from desktop_agent.vocabulary.messages import Message, MessageState, Role
    from desktop_agent.vocabulary.options import AgentOptions, Approver, OptionValues, OptionsBuilder
    from desktop_agent.vocabulary.provider_events import (
        AnswerNamed, AnswerStarted, ContentDelta, Done, MessageDelta, Origin, ProviderEvent, RequestAdjusted,
        StopReason, TextClosed, ThinkingBlock, ThinkingDelta, ToolArgsDelta, UsageUpdate,
    )
    from desktop_agent.vocabulary.requests import (
        CachedPrompt, Capabilities, Effort, JsonFormat, ModelInfo, ModelRequest, Price, PromptCaching,
        ProviderConfig, ProviderState, Reasoning, ReasoningAdaptive, ReasoningBetweenTools, ReasoningBudget,
        ReasoningDisabled, ReasoningEffort, ReasoningMode, Timeouts, TokenCount, ToolChoice,
    )
    from desktop_agent.vocabulary.servers.dialects import Dialect
    from desktop_agent.vocabulary.text.lookalikes import Lookalike
    from desktop_agent.vocabulary.tool_calls import (
        AllowAlways, AllowForConversation, AllowOnce, CommandPart, CommandPreview, Decision, Deny, DenyAndStop,
        DiffPreview, Effect, FileChanges, NetworkPreview, OfferedTool, PicturePreview, Preview, Risk,
        TextPreview, ToolClass, ToolSpec, UntrustedSource,
    )
    from desktop_agent.vocabulary.usage import Usage

__all__ = [  # noqa: RUF022
    "ACCEPT_EDITS_MODE", "AgentError", "AgentOptions", "AgentResponse", "AllowAlways", "AllowForConversation",
    "AllowOnce", "AnswerAwaited", "AnswerNamed", "AnswerReport", "AnswerStarted", "AnswerStatus", "AnyTool",
    "Approval", "ApprovalControl", "ApprovalRequested", "ApprovalResolved", "Approver", "ArgumentSchema",
    "ArgumentsPattern", "Asked", "AuthenticationFailed", "Authority", "BUILT_IN_MODES", "Base64Source", "Block",
    "BlockStream", "Breadth", "CachedPrompt", "CachingNotSupported", "Capabilities", "CapabilityMissing",
    "ChatDone", "ChatLoopHandle", "ChatStream", "CheckpointCreated", "CheckpointRestored", "Citation", "Client",
    "CommandPart", "CommandPattern", "CommandPreview", "CommandSubject", "CommandsPattern", "Conflict",
    "ConnectionFailed", "ContentDelta", "ContextCompacted", "ContextLengthExceeded", "ContinuationInjected",
    "Controls", "ConversationInUse", "CostUpdated", "DEFAULT_MODE", "DatabaseBusy", "DatabaseDamaged",
    "DatabaseReplaced", "DatabaseTooNew",
    "Decision", "Deny", "DenyAndStop", "Dialect", "DiffPreview", "DiskFull", "Done", "DoomLoopSuspected",
    "DuplicateToolResult", "Effect", "Effort", "EngineEvent", "Envelope", "ErrorOccurred", "Event", "EventStream",
    "ExtraMissing",
    "FileChanges", "FunctionTool", "Guard", "GuardAbort", "GuardAborted", "GuardCheck", "GuardContinue", "GuardControl",
    "GuardMoment", "GuardPass", "GuardStop", "GuardVerdict", "HookAllow", "HookAsk", "HookDeny", "HookEdit",
    "HookName", "HookVerdict", "Hooks", "HostPattern", "HostSubject", "Image", "ImageDetail", "ImageRefused",
    "ImageSource", "ImagesNotSupported", "Interrupt", "InterruptHandle", "InvalidRequest", "Json", "JsonFormat",
    "JsonObject", "JsonSchema", "KeyringLocked", "KeyringMissing", "LimitReached", "Limits", "LocksRefused",
    "Lookalike", "LoopDone", "LoopStep", "MediaType", "Message", "MessageDelta", "MessageQueue", "MessageState", "Mode",
    "ModeChangeRequested", "ModeChanged", "ModelInfo", "ModelRequest", "ModelSchema", "NeedsToolExecution",
    "NetworkPreview", "NotFound", "OfferedTool", "OptionValues", "OptionsBuilder", "Origin", "Outcome",
    "OutputInvalid", "OutsideContentArrived", "OutsideWorkspace", "Overloaded", "PLAN_MODE", "PathPattern",
    "PathSubject", "Pattern", "PermissionRefused", "PicturePreview", "PolicyApplied", "PolicyControl",
    "PolicyInstalled", "PolicyRemoved", "PolicyScope", "PolicyTrigger", "PostToolHook", "PostToolUse",
    "PreToolHook", "PreToolUse", "Preview", "Price", "PromptCaching", "PromptHook", "PromptPolicy", "Provider",
    "ProviderConfig", "ProviderError", "ProviderEvent", "ProviderState", "ProviderStream",
    "Question", "QuestionAnswered",
    "QuestionAsked", "QuestionControl", "QueuedMessage", "QuotaExhausted", "RateLimited", "Reasoning",
    "ReasoningAdaptive", "ReasoningBetweenTools", "ReasoningBudget", "ReasoningDisabled", "ReasoningEffort",
    "ReasoningMode", "RemedyAction", "RequestAdjusted", "Resolution",
    "Response", "ResultPart", "RetryScheduled", "Risk", "Role",
    "Rule", "RuleControl", "RuleEffect", "RuleScope", "RunEnd", "RunFinished", "RunStarted", "RunningCall",
    "SecretsUnavailable", "Sentence", "ServerFailed", "ServerStep", "Specialist", "SpecialistHasNoTools",
    "StaleToolCall", "StopReason", "StopSession", "StopTool", "StopTurn", "StorageFailed", "StoredSource",
    "StreamingResponse", "StructuredResponse", "Subject", "Summary", "Text", "TextClosed", "TextPreview",
    "Thinking", "ThinkingBlock", "ThinkingDelta", "TimedOut", "Timeouts", "TokenCount", "TooLarge", "Tool",
    "ToolArgsDelta", "ToolCallAssembler", "ToolCallPending", "ToolCallingNotSupported", "ToolCallsRequested",
    "ToolChoice", "ToolClass", "ToolFacts", "ToolFailed",
    "ToolFinished", "ToolInputInvalid", "ToolOptions", "ToolProgress",
    "ToolResult", "ToolResultsReceived", "ToolSpec", "ToolStarted", "ToolUse", "ToolUseFailed", "Truncated",
    "TurnMismatch", "TurnStarted", "TwoPhaseAgent", "Unknown", "UnknownToolCall", "UnreadableAnswer",
    "UntrustedSource", "UrlSource", "Usage", "UsageUpdate", "UserMessageDelivered", "UserMessageQueued",
    "UserMessageReturned", "UserPromptSubmit", "When", "WrittenElsewhere", "WrongUse", "collect_response",
    "collect_text", "query", "run", "tool",
]

_MODULES = {
    "agent.conduct.questions": ("Question",),
    "faces.backing.stopping": ("InterruptHandle",),
    "faces.backing.streaming": ("EventStream",),
    "faces.blocking": ("run",),
    "faces.chat_loop": ("ChatLoopHandle", "LoopDone", "LoopStep", "ToolCallsRequested",),
    "faces.client": ("Client",),
    "faces.collecting": ("Response", "StructuredResponse", "ToolCallAssembler", "collect_response", "collect_text",),
    "faces.controls": (
        "ApprovalControl", "Controls", "GuardControl", "MessageQueue", "PolicyControl", "QuestionControl",
        "RuleControl",
    ),
    "faces.provider_face": ("Asked", "ChatDone", "ChatStream", "Provider", "ProviderStream",),
    "faces.query": ("BlockStream", "query",),
    "faces.two_phase": ("AgentResponse", "NeedsToolExecution", "StreamingResponse", "TwoPhaseAgent",),
    "permissions.approvals": ("AnswerReport", "AnswerStatus", "Approval", "Resolution",),
    "tools.decorator": ("FunctionTool", "ToolFacts", "ToolOptions", "tool",),
    "tools.schemas.json_schema": ("JsonSchema",),
    "tools.tool": ("AnyTool", "ArgumentSchema", "ModelSchema", "RunningCall", "Tool",),
    "vocabulary.blocks": (
        "Block", "Citation", "Image", "Json", "JsonObject", "Outcome", "ResultPart", "ServerStep", "Summary",
        "Text", "Thinking", "ToolResult", "ToolUse", "Unknown",
    ),
    "vocabulary.conduct.conduct_events": (
        "Authority", "ContinuationInjected", "DoomLoopSuspected", "GuardAborted", "ModeChangeRequested",
        "ModeChanged", "OutsideContentArrived", "PolicyApplied", "PolicyInstalled", "PolicyRemoved",
        "QuestionAnswered", "QuestionAsked",
    ),
    "vocabulary.conduct.guards": (
        "Guard", "GuardAbort", "GuardCheck", "GuardContinue", "GuardMoment", "GuardPass", "GuardStop",
        "GuardVerdict",
    ),
    "vocabulary.conduct.hooks": (
        "HookAllow", "HookAsk", "HookDeny", "HookEdit", "HookName", "HookVerdict", "Hooks", "PostToolHook",
        "PostToolUse", "PreToolHook", "PreToolUse", "PromptHook", "UserPromptSubmit",
    ),
    "vocabulary.conduct.interrupts": ("Interrupt", "StopSession", "StopTool", "StopTurn",),
    "vocabulary.conduct.limits": ("Limits",),
    "vocabulary.conduct.modes": (
        "ACCEPT_EDITS_MODE", "BUILT_IN_MODES", "Breadth", "DEFAULT_MODE", "Mode", "PLAN_MODE",
    ),
    "vocabulary.conduct.prompt_policies": ("PolicyScope", "PolicyTrigger", "PromptPolicy",),
    "vocabulary.conduct.queue": ("QueuedMessage", "When",),
    "vocabulary.conduct.rules": (
        "ArgumentsPattern", "CommandPattern", "CommandSubject", "CommandsPattern", "HostPattern", "HostSubject",
        "PathPattern", "PathSubject", "Pattern", "Rule", "RuleEffect", "RuleScope", "Subject",
    ),
    "vocabulary.conduct.specialists": ("Specialist",),
    "vocabulary.engine_events": (
        "AnswerAwaited", "ApprovalRequested", "ApprovalResolved", "CheckpointCreated", "CheckpointRestored",
        "ContextCompacted", "CostUpdated", "EngineEvent", "Envelope", "ErrorOccurred", "Event", "LimitReached",
        "RetryScheduled", "RunEnd", "RunFinished", "RunStarted", "ToolCallPending",
        "ToolFinished", "ToolProgress", "ToolResultsReceived", "ToolStarted", "TurnStarted",
        "UserMessageDelivered", "UserMessageQueued", "UserMessageReturned",
    ),
    "vocabulary.errors": (
        "AgentError", "AuthenticationFailed", "CachingNotSupported", "CapabilityMissing", "Conflict",
        "ConnectionFailed", "ContextLengthExceeded", "ConversationInUse", "DatabaseBusy", "DatabaseDamaged",
        "DatabaseReplaced",
        "DatabaseTooNew", "DiskFull", "ExtraMissing", "DuplicateToolResult", "ImageRefused", "ImagesNotSupported",
        "InvalidRequest", "KeyringLocked", "KeyringMissing", "LocksRefused", "NotFound", "OutputInvalid",
        "OutsideWorkspace", "Overloaded", "PermissionRefused", "ProviderError", "QuotaExhausted",
        "RateLimited", "RemedyAction", "SecretsUnavailable", "Sentence", "ServerFailed",
        "SpecialistHasNoTools", "StaleToolCall", "StorageFailed", "TimedOut", "TooLarge",
        "ToolCallingNotSupported", "ToolFailed", "ToolInputInvalid", "ToolUseFailed", "Truncated",
        "TurnMismatch", "UnknownToolCall", "UnreadableAnswer", "WrittenElsewhere", "WrongUse",
    ),
    "vocabulary.images": ("Base64Source", "ImageDetail", "ImageSource", "MediaType", "StoredSource", "UrlSource",),
    "vocabulary.messages": ("Message", "MessageState", "Role",),
    "vocabulary.options": ("AgentOptions", "Approver", "OptionValues", "OptionsBuilder",),
    "vocabulary.provider_events": (
        "AnswerNamed", "AnswerStarted", "ContentDelta", "Done", "MessageDelta", "Origin", "ProviderEvent",
        "RequestAdjusted", "StopReason", "TextClosed", "ThinkingBlock", "ThinkingDelta", "ToolArgsDelta", "UsageUpdate",
    ),
    "vocabulary.requests": (
        "CachedPrompt", "Capabilities", "Effort", "JsonFormat", "ModelInfo", "ModelRequest", "Price",
        "PromptCaching", "ProviderConfig", "ProviderState", "Reasoning", "ReasoningAdaptive",
        "ReasoningBetweenTools", "ReasoningBudget", "ReasoningDisabled", "ReasoningEffort", "ReasoningMode",
        "Timeouts", "TokenCount", "ToolChoice",
    ),
    "vocabulary.servers.dialects": ("Dialect",),
    "vocabulary.text.lookalikes": ("Lookalike",),
    "vocabulary.tool_calls": (
        "AllowAlways", "AllowForConversation", "AllowOnce", "CommandPart", "CommandPreview", "Decision", "Deny",
        "DenyAndStop", "DiffPreview", "Effect", "FileChanges", "NetworkPreview", "OfferedTool",
        "PicturePreview", "Preview", "Risk", "TextPreview", "ToolClass", "ToolSpec", "UntrustedSource",
    ),
    "vocabulary.usage": ("Usage",),
}
# fmt: on
_MODULE_OF = {name: place for place, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:
    # Checkers would take it as an answer to every name.
    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
