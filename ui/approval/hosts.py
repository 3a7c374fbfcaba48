"""Names of hosts, as they are shown where a person decides whether one may be reached."""

import re

from PySide6.QtCore import QCoreApplication, QUrl

from desktop_agent.vocabulary.text.lookalikes import lookalike
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
    if letters in {"", plain.lower()}:
        return whole
    alike = lookalike(letters, is_name=True)
    if alike is None:
        return f"{whole} ({shown_apart(letters)})"
    words = QCoreApplication.translate("Hosts", "{0} (reads “{1}”, but “{2}” is {3})")
    return words.format(whole, shown_apart(letters), alike.char, alike.name)


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
