"""Anthropic's Messages API: checks requests as version 2026-10-21 does, and answers from a script."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.demo.chat_completions import (
    TimedFrame,
    as_object,
    as_objects,
    bad_request,
    join_text,
    parse_body,
    picture_from_base64,
    picture_from_url,
    require_model,
)
from desktop_agent.providers.demo.http import RequestError
from desktop_agent.providers.demo.scripted_model import (
    FAST_PACE,
    MODEL,
    Break,
    Call,
    Json,
    ReceivedPicture,
    Say,
    Think,
    split_pieces,
)
from tests.fakes import seals
from tests.fakes.seals import Prefix, sign
from tests.fakes.strict_dialect import (
    CallInHistory,
    HistoryTurn,
    ResultInHistory,
    StrictRequest,
    StrictWriter,
    build_request,
    error_body,
    require_tool_names,
    sse_event,
)

CURRENT = "2026-10-21"
VERSIONS = (CURRENT, "2023-06-01")
BINDING = "thinking-binding-controls-2026-08-01"
_CORE = {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream", "stop_sequences"}
_BESIDE = {"metadata", "output_config", "cache_control", "service_tier", "speed", "inference_geo", "container"}
_SAMPLING = {"temperature", "top_p", "top_k"}
_FIELDS = _CORE | _BESIDE | _SAMPLING | {"diagnostics"}
_ROLES = ("user", "assistant", "system")
_MAX_CACHE_MARKS = 4


def read_anthropic_request(body: bytes, headers: Mapping[str, str], *, counts: bool = False) -> StrictRequest:
    """Read a request body; `counts`: of a request to count tokens. Raises RequestError."""
    fields = parse_body(body)
    _check_version(fields, headers.get("anthropic-version"))
    require_model(fields.get("model"))
    _check_fields(fields, counts=counts)
    messages = _merged(as_objects(fields.get("messages")))
    _check_results(messages)
    thinking = as_object(fields.get("thinking"))
    history = _History(drops=_drops_mismatched(thinking, headers.get("anthropic-beta", "")))
    history.read(fields, messages)
    system = join_text(fields.get("system"), "text")
    turns = [turn for message in messages for turn in _turns(message)]
    return build_request(
        [*([HistoryTurn("system", system)] if system else []), *turns] if turns else [],
        stream=fields.get("stream") is True,
        tools=require_tool_names([tool.get("name") for tool in as_objects(fields.get("tools"))]),
        more={
            "reasons": thinking.get("type", "adaptive") == "adaptive",
            "shows_reasoning": thinking.get("display") == "summarized",
            "replayed": history.replayed,
            "prefix": history.prefix,
        },
    )


def _check_version(fields: Json, version: str | None) -> None:
    if version is None:
        raise bad_request("anthropic-version: header is required")
    if version not in VERSIONS:
        raise bad_request(f"anthropic-version: “{version[:40]}” is not a version.")
    for name in sorted(_SAMPLING):
        if name in fields and version == CURRENT:
            raise bad_request(f"{name}: not supported in version {CURRENT}.")


def _check_fields(fields: Json, *, counts: bool) -> None:
    extra = fields.keys() - (_FIELDS - {"max_tokens", "stream"} if counts else _FIELDS)
    if extra:
        raise bad_request(f"{min(extra)}: Extra inputs are not permitted")
    max_tokens = fields.get("max_tokens")
    if not counts and (type(max_tokens) is not int or max_tokens < 1):
        raise bad_request("max_tokens: Field required")
    kind = as_object(fields.get("thinking")).get("type", "adaptive")
    if kind not in ("adaptive", "disabled"):
        raise bad_request(f"thinking.type: “{kind}” is not supported for this model. Use adaptive or disabled.")
    if kind == "disabled" and "display" in as_object(fields.get("thinking")):
        raise bad_request("thinking.display: not permitted with thinking disabled.")
    blocks = [block for message in as_objects(fields.get("messages")) for block in _blocks(message)]
    marked = [
        block
        for block in (*as_objects(fields.get("tools")), *as_objects(fields.get("system")), *blocks)
        if _mark(block)
    ]
    if len(marked) + bool(_mark(fields)) > _MAX_CACHE_MARKS:
        raise bad_request(f"A maximum of {_MAX_CACHE_MARKS} blocks with cache_control may be provided.")
    lifetimes = [_mark(block).get("ttl", "5m") for block in marked]
    if lifetimes != sorted(lifetimes):
        raise bad_request("cache_control: a block with ttl '1h' must not come after one with '5m'.")
    if any(_mark(block) for block in blocks if block.get("type") in ("thinking", "redacted_thinking")):
        raise bad_request("cache_control: not permitted on thinking.")


def _mark(block: Json) -> Json:
    return as_object(block.get("cache_control"))


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content)


def _merged(messages: list[Json]) -> list[Json]:
    """Merge neighbours of one role. Raises RequestError for a role or an end that is not allowed."""
    merged: list[Json] = []
    for message in messages:
        if message.get("role") not in _ROLES:
            raise bad_request(f"messages: Unexpected role “{str(message.get('role'))[:40]}”.")
        for block in _blocks(message):
            if block.get("type") == "text" and not str(block.get("text", "")).strip():
                raise bad_request("messages: text content blocks must contain non-whitespace text")
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += _blocks(message)
        else:
            merged.append({"role": message["role"], "content": _blocks(message)})
    if merged and merged[-1]["role"] == "assistant":
        raise bad_request("This model does not support prefill: the conversation must end with a user message.")
    return merged


def _check_results(messages: list[Json]) -> None:
    """Check that the next message begins with one result for each call, and has no other results."""
    waiting: set[str] = set()
    for index, message in enumerate(messages):
        blocks = message["content"]
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if waiting - set(results):
            ids = ", ".join(sorted(waiting - set(results)))
            raise bad_request(f"messages.{index - 1}: `tool_use` ids without `tool_result` blocks right after: {ids}.")
        if waiting != set(results) or len(results) != len(set(results)):
            raise bad_request(f"messages.{index}: each `tool_result` must answer one `tool_use` of the message before.")
        if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
            raise bad_request(f"messages.{index}: `tool_result` blocks must come first.")
        waiting = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}


def _drops_mismatched(thinking: Json, betas: str) -> bool:
    binding = thinking.get("block_binding")
    if binding is None:
        return False
    if BINDING not in [beta.strip() for beta in betas.split(",")]:
        raise bad_request("thinking.block_binding: Extra inputs are not permitted")
    return as_object(binding).get("prefix_mismatch_behavior") == "drop_block"


@dataclass(slots=True)
class _History:
    """Reads what comes before the answer, and checks the signature of each thought against its content and prefix."""

    drops: bool
    replayed: int = 0
    prefix: seals.Prefix = field(default_factory=seals.Prefix)

    def read(self, fields: Json, messages: list[Json]) -> None:
        system = fields.get("system")
        self._extend_prefix([{"type": "text", "text": system}] if isinstance(system, str) else as_objects(system))
        self._extend_prefix(as_objects(fields.get("tools")))
        for index, message in enumerate(messages):
            self._extend_prefix(message["role"])
            for block_index, block in enumerate(message["content"]):
                if block.get("type") in ("thinking", "redacted_thinking"):
                    self._check_thought(block, f"messages.{index}.content.{block_index}")
                self._extend_prefix(_plain(block))

    def _extend_prefix(self, piece: object) -> None:
        self.prefix = self.prefix.extended_by(piece)

    def _check_thought(self, block: Json, path: str) -> None:
        match seals.find_tampering(block.get("signature"), block.get("thinking"), self.prefix):
            case None:
                self.replayed += 1
            case "content":
                raise bad_request(f"{path}: `thinking` blocks cannot be modified: Invalid `signature`.")
            case "prefix" if not self.drops:
                raise bad_request(
                    f"{path}: Invalid `signature` in `thinking` block. The block is bound to a different "
                    "conversation. Remove it, or set `thinking.block_binding`."
                )
            case _:
                pass


def _plain(block: Json) -> Json:
    """Return a block in one form: a result may be written in several that mean the same."""
    if block.get("type") != "tool_result":
        return block
    content = block.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content)
    return {**block, "content": parts, "is_error": block.get("is_error") is True}


def _turns(message: Json) -> Iterator[HistoryTurn]:
    blocks: list[Json] = message["content"]
    text = join_text(blocks, "text")
    if message["role"] == "assistant":
        yield HistoryTurn(
            "assistant", text, calls=[_call(block) for block in blocks if block.get("type") == "tool_use"]
        )
        return
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if results:
        call_results = [
            ResultInHistory(str(block.get("tool_use_id")), join_text(block.get("content"), "text")) for block in results
        ]
        yield HistoryTurn("results", results=call_results)
    pictures = [block for block in blocks if block.get("type") == "image"]
    if text or pictures:
        role = "user" if message["role"] == "user" else "system"
        yield HistoryTurn(role, text, pictures=[_picture(block) for block in pictures])


def _call(block: Json) -> CallInHistory:
    if not isinstance(block.get("input"), dict):
        raise bad_request("tool_use.input: Input should be a valid dictionary")
    return CallInHistory(str(block.get("id")), str(block.get("name")), block["input"])


def _picture(block: Json) -> ReceivedPicture:
    source = as_object(block.get("source"))
    if source.get("type") == "url":
        return picture_from_url(str(source.get("url", "")))
    picture = picture_from_base64(source.get("data"))
    if picture.format and source.get("media_type") != f"image/{picture.format.lower()}":
        raise bad_request(
            f"image.source: labelled {source.get('media_type')}, but it is image/{picture.format.lower()}."
        )
    return picture


class AnthropicWriter(StrictWriter):
    """Writes answers. Thoughts are shown only if `display` is `summarized`; else their text is empty."""

    dialect = "anthropic"

    def frames(self) -> Iterator[TimedFrame]:
        """Yield everything from message_start to message_stop."""
        yield _event("message_start", message=self._message([], None, 1))
        yield _event("ping")
        for index, (step, block) in enumerate(self._blocks()):
            if isinstance(step, Break):
                yield sse_event(error_body(RequestError(500, step.message), "anthropic"), FAST_PACE, named=True)
                return
            yield _event("content_block_start", index=index, content_block=_empty_block(block))
            yield from self._deltas(step, block, index)
            yield _event("content_block_stop", index=index)
        delta = {"container": None, "stop_reason": self._stop_reason, "stop_sequence": None, "stop_details": None}
        yield _event("message_delta", delta=delta, usage=self._usage(self.written))
        yield _event("message_stop")

    def full_answer(self) -> Json:
        """Return a message."""
        self.require_unbroken()
        return self._message([block for _, block in self._blocks()], self._stop_reason, self.written)

    @property
    def _stop_reason(self) -> str:
        return "tool_use" if self.calls else "end_turn"

    def _blocks(self) -> Iterator[tuple[Think | Say | Call | Break, Json]]:
        prefix = (self.question.prefix or Prefix()).extended_by("assistant")
        for step in self.script:
            block = self._block(step, prefix)
            prefix = prefix.extended_by(block)
            yield step, block

    def _block(self, step: Think | Say | Call | Break, prefix: Prefix) -> Json:
        match step:
            case Think():
                shown = step.text if self.question.shows_reasoning else ""
                return {"type": "thinking", "thinking": shown, "signature": sign(shown, prefix)}
            case Say():
                return {"type": "text", "text": step.text}
            case Call():
                return {"type": "tool_use", "id": f"toolu_{step.id}", "name": step.name, "input": step.arguments}
            case Break():
                return {}

    def _deltas(self, step: Think | Say | Call, block: Json, index: int) -> Iterator[TimedFrame]:
        match step:
            case Think():
                for piece in split_pieces(block["thinking"]):
                    yield _delta(index, FAST_PACE, type="thinking_delta", thinking=piece)
                yield _delta(index, FAST_PACE, type="signature_delta", signature=block["signature"])
            case Say():
                for piece in split_pieces(step.text):
                    yield _delta(index, step.pace, type="text_delta", text=piece)
            case Call():
                for piece in split_pieces(step.arguments_json):
                    yield _delta(index, FAST_PACE, type="input_json_delta", partial_json=piece)

    def _message(self, content: list[Json], stop_reason: str | None, written: int) -> Json:
        return {
            "id": f"msg_{self.id}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": self._usage(written),
        }

    def _usage(self, written: int) -> Json:
        return {
            "input_tokens": self.question.tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": written,
        }


def _empty_block(block: Json) -> Json:
    empty: Json = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, value) for name, value in block.items()}


def _event(kind: str, pause: float = 0.0, **fields: Any) -> TimedFrame:
    return sse_event({"type": kind, **fields}, pause, named=True)


def _delta(index: int, pause: float, **delta: Any) -> TimedFrame:
    return _event("content_block_delta", pause, index=index, delta=delta)
