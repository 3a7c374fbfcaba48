"""Encode the history for the Messages API: alternating roles, every call answered at once, state where it is accepted.

Thinking goes back byte for byte and in place to the model that made it; if a model binds it, only after exactly what
the model had read. Blank text is never sent: the server refuses it.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from desktop_agent.providers.dialects.anthropic.model_listing import PictureEncoder
from desktop_agent.providers.dialects.anthropic.response_stream import PROVIDER
from desktop_agent.providers.dialects.request_building import NO_RESULT, PrefixDigest, first_results, wire_name
from desktop_agent.providers.transport.json_codec import dumps, is_object, object_in, text_in
from desktop_agent.types.blocks import Block, Image, Json, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import StopReason
from desktop_agent.types.providers import Capabilities, ModelRequest

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SPEAKERS = (Role.USER, Role.ASSISTANT)


@dataclass(slots=True)
class Section:
    """An answer, None at the start, and the messages after it up to the next answer.

    `is_own`: this model on this server gave it. `is_open`: it belongs to the current turn.
    """

    answer: Message | None = None
    is_own: bool = False
    is_open: bool = True
    after: list[Message] = field(default_factory=list[Message])

    @property
    def results(self) -> dict[str, ToolResult]:
        return first_results(self.after)

    @property
    def first_instructions(self) -> list[Message]:
        """The instructions at the start of the conversation, before its first prompt."""
        after = self.after if self.answer is None else []
        return list(takewhile(lambda message: message.role is Role.SYSTEM, after))

    @property
    def is_paused(self) -> bool:
        """Whether the server expects this answer back unchanged, to continue it."""
        answer = self.answer
        is_pause = answer is not None and answer.stop_reason is StopReason.PAUSE_TURN
        return self.is_own and is_pause and self.is_whole

    @property
    def is_whole(self) -> bool:
        return self.answer is not None and self.answer.state is MessageState.COMPLETE

    @property
    def starts_turn(self) -> bool:
        """Whether there is a prompt here that is no comment on results."""
        has_prompt = any(message.role is Role.USER for message in self.after)
        return has_prompt and (self.answer is None or not self.answer.tool_uses)


def drop_refused_turns(messages: Sequence[Message]) -> tuple[list[Message], bool]:
    """Leave out answers that this provider refused to finish, each with its turn; return also whether there were any.

    They would be refused again. A turn that is being sent again, or that got another answer, stays; then only the
    refusal is dropped. Instructions stay.
    """
    kept: list[Message] = []
    has_dropped = False
    for index, message in enumerate(messages):
        if not _is_refused(message):
            kept.append(message)
        elif next((later.role for later in messages[index + 1 :] if later.role in _SPEAKERS), None) is Role.USER:
            has_dropped = True
            start = _start_of_turn(kept)
            kept[start:] = [later for later in kept[start:] if later.role is Role.SYSTEM]
    return kept, has_dropped


def _is_refused(message: Message) -> bool:
    is_ours = message.origin is not None and message.origin.provider == PROVIDER
    return message.role is Role.ASSISTANT and message.stop_reason is StopReason.REFUSAL and is_ours


def _start_of_turn(messages: Sequence[Message]) -> int:
    """Return where the last turn begins: at a prompt, or the first of several, that is no comment on results."""
    start = 0
    answer: Message | None = None
    is_new = True
    for index, message in enumerate(messages):
        if message.role is Role.ASSISTANT:
            answer, is_new = message, True
        elif message.role is Role.USER and is_new and (answer is None or not answer.tool_uses):
            start, is_new = index, False
    return start


def split_sections(messages: Iterable[Message], account: str, model: str) -> list[Section]:
    """Split the history at its answers; those that would be empty on the wire are left out."""
    sections = [Section()]
    for message in messages:
        is_own = message.role is Role.ASSISTANT and _is_own(message, account, model)
        if message.role is not Role.ASSISTANT:
            sections[-1].after.append(message)
        elif _has_content(message, is_own=is_own):
            sections.append(Section(message, is_own))
    is_open = True
    for section in reversed(sections):
        # A prompt ends the turn of the answer before it.
        is_open = is_open and not section.starts_turn
        section.is_open = is_open
    return sections


def _is_own(message: Message, account: str, model: str) -> bool:
    """Whether this model on this server wrote it: only there can opaque state be read."""
    if message.origin is not None:
        return message.origin.provider == PROVIDER and message.origin.account == account
    return message.model in (None, model)


def _has_content(message: Message, *, is_own: bool) -> bool:
    """Whether more than thinking remains of an answer: thinking alone, or at the end, is not accepted."""
    for block in message.blocks:
        if isinstance(block, ToolUse) or (isinstance(block, Text) and block.text.strip()):
            return True
        if isinstance(block, (ServerStep, Unknown)) and is_own and block.provider == PROVIDER and is_object(block.raw):
            return True
    return False


class ServerSteps:
    """Which steps of the servers can go back: a use without its result, or the reverse, is refused.

    An unfinished one goes back only while its turn is open.
    """

    def __init__(self, sections: Iterable[Section]) -> None:
        self._answered = {raw["tool_use_id"] for raw in _raw_steps(sections) if isinstance(raw.get("tool_use_id"), str)}
        self._used: set[str] = set()

    def accepts(self, raw: dict[str, Any], *, is_open: bool) -> bool:
        """Whether this step goes back. Call it in the order of the steps."""
        kind, step_id = text_in(raw, "type"), raw.get("id")
        if kind.endswith("tool_use") and isinstance(step_id, str):
            if step_id not in self._answered and not is_open:
                return False
            self._used.add(step_id)
        return not kind.endswith("_tool_result") or raw.get("tool_use_id") in self._used

    def has(self, step_id: Any) -> bool:
        """Whether the use with this id went back."""
        return step_id in self._used


def _raw_steps(sections: Iterable[Section]) -> Iterator[dict[str, Any]]:
    for section in sections:
        for block in section.answer.blocks if section.answer is not None and section.is_own else ():
            if isinstance(block, ServerStep) and block.provider == PROVIDER and is_object(block.raw):
                yield block.raw


class CallIds:
    """Ids for the wire: unchanged if they are valid and new, else derived, the same in every request."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, call: ToolUse) -> str:
        """Return the id of the next call."""
        times = self._used.get(call.id, 0)
        self._used[call.id] = times + 1
        if not times and _NAME.fullmatch(call.id):
            return call.id
        seed = f"{call.id}\n{times}".encode("utf-8", "surrogatepass")
        return "toolu_" + hashlib.sha256(seed).hexdigest()[:24]


