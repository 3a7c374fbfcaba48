"""A request of Anthropic's Messages API, read as version 2026-10-21 reads it for models that bind thinking.

A block of thinking must come back unchanged and behind exactly what it was made from: instructions, tools and messages.
Whoever asks for `drop_block` has it dropped instead.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from desktop_agent.providers.demo import seals
from desktop_agent.providers.demo.question import Json, Question, ReceivedPicture
from desktop_agent.providers.demo.reading.turns import Called, Returned, Turn, asked, checked_model
from desktop_agent.providers.demo.reading.values import (
    an_object,
    body_of,
    checked_names,
    objects,
    picture_at,
    picture_in,
    refused,
    text_of,
)

CURRENT = "2026-10-21"
VERSIONS = (CURRENT, "2023-06-01")
BINDING = "thinking-binding-controls-2026-08-01"
_CORE = {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stream", "stop_sequences"}
_BESIDE = {"metadata", "output_config", "cache_control", "service_tier", "speed", "inference_geo", "container"}
_SAMPLING = {"temperature", "top_p", "top_k"}
_FIELDS = _CORE | _BESIDE | _SAMPLING | {"diagnostics"}
_ROLES = ("user", "assistant", "system")
_MARKS = 4


def read_messages(body: bytes, headers: Mapping[str, str], *, counts: bool = False) -> Question:
    """Read a request body; `counts`: of the question how long it is. Raises Refusal."""
    wanted = body_of(body)
    _check_version(wanted, headers.get("anthropic-version"))
    checked_model(wanted.get("model"))
    _check_fields(wanted, counts=counts)
    messages = _merged(objects(wanted.get("messages")))
    _check_results(messages)
    thinking = an_object(wanted.get("thinking"))
    history = _History(drops=_drops(thinking, headers.get("anthropic-beta", "")))
    history.read(wanted, messages)
    system = text_of(wanted.get("system"), "text")
    turns = [turn for message in messages for turn in _turns(message)]
    return asked(
        [*([Turn("system", system)] if system else []), *turns] if turns else [],
        stream=wanted.get("stream") is True,
        tools=checked_names([tool.get("name") for tool in objects(wanted.get("tools"))]),
        more={
            "reasons": thinking.get("type", "adaptive") == "adaptive",
            "shows_reasoning": thinking.get("display") == "summarized",
            "replayed": history.replayed,
            "prefix": history.prefix,
        },
    )


def _check_version(wanted: Json, version: str | None) -> None:
    if version is None:
        raise refused("anthropic-version: header is required")
    if version not in VERSIONS:
        raise refused(f"anthropic-version: “{version[:40]}” is not a version.")
    for name in sorted(_SAMPLING):
        if name in wanted and version == CURRENT:
            raise refused(f"{name}: not supported in version {CURRENT}.")


def _check_fields(wanted: Json, *, counts: bool) -> None:
    extra = wanted.keys() - (_FIELDS - {"max_tokens", "stream"} if counts else _FIELDS)
    if extra:
        raise refused(f"{min(extra)}: Extra inputs are not permitted")
    most = wanted.get("max_tokens")
    if not counts and (type(most) is not int or most < 1):
        raise refused("max_tokens: Field required")
    kind = an_object(wanted.get("thinking")).get("type", "adaptive")
    if kind not in ("adaptive", "disabled"):
        raise refused(f"thinking.type: “{kind}” is not supported for this model. Use adaptive or disabled.")
    if kind == "disabled" and "display" in an_object(wanted.get("thinking")):
        raise refused("thinking.display: not permitted with thinking disabled.")
    blocks = [block for message in objects(wanted.get("messages")) for block in _blocks(message)]
    marked = [each for each in (*objects(wanted.get("tools")), *objects(wanted.get("system")), *blocks) if _mark(each)]
    if len(marked) + bool(_mark(wanted)) > _MARKS:
        raise refused(f"A maximum of {_MARKS} blocks with cache_control may be provided.")
    lifetimes = [_mark(each).get("ttl", "5m") for each in marked]
    if lifetimes != sorted(lifetimes):
        raise refused("cache_control: a block with ttl '1h' must not come after one with '5m'.")
    if any(_mark(block) for block in blocks if block.get("type") in ("thinking", "redacted_thinking")):
        raise refused("cache_control: not permitted on thinking.")


def _mark(block: Json) -> Json:
    return an_object(block.get("cache_control"))


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)


def _merged(messages: list[Json]) -> list[Json]:
    """Neighbours of one role are one message. Raises Refusal for a role or an end that is not taken."""
    merged: list[Json] = []
    for message in messages:
        if message.get("role") not in _ROLES:
            raise refused(f"messages: Unexpected role “{str(message.get('role'))[:40]}”.")
        for block in _blocks(message):
            if block.get("type") == "text" and not str(block.get("text", "")).strip():
                raise refused("messages: text content blocks must contain non-whitespace text")
        if merged and merged[-1]["role"] == message["role"]:
            merged[-1]["content"] += _blocks(message)
        else:
            merged.append({"role": message["role"], "content": _blocks(message)})
    if merged and merged[-1]["role"] == "assistant":
        raise refused("This model does not support prefill: the conversation must end with a user message.")
    return merged


def _check_results(messages: list[Json]) -> None:
    """Every call is answered at the start of the next message, and nothing else is."""
    waiting: set[str] = set()
    for place, message in enumerate(messages):
        blocks = message["content"]
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if waiting - set(results):
            ids = ", ".join(sorted(waiting - set(results)))
            raise refused(f"messages.{place - 1}: `tool_use` ids without `tool_result` blocks right after: {ids}.")
        if waiting != set(results) or len(results) != len(set(results)):
            raise refused(f"messages.{place}: each `tool_result` must answer one `tool_use` of the message before.")
        if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
            raise refused(f"messages.{place}: `tool_result` blocks must come first.")
        waiting = {str(block.get("id")) for block in blocks if block.get("type") == "tool_use"}


def _drops(thinking: Json, betas: str) -> bool:
    binding = thinking.get("block_binding")
    if binding is None:
        return False
    if BINDING not in [each.strip() for each in betas.split(",")]:
        raise refused("thinking.block_binding: Extra inputs are not permitted")
    return an_object(binding).get("prefix_mismatch_behavior") == "drop_block"


@dataclass(slots=True)
class _History:
    """Reads what stands before the answer, and checks each thought against what stands before it."""

    drops: bool
    replayed: int = 0
    prefix: seals.Prefix = field(default_factory=seals.Prefix)

    def read(self, wanted: Json, messages: list[Json]) -> None:
        system = wanted.get("system")
        self._pass([{"type": "text", "text": system}] if isinstance(system, str) else objects(system))
        self._pass(objects(wanted.get("tools")))
        for place, message in enumerate(messages):
            self._pass(message["role"])
            for at, block in enumerate(message["content"]):
                if block.get("type") in ("thinking", "redacted_thinking"):
                    self._thought(block, f"messages.{place}.content.{at}")
                self._pass(_plain(block))

    def _pass(self, piece: object) -> None:
        self.prefix = self.prefix.then(piece)

    def _thought(self, block: Json, place: str) -> None:
        match seals.broken(block.get("signature"), block.get("thinking"), self.prefix):
            case None:
                self.replayed += 1
            case "content":
                raise refused(f"{place}: `thinking` blocks cannot be modified: Invalid `signature`.")
            case "prefix" if not self.drops:
                raise refused(
                    f"{place}: Invalid `signature` in `thinking` block. The block is bound to a different "
                    "conversation. Remove it, or set `thinking.block_binding`."
                )
            case _:
                pass


def _plain(block: Json) -> Json:
    """A block without the ways of writing that mean the same."""
    if block.get("type") != "tool_result":
        return block
    content = block.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    return {**block, "content": parts, "is_error": block.get("is_error") is True}


def _turns(message: Json) -> Iterator[Turn]:
    blocks: list[Json] = message["content"]
    text = text_of(blocks, "text")
    if message["role"] == "assistant":
        yield Turn("assistant", text, calls=[_call(block) for block in blocks if block.get("type") == "tool_use"])
        return
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if results:
        told = [Returned(str(each.get("tool_use_id")), text_of(each.get("content"), "text")) for each in results]
        yield Turn("results", results=told)
    pictures = [block for block in blocks if block.get("type") == "image"]
    if text or pictures:
        role = "user" if message["role"] == "user" else "system"
        yield Turn(role, text, pictures=[_picture(each) for each in pictures])


def _call(block: Json) -> Called:
    if not isinstance(block.get("input"), dict):
        raise refused("tool_use.input: Input should be a valid dictionary")
    return Called(str(block.get("id")), str(block.get("name")), block["input"])


def _picture(block: Json) -> ReceivedPicture:
    source = an_object(block.get("source"))
    if source.get("type") == "url":
        return picture_at(str(source.get("url", "")))
    picture = picture_in(source.get("data"))
    if picture.format and source.get("media_type") != f"image/{picture.format.lower()}":
        raise refused(f"image.source: labelled {source.get('media_type')}, but it is image/{picture.format.lower()}.")
    return picture
