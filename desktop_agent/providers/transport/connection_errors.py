"""Map exceptions of the HTTP library to our errors, each with a sentence."""

import errno
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

from desktop_agent.types.errors import (
    AgentError,
    ConnectionFailed,
    ProviderError,
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
    "Ask who runs the proxy, or correct its address in the system's settings or in the environment "
    "(http_proxy, https_proxy, all_proxy)."
)
_TLS_REMEDY = "Check whether the address should begin with https:// instead of http://."
_ERRNO_SENTENCES = {
    errno.ECONNREFUSED: "nothing listens at {where}",
    errno.ENETUNREACH: "there is no route to {where}",
    errno.EHOSTUNREACH: "there is no route to {where}",
    errno.ECONNRESET: "{where} closed the connection",
}


def error_from_connect(
    error: "httpx.HTTPError | httpx.InvalidURL | OSError", where: str, limits: Timeouts, *, is_sent: bool
) -> AgentError:
    """Return the error for a failure before the server answered. `where` is host and port, for the sentence."""
    name = type(error).__name__
    if name == "ConnectTimeout":
        return TimedOut(f"no connection to {where} within {limits.connect:g} seconds")
    if name == "WriteTimeout":
        return TimedOut(f"{where} did not take the request for {limits.idle:g} seconds")
    if name in ("ReadTimeout", "PoolTimeout"):
        message = f"{where} said nothing for {limits.headers or limits.idle:g} seconds"
        return TimedOut.after_sending(message) if is_sent else TimedOut(message)
    if name in ("InvalidURL", "UnsupportedProtocol"):
        return WrongUse(f"“{where}” is not an address that can be asked.")
    if name == "LocalProtocolError":
        return ConnectionFailed(f"the request to {where} could not be written", retryable=False)
    if name == "ProxyError":
        return _proxy_error(str(error), where)
    return _error_from_causes(error, where)


def _proxy_error(message: str, where: str) -> ConnectionFailed:
    """Return the error for a proxy that does not connect: `message` is its name, its status, and words."""
    proxy, status, *_ = f"{message}  ".split(" ")
    if not status.isascii() or not status.isdigit():
        return ConnectionFailed(f"the proxy {proxy} cannot be reached", remedy=_PROXY_REMEDY)
    if int(status) == PROXY_AUTH_REQUIRED:
        return proxy_auth_error()
    return ConnectionFailed(
        f"the proxy {proxy} does not connect to {where} ({status})",
        status=int(status),
        retryable=int(status) >= 500,
        remedy=_PROXY_REMEDY,
    )


def proxy_auth_error() -> ConnectionFailed:
    """Return the error for a proxy that wants credentials (RFC 9110, 15.5.8). The server was never asked."""
    return ConnectionFailed(
        "the proxy on the way wants a name and a password",
        status=PROXY_AUTH_REQUIRED,
        retryable=False,
        remedy="Put them into the proxy's address, in the system's settings or in the environment "
        "(http_proxy, https_proxy, all_proxy): http://name:password@host:port.",
    )


def error_from_read(error: Exception, where: str, limits: "ReadLimits") -> ProviderError:
    """Return the error for a failure in the middle of a body; `limits` are those that applied."""
    name = type(error).__name__
    if name == "ReadTimeout" and limits.is_over:
        message = f"{where} gave signs of life, but nothing more of an answer"
        remedy = "It may be billed already, so it was not sent again by itself. Try again, or ask another server."
        return TimedOut(message, retryable=False, remedy=remedy)
    if name == "ReadTimeout":
        return TimedOut.after_sending(f"{where} said nothing for {limits.silence:g} seconds")
    if name == "DecodingError":
        return UnreadableAnswer("its compressed body is damaged")
    fault = _protocol_fault(error)
    if fault is not None and not str(fault).startswith("peer "):
        return Truncated(f"{where} broke the rules of HTTP in the middle")
    return Truncated(f"{where} closed the connection")


def _error_from_causes(error: BaseException, where: str) -> ProviderError:
    # Late: it loads the HTTP library, which the window does not need at its start.
    from desktop_agent.network.fetch import NotHttp

    host = where.rpartition(":")[0] or where
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ConnectionFailed(
                f"the certificate of {host} is not trusted ({cause.verify_message})",
                retryable=False,
                remedy="Check the address; a private server needs its certificate in the system's trust store.",
            )
        if isinstance(cause, ssl.SSLError):
            return ConnectionFailed(
                f"{where} does not speak TLS as expected",
                retryable=False,
                remedy="Check whether the address should begin with http:// instead of https://.",
            )
        if isinstance(cause, socket.gaierror):
            return ConnectionFailed(f"the name {host} is not known")
        if isinstance(cause, NotHttp):
            remedy = _TLS_REMEDY if cause.is_tls else None
            return UnreadableAnswer("it did not answer in HTTP", remedy=remedy)
        if isinstance(cause, OSError) and cause.errno in _ERRNO_SENTENCES:
            return ConnectionFailed(_ERRNO_SENTENCES[cause.errno].format(where=where))
    fault = _protocol_fault(error)
    if fault is not None:
        too_long = getattr(fault, "error_status_hint", 0) == 431
        return UnreadableAnswer("its headers are too long" if too_long else "it did not answer in HTTP")
    if type(error).__name__ in ("RemoteProtocolError", "ReadError"):
        return ConnectionFailed(f"{where} closed the connection without an answer")
    return ConnectionFailed(f"no connection to {where}")


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
