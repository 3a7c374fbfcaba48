"""Which messages of a history go to the server, in which turn each stands, and which call gets which result."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from desktop_agent.providers.dialects.anthropic.steps import PROVIDER
from desktop_agent.providers.transport.json_text import is_object
from desktop_agent.vocabulary.blocks import ServerStep, Text, ToolResult, ToolUse, Unknown
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.provider_events import StopReason
from desktop_agent.vocabulary.tool_calls import ToolSpec

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SPEAKERS = (Role.USER, Role.ASSISTANT)
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


@dataclass(slots=True)
class Section:
    """An answer, None at the start, and what was said after it up to the next one.

    `is_own`: this model on this server gave it. `is_open`: it stands in the current turn.
    """

    answer: Message | None = None
    is_own: bool = False
    is_open: bool = True
    after: list[Message] = field(default_factory=list[Message])

    @property
    def results(self) -> dict[str, ToolResult]:
        """By call; ids that a server repeats belong to the answer they follow. The first counts."""
        found: dict[str, ToolResult] = {}
        for message in self.after:
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    found.setdefault(block.tool_use_id, block)
        return found

    @property
    def is_paused(self) -> bool:
        """Whether the server waits for this answer to come back as it is, and goes on then."""
        answer = self.answer
        is_pause = answer is not None and answer.stop_reason is StopReason.PAUSE_TURN
        return self.is_own and is_pause and self.is_whole

    @property
    def is_whole(self) -> bool:
        """Whether nothing broke the answer off."""
        return self.answer is not None and self.answer.state is MessageState.COMPLETE

    @property
    def starts_turn(self) -> bool:
        """Whether a prompt stands here that is no comment on results."""
        has_prompt = any(message.role is Role.USER for message in self.after)
        return has_prompt and (self.answer is None or not self.answer.tool_uses)


def drop_refused_turns(messages: Sequence[Message]) -> tuple[list[Message], bool]:
    """Leave out answers that this provider refused to finish, each with the turn that it refused; whether it did.

    Sent again they would be refused again. A turn that is being asked once more, or was and got another answer, stays;
    then only the refusal goes. Instructions stay.
    """
    kept: list[Message] = []
    left_out = False
    for place, message in enumerate(messages):
        if not _is_refused(message):
            kept.append(message)
        elif next((each.role for each in messages[place + 1 :] if each.role in _SPEAKERS), None) is Role.USER:
            left_out = True
            start = _start_of_turn(kept)
            kept[start:] = [each for each in kept[start:] if each.role is Role.SYSTEM]
    return kept, left_out


def _is_refused(message: Message) -> bool:
    is_ours = message.origin is not None and message.origin.provider == PROVIDER
    return message.role is Role.ASSISTANT and message.stop_reason is StopReason.REFUSAL and is_ours


def _start_of_turn(messages: Sequence[Message]) -> int:
    """Where the last turn begins: at a prompt, or the first of several, that is no comment on results."""
    start = 0
    answer: Message | None = None
    is_new = True
    for place, message in enumerate(messages):
        if message.role is Role.ASSISTANT:
            answer, is_new = message, True
        elif message.role is Role.USER and is_new and (answer is None or not answer.tool_uses):
            start, is_new = place, False
    return start


def split_sections(messages: Iterable[Message], account: str, model: str) -> list[Section]:
    """The history cut at its answers; those that would be empty on the wire are left out."""
    found = [Section()]
    for message in messages:
        own = message.role is Role.ASSISTANT and _is_own(message, account, model)
        if message.role is not Role.ASSISTANT:
            found[-1].after.append(message)
        elif _has_content(message, is_own=own):
            found.append(Section(message, own))
    is_open = True
    for section in reversed(found):
        # A prompt ends the turn of the answer before it.
        is_open = is_open and not section.starts_turn
        section.is_open = is_open
    return found


def _is_own(message: Message, account: str, model: str) -> bool:
    """Whether this model on this server wrote it: only there can opaque state be read again."""
    if message.origin is not None:
        return message.origin.provider == PROVIDER and message.origin.account == account
    return message.model in (None, model)


def _has_content(message: Message, *, is_own: bool) -> bool:
    """Whether more than thinking remains of an answer: thinking alone, or at the end, is not taken."""
    for block in message.blocks:
        if isinstance(block, ToolUse) or (isinstance(block, Text) and block.text.strip()):
            return True
        if isinstance(block, (ServerStep, Unknown)) and is_own and block.provider == PROVIDER and is_object(block.raw):
            return True
    return False


class ServerSteps:
    """Which steps of the servers can go back: a use without its result, or the other way round, is refused.

    One that is not finished goes back only while its turn is open.
    """

    def __init__(self, sections: Iterable[Section]) -> None:
        self._answered = {raw["tool_use_id"] for raw in _raw_steps(sections) if isinstance(raw.get("tool_use_id"), str)}
        self._used: set[str] = set()

    def accepts(self, raw: dict[str, Any], *, is_open: bool) -> bool:
        """Whether this step goes back. Ask in the order of the steps."""
        kind, step_id = str(raw.get("type") or ""), raw.get("id")
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
    """Ids for the wire: unchanged where they fit and are new, else derived, the same in every request."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def of(self, call: ToolUse) -> str:
        """The id of the next call."""
        times = self._used.get(call.id, 0)
        self._used[call.id] = times + 1
        if not times and _NAME.fullmatch(call.id):
            return call.id
        seed = f"{call.id}\n{times}".encode("utf-8", "surrogatepass")
        return "toolu_" + hashlib.sha256(seed).hexdigest()[:24]


def wire_name(name: str) -> str:
    """A tool's name in letters that the wire takes: unchanged where it fits, else with a digest against collisions."""
    if _NAME.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NOT_IN_NAMES.sub('_', name)[:55]}_{digest}"


def names_by_wire_name(tools: Iterable[ToolSpec]) -> dict[str, str]:
    """From the wire's names back to those of the tools, where they differ."""
    return {wire_name(tool.name): tool.name for tool in tools if wire_name(tool.name) != tool.name}
