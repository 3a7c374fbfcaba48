"""The `mcp` package, imported when it is first needed: it takes more than a second."""

import asyncio
import importlib
import threading
from importlib.util import find_spec

from desktop_agent.vocabulary.errors import ExtraMissing

_LIBRARY_MODULES = (
    "mcp.client.client",
    "mcp.client.streamable_http",
    "mcp.client.subscriptions",
    "desktop_agent.tools.mcp.web.checked_transport",
    "desktop_agent.tools.mcp.sign_in.signing_in",
)
# Its modules import each other: two threads that begin at different ends would wait for one another.
_load_lock = threading.Lock()


async def load_library() -> None:
    """Import all that is used of it, in a thread; whoever comes later waits. Then importing parts of it is quick.

    Raises ExtraMissing where it is not installed.
    """
    await asyncio.to_thread(_load_modules)


def _load_modules() -> None:
    if not all(find_spec(name) for name in ("mcp", "mcp_types", "httpx2", "anyio")):
        raise ExtraMissing.of("A server of tools (MCP)", "mcp")
    with _load_lock:
        for name in _LIBRARY_MODULES:
            importlib.import_module(name)
