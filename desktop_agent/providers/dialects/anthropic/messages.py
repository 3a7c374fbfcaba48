"""The history as the Messages API wants it: roles in turn, every call answered at once, state where it may go back.

Thinking goes back byte for byte and in place to the model that made it; where a model binds it to what it had read,
only behind exactly that. Everything opaque stays with the account that it came from. Blank text is never sent: the
server refuses it.
"""

from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.dialects.anthropic.history import (
    CallIds,
    Section,
    ServerSteps,
    drop_refused_turns,
    split_sections,
    wire_name,
)
from desktop_agent.providers.dialects.anthropic.pictures import PictureEncoder
from desktop_agent.providers.dialects.anthropic.steps import PROVIDER
from desktop_agent.providers.dialects.prefix import PrefixDigest
from desktop_agent.providers.dialects.results_of_calls import NO_RESULT
from desktop_agent.providers.transport.json_text import dumps, is_object, object_in
from desktop_agent.vocabulary.blocks import Block, Image, Json, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.requests import Capabilities, ModelRequest

CONTINUE_PROMPT = "Continue."
BEGIN_PROMPT = "Begin."
_ASKED_TO_CONTINUE = Sentence("This model does not go on from an answer of its own; it was asked in words to continue.")
_REFUSED_TURN_LEFT_OUT = Sentence(
    "A question that this provider refused to answer was left out, and so was the refusal."
)
_THINKING_TYPES = ("thinking", "redacted_thinking")


@dataclass(slots=True)
class EncodedHistory:
    """What goes over the wire, without cache marks.

    `carries_older`: thinking of earlier turns is in it. `is_bare`: the current turn called a tool without thinking
    first, so that thinking by budget cannot be switched on before it is over. `container`: where code of the current
    turn runs on the provider's servers.
    """

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    adjustments: list[Sentence] = field(default_factory=list[Sentence])
    carries_older: bool = False
    is_bare: bool = False
    container: dict[str, Any] = field(default_factory=dict[str, Any])


class HistoryEncoder:
    """Writes the history of one request, once. `older`: whether thinking of earlier turns goes back."""

    def __init__(self, request: ModelRequest, known: Capabilities, account: str, *, older: bool = True) -> None:
        modes = known.reasoning_modes
        is_unsure = known.binds_prefix is None and (modes is None or "adaptive" in modes)
        self._binds = known.binds_prefix or is_unsure
        self._late_system = known.late_system is True
        self._older = older
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
        """All instructions that stand at the top."""
        return "\n\n".join(self._instructions)

    def encode(self, digest: PrefixDigest) -> EncodedHistory:
        """Everything. `digest` was fed what stands before the messages and is fed them.

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
        """Those at the top: of the configuration, those before the first prompt, all where none may stand later."""
        found = [request.config.system_prompt or ""]
        for section in self._sections:
            is_first = section.answer is None
            for message in section.after:
                is_first = is_first and message.role is Role.SYSTEM
                if message.role is Role.SYSTEM and (is_first or not self._late_system):
                    found.append(message.text)
        return [text for text in found if text.strip()]

    @property
    def _last_role(self) -> str:
        return self._out.messages[-1]["role"] if self._out.messages else ""

    def _answer(self, section: Section, answer: Message, before: Section) -> None:
        """An answer behind what asked for it: its own request ended in the same way."""
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
        """What the current turn is bound to: its first answer says whether it thinks, its last where code runs."""
        if not self._is_in_loop:
            self._is_in_loop = True
            self._out.is_bare = bool(answer.tool_uses) and blocks[0]["type"] not in _THINKING_TYPES
        found = object_in(answer.stop_details, "container")
        if found:
            self._out.container = found

    def _blocks(self, section: Section, answer: Message, *, can_think: bool) -> list[dict[str, Any]]:
        """The blocks of one answer. Behind one that goes back changed, bound thinking would be refused."""
        found: list[dict[str, Any]] = []
        for block in answer.blocks:
            written = self._block(block, section, can_think=can_think)
            if written is not None:
                found.append(written)
            is_lost = written is None and isinstance(block, (ServerStep, Unknown))
            if self._binds and (is_lost or (isinstance(block, ToolUse) and block.malformed is not None)):
                can_think = False
        return found

    def _block(self, block: Block, section: Section, *, can_think: bool) -> dict[str, Any] | None:
        is_ours = section.is_own and getattr(block, "provider", "") == PROVIDER
        match block:
            case Text() if block.text.strip():
                citations = block.metadata.get("wire_citations") if is_ours else None
                return _text(block.text) | ({"citations": citations} if citations else {})
            case ToolUse():
                return self._call(block, is_ours=is_ours)
            case Thinking() if is_ours and can_think and (self._older or section.is_open):
                written = _thinking_block(block)
                self._out.carries_older |= written is not None and not section.is_open
                return written
            case ServerStep() | Unknown() if is_ours and is_object(block.raw):
                takes = self._steps.accepts(block.raw, is_open=section.is_open and section.is_whole)
                return block.raw if takes else None
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
        """One for every call of the answer, in call order, before anything else is said."""
        if section.answer is None or not section.answer.tool_uses:
            return
        calls = [each for each in self._pending if each["type"] == "tool_use"]
        given = section.results
        self._user(
            [
                self._result(written["id"], given.get(call.id))
                for written, call in zip(calls, section.answer.tool_uses, strict=True)
            ]
        )

    def _result(self, wire_id: str, result: ToolResult | None) -> dict[str, Any]:
        written: dict[str, Any] = {"type": "tool_result", "tool_use_id": wire_id}
        if result is None:
            return written | {"content": [_text(NO_RESULT)], "is_error": True}
        content = [self._part(part) for part in result.content if not _is_blank(part)]
        if result.is_error:
            # An error without words is refused.
            content = content or [_text(f"The call did not succeed: {result.outcome.value}.")]
            written["is_error"] = True
        return written | ({"content": content} if content else {})

    def _prompts(self, section: Section) -> None:
        """What people said, then instructions that came meanwhile: they stand behind a prompt, before the answer."""
        said = [block for message in section.after if message.role is not Role.SYSTEM for block in message.blocks]
        self._user([self._part(part) for part in said if isinstance(part, (Text, Image)) and not _is_blank(part)])
        if not self._late_system:
            return
        late = section.after if section.answer is not None else _after_first_prompt(section.after)
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
        # Where the answer behind instructions came to nothing, they follow the next prompt instead of parting two.
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
        """The last answer is final. A whole one cannot end in thinking: nothing followed it, so nothing needs it."""
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
        """A request ends with a prompt, unless the server itself paused; answers are not begun for a model."""
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


def _after_first_prompt(messages: list[Message]) -> list[Message]:
    first = next((place for place, message in enumerate(messages) if message.role is not Role.SYSTEM), len(messages))
    return messages[first:]


def _thinking_block(block: Thinking) -> dict[str, Any] | None:
    """A thinking block as it came; without a signature it was cut, or is of a server that gives none."""
    kind, state = block.metadata.get("type"), block.metadata
    if kind == "redacted_thinking" and state.get("data"):
        return {"type": kind, "data": state["data"]}
    if kind == "thinking" and state.get("signature"):
        return {"type": kind, "thinking": block.text, "signature": state["signature"]}
    return None
