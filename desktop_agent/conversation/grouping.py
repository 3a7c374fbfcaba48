"""What belongs together in a history: never sent in halves, never summarised in halves."""

from collections.abc import Sequence

from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.provider_events import StopReason

MessageGroup = tuple[Message, ...]

# The answer goes on in the next message.
_UNFINISHED = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}


def group_messages(messages: Sequence[Message]) -> tuple[MessageGroup, ...]:
    """The same messages in the same order: a prompt alone, an answer with its thinking, calls and their results.

    Results stay with what stands before them, and an answer that its server interrupted with what it went on with.
    """
    found: list[list[Message]] = []
    for message in messages:
        if found and _belongs_to_group(found[-1], message):
            found[-1].append(message)
        else:
            found.append([message])
    return tuple(tuple(group) for group in found)


def last_prompt_index(messages: Sequence[Message]) -> int | None:
    """Where the newest prompt of the person stands; without one, as in a specialist's work, the newest of all."""
    prompts = [at for at, message in enumerate(messages) if message.role is Role.USER]
    own = [at for at in prompts if messages[at].injected_by is None]
    return next(reversed(own or prompts), None)


def _belongs_to_group(group: list[Message], message: Message) -> bool:
    last = group[-1]
    if message.role is Role.TOOL:
        return last.role in {Role.ASSISTANT, Role.TOOL}
    return message.role is Role.ASSISTANT and last.role is Role.ASSISTANT and last.stop_reason in _UNFINISHED
