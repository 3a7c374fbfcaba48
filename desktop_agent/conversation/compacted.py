"""The history as a model reads it: what was summarised stands there in short."""

from collections.abc import Sequence

from desktop_agent.conversation.grouping import groups, last_prompt
from desktop_agent.vocabulary.blocks import Summary, Text
from desktop_agent.vocabulary.messages import Message, Role

INJECTED_BY = "compaction"
_BEFORE = "Summary of the conversation so far, in place of its older messages:\n\n"
_AROUND = (
    "Summary of the conversation so far, in place of its older messages. The prompt that stands after it is older than "
    "the end of it: what the summary says was done for that prompt is done, and is not to be done again.\n\n"
)


def summary_of(message: Message) -> Summary | None:
    """The summary that a message holds, or None."""
    return next((block for block in message.blocks if isinstance(block, Summary)), None)


def newest_summary(messages: Sequence[Message]) -> Summary | None:
    """The one that stands for what was said before it, or None."""
    return next((summary for message in reversed(messages) if (summary := summary_of(message)) is not None), None)


def as_sent(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The newest summary as a prompt of the runtime's own, and everything from the first message that it left out.

    Instructions (system messages) always stay. The last prompt too: one that was summarised with the work on it stands
    word for word behind the summary. A cut inside a group is moved before it. A summary whose first kept message is
    gone stands for nothing: all is sent. Idempotent; no Summary is left.
    """
    place = next((at for at in range(len(messages) - 1, -1, -1) if summary_of(messages[at])), None)
    if place is None:
        return tuple(messages)
    newest = messages[place]
    said = _without_summaries(messages)
    summary = summary_of(newest)
    cut = _cut(said, summary.first_kept_id) if summary is not None else None
    if summary is None or cut is None:
        return tuple(said)
    # By the history before the summary: what comes later must not change what stands in front.
    asked = last_prompt(said[: max(cut, len(_without_summaries(messages[:place])))])
    prompts = said[asked : asked + 1] if asked is not None and asked < cut else []
    instructions = [message for message in said[:cut] if message.role is Role.SYSTEM]
    return (*instructions, _shown(newest, summary.text, around=bool(prompts)), *prompts, *said[cut:])


def _shown(newest: Message, text: str, *, around: bool) -> Message:
    return Message(
        id=newest.id,
        role=Role.USER,
        blocks=(Text(text=(_AROUND if around else _BEFORE) + text),),
        created_at=newest.created_at,
        injected_by=INJECTED_BY,
    )


def _cut(said: Sequence[Message], first_kept_id: str) -> int | None:
    """Where what is kept begins: before a group."""
    at = next((place for place, message in enumerate(said) if message.id == first_kept_id), None)
    if at is None:
        return None
    begin = 0
    for group in groups(said):
        if begin + len(group) > at:
            break
        begin += len(group)
    return begin


def _without_summaries(messages: Sequence[Message]) -> list[Message]:
    return [shown for message in messages if (shown := _without_summary(message)) is not None]


def _without_summary(message: Message) -> Message | None:
    """None: there was nothing else in it."""
    if summary_of(message) is None:
        return message
    rest = tuple(block for block in message.blocks if not isinstance(block, Summary))
    return message.model_copy(update={"blocks": rest}) if rest else None
