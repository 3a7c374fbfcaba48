"""The proxy that the environment or the system names for a request to the web."""

import urllib.request
from typing import TYPE_CHECKING

from desktop_agent.network.hosts import FetchFailed, parse_web_url
from desktop_agent.types.errors import Sentence
from desktop_agent.types.providers import is_loopback

if TYPE_CHECKING:
    import httpx


def proxy_setting(scheme: str) -> str | None:
    """Return the URL of the proxy that the environment or the system names for a scheme, whatever its kind."""
    proxies = urllib.request.getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url:
        return None
    return url if "://" in url else f"http://{url}"


def is_exempt(host: str) -> bool:
    """Return whether a host is reached without a proxy: this machine, and what the settings except."""
    return is_loopback(host) or bool(urllib.request.proxy_bypass(host))


def proxy_address(scheme: str, host: str) -> str | None:
    """Return the URL of the proxy for a host; None where it is reached without one."""
    address = proxy_setting(scheme)
    return None if address is None or is_exempt(host) else address


def proxy_for(scheme: str, host: str) -> "httpx.URL | None":
    """Return the proxy of the environment or system; None for this machine. Raises FetchFailed for an unusable one."""
    address = proxy_address(scheme, host)
    if address is None:
        return None
    if not address.lower().startswith(("http://", "https://")):
        kind = address.partition("://")[0]
        sentence = Sentence("The proxy that is set is of a kind that is not supported ({kind}).", {"kind": kind})
        raise FetchFailed(sentence)
    parsed = parse_web_url(address)
    if parsed is None:
        remedy = "Correct it in the system's settings or in the environment (http_proxy, https_proxy, all_proxy)."
        raise FetchFailed(Sentence("The proxy that is set has no usable address."), remedy)
    return parsed


def proxy_refusal(host: str, status: str) -> FetchFailed:
    """Return the error for a proxy that opens no tunnel."""
    values = {"host": host, "status": status}
    sentence = Sentence("The proxy of this system does not connect to “{host}” ({status}).", values)
    return FetchFailed(sentence, "Ask the operator of the proxy, or correct the proxy in the system's settings.")
