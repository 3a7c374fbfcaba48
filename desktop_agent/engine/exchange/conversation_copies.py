"""Copies of stored conversations: one with all its branches, or one made of several."""

from collections.abc import Callable, Iterator, Sequence

from desktop_agent.conversation.history import summary_of
from desktop_agent.conversation.transcript_notices import MERGE_AUTHOR
from desktop_agent.engine.engine import Engine
from desktop_agent.storage.records import ConversationRecord, ConversationState
from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree, TreeMessage
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, new_id, now

OWN_PROGRAM = "desktop-agent"
"""The program of the origin of a copy."""
_SEPARATOR = " + "
_MAX_TITLE = 120


async def duplicate_conversation(engine: Engine, conversation_id: str, title: Callable[[str], str]) -> str:
    """Copy a conversation with all its branches, beside the original; return the id of the copy.

    `title` makes its title of that of the original. Rules, checkpoints and waiting messages stay with the original.
    Raises WrongUse for an unknown conversation, and StorageFailed.
    """
    record = await engine.record(conversation_id)
    tree = await engine.store.load_tree(conversation_id)
    origin = ConversationOrigin(program=OWN_PROGRAM, id=conversation_id)
    changes = {
        "id": new_id(),
        "title": title(record.title),
        "title_is_automatic": False,
        "origin": origin,
        "pinned_at": None,
        "archived_at": None,
        "updated_at": now(),
    }
    state = record.state.model_copy(update={"queue": (), "stopped_run": None, "title_usage": None})
    return await _store(engine, tree.model_copy(update=changes), record, state)


async def merge_conversations(engine: Engine, ids: Sequence[str], heading: Callable[[str], str]) -> str:
    """Make one conversation of the branches in view of several, the oldest first; return its id.

    Each begins with a note that `heading` makes of its title, for the person and the model. Its server and its settings
    are those of the last one written. The others stay. Raises WrongUse for fewer than two or an unknown one, and
    StorageFailed.
    """
    if len(set(ids)) < 2:
        raise WrongUse("There is nothing to merge.", "Select two conversations or more.")
    records = sorted([await engine.record(id_) for id_ in dict.fromkeys(ids)], key=lambda record: record.created_at)
    messages: list[Message] = []
    for record in records:
        tree = await engine.store.load_tree(record.id)
        note = Message.user(heading(record.title)).model_copy(update={"injected_by": MERGE_AUTHOR})
        messages += (note.model_copy(update={"created_at": tree.created_at}), *_copies(tree.branch()))
    parents = [None, *(message.id for message in messages)]
    merged = ConversationTree(
        id=new_id(),
        title=_SEPARATOR.join(record.title for record in records)[:_MAX_TITLE],
        created_at=now(),
        updated_at=now(),
        messages=tuple(
            TreeMessage(message=message, parent=parent) for message, parent in zip(messages, parents, strict=False)
        ),
        head=messages[-1].id,
        title_is_automatic=False,
    )
    latest = max(records, key=lambda record: record.updated_at)
    return await _store(engine, merged, latest, _joined_state(records))


def _copies(messages: Sequence[Message]) -> Iterator[Message]:
    for message in messages:
        # A summary stands for everything before it, which is more here than it was made of.
        if summary_of(message) is not None:
            continue
        # Reasoning is not sent again behind other messages than those that it followed: nobody's account has it.
        yield message.model_copy(update={"id": new_id(), "origin": None})


def _joined_state(records: Sequence[ConversationRecord]) -> ConversationState:
    """Return the state of the merged conversation: content of a source that was trusted in one is untrusted there."""
    sources = (source for record in records for source in (*record.state.outside, *record.state.trusted))
    return ConversationState(outside=tuple(dict.fromkeys(sources)))


async def _store(engine: Engine, tree: ConversationTree, like: ConversationRecord, state: ConversationState) -> str:
    await engine.store.import_tree(
        tree.model_copy(update={"model": like.model, "workspace": like.workspace}),
        # An open session does not learn that its conversation was moved or tagged: the stored place is read.
        beside=like.id,
        endpoint_id=like.endpoint_id,
        reasoning=like.reasoning,
        parameters=like.parameters,
        state=state,
    )
    return tree.id
