"""Actions of a person within a conversation; the model answers most of them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from desktop_agent.conversation.history import is_own_prompt
from desktop_agent.engine.session import Session
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta
from tests.soak.history_world import ANYTHING, Action, Facts, World, fact_of

TITLE_END = "in three words"
"""The word with which each title of the model ends."""


async def _answer(world: World, session: Session, prompt: Message | None, start: Callable[[], object]) -> None:
    """Let the model finish its answer; confirm each fact as soon as it is stored."""
    id_, pieces = session.record.id, list[str]()

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, ContentDelta):
            pieces.append(envelope.event.text)

    intended = dict([fact_of(id_, prompt)]) if prompt is not None else {}
    world.intend({f"place/{id_}": "list", f"title/{id_}": ANYTHING, f"head/{id_}": ANYTHING, **intended})
    session.subscribe(on_event=note)
    start()
    while session.working:
        text = "".join(pieces)
        await session.flush()
        world.confirm({f"place/{id_}": "list", **intended})
        world.tell({"begun": [id_, text]})
        await _next_piece(session, pieces)
    await session.wait_idle()
    await session.flush()
    session.unsubscribe(note)
    history = session.history
    failure = {} if session.error is None else {"error": str(session.error)}
    world.confirm(dict(fact_of(id_, message) for message in history) | {f"head/{id_}": history[-1].id})
    world.tell({"begun": None, **failure})


async def _next_piece(session: Session, pieces: Sequence[str]) -> None:
    count = len(pieces)
    while session.working and len(pieces) == count:
        await asyncio.sleep(0.002)


async def begin(world: World) -> None:
    session, prompt = world.engine.new_session(), Message.user(world.words())
    world.sessions[session.record.id] = session
    await _answer(world, session, prompt, partial(session.send, prompt))


async def go_on(world: World) -> None:
    await go_on_in(world, await world.session())


async def go_on_in(world: World, session: Session) -> None:
    prompt = Message.user(world.words())
    await _answer(world, session, prompt, partial(session.send, prompt))


async def get_title(world: World) -> None:
    """Let the model name the conversation after the first answer."""
    await begin(world)
    session = next(reversed(world.sessions.values()))
    if not session.record.title.endswith(TITLE_END):
        world.tell({"error": f"the title is {session.record.title!r}"})
    world.confirm({f"title/{session.record.id}": session.record.title})


async def edit(world: World) -> None:
    session, edited = await world.session(), Message.user(world.words())
    own = [message.id for message in session.history if is_own_prompt(message)]
    if own:
        await _answer(world, session, edited, partial(session.branches.edit_prompt, world.chance.choice(own), edited))


async def regenerate(world: World) -> None:
    session = await world.session()
    answers = [message.id for message in session.history if message.role is Role.ASSISTANT]
    if answers:
        await _answer(world, session, None, partial(session.branches.regenerate, world.chance.choice(answers)))


async def show_version(world: World) -> None:
    session = await world.session()
    tree = await world.engine.store.load_tree(session.record.id)
    if tree.messages:
        name = f"head/{session.record.id}"
        world.intend({name: ANYTHING})
        await session.branches.show(world.chance.choice(tree.messages).message.id)
        await session.flush()
        world.confirm({name: session.history[-1].id})


async def delete_message(world: World) -> None:
    """Delete a message for good, with everything after it."""
    session = await world.session()
    id_, tree = session.record.id, await world.engine.store.load_tree(session.record.id)
    if not tree.messages:
        return
    deleted_id = world.chance.choice(tree.messages).message.id
    deletion = await session.branches.plan_deletion(deleted_id)
    gone: Facts = {f"message/{id_}/{message_id}": None for message_id in deletion.ids}
    world.intend({f"head/{id_}": ANYTHING, f"title/{id_}": ANYTHING})
    world.intend_together(gone)
    await session.branches.delete(deleted_id)
    world.confirm_together(gone)
    world.confirm({f"head/{id_}": session.history[-1].id if session.history else None})


ANSWER_ACTIONS: Mapping[str, Action] = {
    "begin": begin,
    "go on": go_on,
    "title by the model": get_title,
    "edit": edit,
    "regenerate": regenerate,
    "show version": show_version,
    "delete message": delete_message,
}
