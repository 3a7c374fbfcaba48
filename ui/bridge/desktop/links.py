"""Links of the program's own scheme, and files that other programs open with it. Their content is never sent by itself.

    desktop-agent://new?prompt=TEXT
    desktop-agent://conversation/ID
    desktop-agent://conversation/ID?at=MESSAGE

Anybody can write such a link into a page, so nothing in it is trusted.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.hidden_characters import find_deceptive, mark_hidden

SCHEME = "desktop-agent"
MAX_LINK_LENGTH = 32_000
"""Characters. Browsers and desktops do not pass on longer ones either."""
MAX_TEXT_BYTES = 10_000_000
_MAX_SHOWN = 80
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_ONLY_THESE = Sentence("A link can start a conversation, or open one or a message in it.")
_SAVE_AS_TEXT = Sentence("Save it as a text in UTF-8, or choose a picture.")
_OPEN_OTHER = Sentence("Choose a picture or a text.")


@dataclass(frozen=True, slots=True)
class NewConversationLink:
    """Begins a conversation with a text to read and send."""

    prompt: str = ""


@dataclass(frozen=True, slots=True)
class ConversationLink:
    """Leads to a conversation, or to one of its messages."""

    conversation_id: str
    message_id: str = ""


@dataclass(frozen=True, slots=True)
class FileTarget:
    """A file to attach, not checked yet."""

    path: Path


Target = NewConversationLink | ConversationLink | FileTarget


def conversation_link(conversation_id: str, message_id: str = "") -> str:
    """Return the link to a conversation or to one of its messages."""
    query = f"?at={quote(message_id, safe='')}" if message_id else ""
    return f"{SCHEME}://conversation/{quote(conversation_id, safe='')}{query}"


def parse_target(target: str) -> Target:
    """Return the target of a link or path. Raises WrongUse for everything else."""
    if len(target) > MAX_LINK_LENGTH:
        raise WrongUse(Sentence("The link is too long, and nothing was opened."), _ONLY_THESE)
    scheme = _ANY_SCHEME.match(target)
    match scheme.group().lower() if scheme else "":
        case "desktop-agent:":
            return _parse_link(target)
        case "file:":
            return FileTarget(_path_of(target))
        case "":
            return FileTarget(Path(target))
        case _:
            words = Sentence("Desktop Agent does not open “{address}”.", {"address": _shown(target)})
            raise WrongUse(words, _OPEN_OTHER)


def _parse_link(link: str) -> Target:
    try:
        parts = urlsplit(link)
        fields = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), errors="strict")
    except ValueError:
        raise _unknown_link() from None
    # Browsers end lines as in forms, with CR LF.
    values = {name: value.replace("\r\n", "\n") for name, value in fields}
    if any(next(find_deceptive(text), None) is not None for text in (link, *values.values())):
        words = Sentence("The link has characters in it that cannot be seen, and nothing was opened.")
        raise WrongUse(words, Sentence("It may say something other than it seems to."))
    if parts.fragment or len(values) != len(fields):
        raise _unknown_link()
    kind, path = parts.netloc, parts.path.removesuffix("/").removeprefix("/")
    if kind == "new" and not path and values.keys() <= {"prompt"}:
        return NewConversationLink(values.get("prompt", "").strip())
    message_id = values.get("at", "")
    is_valid_query = not values or (values.keys() == {"at"} and _ID.fullmatch(message_id) is not None)
    if kind == "conversation" and _ID.fullmatch(path) and is_valid_query:
        return ConversationLink(path, message_id)
    raise _unknown_link()


def _unknown_link() -> WrongUse:
    return WrongUse(Sentence("Desktop Agent does not know this link, and nothing was opened."), _ONLY_THESE)


def _path_of(address: str) -> Path:
    """Return the path of a file address. A name need not be UTF-8."""
    parts = urlsplit(address)
    path = unquote_to_bytes(parts.path.encode("utf-8", "surrogateescape"))
    if parts.netloc not in {"", "localhost"} or not path or b"\0" in path:
        words = Sentence("“{address}” is not a file on this computer.", {"address": _shown(address)})
        raise WrongUse(words, _OPEN_OTHER)
    return Path(os.fsdecode(path))


def _shown(text: str) -> str:
    return mark_hidden(text[:_MAX_SHOWN]) + ("…" if len(text) > _MAX_SHOWN else "")


def check_file(path: Path) -> None:
    """Raise WrongUse unless the path is a regular file that can be found. Blocks."""
    name = {"name": _shown(path.name or str(path))}
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise WrongUse(Sentence("There is no file “{name}” that can be read.", name), _OPEN_OTHER) from None
    if stat.S_ISDIR(mode):
        raise WrongUse(Sentence("“{name}” is a folder.", name), _OPEN_OTHER)
    if not stat.S_ISREG(mode):
        raise WrongUse(Sentence("“{name}” is a device or a channel, not a file.", name), _OPEN_OTHER)


def read_text_file(path: Path) -> str:
    """Return the text of a file, also of a PDF. Blocks. Raises WrongUse as `check_file`, and if it is no such file."""
    # Late: the start needs links, and no PDF.
    from desktop_agent.processes.pdf_text import MAX_PDF_BYTES, PDF_START, read_pdf_text

    check_file(path)
    name = {"name": _shown(path.name)}
    try:
        # The path may be a pipe by now: opening it must not wait.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise WrongUse(Sentence("“{name}” is a device or a channel, not a file.", name), _OPEN_OTHER)
            data = file.read(MAX_PDF_BYTES + 1)
    except OSError as error:
        words = Sentence("“{name}” cannot be read: {why}.", {**name, "why": error.strerror or type(error).__name__})
        raise WrongUse(words, _OPEN_OTHER) from error
    if data.startswith(PDF_START):
        return read_pdf_text(data, name["name"], MAX_TEXT_BYTES)
    if len(data) > MAX_TEXT_BYTES:
        words = Sentence("“{name}” is larger than {limit}.", {**name, "limit": "10 MB"})
        raise WrongUse(words, Sentence("Attach only the part that matters."))
    try:
        text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise WrongUse(Sentence("“{name}” is neither a picture nor a text in UTF-8.", name), _SAVE_AS_TEXT)
    return text.replace("\r\n", "\n")
