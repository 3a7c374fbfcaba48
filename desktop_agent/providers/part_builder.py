"""Assemble an answer from pieces: text, thinking with its replay state, tool calls, and the end.

A dialect identifies fragments and calls these methods; `take_events` returns the events so far. Everything depends on
the order of fragments, never on how bytes were cut.
"""

from collections.abc import Callable, Mapping
from typing import Any

from desktop_agent.providers.text_builder import TextBuilder, ThinkTags
from desktop_agent.providers.tool_call_builder import MAX_NAME_LENGTH, ToolCallBuilder
from desktop_agent.providers.transport.json_codec import repair_json, repair_text
from desktop_agent.types.blocks import Citation, Image, ServerStep, Unknown
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import new_id
from desktop_agent.types.provider_events import (
    TRUNCATED_STOP_REASONS,
    AnswerNamed,
    MessageDelta,
    ProviderEvent,
    RequestAdjusted,
    StopReason,
    ThinkingBlock,
    Usage,
    UsageUpdate,
)

_CORRECTABLE_REASONS = frozenset(
    {StopReason.END_TURN, StopReason.TOOL_USE, StopReason.STOP_SEQUENCE, StopReason.UNKNOWN}
)


def new_call_id() -> str:
    """Return an id for a call whose server gave none; random, so unique in any conversation."""
    return f"call_{new_id()[:24]}"


