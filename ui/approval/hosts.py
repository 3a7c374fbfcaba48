"""Names of hosts, as they are shown where a person decides whether one may be reached."""

import re

from PySide6.QtCore import QUrl

from ui.look.written.order import shown_apart

_ACE = "xn--"
_PARTS = re.compile(r"(\*\.)?(.*?)(:\d+)?", re.DOTALL)


def host_words(host: str) -> str:
    """As computers write it and, where that stands for letters that could be taken for others, in these (RFC 3492).

    A wildcard in front and a port behind stay where they are.
    """
    found = _PARTS.fullmatch(host)
    wildcard, name, port = (found[1] or "", found[2], found[3] or "") if found else ("", host, "")
    plain, letters = _plain(name), in_letters(name) if name.isascii() else name
    whole = shown_apart(f"{wildcard}{plain}{port}")
    return whole if letters in {"", plain.lower()} else f"{whole} ({shown_apart(letters)})"


def in_letters(ascii_host: str) -> str:
    """What the name stands for; nothing where it cannot be read."""
    try:
        return ".".join(
            each.removeprefix(_ACE).encode("ascii").decode("punycode") if each.startswith(_ACE) else each
            for each in ascii_host.lower().split(".")
        )
    except UnicodeError:
        return ""


def _plain(name: str) -> str:
    url = QUrl()
    url.setHost(name)
    return name if name.isascii() else url.host(QUrl.ComponentFormattingOption.FullyEncoded) or name
