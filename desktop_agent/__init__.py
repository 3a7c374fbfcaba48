"""The runtime of Desktop Agent: a library and a headless command. No Qt anywhere in it.

    from desktop_agent import AgentOptions, Client, Hooks, Message, query, tool

Each name is loaded when it is first used, so that importing this package costs nothing.
"""

# Not from `typing`: each child process imports this package, and few need that module.
TYPE_CHECKING = False

# One name a line would be pages.
# isort: off
# fmt: off
if TYPE_CHECKING:
    from desktop_agent.agent.questions import Question
    from desktop_agent.api.chat_loop import (
        AgentResponse, ChatLoopHandle, LoopDone, LoopStep, NeedsToolExecution, StreamingResponse,
        ToolCallsRequested, TwoPhaseAgent,
    )
    from desktop_agent.api.client import BlockStream, Client, query, run
    from desktop_agent.api.controls import (
        ApprovalControl, Controls, GuardControl, MessageQueue, PolicyControl, QuestionControl, RuleControl,
    )
    from desktop_agent.api.conversation import InterruptHandle
    from desktop_agent.api.history import History
    from desktop_agent.api.provider import Asked, ChatDone, ChatStream, Provider, ProviderStream
    from desktop_agent.conversation.branches import Versions
    from desktop_agent.api.responses import (
        EventStream, Response, StructuredResponse, ToolCallAssembler, collect_response, collect_text,
    )
    from desktop_agent.engine.exchange.conversation_exchange import ExportFormat, ExportResult, ImportResult
    from desktop_agent.engine.exchange.found_histories import FoundProgram
    from desktop_agent.exchange.readers.reader import FoundConversation
    from desktop_agent.exchange.import_report import ExchangeFailed, ImportReport, Omission, Skipped
    from desktop_agent.permissions.approvals import AnswerReport, AnswerStatus, Approval, Resolution
    from desktop_agent.storage.backups.backup import Backup, StoredCounts
    from desktop_agent.storage.compaction import CompactionSizes
    from desktop_agent.storage.records import ConversationRecord, ConversationState
    from desktop_agent.tools.decorator import FunctionTool, ToolFacts, ToolOptions, tool
    from desktop_agent.tools.json_schema import JsonSchema
    from desktop_agent.tools.tool import AnyTool, ArgumentSchema, ModelSchema, RunningCall, Tool
    from desktop_agent.types.blocks import (
        Base64Source, Block, Citation, Image, ImageDetail, ImageSource, Json, JsonObject, MediaType, Outcome,
        ResultPart, ServerStep, StoredSource, Summary, Text, Thinking, ToolResult, ToolUse, Unknown, UrlSource,
    )
    from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree, TreeMessage
    from desktop_agent.types.dialects import Dialect
    from desktop_agent.types.engine_events import (
        AnswerAwaited, ApprovalRequested, ApprovalResolved, Authority, CheckpointCreated, CheckpointRestored,
        ContextCompacted, ContinuationInjected, ConversationTitled, CostUpdated, DoomLoopSuspected, EngineEvent,
        Envelope, ErrorOccurred, Event, GuardAborted, LimitReached, ModeChangeRequested, ModeChanged,
        OutsideContentArrived, PolicyApplied, PolicyInstalled, PolicyRemoved, QuestionAnswered, QuestionAsked,
        RetryScheduled, RunEnd, RunFinished, RunStarted, ToolCallPending, ToolFinished, ToolProgress,
        ToolResultsReceived, ToolStarted, TurnStarted, UserMessageDelivered, UserMessageQueued, UserMessageReturned,
    )
    from desktop_agent.types.errors import (
        AgentError, AuthenticationFailed, CachingNotSupported, CapabilityMissing, Conflict, ConnectionFailed,
        ContextLengthExceeded, ConversationInUse, DatabaseBusy, DatabaseDamaged, DatabaseReplaced, DatabaseTooNew,
        DiskFull, DuplicateToolResult, ExtraMissing, ImageRefused, ImagesNotSupported, InvalidRequest, KeyRequired,
        KeyringLocked, KeyringMissing, LocksRefused, NotFound, OutputInvalid, OutsideWorkspace, Overloaded,
        PermissionRefused, ProviderError, QuotaExhausted, RateLimited, RemedyAction, SecretsUnavailable, Sentence,
        ServerFailed, SpecialistHasNoTools, StaleToolCall, StorageFailed, TimedOut, TooLarge,
        ToolCallingNotSupported, ToolFailed, ToolInputInvalid, ToolUseFailed, Truncated, TurnMismatch,
        UnknownToolCall, UnreadableAnswer, WrittenElsewhere, WrongUse,
    )
    from desktop_agent.types.lookalikes import Lookalike
    from desktop_agent.types.folders import Folder, FolderColour
    from desktop_agent.types.messages import Message, MessageState, Role
    from desktop_agent.types.options import AgentOptions, Approver, OptionValues, OptionsBuilder
    from desktop_agent.types.permissions import (
        ACCEPT_EDITS_MODE, ArgumentsPattern, BUILT_IN_MODES, Breadth, CommandPattern, CommandSubject,
        CommandsPattern, DEFAULT_MODE, HostPattern, HostSubject, Mode, PLAN_MODE, PathPattern, PathSubject, Pattern,
        Rule, RuleEffect, RuleScope, Subject,
    )
    from desktop_agent.types.policies import (
        Guard, GuardAbort, GuardCheck, GuardContinue, GuardMoment, GuardPass, GuardStop, GuardVerdict, HookAllow,
        HookAsk, HookDeny, HookEdit, HookName, HookVerdict, Hooks, Interrupt, Limits, PolicyScope, PolicyTrigger,
        PostToolHook, PostToolUse, PreToolHook, PreToolUse, PromptHook, PromptPolicy, QueuedMessage, Specialist,
        StopSession, StopTool, StopTurn, UserPromptSubmit, When,
    )
    from desktop_agent.types.provider_events import (
        AnswerNamed, AnswerStarted, ContentDelta, Done, MessageDelta, Origin, ProviderEvent, RequestAdjusted,
        StopReason, TextClosed, ThinkingBlock, ThinkingDelta, ToolArgsDelta, Usage, UsageUpdate,
    )
    from desktop_agent.types.providers import (
        CachedPrompt, Capabilities, ConversationParameters, Effort, JsonFormat, ModelInfo, ModelRequest, Price,
        PromptCaching, ProviderConfig, ProviderState, Reasoning, ReasoningAdaptive, ReasoningBetweenTools,
        ReasoningBudget, ReasoningDisabled, ReasoningEffort, ReasoningMode, Timeouts, TokenCount, ToolChoice,
    )
    from desktop_agent.types.search import ConversationHits, SearchHit, SearchPlace, SearchQuery, SearchResults
    from desktop_agent.types.tool_calls import (
        AllowAlways, AllowForConversation, AllowOnce, CommandPart, CommandPreview, Decision, Deny, DenyAndStop,
        DiffPreview, Effect, FileChanges, NetworkPreview, OfferedTool, PicturePreview, Preview, Risk, TextPreview,
        ToolClass, ToolSpec, UntrustedSource,
    )

