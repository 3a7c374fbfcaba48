"""Where a history is cut: what is summarised, and what stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from desktop_agent.conversation.compacted import COMPACTION_AUTHOR
from desktop_agent.conversation.grouping import group_messages, last_prompt_index
from desktop_agent.vocabulary.messages import Message, Role

# What may stay besides what must, as shares of the window and of the whole history, or of the work on a prompt.
_KEPT_SHARE_OF_WINDOW = 0.2
_KEPT_SHARE_OF_HISTORY = 0.25
# The last prompt stays with everything that followed it, where that is no more than this.
_SHARE_FOR_PROMPT = 0.5
# Of the window: less than this is not worth a summary of the work on the last prompt, which would soon be full again.
_MIN_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class HistorySplit:
    """`older` is to be summarised, an earlier summary included; `kept` begins with a whole group.

    `prompt` is the last one where it is among the older messages: the model reads it word for word all the same.
    """

    older: tuple[Message, ...]
    kept: tuple[Message, ...]
    prompt: Message | None = None


def split_history(sent: Sequence[Message], window: int | None, weigh: Callable[[Message], int]) -> HistorySplit | None:
    """Cut a history as the model reads it. `weigh` answers tokens; `window` is the model's, in tokens.

    Before the last prompt, or in the middle of long work on it; the newest group always stays. None: nothing stands
    before what stays, or too little.
    """
    prompt = last_prompt_index(sent)
    if prompt is None or sent[prompt].injected_by == COMPACTION_AUTHOR:
        return None
    weights = [weigh(message) for message in sent]
    # tail[n]: tokens from message n to the end.
    tail = [*reversed([*accumulate(reversed(weights))]), 0]
    size = min(window or tail[0], tail[0])
    starts = _group_starts(sent)
    for latest in sorted({prompt, starts[-1]}, reverse=tail[prompt] > size * _SHARE_FOR_PROMPT):
        whole = tail[prompt + 1] if latest > prompt else tail[0]
        room = min((window or tail[0]) * _KEPT_SHARE_OF_WINDOW, whole * _KEPT_SHARE_OF_HISTORY)
        begin = _earliest_fitting(latest, starts, tail, room)
        places = [at for at in range(begin) if at != prompt and _may_be_summarised(sent[at])]
        least = (window or tail[0]) * _MIN_SHARE if begin > prompt else 0
        if sum(weights[at] for at in places) > least:
            older = tuple(message for message in sent[:begin] if message.role is not Role.SYSTEM)
            return HistorySplit(older, tuple(sent[begin:]), sent[prompt] if prompt < begin else None)
    return None


def _group_starts(sent: Sequence[Message]) -> list[int]:
    """Where the groups begin, but for instructions, which stay wherever they are."""
    found = group_messages(sent)
    places = accumulate((len(group) for group in found), initial=0)
    return [at for at, group in zip(places, found, strict=False) if group[0].role is not Role.SYSTEM]


def _earliest_fitting(begin: int, starts: Sequence[int], tail: Sequence[int], room: float) -> int:
    """The first place from which on everything has room; `begin` where nothing more has."""
    return next((start for start in starts if start < begin and tail[start] <= room), begin)


def _may_be_summarised(message: Message) -> bool:
    return message.role is not Role.SYSTEM and message.injected_by != COMPACTION_AUTHOR
