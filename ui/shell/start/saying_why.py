"""Why the program cannot go on starting, said in the window that is there already."""

import asyncio

from desktop_agent.vocabulary.errors import AgentError
from ui.shell.start.front import StartupWindow


async def show_startup_error(startup: StartupWindow, error: AgentError) -> None:
    """Returns when the program is ended. Until then what was written can be copied, also what was sent."""
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_end() -> None:
        if not ended.done():
            ended.set_result(None)

    startup.ended.connect(on_end)
    if not startup.is_ended:
        startup.window.frame.hand_back()
        # Who closed the banner reads it again.
        startup.window.frame.composer.send_requested.connect(lambda: startup.window.show_problem(error))
        startup.window.show_problem(error)
        await ended
    startup.close_window()
