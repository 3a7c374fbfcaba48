"""Why the program cannot go on starting, said in the window that is there already."""

import asyncio

from desktop_agent.vocabulary.errors import AgentError
from ui.shell.start.front import StartupWindow


async def show_startup_error(front: StartupWindow, error: AgentError) -> None:
    """Returns when the program is ended. Until then what was written can be copied, also what was sent."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_end() -> None:
        if not ended.done():
            ended.set_result(None)

    front.ended.connect(on_end)
    if not front.is_ended:
        front.window.frame.hand_back()
        # Who closed the banner reads it again.
        front.window.frame.composer.send_requested.connect(lambda: front.window.show_problem(error))
        front.window.show_problem(error)
        await ended
    front.leave()
