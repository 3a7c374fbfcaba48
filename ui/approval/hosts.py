"""Names of hosts, as they are shown where a person decides whether one may be reached."""

import re

from PySide6.QtCore import QCoreApplication, QUrl

from desktop_agent.vocabulary.text.lookalikes import find_lookalike
from ui.look.written.order import isolate_untrusted

_ACE = "xn--"
_HOST_PATTERN = re.compile(r"(\*\.)?(.*?)(:\d+)?", re.DOTALL)


def describe_host(host: str) -> str:
    """As computers write it and, where that stands for letters that could be taken for others, in these (RFC 3492).

    A wildcard in front and a port behind stay where they are.
    """
    found = _HOST_PATTERN.fullmatch(host)
    wildcard, name, port = (found[1] or "", found[2], found[3] or "") if found else ("", host, "")
    plain, letters = _ascii_host(name), decode_punycode(name) if name.isascii() else name
    whole = isolate_untrusted(f"{wildcard}{plain}{port}")
    if letters in {"", plain.lower()}:
        return whole
    alike = find_lookalike(letters, is_name=True)
    if alike is None:
        return f"{whole} ({isolate_untrusted(letters)})"
    words = QCoreApplication.translate("Hosts", "{0} (reads “{1}”, but “{2}” is {3})")
    return words.format(whole, isolate_untrusted(letters), alike.char, alike.name)


def decode_punycode(ascii_host: str) -> str:
    """What the name stands for; nothing where it cannot be read."""
    try:
        return ".".join(
            each.removeprefix(_ACE).encode("ascii").decode("punycode") if each.startswith(_ACE) else each
            for each in ascii_host.lower().split(".")
        )
    except UnicodeError:
        return ""


def _ascii_host(name: str) -> str:
    url = QUrl()
    url.setHost(name)
    return name if name.isascii() else url.host(QUrl.ComponentFormattingOption.FullyEncoded) or name
