"""How an MCP server is, what its tools may do, and how it is reached, in words."""

import shlex
from collections.abc import Sequence
from typing import Literal

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.mcp.servers import McpServer, StdioConnection
from desktop_agent.vocabulary.mcp.states import ServerState
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass
from ui.look.sentences import spoken
from ui.look.state_line import State
from ui.look.visible_text import with_hidden_shown

Tag = Literal["safe", "caution", "risk"]


def _tr(text: str) -> str:
    return QCoreApplication.translate("ToolServers", text)


def state_in_words(state: ServerState) -> tuple[State, str]:
    """How it is, and what should be done about it."""
    why = with_hidden_shown(spoken(state.why)) if state.why is not None else ""
    match state.state:
        case "off":
            return _off(state, why)
        case "idle":
            return State.IDLE, _tr("Waits until a conversation needs it.")
        case "starting":
            return State.BUSY, _tr("Starting…")
        case "running":
            return State.OK, _running(state)
        case "failed":
            return State.ERROR, f"{why or _tr('It could not be started.')}\n{_remedy(state)}"
        case "signed_out":
            return State.NO_KEYRING, why or _tr("It wants you to sign in.")


def _off(state: ServerState, why: str) -> tuple[State, str]:
    """It may have been tried all the same."""
    if why:
        return State.ERROR, _tr("Off. It was tried: {0}").format(why) + "\n" + _remedy(state)
    if state.tools:
        return State.IDLE, _tr("Off. It was tried, and works") + " · " + tool_count(len(state.tools))
    return State.IDLE, _tr("Off")


def _remedy(state: ServerState) -> str:
    if state.remedy is not None:
        return with_hidden_shown(spoken(state.remedy))
    return _tr("Look at its log, correct it with Edit, then press Test.")


def _running(state: ServerState) -> str:
    parts = [_tr("Running")]
    if state.protocol:
        parts.append(_tr("protocol {0}").format(with_hidden_shown(state.protocol)))
    parts.append(tool_count(len(state.tools)))
    return " · ".join(parts)


def tool_count(count: int) -> str:
    """How many tools it offers."""
    return _tr("1 tool") if count == 1 else _tr("{0} tools").format(count)


def reached_by(server: McpServer) -> str:
    """The whole command line, or the address; hidden characters can be seen."""
    connection = server.connection
    if isinstance(connection, StdioConnection):
        return with_hidden_shown(shlex.join((connection.command, *connection.args)))
    return with_hidden_shown(connection.url)


def class_in_words(tool_class: ToolClass) -> tuple[str, Tag]:
    """As the approval dialog says it."""
    if tool_class is ToolClass.READ_ONLY:
        return _tr("Only reads"), "safe"
    return _tr("Can change things"), "caution"


def said_in_words(said: ToolClass | None) -> str:
    """What the server says about a tool."""
    if said is None:
        return _tr("The server says nothing about it.")
    if said is ToolClass.READ_ONLY:
        return _tr("The server says: it only reads.")
    return _tr("The server says: it can change things.")


def effects_in_words() -> dict[Effect, str]:
    """All effects, as the approval dialog calls them."""
    return {
        Effect.READ: _tr("Reads files"),
        Effect.WRITE: _tr("Writes files"),
        Effect.EXECUTE: _tr("Runs commands"),
        Effect.NETWORK: _tr("Uses the network"),
        Effect.DELEGATE: _tr("Starts another agent"),
    }


def kinds_in_words(kinds: Sequence[str], of: Sequence[str] = ()) -> str:
    """The words of JSON Schema for what an argument may be; `of`: for what a list holds."""
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
        known["array"] = _tr("list ({0})").format(kinds_in_words(of))
    return _tr(" or ").join(known[each] for each in kinds if each in known) or _tr("anything")
