"""Base URLs as people enter them, and the addresses made from them."""

from urllib.parse import SplitResult, urlsplit

from desktop_agent.vocabulary.errors import WrongUse

_REMEDY = "Enter the base URL of the API, for example http://127.0.0.1:11434/v1."
_ENDPOINTS = ("/chat/completions", "/completions", "/models", "/responses", "/messages")


def api_root(base_url: str, usual_path: str = "") -> str:
    """The base URL without trailing slash, fragment or endpoint; `usual_path` completes one that is only a host.

    A query (Azure's api-version) is kept. Raises WrongUse with a sentence for what is no address of a server.
    """
    parts = _parse_base_url(base_url)
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    return parts._replace(path=path or usual_path, fragment="").geturl()


def join_url(root: str, path: str) -> str:
    """`root/path`; a `v1/` that both have stands once, and the root's query goes to the end."""
    parts = urlsplit(root)
    head = parts.path.rstrip("/")
    if path.startswith("v1/") and head.endswith("/v1"):
        path = path.removeprefix("v1/")
    return parts._replace(path=f"{head}/{path}").geturl()


def url_outside_v1(root: str, path: str) -> str:
    """An address of the same server outside of its `/v1`."""
    parts = urlsplit(root)
    return parts._replace(path=f"{parts.path.rstrip('/').removesuffix('/v1')}/{path}").geturl()


def _parse_base_url(base_url: str) -> SplitResult:
    text = base_url.strip()
    if not text:
        raise WrongUse("The server's address is empty.", _REMEDY)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise WrongUse(f"“{text[:200]}” is not an address.", _REMEDY) from None
    if parts.scheme not in ("http", "https"):
        raise WrongUse(f"“{text[:200]}” does not begin with http:// or https://.", _REMEDY)
    if parts.username is not None or parts.password is not None:
        raise WrongUse("The address holds a user name or password.", "Leave it out, and enter the key as API key.")
    if not parts.hostname or port == 0 or not text.isprintable() or any(space in text for space in " \t"):
        raise WrongUse(f"“{text[:200]}” names no server.", _REMEDY)
    return parts
