"""For finalisers: a reader or a face that nobody holds any more ends what it began, from whatever thread that is in."""

import asyncio
from contextlib import suppress

from desktop_agent.faces.backing.conversing import ConversationRunner
from desktop_agent.faces.backing.run_events import RunEvents

# The loop itself remembers its tasks only weakly.
_CLOSING_TASKS: set[asyncio.Task[None]] = set()


def abandon_soon(conversation: ConversationRunner, run: RunEvents) -> None:
    """Stop the run that nobody reads; the loop does it next, because a finaliser may run in the middle of anything."""
    if conversation.will_stop(run) and conversation.loop is not None:
        with suppress(RuntimeError):  # the loop is closed
            conversation.loop.call_soon_threadsafe(conversation.abandon, run)


def close_soon(conversation: ConversationRunner) -> None:
    """Stop, and close without waiting. Where the loop is closed nothing is left to be closed."""
    loop = conversation.loop
    if not conversation.is_open or loop is None:
        return
    conversation.is_closed = True
    if _is_this_loop(loop):
        _start_closing(conversation)
    else:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_start_closing, conversation)


def _start_closing(conversation: ConversationRunner) -> None:
    task = asyncio.ensure_future(_close_despite_cancel(conversation))
    _CLOSING_TASKS.add(task)
    task.add_done_callback(_CLOSING_TASKS.discard)


async def _close_despite_cancel(conversation: ConversationRunner) -> None:
    try:
        await conversation.aclose()
    except asyncio.CancelledError:
        # A loop that ends cancels everything once; what is open is closed all the same.
        await conversation.aclose()


def _is_this_loop(loop: asyncio.AbstractEventLoop | None) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
