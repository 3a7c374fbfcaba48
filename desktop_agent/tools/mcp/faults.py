"""What the library raises, in words, and whether the server is gone."""

import socket
import ssl
from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from desktop_agent.network.failures import PrivateHost
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.servers import HttpConnection, McpServer

MAX_REASON_LENGTH = 2_000
_MAX_PROBLEMS = 3
_REMEDY_LOG = "Look at its log, correct it with Edit, then press Test."
_REMEDY_FETCH = "If it is fetched first, as npx and uvx do, run its command once in a terminal; then press Test."
_REMEDY_START = "Start it, or correct its address with Edit; then press Test."


def first_error(error: BaseException) -> BaseException:
    """The first that is no group of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is what went wrong, or the server has forgotten it."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    found = first_error(error)
    if isinstance(found, MCPError):
        return found.error.code == CONNECTION_CLOSED or found.error.message in _SESSION_LOST_MESSAGES
    return isinstance(found, OSError | EOFError) or type(found).__name__ in _CONNECTION_ERRORS


# The library's own words for answers of the web server itself. One that was started anew knows our session no more and
# says so with a status of its choice.
_SESSION_LOST_MESSAGES = {"Session terminated", "Server returned an error response"}
_CONNECTION_ERRORS = {
    "ConnectionLost",
    "ConnectError",
    "ReadError",
    "RemoteProtocolError",
    "BrokenResourceError",
    "WriteError",
}


def describe_error(error: BaseException, log: ServerLog) -> str:
    """One or a few lines, bounded, without what the log hides."""
    from mcp.shared.exceptions import MCPError

    found = first_error(error)
    if isinstance(found, MCPError):
        text = found.error.message
    elif isinstance(found, ValidationError):
        text = _describe_invalid(found)
    else:
        text = str(found)
    return log.redact(text, MAX_REASON_LENGTH) or type(found).__name__


def _describe_invalid(error: ValidationError) -> str:
    """What is wrong with an answer, without what is said about our own models."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_PROBLEMS]
    named = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in faults)
    return f"its answer is not as the protocol wants it: {named}"


def start_failure(error: BaseException, server: McpServer, log: ServerLog, seconds: float) -> AgentError:
    """Why a start failed, and what the person can do about it; `seconds` is how long it was waited for."""
    found = first_error(error)
    if isinstance(found, PrivateHost):
        return ToolFailed(found.sentence, "Correct its address, or allow the host in the settings of the network.")
    if isinstance(found, AgentError):
        return found
    connection = server.connection
    if isinstance(connection, HttpConnection):
        return _unreachable(found, connection, log, seconds)
    if isinstance(found, TimeoutError):
        return _no_answer(log, seconds)
    if is_connection_lost(found):
        return _exited(log, found)
    return ToolFailed(_verbatim(describe_error(found, log)), _REMEDY_LOG)


def _no_answer(log: ServerLog, seconds: float) -> ToolFailed:
    values = {"n": f"{seconds:g}", "words": log.stray_output}
    if log.stray_output:
        template = (
            "it did not answer within {n} seconds, and wrote “{words}” where only messages of the protocol belong"
        )
        return ToolFailed(Sentence(template, values), "Correct its command with Edit: it must speak MCP over stdio.")
    return ToolFailed(Sentence("it did not answer within {n} seconds", values), _REMEDY_FETCH)


def _exited(log: ServerLog, error: BaseException) -> ToolFailed:
    words = log.last_line
    values = {"words": words, "code": str(log.exit_code)}
    if log.exit_code is None:
        return ToolFailed(_verbatim(words or describe_error(error, log)), _REMEDY_LOG)
    if log.exit_code < 0:
        template = "it was ended by the signal {code}"
        return ToolFailed(Sentence(template, {"code": str(-log.exit_code)}), _REMEDY_LOG)
    if not words:
        remedy = "Run its command in a terminal to see why; correct it with Edit, then press Test."
        return ToolFailed(Sentence("it ended with the exit code {code}, and said nothing", values), remedy)
    return ToolFailed(Sentence("it ended with the exit code {code}: {words}", values), _REMEDY_LOG)


def _unreachable(error: BaseException, connection: HttpConnection, log: ServerLog, seconds: float) -> ToolFailed:
    parts = urlsplit(connection.url)
    values = {"host": parts.hostname or "?", "where": parts.netloc.rpartition("@")[2], "n": f"{seconds:g}"}
    check = "Check its address and your connection, then press Test."
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            template = "the certificate of “{host}” is not trusted ({why})"
            remedy = (
                "Check its address. If it is your own server, add its certificate to those that the system trusts, or "
                "name a file with it in SSL_CERT_FILE."
            )
            return ToolFailed(Sentence(template, {**values, "why": cause.verify_message}), remedy)
        if isinstance(cause, ssl.SSLError):
            remedy = "Check whether its address should begin with http:// instead of https://."
            return ToolFailed(Sentence("“{where}” does not speak TLS as expected", values), remedy)
        if isinstance(cause, socket.gaierror):
            return ToolFailed(Sentence("the name “{host}” is not known", values), check)
        if isinstance(cause, ConnectionRefusedError):
            return ToolFailed(Sentence("nothing answers at {where}", values), _REMEDY_START)
    if isinstance(error, TimeoutError) or type(error).__name__.endswith("Timeout"):
        return ToolFailed(Sentence("“{where}” did not answer within {n} seconds", values), check)
    words = log.last_line if is_connection_lost(error) else ""
    return ToolFailed(_verbatim(words or describe_error(error, log)), _REMEDY_LOG)


def _verbatim(words: str) -> Sentence:
    return Sentence("{words}", {"words": words})


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(20):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
