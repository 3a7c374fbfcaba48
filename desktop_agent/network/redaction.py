"""Redaction: keys and secrets that a server was given are removed from what it writes."""

import re
from collections.abc import Iterable

# Shorter ones are placeholders for a key, such as “ollama” or “lm-studio”.
_MIN_KEY_LENGTH = 10
# Shorter ones would hide common words.
_MIN_SECRET_LENGTH = 6
_MAX_SECRETS = 200


def redact_key(body: bytes, key: str) -> bytes:
    """Remove the key from what a server wrote about a call, in case the server echoes it, plain or escaped for JSON.

    Short keys stay: they are dummies, and ordinary words of errors. Never use it on the stream of an answer: a
    model may write text equal to the key, and the bytes may be cut within it.
    """
    if len(key) < _MIN_KEY_LENGTH:
        return body
    # Escapes may be escaped again, if an error quotes another error's body.
    pattern = b"".join(rb"(?:%s|\\+u00%02x)" % (_plain_or_escaped(letter), letter) for letter in key.encode())
    return re.sub(pattern, b"[key]", body, flags=re.IGNORECASE)


def _plain_or_escaped(letter: int) -> bytes:
    literal = re.escape(bytes((letter,)))
    return rb"\\*" + literal if letter in b'"\\/' else literal


class Redactor:
    """Removes the secrets that were given to one server from its texts."""

    def __init__(self) -> None:
        self._secrets: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """Remove these too from later texts. Short ones are ignored: they would hide common words."""
        ordered = dict.fromkeys((*secrets, *self._secrets))
        self._secrets = tuple(secret for secret in ordered if len(secret) >= _MIN_SECRET_LENGTH)[:_MAX_SECRETS]
        # The longest first: a secret that begins with another one is hidden whole.
        longest_first = sorted(self._secrets, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def redact(self, text: str, limit: int | None = None) -> str:
        """Return the text, or `limit` characters of it, without the secrets. No secret is cut before it is found."""
        if self._pattern is None:
            return text[:limit]
        limit = len(text) if limit is None else limit
        longest = max(map(len, self._secrets))
        pieces: list[str] = []
        length, offset = 0, 0
        while offset < len(text) and length < limit:
            remaining = limit - length
            # Only what is shown is searched: a text may be very long.
            match = self._pattern.search(text, offset, offset + remaining + longest)
            piece = f"{text[offset : match.start()]}•••" if match else text[offset : offset + remaining]
            pieces.append(piece)
            length, offset = length + len(piece), match.end() if match else len(text)
        return "".join(pieces)[:limit]