CONTINUE_PROMPT = "Continue."
BEGIN_PROMPT = "Begin."
_ASKED_TO_CONTINUE = Sentence("This model does not go on from an answer of its own; it was asked in words to continue.")
_REFUSED_TURN_LEFT_OUT = Sentence(
    "A question that this provider refused to answer was left out, and so was the refusal."
)
_THINKING_TYPES = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class EncodedHistory:
    """The history to send, without cache marks.

    `carries_older`: it contains thinking of earlier turns. `is_bare`: the current turn called a tool without thinking
    first, so that thinking by budget cannot be switched on before it is over. `container`: where code of the current
    turn runs on the provider's servers.
    """

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    adjustments: list[Sentence] = field(default_factory=list[Sentence])
    carries_older: bool = False
    is_bare: bool = False
    container: dict[str, Any] = field(default_factory=dict[str, Any])


class HistoryEncoder:
    """Encodes the history of one request, once.

    `older`: whether thinking of earlier turns goes back; `signed`: whether the server signs all of it. Other servers
    get unsigned thinking back too, except of an answer that was cut: its signature may have been cut off.
    """

    def __init__(
        self, request: ModelRequest, known: Capabilities, account: str, *, older: bool = True, signed: bool = True
    ) -> None:
        modes = known.reasoning_modes
        is_unsure = known.binds_prefix is None and (modes is None or "adaptive" in modes)
        self._binds = known.binds_prefix or is_unsure
        self._late_system = known.late_system is True
        self._older = older
        self._signed = signed
        chosen, left_out = drop_refused_turns(request.messages)
        self._sections = split_sections(chosen, account, request.model)
        self._steps = ServerSteps(self._sections)
        self._ids = CallIds()
        self._pictures = PictureEncoder(request.model, known)
        self._out = EncodedHistory(adjustments=[_REFUSED_TURN_LEFT_OUT] if left_out else [])
        self._digest = PrefixDigest(account)
        self._is_in_loop = False
        self._pending: list[dict[str, Any]] = []  # of the last answer, not final yet
        self._instructions = self._collect_instructions(request)

    @property
    def system(self) -> str:
        return "\n\n".join(self._instructions)

    def encode(self, digest: PrefixDigest) -> EncodedHistory:
        """Encode everything. `digest` has what comes before the messages, and gets them too.

        Raises ImagesNotSupported, ImageRefused, CapabilityMissing and WrongUse.
        """
        self._digest = digest
        before = Section()
        for section in self._sections:
            if section.answer is not None:
                self._answer(section, section.answer, before)
                before = section
            self._results(section)
            self._prompts(section)
        self._finish(before)
        self._pictures.check_all()
        return self._out

    def _collect_instructions(self, request: ModelRequest) -> list[str]:
        """Return those for the top: of the configuration, before the first prompt, and all if none may come later."""
        texts = [request.config.system_prompt or ""]
        for section in self._sections:
            early = section.first_instructions if self._late_system else section.after
            texts += [message.text for message in early if message.role is Role.SYSTEM]
        return [text for text in texts if text.strip()]

    @property
    def _last_role(self) -> str:
        return self._out.messages[-1]["role"] if self._out.messages else ""

    def _answer(self, section: Section, answer: Message, before: Section) -> None:
        """Write an answer after its prompt, in the form in which its own request ended."""
        if not self._out.messages:
            self._user([_text(BEGIN_PROMPT)])
        elif self._last_role == "assistant":
            self._finalise_answer(is_whole=not before.is_paused)
            if self._last_role == "assistant" and not before.is_paused:
                self._user([_text(CONTINUE_PROMPT)])
        origin = answer.origin
        can_think = not self._binds or (origin is not None and origin.prefix == self._digest.value)
        blocks = self._blocks(section, answer, can_think=can_think)
        if section.is_open:
            self._note_turn(answer, blocks)
        if blocks and self._last_role == "assistant":
            self._out.messages[-1]["content"] += blocks
        elif blocks:
            self._out.messages.append({"role": "assistant", "content": blocks})
        self._pending = list(blocks)

    def _note_turn(self, answer: Message, blocks: list[dict[str, Any]]) -> None:
        """Note what binds the current turn: whether its first answer thinks, and where its last runs code."""
        if not self._is_in_loop:
            self._is_in_loop = True
            self._out.is_bare = bool(answer.tool_uses) and blocks[0]["type"] not in _THINKING_TYPES
        container = object_in(answer.stop_details, "container")
        if container:
            self._out.container = container

    def _blocks(self, section: Section, answer: Message, *, can_think: bool) -> list[dict[str, Any]]:
        """Return the blocks of one answer. After a changed block, bound thinking would be refused."""
        blocks: list[dict[str, Any]] = []
        for block in answer.blocks:
            encoded = self._block(block, section, can_think=can_think)
            if encoded is not None:
                blocks.append(encoded)
            is_lost = encoded is None and isinstance(block, (ServerStep, Unknown))
            if self._binds and (is_lost or (isinstance(block, ToolUse) and block.malformed is not None)):
                can_think = False
        return blocks

    def _block(self, block: Block, section: Section, *, can_think: bool) -> dict[str, Any] | None:
        is_ours = section.is_own and getattr(block, "provider", "") == PROVIDER
        match block:
            case Text() if block.text.strip():
                citations = block.metadata.get("wire_citations") if is_ours else None
                return _text(block.text) | ({"citations": citations} if citations else {})
            case ToolUse():
                return self._call(block, is_ours=is_ours)
            case Thinking() if is_ours and can_think and (self._older or section.is_open):
                written = _thinking_block(block, signed=self._signed or not section.is_whole)
                self._out.carries_older |= written is not None and not section.is_open
                return written
            case ServerStep() | Unknown() if is_ours and is_object(block.raw):
                is_accepted = self._steps.accepts(block.raw, is_open=section.is_open and section.is_whole)
                return block.raw if is_accepted else None
            case _:
                return None

    def _call(self, call: ToolUse, *, is_ours: bool) -> dict[str, Any]:
        arguments = call.input if call.malformed is None else {"malformed_arguments": call.malformed}
        extras = dict(call.metadata) if is_ours else {}
        caller = object_in(extras, "caller")
        if "tool_id" in caller and not self._steps.has(caller["tool_id"]):
            del extras["caller"]
        return {
            **extras,
            "type": "tool_use",
            "id": self._ids.of(call),
            "name": wire_name(call.name),
            "input": arguments,
        }

    def _results(self, section: Section) -> None:
        """Write one result for every call of the answer, in call order, before anything else."""
        if section.answer is None or not section.answer.tool_uses:
            return
        calls = [block for block in self._pending if block["type"] == "tool_use"]
        results = section.results
        self._user(
            [
                self._result(written["id"], results.get(call.id))
                for written, call in zip(calls, section.answer.tool_uses, strict=True)
            ]
        )

    def _result(self, wire_id: str, result: ToolResult | None) -> dict[str, Any]:
        encoded: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id}
        if result is None:
            return encoded | {"content": [_text(NO_RESULT)], "is_error": True}
        content = [self._part(part) for part in result.content if not _is_blank(part)]
        if result.is_error:
            # An error without content is refused.
            content = content or [_text(f"The call did not succeed: {result.outcome.value}.")]
            encoded["is_error"] = True
        return encoded | ({"content": content} if content else {})

    def _prompts(self, section: Section) -> None:
        """Write prompts, then later instructions: they go after a prompt, before the answer."""
        blocks = [block for message in section.after if message.role is not Role.SYSTEM for block in message.blocks]
        self._user([self._part(part) for part in blocks if isinstance(part, (Text, Image)) and not _is_blank(part)])
        if not self._late_system:
            return
        late = section.after[len(section.first_instructions) :]
        texts = [message.text for message in late if message.role is Role.SYSTEM and message.text.strip()]
        if texts:
            self._finalise_answer(is_whole=True)
            if self._last_role != "user":
                self._user([_text(CONTINUE_PROMPT if self._out.messages else BEGIN_PROMPT)])
            self._append("system", [_text("\n\n".join(texts))])

    def _part(self, part: Text | Json | Image) -> dict[str, Any]:
        if isinstance(part, Image):
            return self._pictures.encode(part)
        return _text(part.text if isinstance(part, Text) else dumps(part.value).decode())

    def _user(self, blocks: list[dict[str, Any]]) -> None:
        if not blocks:
            return
        self._finalise_answer(is_whole=True)
        # If the answer after instructions is empty, they follow the next prompt instead of separating two.
        late = [self._out.messages.pop()] if self._last_role == "system" else []
        self._append("user", blocks)
        self._out.messages += late

    def _append(self, role: str, blocks: list[dict[str, Any]]) -> None:
        for block in blocks:
            self._digest.add([role, block])
        if self._last_role == role:
            self._out.messages[-1]["content"] += blocks
        else:
            self._out.messages.append({"role": role, "content": blocks})

    def _finalise_answer(self, *, is_whole: bool) -> None:
        """Finish the last answer. A whole one cannot end in thinking: nothing followed it, so nothing needs it."""
        if is_whole and self._last_role == "assistant":
            content = self._out.messages[-1]["content"]
            while content and content[-1]["type"] in _THINKING_TYPES:
                content.pop()
                if self._pending:
                    self._pending.pop()
            if not content:
                self._out.messages.pop()
        for block in self._pending:
            self._digest.add(["assistant", block])
        self._pending = []

    def _finish(self, last: Section) -> None:
        """End with a prompt, unless the server itself paused: answers cannot be prefilled."""
        self._finalise_answer(is_whole=not last.is_paused)
        if not self._out.messages:
            self._user([_text(BEGIN_PROMPT)])
        elif self._last_role == "assistant" and not last.is_paused:
            self._user([_text(CONTINUE_PROMPT)])
            self._out.adjustments.append(_ASKED_TO_CONTINUE)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_blank(part: Any) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _thinking_block(block: Thinking, *, signed: bool) -> dict[str, Any] | None:
    """Return a thinking block as it came; None for one without the signature that it must have."""
    kind, state = block.metadata.get("type"), block.metadata
    if kind == "redacted_thinking" and state.get("data"):
        return {"type": kind, "data": state["data"]}
    signature = state.get("signature") or ""
    if kind == "thinking" and (signature or (block.text and not signed)):
        return {"type": kind, "thinking": block.text, "signature": signature}
    return None
