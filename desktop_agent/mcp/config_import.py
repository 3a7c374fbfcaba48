"""Import servers and secrets from the usual JSON of other programs, `{"mcpServers": {…}}`."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import SecretStr, ValidationError

from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.mcp import (
    KNOWN_KEY_PREFIXES,
    HttpConnection,
    McpServer,
    StdioConnection,
    find_option_with_secret,
)

MAX_LENGTH = 200_000
MAX_SERVERS = 50
_SECRET_NAME = re.compile(r"key|token|secret|pass|auth|cred|cookie|session|private|dsn|url|uri|conn", re.IGNORECASE)
_SECRET_VALUE = re.compile(KNOWN_KEY_PREFIXES + r"|Bearer |Basic |.*://[^/\s]*:[^/\s]*@|[\w+/=.~-]{24,}$")
_REMEDY = "Copy the whole of it again, from the first to the last brace."


@dataclass(frozen=True, slots=True)
class ImportedServers:
    """Imported servers, and their secrets by the names of the keyring."""

    servers: tuple[McpServer, ...]
    secrets: Mapping[str, SecretStr] = field(default_factory=dict[str, SecretStr])


def import_servers(text: str, taken_ids: Collection[str] = ()) -> ImportedServers:
    """Parse the JSON. `taken_ids` are in use already. Raises WrongUse that says what is wrong, and where."""
    servers: list[McpServer] = []
    secrets: dict[str, SecretStr] = {}
    ids = set(taken_ids)
    for name, entry in _parse_entries(text).items():
        server, values = _build_server(name, entry, ids)
        ids.add(server.id)
        servers.append(server)
        secrets |= {server.secret_name(secret_name): value for secret_name, value in values.items()}
    return ImportedServers(tuple(servers), secrets)


def is_likely_secret(name: str, value: str) -> bool:
    """Whether a value should go to the keyring. In doubt it should; a path or a plain word should not."""
    if value.startswith(("/", "./", "~", "C:\\")):
        return False
    return bool(_SECRET_NAME.search(name)) or bool(_SECRET_VALUE.match(value))


def _parse_entries(text: str) -> dict[str, dict[str, Any]]:
    if len(text) > MAX_LENGTH:
        raise WrongUse("This is too long to be a list of servers.", "Copy only the part with “mcpServers”.")
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = str(getattr(error, "lineno", "?"))
        # Without the cause: it contains the text and so its secrets.
        raise WrongUse(
            Sentence("This is not valid JSON: line {line} cannot be read.", {"line": line}), _REMEDY
        ) from None
    document = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    listed: Any = document.get("mcpServers", document.get("servers"))
    if listed is None and not document.keys().isdisjoint({"command", "url"}):
        raise WrongUse("The server has no name.", "Write it as {“mcpServers”: {“name”: …}}.")
    if not isinstance(listed, dict) or not listed:
        raise WrongUse("There are no “mcpServers” in this JSON.", _REMEDY)
    entries = cast("dict[str, Any]", listed)
    if len(entries) > MAX_SERVERS:
        raise WrongUse(
            "These are too many servers at once.", Sentence("Import at most {n} at a time.", {"n": str(MAX_SERVERS)})
        )
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise _import_error(name, "it is not an object with “command” or “url”")
    return cast("dict[str, dict[str, Any]]", entries)


def _build_server(name: str, entry: dict[str, Any], taken_ids: set[str]) -> tuple[McpServer, dict[str, SecretStr]]:
    kind, command, url = entry.get("type"), entry.get("command"), entry.get("url") or entry.get("serverUrl")
    if kind == "sse":
        raise _import_error(
            name, "its type “sse” is an old way of connecting", "Ask the maker of the server for its “http” address."
        )
    if command is not None and url is not None:
        raise _import_error(name, "it has both a command and an address", "Remove one of them.")
    if command is None and url is None:
        raise _import_error(name, "it has neither a command nor an address", "Give it “command” or “url”.")
    connection, secrets = (
        _stdio_connection(name, entry) if command is not None else _http_connection(name, str(url), entry)
    )
    try:
        server = McpServer(
            id=_unique_id(name, taken_ids),
            title=name.strip()[:100] or "?",
            on=entry.get("disabled") is not True,
            connection=connection,
        )
    except ValidationError:
        raise _import_error(name, "its name cannot be used", "Use letters and digits.") from None
    return server, secrets


def _stdio_connection(name: str, entry: dict[str, Any]) -> tuple[StdioConnection, dict[str, SecretStr]]:
    command: Any = entry["command"]
    args: Any = entry.get("args") or []
    if not isinstance(command, str) or not command.strip():
        raise _import_error(name, "its “command” is not the name of a program")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in cast("list[Any]", args)):
        raise _import_error(name, "its “args” are not a list of texts")
    words = cast("list[str]", args)
    _refuse_secrets(name, words)
    values = _string_values(name, entry, "env")
    secret = {word: SecretStr(value) for word, value in values.items() if is_likely_secret(word, value)}
    plain = {word: value for word, value in values.items() if word not in secret}
    return StdioConnection(command=command, args=tuple(words), env=plain, secret_env=tuple(secret)), secret


def _refuse_secrets(name: str, words: list[str]) -> None:
    """Arguments are saved in a file, and every program of the machine can read them."""
    shown = find_option_with_secret(words)
    if shown is not None:
        raise _import_error(
            name,
            Sentence("its argument “{argument}” holds a secret", {"argument": shown}),
            "Give it to the server as a variable, under “env”.",
        )


def _http_connection(name: str, url: str, entry: dict[str, Any]) -> tuple[HttpConnection, dict[str, SecretStr]]:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        raise _import_error(name, "its “url” is not a web address") from None
    if not is_valid:
        raise _import_error(name, "its “url” is not a web address", "Give it one that begins with https://.")
    if parts.username or parts.password:
        raise _import_error(name, "its address holds a name or a password", "Give them as a header, “Authorization”.")
    values = _string_values(name, entry, "headers")
    for header, value in values.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", header) or re.search(r"[\r\n\0]", value):
            raise _import_error(name, "one of its headers cannot be sent")
    return HttpConnection(url=url, headers=tuple(values)), {
        header_name: SecretStr(value) for header_name, value in values.items()
    }


def _string_values(name: str, entry: dict[str, Any], part: str) -> dict[str, str]:
    mapping: Any = entry.get(part) or {}
    values = cast("dict[str, Any]", mapping) if isinstance(mapping, dict) else None
    if values is None or not all(isinstance(value, str | int | float) for value in values.values()):
        raise _import_error(name, Sentence("its “{part}” is not an object of names and texts", {"part": part}))
    return {key: str(value) for key, value in values.items()}


def _unique_id(name: str, used_ids: set[str]) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:20].strip("-") or "server"
    numbered = (f"{base}-{number}" for number in range(2, 1_000))
    return base if base not in used_ids else next(candidate for candidate in numbered if candidate not in used_ids)


def _import_error(name: str, reason: str | Sentence, remedy: str = "Correct it and import again.") -> WrongUse:
    why = reason if isinstance(reason, Sentence) else Sentence(reason)
    values: dict[str, str | Sentence] = {"server": name[:100], "why": why}
    return WrongUse(Sentence("The server “{server}” cannot be taken over: {why}.", values), remedy)
