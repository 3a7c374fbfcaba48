"""Map exceptions of the HTTP library to our errors, each with a sentence."""

import errno
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from desktop_agent.network.tls import unreadable_certificates
from desktop_agent.types.errors import (
    AgentError,
    ConnectionFailed,
    ProviderError,
    Sentence,
    TimedOut,
    Truncated,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.providers import Timeouts

if TYPE_CHECKING:
    import httpx

    from desktop_agent.providers.transport.httpx_transport import ReadLimits

PROXY_AUTH_REQUIRED = 407
_PROXY_REMEDY = (
    "Ask the operator of the proxy, or correct its address in the system's settings or in the environment "
    "(http_proxy, https_proxy, all_proxy)."
)
_TLS_REMEDY = "Check whether the address should begin with https:// instead of http://."
_NOT_HTTP = Sentence("it did not answer in HTTP")
_ERRNO_SENTENCES = {
    errno.ECONNREFUSED: Sentence("nothing listens at {where}"),
    errno.ENETUNREACH: Sentence("there is no route to {where}"),
    errno.EHOSTUNREACH: Sentence("there is no route to {where}"),
    errno.ECONNRESET: Sentence("{where} closed the connection"),
}


def error_from_connect(
    error: "httpx.HTTPError | httpx.InvalidURL | UnicodeError | OSError", where: str, limits: Timeouts, *, is_sent: bool
) -> AgentError:
    """Return the error for a failure before the server answered. `where` is host and port, for the sentence."""
    name = type(error).__name__
    if name == "ConnectTimeout":
        values = {"where": where, "seconds": f"{limits.connect:g}"}
        return TimedOut(Sentence("no connection to {where} within {seconds} seconds", values))
    if name == "WriteTimeout":
        values = {"where": where, "seconds": f"{limits.idle:g}"}
        return TimedOut(Sentence("{where} did not take the request for {seconds} seconds", values))
    if name in ("ReadTimeout", "PoolTimeout"):
        message = _silence(where, limits.headers or limits.idle)
        return TimedOut.after_sending(message) if is_sent else TimedOut(message)
    # A host name that cannot be encoded, or is marked as encoded and is not (RFC 5891), is a UnicodeError.
    if name in ("InvalidURL", "UnsupportedProtocol") or isinstance(error, UnicodeError):
        return WrongUse(Sentence("“{where}” is not an address that can be asked.", {"where": where}))
    if name == "LocalProtocolError":
        return ConnectionFailed(
            Sentence("the request to {where} could not be written", {"where": where}), retryable=False
        )
    if name == "ProxyError":
        return _proxy_error(str(error), where)
    return _error_from_causes(error, where)


def _proxy_error(message: str, where: str) -> ConnectionFailed:
    """Return the error for a proxy that does not connect: `message` is its name, its status, and text."""
    proxy, status, *_ = f"{message}  ".split(" ")
    if not status.isascii() or not status.isdigit():
        return ConnectionFailed(Sentence("the proxy {proxy} cannot be reached", {"proxy": proxy}), remedy=_PROXY_REMEDY)
    if int(status) == PROXY_AUTH_REQUIRED:
        return proxy_auth_error()
    values = {"proxy": proxy, "where": where, "status": status}
    return ConnectionFailed(
        Sentence("the proxy {proxy} does not connect to {where} ({status})", values),
        status=int(status),
        retryable=int(status) >= 500,
        remedy=_PROXY_REMEDY,
    )


def proxy_auth_error() -> ConnectionFailed:
    """Return the error for a proxy that requires credentials (RFC 9110, 15.5.8). The server was never reached."""
    return ConnectionFailed(
        Sentence("the proxy on the way wants a name and a password"),
        status=PROXY_AUTH_REQUIRED,
        retryable=False,
        remedy="Put them into the proxy's address, in the system's settings or in the environment "
        "(http_proxy, https_proxy, all_proxy): http://name:password@host:port.",
    )


def error_from_read(error: Exception, where: str, limits: "ReadLimits") -> ProviderError:
    """Return the error for a failure in the middle of a body; `limits` are those that applied."""
    name = type(error).__name__
    if name == "ReadTimeout" and limits.is_over:
        message = Sentence("{where} kept the connection open, but sent nothing more of the answer", {"where": where})
        remedy = (
            "The request may be billed already, so it was not sent again by itself. Try again, or ask another server."
        )
        return TimedOut(message, retryable=False, remedy=remedy)
    if name == "ReadTimeout":
        return TimedOut.after_sending(_silence(where, limits.silence))
    if name == "DecodingError":
        return UnreadableAnswer(Sentence("its compressed body is damaged"))
    fault = _protocol_fault(error)
    if fault is not None and not str(fault).startswith("peer "):
        return Truncated(Sentence("{where} broke the rules of HTTP in the middle", {"where": where}))
    return Truncated(Sentence("{where} closed the connection", {"where": where}))


def _error_from_causes(error: BaseException, where: str) -> ProviderError:
    # Late: it loads the HTTP library, which the window does not need at its start.
    from desktop_agent.network.fetch import NotHttp

    host = where.rpartition(":")[0] or where
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _untrusted_error(cause, host)
        if isinstance(cause, ssl.SSLError) or _is_broken_handshake(cause):
            return ConnectionFailed(
                Sentence("{where} does not speak TLS as expected", {"where": where}),
                retryable=False,
                remedy="Check whether the address should begin with http:// instead of https://.",
            )
        if isinstance(cause, socket.gaierror):
            return ConnectionFailed(Sentence("the name {host} is not known", {"host": host}))
        if isinstance(cause, NotHttp):
            remedy = _TLS_REMEDY if cause.is_tls else None
            return UnreadableAnswer(_NOT_HTTP, remedy=remedy)
        if isinstance(cause, OSError) and cause.errno in _ERRNO_SENTENCES:
            return ConnectionFailed(replace(_ERRNO_SENTENCES[cause.errno], values={"where": where}))
    fault = _protocol_fault(error)
    if fault is not None:
        too_long = getattr(fault, "error_status_hint", 0) == 431
        return UnreadableAnswer(Sentence("its headers are too long") if too_long else _NOT_HTTP)
    if type(error).__name__ in ("RemoteProtocolError", "ReadError"):
        return ConnectionFailed(Sentence("{where} closed the connection without an answer", {"where": where}))
    return ConnectionFailed(Sentence("no connection to {where}", {"where": where}))


def _is_broken_handshake(error: BaseException) -> bool:
    """Return whether a connection ended in its TLS handshake: asyncio then raises an error without a number."""
    return isinstance(error, ConnectionResetError) and error.errno is None


def _untrusted_error(error: ssl.SSLCertVerificationError, host: str) -> ConnectionFailed:
    if unreadable := unreadable_certificates():
        return ConnectionFailed(unreadable[0], retryable=False, remedy=unreadable[1])
    return ConnectionFailed(
        Sentence("the certificate of {host} is not trusted ({why})", {"host": host, "why": error.verify_message}),
        retryable=False,
        remedy="Check the address; a private server needs its certificate in the system's trust store.",
    )


def _silence(where: str, seconds: float) -> Sentence:
    return Sentence("{where} said nothing for {seconds} seconds", {"where": where, "seconds": f"{seconds:g}"})


def _protocol_fault(error: BaseException) -> BaseException | None:
    """Return h11's error about bytes that are not HTTP."""
    causes = (cause for cause in _causes(error) if type(cause).__module__.startswith("h11"))
    return next((cause for cause in causes if type(cause).__name__ == "RemoteProtocolError"), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and all its causes, groups opened."""
    queue: list[BaseException] = [error]
    seen_ids: set[int] = set()
    while queue:
        error = queue.pop(0)
        if id(error) in seen_ids:
            continue
        seen_ids.add(id(error))
        yield error
        queue.extend(getattr(error, "exceptions", ()))  # of a group: several addresses were tried
        queue.extend(cause for cause in (error.__cause__, error.__context__) if cause is not None)
