"""The intended differences of requests from the request types of the vendor whose dialect they speak.

`docs/deviations.md` is this table; a test keeps them equal. `python -m tests.desktop_agent.providers.deviations` writes
the page anew.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.desktop_agent.providers.wire_shapes import Finding

Dialect = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
PAGE = Path(__file__).parents[3] / "docs" / "deviations.md"
INTRODUCTION = """\
# Deviations

Every body that the tests see sent is judged by the request types of the vendors' own SDKs
(`tests/desktop_agent/providers/sdk_types.py`): unknown fields, missing fields and wrong values fail the test. Servers
that speak a vendor's dialect want more, or something else, than the vendor; what is sent for their sake stands here,
and nothing else is let through. Written by `tests/desktop_agent/providers/deviations.py`; a test keeps the two equal.

`[]` stands for any place in a list.

Two names of the library differ from those that its ancestors had, because `Done` is the event that ends a stream: the
last chunk of `Provider.chat` is `ChatDone`, the last step of a chat loop `LoopDone`. Their fields are the ancestors'.
"""


@dataclass(frozen=True)
class Allowance:
    """`path`: [] stands for any place in a list. `values`: only these, where a value differs.

    `beside`: only where the object around the place, or around its parent and so on, has this field with this value.
    `families`: who gets it, as in `dialects.servers`; nobody else may.
    """

    dialect: Dialect
    path: str
    kind: Literal["unknown", "missing", "value"]
    families: tuple[str, ...]
    why: str
    source: str
    values: tuple[Any, ...] = ()
    beside: tuple[str, Any] | None = None


def _chat(
    path: str,
    families: tuple[str, ...],
    why: str,
    source: str,
    kind: Literal["unknown", "value"] = "unknown",
    *values: Any,
) -> Allowance:
    return Allowance("openai-chat", path, kind, families, why, source, values)


ALLOWED: tuple[Allowance, ...] = (
    _chat(
        "messages[].reasoning_content",
        ("deepseek", "llamacpp"),
        "reasoning goes back on answers with calls, also when it was empty; else 400. Others get it once they refuse",
        "api-docs.deepseek.com/guides/thinking_mode; llama.cpp tools/server/README.md",
    ),
    _chat(
        "messages[].reasoning",
        ("ollama", "vllm"),
        "reasoning goes back in the field in which it came",
        "ollama openai/openai.go, Message; vllm chat_completion/serving.py",
    ),
    _chat(
        "messages[].reasoning_details",
        ("openrouter",),
        "reasoning goes back unchanged, merged by index",
        "openrouter.ai/docs/guides/best-practices/reasoning-tokens",
    ),
    _chat(
        "messages[].thinking_blocks",
        ("litellm",),
        "Claude behind the proxy wants its signed thinking back",
        "litellm 1.106.2, types",
    ),
    _chat(
        "messages[].tool_calls[].extra_content",
        ("google-openai", "stranger"),
        "Gemini wants the signature of a call back; a gateway in front of it is a stranger",
        "ai.google.dev/gemini-api/docs/thought-signatures",
    ),
    _chat(
        "messages[].content[].type",
        ("mistral",),
        "thinking goes back as a part of the content, in its place",
        "mistralai 3.7.0, ThinkChunk",
        "value",
        "thinking",
    ),
    _chat(
        "tool_choice",
        ("mistral",),
        "its word for “required”",
        "mistralai 3.7.0, ToolChoiceEnum",
        "value",
        "any",
    ),
    _chat(
        "thinking",
        ("deepseek",),
        "its switch for reasoning",
        "api-docs.deepseek.com/guides/thinking_mode",
    ),
    _chat(
        "reasoning",
        ("openrouter",),
        "its switch for reasoning: effort, tokens, or off",
        "openrouter.ai/docs/guides/best-practices/reasoning-tokens",
    ),
    _chat(
        "cache_control",
        ("openrouter",),
        "has the prompts of Claude cached, which happens on request only",
        "openrouter.ai/docs/guides/best-practices/prompt-caching",
    ),
    _chat(
        "chat_template_kwargs",
        ("llamacpp",),
        "switches reasoning off in the model's template",
        "llama.cpp tools/server/README.md",
    ),
    _chat(
        "top_k",
        ("llamacpp", "lmstudio", "openrouter", "vllm"),
        "a sampling setting that OpenAI does not have",
        "llama.cpp tools/server/README.md; docs.vllm.ai; openrouter.ai/docs/api/reference/parameters",
    ),
    Allowance(
        "openai-responses",
        "input[].content[].type",
        "value",
        ("llamacpp", "lmstudio", "vllm", "stranger"),
        "text of an answer goes back in parts without an id, where OpenAI wants a string: llama.cpp reads only parts",
        "llama.cpp tools/server/server-common.cpp, reading of Responses input",
        ("output_text",),
        ("role", "assistant"),
    ),
    Allowance(
        "gemini",
        "generateContentRequest",
        "unknown",
        ("gemini",),
        "counts instructions and tools too; the SDK sends it to Vertex only, under another name. Its inside is judged",
        "ai.google.dev/api/tokens",
    ),
)


def is_allowed(dialect: Dialect, finding: Finding, body: Any) -> bool:
    """Return whether the table allows this finding."""
    return any(_covers(allowance, dialect, finding, body) for allowance in ALLOWED)


def _covers(allowance: Allowance, dialect: Dialect, finding: Finding, body: Any) -> bool:
    return (
        allowance.dialect == dialect
        and allowance.path == re.sub(r"\[\d+\]", "[]", finding.path)
        and allowance.kind == finding.kind
        and (not allowance.values or finding.found in allowance.values)
        and (allowance.beside is None or allowance.beside in _fields_on_the_way(finding.path, body))
    )


def _fields_on_the_way(path: str, body: Any) -> list[tuple[str, Any]]:
    """Return the string fields of every object on the way to a path."""
    fields: list[tuple[str, Any]] = []
    value = body
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        fields += [pair for pair in value.items() if isinstance(pair[1], str)] if isinstance(value, dict) else []
        value = value[int(index)] if index else value.get(name)
    return fields


def page() -> str:
    """Return the table as Markdown."""
    rows = ["| dialect | field | what differs | sent to | why | source |", "|---|---|---|---|---|---|"]
    for allowance in ALLOWED:
        differs = (
            " or ".join(f'the value "{value}"' for value in allowance.values) or "a field that the vendor does not have"
        )
        to = ", ".join(allowance.families)
        rows.append(
            f"| {allowance.dialect} | `{allowance.path}` | {differs} | {to} | {allowance.why} | {allowance.source} |"
        )
    return INTRODUCTION + "\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
