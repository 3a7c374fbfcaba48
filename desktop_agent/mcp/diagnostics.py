"""Diagnostics of an MCP server: its log without secrets, and errors of the library as sentences with a remedy."""

import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from typing import cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from desktop_agent.mcp.limits import ANSWER_TOO_LARGE
from desktop_agent.network.hosts import PrivateHost
from desktop_agent.network.redaction import Redactor
from desktop_agent.network.tls import unreadable_certificates
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.mcp import HttpConnection, McpLogLine, McpServer
from desktop_agent.types.messages import now

MAX_LINES = 1_000
MAX_LOG_LINE_LENGTH = 2_000
_MAX_LAST_LINE_LENGTH = 300


class ServerLog:
    """The last lines of a server's log. Secrets that were given to the server are removed.

    `stray_output` (a line of its output that is no message) and `exit_code` belong to the last start.
    """

    def __init__(self, listener: Callable[[McpLogLine], None] = lambda _: None) -> None:
        self._lines: deque[McpLogLine] = deque(maxlen=MAX_LINES)
        self._redactor = Redactor()
        self._listener = listener
        self._last_line = ""
        self.stray_output = ""
        self.exit_code: int | None = None

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def lines(self) -> tuple[McpLogLine, ...]:
        """Oldest first."""
        return tuple(self._lines)

    @property
    def last_line(self) -> str:
        """The last line with text since the start, for a sentence about a failure."""
        return self._last_line[:_MAX_LAST_LINE_LENGTH]

    def start(self) -> None:
        """Forget what explained the failure of an earlier start."""
        self._last_line, self.stray_output, self.exit_code = "", "", None

    def add_stray_output(self, text: str) -> None:
        """Add a line of the output that is no message."""
        self.add(text)
        self.stray_output = self._last_line[:_MAX_LAST_LINE_LENGTH]

    def add_secrets(self, secrets: tuple[str, ...]) -> None:
        """Remove these too from later lines."""
        self._redactor.add(secrets)

    def add(self, text: str, level: str = "") -> None:
        """Add a line, cut to a length that can be shown."""
        redacted = self.redact(text, MAX_LOG_LINE_LENGTH).encode("utf-8", "replace").decode()
        line = McpLogLine(
            now(), level, "".join(char if char.isprintable() or char == "\t" else "�" for char in redacted)
        )
        self._lines.append(line)
        self._last_line = line.text if line.text.strip() else self._last_line
        self._listener(line)

    def redact(self, text: str, limit: int | None = None) -> str:
        """Return the text, or `limit` characters of it, without the secrets."""
        return self._redactor.redact(text, limit)


MAX_REASON_LENGTH = 2_000
_MAX_PROBLEMS = 3
_REMEDY_LOG = "Look at its log, correct it with Edit, then press Test."
_REMEDY_FETCH = (
    "If the server must be downloaded first, as with npx and uvx, run its command once in a terminal. Then press Test."
)
_REMEDY_PROXY = "Ask the operator of the proxy, or correct the proxy in the system's settings. Then press Test."
_REMEDY_START = "Start it, or correct its address with Edit; then press Test."


class ConnectionLost(Exception):
    """The server ended, or cannot be reached any more."""


def first_error(error: BaseException) -> BaseException:
    """Return the first error in nested groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection failed, or the server has forgotten the session."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    cause = first_error(error)
    if isinstance(cause, MCPError):
        return cause.error.code == CONNECTION_CLOSED or cause.error.message in _SESSION_LOST_MESSAGES
    return isinstance(cause, ConnectionLost | OSError | EOFError) or type(cause).__name__ in _CONNECTION_ERRORS


def is_answer_too_large(error: BaseException) -> bool:
    """Whether the answer has more values than are read."""
    from mcp.shared.exceptions import MCPError

    cause = first_error(error)
    return isinstance(cause, MCPError) and cause.error.code == ANSWER_TOO_LARGE


# The library's messages for responses of the web server itself. A server that was restarted does not know our session
# any more, and reports that with a status of its choice.
_SESSION_LOST_MESSAGES = {"Session terminated", "Server returned an error response"}
_CONNECTION_ERRORS = {"ConnectError", "ReadError", "RemoteProtocolError", "BrokenResourceError", "WriteError"}


def describe_error(error: BaseException, log: ServerLog) -> str:
    """Return a few lines about an error, bounded and redacted."""
    from mcp.shared.exceptions import MCPError

    cause = first_error(error)
    if isinstance(cause, MCPError):
        text = cause.error.message
    elif isinstance(cause, ValidationError):
        text = _describe_invalid(cause)
    else:
        text = str(cause)
    return log.redact(text, MAX_REASON_LENGTH) or type(cause).__name__


def _describe_invalid(error: ValidationError) -> str:
    """Without pydantic's words about our own models."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)[:_MAX_PROBLEMS]
    descriptions = "; ".join(f"{'.'.join(map(str, problem['loc'])) or 'it'}: {problem['msg']}" for problem in problems)
    return f"its answer is not as the protocol wants it: {descriptions}"


def start_failure(error: BaseException, server: McpServer, log: ServerLog, seconds: float) -> AgentError:
    """Return why a start failed and what the person can do about it, after waiting for `seconds`."""
    cause = first_error(error)
    if isinstance(cause, PrivateHost):
        return ToolFailed(cause.sentence, "Correct its address, or allow the host in the settings of the network.")
    if isinstance(cause, AgentError):
        return cause
    connection = server.connection
    if isinstance(connection, HttpConnection):
        return _unreachable(cause, connection, log, seconds)
    if isinstance(cause, TimeoutError):
        return _no_answer(log, seconds)
    if is_connection_lost(cause):
        return _exited(log, cause)
    return ToolFailed(_verbatim(describe_error(cause, log)), _REMEDY_LOG)


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
            if unreadable := unreadable_certificates():
                return ToolFailed(*unreadable)
            return ToolFailed(Sentence(template, {**values, "why": cause.verify_message}), remedy)
        if isinstance(cause, ssl.SSLError):
            remedy = "Check whether its address should begin with http:// instead of https://."
            return ToolFailed(Sentence("“{where}” does not speak TLS as expected", values), remedy)
        if isinstance(cause, socket.gaierror):
            return ToolFailed(Sentence("the name “{host}” is not known", values), check)
        if isinstance(cause, ConnectionRefusedError):
            return ToolFailed(Sentence("nothing answers at {where}", values), _REMEDY_START)
        if type(cause).__name__ == "ProxyError":
            template = "the proxy of this system does not connect to “{host}” ({status})"
            return ToolFailed(Sentence(template, {**values, "status": str(cause).partition(" ")[0]}), _REMEDY_PROXY)
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
