"""Diagnostics of an MCP server: its log without secrets, and errors of the library in words with a remedy."""

import re
import socket
import ssl
from collections import deque
from collections.abc import Callable, Iterator
from typing import cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from desktop_agent.network.hosts import PrivateHost
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.mcp import HttpConnection, McpLogLine, McpServer
from desktop_agent.types.messages import now

MAX_LINES = 1_000
MAX_LOG_LINE_LENGTH = 2_000
_MAX_SECRETS = 200
_MAX_LAST_LINE_LENGTH = 300


class ServerLog:
    """The last lines. A secret that was given to the server is taken out, should it repeat it.

    Of the last start alone: `stray` is a line of its output that is no message, `exit_code` how it ended by itself.
    """

    def __init__(self, listener: Callable[[McpLogLine], None] = lambda _: None) -> None:
        self._lines: deque[McpLogLine] = deque(maxlen=MAX_LINES)
        self._secrets: tuple[str, ...] = ()
        self._secret_pattern: re.Pattern[str] | None = None
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
        """The last line since the start that says something, for a sentence about why a server is not there."""
        return self._last_line[:_MAX_LAST_LINE_LENGTH]

    def start(self) -> None:
        """It starts: what it said before is not why it fails now."""
        self._last_line, self.stray_output, self.exit_code = "", "", None

    def add_stray_output(self, text: str) -> None:
        """Take a line of the output that is no message."""
        self.add(text)
        self.stray_output = self._last_line[:_MAX_LAST_LINE_LENGTH]

    def add_secrets(self, secrets: tuple[str, ...]) -> None:
        """Take these out too of what comes from now on. Short ones would hide common words."""
        known = dict.fromkeys((*secrets, *self._secrets))
        self._secrets = tuple(each for each in known if len(each) >= 6)[:_MAX_SECRETS]
        # The longest first: one that begins with another is hidden whole.
        longest_first = sorted(self._secrets, key=len, reverse=True)
        self._secret_pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def add(self, text: str, level: str = "") -> None:
        """Take a line, cut to a length that can be shown."""
        kept = self.redact(text, MAX_LOG_LINE_LENGTH).encode("utf-8", "replace").decode()
        line = McpLogLine(now(), level, "".join(each if each.isprintable() or each == "\t" else "�" for each in kept))
        self._lines.append(line)
        self._last_line = line.text if line.text.strip() else self._last_line
        self._listener(line)

    def redact(self, text: str, most: int | None = None) -> str:
        """The text without the secrets, or so many of its characters: no secret is cut before it is found."""
        if self._secret_pattern is None:
            return text[:most]
        most = len(text) if most is None else most
        longest = max(map(len, self._secrets))
        said: list[str] = []
        length, at = 0, 0
        while at < len(text) and length < most:
            left = most - length
            # No further than what can be shown: a line may be very long.
            found = self._secret_pattern.search(text, at, at + left + longest)
            shown = f"{text[at : found.start()]}•••" if found else text[at : at + left]
            said.append(shown)
            length, at = length + len(shown), found.end() if found else len(text)
        return "".join(said)[:most]


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
