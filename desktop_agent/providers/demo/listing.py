"""The one model, as each vendor's listing would describe it."""

from typing import Any

from desktop_agent.providers.demo.question import MODEL

CONTEXT_TOKENS = 128_000
OUTPUT_TOKENS = 32_000
_CREATED_AT = "2026-01-01T00:00:00Z"

Json = dict[str, Any]


def openai_listing() -> Json:
    """With the fields by which OpenRouter tells capabilities."""
    model: Json = {
        "id": MODEL,
        "object": "model",
        "created": 0,
        "owned_by": "desktop-agent",
        "name": "Demo",
        "context_length": CONTEXT_TOKENS,
        "architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"]},
        "supported_parameters": ["tools", "tool_choice", "reasoning", "max_tokens", "temperature"],
    }
    return {"object": "list", "data": [model]}


def anthropic_listing() -> Json:
    """One page."""
    model: Json = {
        "id": MODEL,
        "type": "model",
        "display_name": "Demo",
        "created_at": _CREATED_AT,
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": None,
        "max_input_tokens": CONTEXT_TOKENS,
        "max_tokens": OUTPUT_TOKENS,
        "capabilities": _anthropic_capabilities(),
    }
    return {"data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL}


def _anthropic_capabilities() -> Json:
    yes, no = {"supported": True}, {"supported": False}
    kinds = {"adaptive": yes, "between_tools": no, "disabled": yes, "enabled": no}
    levels = {"low": yes, "medium": yes, "high": yes, "xhigh": no, "max": yes}
    return {
        "batch": no,
        "citations": no,
        "code_execution": no,
        "context_management": {**no, "clear_thinking_20251015": no, "clear_tool_uses_20250919": no},
        "effort": {**yes, **levels},
        "image_input": yes,
        "pdf_input": no,
        "server_tools": no,
        "structured_outputs": no,
        "thinking": {**yes, "types": kinds},
    }


def gemini_listing() -> Json:
    """One page."""
    model: Json = {
        "name": f"models/{MODEL}",
        "displayName": "Demo",
        "description": "A scripted model.",
        "version": "1",
        "inputTokenLimit": CONTEXT_TOKENS,
        "outputTokenLimit": OUTPUT_TOKENS,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": True,
    }
    return {"models": [model]}