__all__ = [  # noqa: RUF022
    "ACCEPT_EDITS_MODE", "AgentError", "AgentOptions", "AgentResponse", "AllowAlways", "AllowForConversation",
    "AllowOnce", "AnswerAwaited", "AnswerNamed", "AnswerReport", "AnswerStarted", "AnswerStatus", "AnyTool",
    "Approval", "ApprovalControl", "ApprovalRequested", "ApprovalResolved", "Approver", "ArgumentSchema",
    "ArgumentsPattern", "Asked", "AuthenticationFailed", "Authority", "Backup", "BUILT_IN_MODES", "Base64Source",
    "Block", "BlockStream", "Breadth", "CachedPrompt", "CachingNotSupported", "Capabilities", "CapabilityMissing",
    "ChatDone", "ChatLoopHandle", "ChatStream", "CheckpointCreated", "CheckpointRestored", "Citation", "Client",
    "CommandPart", "CommandPattern", "CommandPreview", "CommandSubject", "CommandsPattern", "CompactionSizes",
    "Conflict", "ConnectionFailed", "ContentDelta", "ContextCompacted", "ContextLengthExceeded",
    "ContinuationInjected", "Controls", "ConversationHits", "ConversationInUse", "ConversationOrigin",
    "ConversationParameters", "ConversationRecord", "ConversationState", "ConversationTitled", "ConversationTree",
    "CostUpdated", "DEFAULT_MODE", "DatabaseBusy", "DatabaseDamaged", "DatabaseReplaced", "DatabaseTooNew",
    "Decision", "Deny", "DenyAndStop", "Dialect", "DiffPreview", "DiskFull", "Done", "DoomLoopSuspected",
    "DuplicateToolResult", "Effect", "Effort", "EngineEvent", "Envelope", "ErrorOccurred", "Event", "EventStream",
    "ExchangeFailed", "ExportFormat", "ExportResult", "ExtraMissing", "FileChanges", "Folder", "FolderColour",
    "FoundConversation", "FoundProgram", "FunctionTool", "Guard", "GuardAbort", "GuardAborted", "GuardCheck",
    "GuardContinue", "GuardControl", "GuardMoment", "GuardPass", "GuardStop", "GuardVerdict", "History",
    "HookAllow", "HookAsk", "HookDeny", "HookEdit", "HookName", "HookVerdict", "Hooks", "HostPattern",
    "HostSubject", "Image", "ImageDetail", "ImageRefused", "ImageSource", "ImagesNotSupported", "ImportReport",
    "ImportResult", "Interrupt", "InterruptHandle", "InvalidRequest", "Json", "JsonFormat", "JsonObject",
    "JsonSchema", "KeyRequired", "KeyringLocked", "KeyringMissing", "LimitReached", "Limits", "LocksRefused",
    "Lookalike", "LoopDone", "LoopStep", "MediaType", "Message", "MessageDelta", "MessageQueue", "MessageState",
    "Mode", "ModeChangeRequested", "ModeChanged", "ModelInfo", "ModelRequest", "ModelSchema", "NeedsToolExecution",
    "NetworkPreview", "NotFound", "OfferedTool", "Omission", "OptionValues", "OptionsBuilder", "Origin", "Outcome",
    "OutputInvalid", "OutsideContentArrived", "OutsideWorkspace", "Overloaded", "PLAN_MODE", "PathPattern",
    "PathSubject", "Pattern", "PermissionRefused", "PicturePreview", "PolicyApplied", "PolicyControl",
    "PolicyInstalled", "PolicyRemoved", "PolicyScope", "PolicyTrigger", "PostToolHook", "PostToolUse",
    "PreToolHook", "PreToolUse", "Preview", "Price", "PromptCaching", "PromptHook", "PromptPolicy", "Provider",
    "ProviderConfig", "ProviderError", "ProviderEvent", "ProviderState", "ProviderStream", "Question",
    "QuestionAnswered", "QuestionAsked", "QuestionControl", "QueuedMessage", "QuotaExhausted", "RateLimited",
    "Reasoning", "ReasoningAdaptive", "ReasoningBetweenTools", "ReasoningBudget", "ReasoningDisabled",
    "ReasoningEffort", "ReasoningMode", "RemedyAction", "RequestAdjusted", "Resolution", "Response", "ResultPart",
    "RetryScheduled", "Risk", "Role", "Rule", "RuleControl", "RuleEffect", "RuleScope", "RunEnd", "RunFinished",
    "RunStarted", "RunningCall", "SearchHit", "SearchPlace", "SearchQuery", "SearchResults", "SecretsUnavailable",
    "Sentence", "ServerFailed", "ServerStep", "Skipped", "Specialist", "SpecialistHasNoTools", "StaleToolCall",
    "StopReason", "StopSession", "StopTool", "StopTurn", "StorageFailed", "StoredCounts", "StoredSource",
    "StreamingResponse", "StructuredResponse", "Subject", "Summary", "Text", "TextClosed", "TextPreview",
    "Thinking", "ThinkingBlock", "ThinkingDelta", "TimedOut", "Timeouts", "TokenCount", "TooLarge", "Tool",
    "ToolArgsDelta", "ToolCallAssembler", "ToolCallPending", "ToolCallingNotSupported", "ToolCallsRequested",
    "ToolChoice", "ToolClass", "ToolFacts", "ToolFailed", "ToolFinished", "ToolInputInvalid", "ToolOptions",
    "ToolProgress", "ToolResult", "ToolResultsReceived", "ToolSpec", "ToolStarted", "ToolUse", "ToolUseFailed",
    "Truncated", "TreeMessage", "TurnMismatch", "TurnStarted", "TwoPhaseAgent", "Unknown", "UnknownToolCall",
    "UnreadableAnswer", "UntrustedSource", "UrlSource", "Usage", "UsageUpdate", "UserMessageDelivered",
    "UserMessageQueued", "UserMessageReturned", "UserPromptSubmit", "Versions", "When", "WrittenElsewhere",
    "WrongUse", "collect_response", "collect_text", "query", "run", "tool",
]