class PartBuilder:
    """Builds one answer from its fragments.

    `provider` marks thinking blocks. `tags` looks for `<think>` at the start of the text; None if a server never sends
    such tags. `call_id` makes ids for calls without one. `keeps_arguments`: calls keep the text of their arguments,
    which is sent back. `may_repeat`: the server may repeat what it sent.

    `main` builds text and thinking that come one after the other. A server that writes several items side by side has a
    `part` for each: their pieces are shown as they arrive. Whole blocks, such as calls and steps, wait until no item is
    open, and then follow in order.
    """

    def __init__(
        self,
        provider: str,
        *,
        tags: ThinkTags | None = None,
        call_id: Callable[[], str] = new_call_id,
        keeps_arguments: bool = False,
        may_repeat: bool = False,
    ) -> None:
        self.may_repeat = may_repeat
        self.calls = ToolCallBuilder(provider, call_id, keeps_arguments=keeps_arguments)
        self.has_content = False
        self.usage: Usage | None = None  # the last report counts and is yielded at the end
        self.provider = provider
        self.tags = tags
        self.citations: list[Citation] = []
        # For the stored ids of an answer; its text is never changed.
        self.redact_key: Callable[[str], str] = lambda text: text
        self.end_details: dict[str, Any] = {}  # for the end, besides those of the dialect
        self.tool_names: Mapping[str, str] = {}  # the tools' own names by those of the wire, where they differ
        self._out: list[ProviderEvent] = []
        self.main = TextBuilder(self, self._out.append)
        self._parts: dict[int, TextBuilder] = {}
        self._open_items: set[int] = set()
        self._waiting: list[tuple[int, ProviderEvent]] = []
        self._is_named = False
        self._event_count = 0
        self._adjustments: list[Sentence] = []

    def take_events(self) -> list[ProviderEvent]:
        """Return the events since the last call."""
        out = self._out.copy()
        self._out.clear()
        self._event_count += len(out)
        return out

    @property
    def progress(self) -> int:
        """A number that grows with every fragment; pieces of calls that cannot be shown yet count too."""
        return self._event_count + len(self._out) + self.calls.characters

    def note_adjustment(self, sentence: Sentence) -> None:
        """Report once that something unusual from the server was adapted."""
        if sentence not in self._adjustments:
            self._adjustments.append(sentence)
            self._out.append(RequestAdjusted((sentence,)))

    def open_item(self, number: int) -> None:
        """Open an item beside others; `end_item` ends it. Its number is its place in the answer."""
        self._open_items.add(number)

    def part(self, number: int) -> TextBuilder:
        """Return the part with this number, a new one if necessary."""
        part = self._parts.get(number)
        if part is None:
            part = self._parts[number] = TextBuilder(self, self._out.append, number)
        return part

    def end_item(self, number: int) -> None:
        """End an item. Blocks that waited for it follow in their order."""
        self._open_items.discard(number)
        if not self._open_items:
            self._flush_waiting()

    def add_block(self, block: ServerStep | Image | Unknown, number: int = 0) -> None:
        """Add a whole block: a step of the server's own, a picture that the model made, or a block of unknown type."""
        self.main.close()
        self.has_content = True
        self._queue_whole(number, block)

    def set_response_id(self, response_id: Any) -> None:
        """Set the server's own id of the answer; the first one counts."""
        if isinstance(response_id, str) and response_id and not self._is_named:
            self._is_named = True
            self._out.append(AnswerNamed(self.redact_key(repair_text(response_id))[:MAX_NAME_LENGTH]))

    def add_call_fragment(self, **fragment: Any) -> None:
        """Add a piece of a call, for ToolCallBuilder.add_fragment; closes the text or thinking before it.

        An empty fragment closes nothing.
        """
        fields = {name: fragment.get(name) for name in ("index", "id", "name", "arguments")}
        if self.calls.is_empty_fragment(**fields):
            return
        self.main.close()
        fragment["name"] = self.tool_names.get(fields["name"] or "", fields["name"])
        self._out.extend(self.calls.add_fragment(**fragment))

    def end_calls(self, *, cut: bool = False, index: int | None = None, number: int = 0) -> int:
        """Yield the open calls, or the one with this index, and return how many: for dialects that end them singly.

        After a cut (length, filter), arguments that are no complete JSON object are dropped.
        """
        ended = self.calls.end(cut=cut, index=index)
        for metadata, call in ended:
            if metadata is not None:
                state = {**metadata, "call_id": call.id}
                self._queue_whole(number, ThinkingBlock("", self.provider, repair_json(state)))
            self._queue_whole(number, call)
        return len(ended)

    def close_parts(self) -> None:
        """Close all open text and thinking: an error or the end comes next."""
        self.main.close()
        for number in sorted(self._parts):
            self._parts[number].close()
        self._open_items.clear()
        self._flush_waiting()

    def end(self, reason: StopReason, raw: str | None, details: dict[str, Any] | None = None) -> None:
        """Build the clean end: calls, MessageDelta, UsageUpdate. The caller sends `Done` last.

        Content counts more than the reason: any call means TOOL_USE unless the answer was cut or refused, and TOOL_USE
        without a call is END_TURN. An answer without text and calls has `empty` in its details.
        """
        self.close_parts()
        self.end_calls(cut=reason in TRUNCATED_STOP_REASONS)
        reason = self._correct_reason(reason)
        details = dict(details or {})
        if reason is StopReason.END_TURN and not self.has_content:
            details["empty"] = True
        if self.citations:
            details["citations"] = [citation.model_dump(exclude_none=True) for citation in self.citations]
        details |= self.end_details
        self._out.append(MessageDelta(reason, raw and repair_text(raw), repair_json(details) or None))
        if self.usage is not None:
            self._out.append(UsageUpdate(self.usage))

    def _correct_reason(self, reason: StopReason) -> StopReason:
        if reason in _CORRECTABLE_REASONS and self.calls.ended_count:
            return StopReason.TOOL_USE
        if reason is StopReason.TOOL_USE:
            self.end_details["no_call"] = True
            return StopReason.END_TURN
        return reason

    def _queue_whole(self, number: int, block: ProviderEvent) -> None:
        self._waiting.append((number, block))
        if not self._open_items - {number}:
            self._flush_waiting()

    def _flush_waiting(self) -> None:
        self._waiting.sort(key=lambda entry: entry[0])
        self._out.extend(event for _, event in self._waiting)
        self._waiting.clear()
