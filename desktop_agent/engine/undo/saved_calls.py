"""Which calls of a history the checkpoints on the disk belong to."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence

from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, CheckpointedCall
from desktop_agent.vocabulary.messages import Message


def match_saved_calls(
    checkpoints: Sequence[Checkpoint], history: Sequence[Message], specialists: Collection[str]
) -> list[CheckpointedCall]:
    """One for each checkpoint that changed something, or may have, and whose call can be told.

    Messages of specialists are in no history. What they did in the time of one call of a specialist belongs to that;
    where several worked side by side, it is not known whose it was.
    """
    ids = {message.id for message in history}
    times = [message.created_at for message in history]
    found: list[CheckpointedCall] = []
    for each in checkpoints:
        if not _has_effect(each):
            continue
        if each.message_id in ids:
            found.append(_saved_call(each, each.message_id, each.tool_use_id))
            continue
        at = bisect_right(times, each.created_at) - 1
        calls = list(_specialist_calls(history[at], specialists)) if at >= 0 else []
        if len(calls) == 1:
            found.append(_saved_call(each, history[at].id, calls[0]))
    return found


def _saved_call(checkpoint: Checkpoint, message_id: str, tool_use_id: str) -> CheckpointedCall:
    return CheckpointedCall(
        message_id, tool_use_id, checkpoint.id, checkpoint.restored, checkpoint.is_redo, checkpoint.note_id
    )


def _has_effect(checkpoint: Checkpoint) -> bool:
    changed = any(file.before != file.after for file in checkpoint.files)
    return checkpoint.restored or changed or checkpoint.needs_undo


def _specialist_calls(message: Message, specialists: Collection[str]) -> Iterator[str]:
    yield from (call.id for call in message.tool_uses if call.name in specialists)
