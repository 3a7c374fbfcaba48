"""The `mcp` package, imported when it is first needed: it takes more than a second."""

import asyncio
import importlib
import threading

_PARTS = (
    "mcp.client.client",
    "mcp.client.streamable_http",
    "mcp.client.subscriptions",
    "desktop_agent.tools.mcp.web.checked_transport",
    "desktop_agent.tools.mcp.sign_in.signing_in",
)
# Its modules import each other: two threads that begin at different ends would wait for one another.
_one_at_a_time = threading.Lock()


async def load_library() -> None:
    """Import all that is used of it, in a thread; whoever comes later waits. Then importing parts of it is quick."""
    await asyncio.to_thread(_load)


def _load() -> None:
    with _one_at_a_time:
        for name in _PARTS:
            importlib.import_module(name)
