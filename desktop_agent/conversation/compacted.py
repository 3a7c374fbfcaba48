"""The history as a model reads it: what was summarised stands there in short."""

from collections.abc import Sequence

from desktop_agent.conversation.grouping import group_messages, last_prompt_index
from desktop_agent.vocabulary.blocks import Summary, Text
from desktop_agent.vocabulary.messages import Message, Role

COMPACTION_AUTHOR = "compaction"
_SUMMARY_INTRO = "Summary of the conversation so far, in place of its older messages:\n\n"
_SUMMARY_INTRO_WITH_PROMPT = (
    "Summary of the conversation so far, in place of its older messages. The prompt that stands after it is older than "
    "the end of it: what the summary says was done for that prompt is done, and is not to be done again.\n\n"
)


def summary_of(message: Message) -> Summary | None:
    """The summary that a message holds, or None."""
    return next((block for block in message.blocks if isinstance(block, Summary)), None)


def newest_summary(messages: Sequence[Message]) -> Summary | None:
    """The one that stands for what was said before it, or None."""
    return next((summary for message in reversed(messages) if (summary := summary_of(message)) is not None), None)


def compacted_view(messages: Sequence[Message]) -> tuple[Message, ...]:
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
    cut = _kept_from(said, summary.first_kept_id) if summary is not None else None
    if summary is None or cut is None:
        return tuple(said)
    # By the history before the summary: what comes later must not change what stands in front.
    asked = last_prompt_index(said[: max(cut, len(_without_summaries(messages[:place])))])
    prompts = said[asked : asked + 1] if asked is not None and asked < cut else []
    instructions = [message for message in said[:cut] if message.role is Role.SYSTEM]
    return (*instructions, _summary_prompt(newest, summary.text, around=bool(prompts)), *prompts, *said[cut:])


def _summary_prompt(newest: Message, text: str, *, around: bool) -> Message:
    return Message(
        id=newest.id,
        role=Role.USER,
        blocks=(Text(text=(_SUMMARY_INTRO_WITH_PROMPT if around else _SUMMARY_INTRO) + text),),
        created_at=newest.created_at,
        injected_by=COMPACTION_AUTHOR,
    )


def _kept_from(said: Sequence[Message], first_kept_id: str) -> int | None:
    """Where what is kept begins: before a group."""
    at = next((place for place, message in enumerate(said) if message.id == first_kept_id), None)
    if at is None:
        return None
    begin = 0
    for group in group_messages(said):
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
