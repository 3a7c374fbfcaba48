"""Texts about MCP servers: their state, tools and connection in words."""

import shlex
from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from desktop_agent.types.mcp import McpServer, McpServerState, StdioConnection
from desktop_agent.types.tool_calls import ToolClass
from ui.style.server_fields import Status
from ui.style.text import show_hidden, translate_sentence


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolServers", text)


def describe_state(state: McpServerState) -> tuple[Status, str]:
    """Return status and words for a server's state, with what to do about it."""
    why = translate_sentence(state.reason, show_hidden) if state.reason is not None else ""
    match state.state:
        case "off":
            return _describe_off(state, why)
        case "idle":
            return Status.IDLE, _tr("Waits until a conversation needs it.")
        case "starting":
            return Status.BUSY, _tr("Starting…")
        case "running":
            return Status.OK, _describe_running(state)
        case "failed":
            return Status.ERROR, f"{why or _tr('It could not be started.')}\n{_describe_remedy(state)}"
        case "signed_out":
            return Status.NO_KEYRING, why or _tr("You need to sign in.")


def _describe_off(state: McpServerState, why: str) -> tuple[Status, str]:
    """Describe a server that is off; it may have been tested nevertheless."""
    if why:
        return Status.ERROR, _tr("Off. Last test: {0}").format(why) + "\n" + _describe_remedy(state)
    if state.tools:
        return Status.IDLE, _tr("Off. The last test succeeded") + " · " + describe_tool_count(len(state.tools))
    return Status.IDLE, _tr("Off")


def _describe_remedy(state: McpServerState) -> str:
    if state.remedy is not None:
        return translate_sentence(state.remedy, show_hidden)
    return _tr("Look at its log, correct it with Edit, then press Test.")


def _describe_running(state: McpServerState) -> str:
    parts = [_tr("Running")]
    if state.protocol:
        parts.append(_tr("protocol {0}").format(show_hidden(state.protocol)))
    parts.append(describe_tool_count(len(state.tools)))
    return " · ".join(parts)


def describe_tool_count(count: int) -> str:
    """Return the number of tools in words."""
    return _tr("1 tool") if count == 1 else _tr("{0} tools").format(count)


def describe_connection(server: McpServer) -> str:
    """Return the whole command line or URL, with hidden characters shown."""
    connection = server.connection
    if isinstance(connection, StdioConnection):
        return show_hidden(shlex.join((connection.command, *connection.args)))
    return show_hidden(connection.url)


def describe_declared_class(declared: ToolClass | None) -> str:
    """Return what the server says about a tool's class."""
    if declared is None:
        return _tr("The server says nothing about it.")
    if declared is ToolClass.READ_ONLY:
        return _tr("The server says: it only reads.")
    return _tr("The server says: it can change things.")


def describe_kinds(kinds: Sequence[str], of: Sequence[str] = ()) -> str:
    """Return words for JSON Schema types; `of` are the types of a list's items."""
    known = {
        "string": _tr("text"),
        "integer": _tr("whole number"),
        "number": _tr("number"),
        "boolean": _tr("yes or no"),
        "object": _tr("object"),
        "null": _tr("nothing"),
        "array": _tr("list"),
    }
    if of:
        known["array"] = _tr("list ({0})").format(describe_kinds(of))
    return _tr(" or ").join(known[kind] for kind in kinds if kind in known) or _tr("anything")