_MODULES = {
    "agent.questions": ("Question",),
    "api.chat_loop": (
        "AgentResponse", "ChatLoopHandle", "LoopDone", "LoopStep", "NeedsToolExecution", "StreamingResponse",
        "ToolCallsRequested", "TwoPhaseAgent",
    ),
    "api.client": ("BlockStream", "Client", "query", "run"),
    "api.controls": (
        "ApprovalControl", "Controls", "GuardControl", "MessageQueue", "PolicyControl", "QuestionControl",
        "RuleControl",
    ),
    "api.conversation": ("InterruptHandle",),
    "api.history": ("History",),
    "api.provider": ("Asked", "ChatDone", "ChatStream", "Provider", "ProviderStream"),
    "api.responses": (
        "EventStream", "Response", "StructuredResponse", "ToolCallAssembler", "collect_response", "collect_text",
    ),
    "conversation.branches": ("Versions",),
    "engine.exchange.conversation_exchange": ("ExportFormat", "ExportResult", "ImportResult"),
    "engine.exchange.found_histories": ("FoundProgram",),
    "exchange.readers.reader": ("FoundConversation",),
    "exchange.import_report": ("ExchangeFailed", "ImportReport", "Omission", "Skipped"),
    "permissions.approvals": ("AnswerReport", "AnswerStatus", "Approval", "Resolution"),
    "storage.backups.backup": ("Backup", "StoredCounts"),
    "storage.compaction": ("CompactionSizes",),
    "storage.records": ("ConversationRecord", "ConversationState"),
    "tools.decorator": ("FunctionTool", "ToolFacts", "ToolOptions", "tool"),
    "tools.json_schema": ("JsonSchema",),
    "tools.tool": ("AnyTool", "ArgumentSchema", "ModelSchema", "RunningCall", "Tool"),
    "types.blocks": (
        "Base64Source", "Block", "Citation", "Image", "ImageDetail", "ImageSource", "Json", "JsonObject",
        "MediaType", "Outcome", "ResultPart", "ServerStep", "StoredSource", "Summary", "Text", "Thinking",
        "ToolResult", "ToolUse", "Unknown", "UrlSource",
    ),
    "types.conversation_tree": ("ConversationOrigin", "ConversationTree", "TreeMessage"),
    "types.dialects": ("Dialect",),
    "types.engine_events": (
        "AnswerAwaited", "ApprovalRequested", "ApprovalResolved", "Authority", "CheckpointCreated",
        "CheckpointRestored", "ContextCompacted", "ContinuationInjected", "ConversationTitled", "CostUpdated",
        "DoomLoopSuspected", "EngineEvent", "Envelope", "ErrorOccurred", "Event", "GuardAborted", "LimitReached",
        "ModeChangeRequested", "ModeChanged", "OutsideContentArrived", "PolicyApplied", "PolicyInstalled",
        "PolicyRemoved", "QuestionAnswered", "QuestionAsked", "RetryScheduled", "RunEnd", "RunFinished",
        "RunStarted", "ToolCallPending", "ToolFinished", "ToolProgress", "ToolResultsReceived", "ToolStarted",
        "TurnStarted", "UserMessageDelivered", "UserMessageQueued", "UserMessageReturned",
    ),
    "types.errors": (
        "AgentError", "AuthenticationFailed", "CachingNotSupported", "CapabilityMissing", "Conflict",
        "ConnectionFailed", "ContextLengthExceeded", "ConversationInUse", "DatabaseBusy", "DatabaseDamaged",
        "DatabaseReplaced", "DatabaseTooNew", "DiskFull", "DuplicateToolResult", "ExtraMissing", "ImageRefused",
        "ImagesNotSupported", "InvalidRequest", "KeyRequired", "KeyringLocked", "KeyringMissing", "LocksRefused",
        "NotFound", "OutputInvalid", "OutsideWorkspace", "Overloaded", "PermissionRefused", "ProviderError",
        "QuotaExhausted", "RateLimited", "RemedyAction", "SecretsUnavailable", "Sentence", "ServerFailed",
        "SpecialistHasNoTools", "StaleToolCall", "StorageFailed", "TimedOut", "TooLarge", "ToolCallingNotSupported",
        "ToolFailed", "ToolInputInvalid", "ToolUseFailed", "Truncated", "TurnMismatch", "UnknownToolCall",
        "UnreadableAnswer", "WrittenElsewhere", "WrongUse",
    ),
    "types.lookalikes": ("Lookalike",),
    "types.folders": ("Folder", "FolderColour"),
    "types.messages": ("Message", "MessageState", "Role"),
    "types.options": ("AgentOptions", "Approver", "OptionValues", "OptionsBuilder"),
    "types.permissions": (
        "ACCEPT_EDITS_MODE", "ArgumentsPattern", "BUILT_IN_MODES", "Breadth", "CommandPattern", "CommandSubject",
        "CommandsPattern", "DEFAULT_MODE", "HostPattern", "HostSubject", "Mode", "PLAN_MODE", "PathPattern",
        "PathSubject", "Pattern", "Rule", "RuleEffect", "RuleScope", "Subject",
    ),
    "types.policies": (
        "Guard", "GuardAbort", "GuardCheck", "GuardContinue", "GuardMoment", "GuardPass", "GuardStop",
        "GuardVerdict", "HookAllow", "HookAsk", "HookDeny", "HookEdit", "HookName", "HookVerdict", "Hooks",
        "Interrupt", "Limits", "PolicyScope", "PolicyTrigger", "PostToolHook", "PostToolUse", "PreToolHook",
        "PreToolUse", "PromptHook", "PromptPolicy", "QueuedMessage", "Specialist", "StopSession", "StopTool",
        "StopTurn", "UserPromptSubmit", "When",
    ),
    "types.provider_events": (
        "AnswerNamed", "AnswerStarted", "ContentDelta", "Done", "MessageDelta", "Origin", "ProviderEvent",
        "RequestAdjusted", "StopReason", "TextClosed", "ThinkingBlock", "ThinkingDelta", "ToolArgsDelta", "Usage",
        "UsageUpdate",
    ),
    "types.providers": (
        "CachedPrompt", "Capabilities", "ConversationParameters", "Effort", "JsonFormat", "ModelInfo",
        "ModelRequest", "Price", "PromptCaching", "ProviderConfig", "ProviderState", "Reasoning",
        "ReasoningAdaptive", "ReasoningBetweenTools", "ReasoningBudget", "ReasoningDisabled", "ReasoningEffort",
        "ReasoningMode", "Timeouts", "TokenCount", "ToolChoice",
    ),
    "types.search": ("ConversationHits", "SearchHit", "SearchPlace", "SearchQuery", "SearchResults"),
    "types.tool_calls": (
        "AllowAlways", "AllowForConversation", "AllowOnce", "CommandPart", "CommandPreview", "Decision", "Deny",
        "DenyAndStop", "DiffPreview", "Effect", "FileChanges", "NetworkPreview", "OfferedTool", "PicturePreview",
        "Preview", "Risk", "TextPreview", "ToolClass", "ToolSpec", "UntrustedSource",
    ),
}
# fmt: on
_MODULE_OF = {name: place for place, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:
    # Checkers would take it as an answer to every name.
    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
