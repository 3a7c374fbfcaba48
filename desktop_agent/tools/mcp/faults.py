"""What the library raises, in words, and whether the server is gone."""

from typing import cast

LONGEST = 2_000


def inner(error: BaseException) -> BaseException:
    """The first that is no group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def was_lost(error: BaseException) -> bool:
    """Whether the connection is what went wrong, or the server has forgotten it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    found = inner(error)
    if isinstance(found, MCPError):
        return found.error.code == CONNECTION_CLOSED or found.error.message in _FORGOTTEN
    return isinstance(found, OSError | EOFError) or type(found).__name__ in _LOST


# The library's own words for answers of the web server itself. One that was started anew knows our session no more and
# says so with a status of its choice.
_FORGOTTEN = {"Session terminated", "Server returned an error response"}
_LOST = {"ConnectionLost", "ConnectError", "ReadError", "RemoteProtocolError", "BrokenResourceError", "WriteError"}


def reason_of(error: BaseException) -> str:
    """One or a few lines, bounded."""
    from mcp.shared.exceptions import MCPError

    found = inner(error)
    text = found.error.message if isinstance(found, MCPError) else str(found)
    return text[:LONGEST] or type(found).__name__
