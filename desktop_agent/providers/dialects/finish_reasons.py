"""The words with which servers say why a model stopped, by what they mean.

A dialect has its vendor's own words; these are the others that servers of any dialect were seen to write. Sources:
OpenAI's, Anthropic's, Google's and Mistral's types; LiteLLM's `_FINISH_REASON_MAP`
(litellm/litellm_core_utils/core_helpers.py: Cohere's "COMPLETE", Hugging Face's "eos_token" and "eos", Zhipu's
"sensitive" and "network_error", Bedrock's "guardrail_intervened", "content_filtered", OpenRouter's "error"); DeepSeek's
"insufficient_system_resource" and "aborted" (api-docs.deepseek.com, Create Chat Completion); vLLM's "abort"
(vllm/v1/engine, FINISH_REASON_STRINGS).
"""

from collections.abc import Mapping
from typing import Any

from desktop_agent.vocabulary.errors import Overloaded, ProviderError, ServerFailed
from desktop_agent.vocabulary.provider_events import StopReason

_WORDS_BY_REASON: Mapping[StopReason, str] = {
    StopReason.END_TURN: "stop eos eos_token end_turn complete",
    StopReason.STOP_SEQUENCE: "stop_sequence",
    StopReason.MAX_TOKENS: "length max_tokens model_length max_output_tokens",
    StopReason.TOOL_USE: "tool_calls tool_use function_call",
    StopReason.CONTENT_FILTER: "content_filter content_filtered guardrail_intervened sensitive safety recitation "
    "blocklist prohibited_content spii",
    StopReason.REFUSAL: "refusal",
    StopReason.PAUSE_TURN: "pause_turn",
    StopReason.CONTEXT_WINDOW_EXCEEDED: "model_context_window_exceeded",
}
_REASONS: Mapping[str, StopReason] = {word: kind for kind, words in _WORDS_BY_REASON.items() for word in words.split()}
_FAILURE_WORDS: Mapping[str, tuple[type[ProviderError], str]] = {
    "error": (ServerFailed, "the server ended the answer with an error"),
    "network_error": (ServerFailed, "the server lost its connection to the model"),
    **dict.fromkeys(("abort", "aborted"), (ServerFailed, "the server broke the answer off")),
    "insufficient_system_resource": (Overloaded, "the server stopped the answer for want of resources"),
}
# The default values of Google's enumerations, which gateways print where nothing was said.
_UNSPECIFIED_WORDS = (
    "unspecified",
    "finish_reason_unspecified",
    "block_reason_unspecified",
    "blocked_reason_unspecified",
)
_EMPTY_WORDS = frozenset({"", "null", "none", "nil", "undefined", *_UNSPECIFIED_WORDS})


def finish_word(value: Any) -> str | None:
    """What a server said about the end, as it wrote it; None where it said nothing, in whatever way."""
    return value if isinstance(value, str) and _normalised(value) not in _EMPTY_WORDS else None


def stop_reason_for(word: str) -> StopReason:
    """What the word means; UNKNOWN for those that nobody knows here."""
    return _REASONS.get(_normalised(word), StopReason.UNKNOWN)


def failure_for(word: str, request_id: str | None) -> ProviderError | None:
    """The error where the word says that the answer failed."""
    kind, said = _FAILURE_WORDS.get(_normalised(word), (None, ""))
    return None if kind is None else kind(said, request_id=request_id)


def _normalised(word: str) -> str:
    return word.strip().lower().replace("-", "_")
