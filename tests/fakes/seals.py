"""Signs the thoughts of a model, so that a changed byte is found."""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from typing import Any, Literal

_SECRET = secrets.token_bytes(32)
_DIGEST_SIZE = 24

EITHER_ALPHABET = str.maketrans("-_", "+/")
"""For `str.translate`: Google's own client writes bytes in the other alphabet of base64."""


def canonical(value: Any) -> Any:
    """Return a JSON value without cache marks and null fields, which change nothing for a model."""
    if isinstance(value, dict):
        return {
            str(name): canonical(member)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            for name, member in value.items()  # pyright: ignore[reportUnknownVariableType]
            if name != "cache_control" and member is not None
        }
    if isinstance(value, list):
        return [canonical(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _canonical_bytes(value: Any) -> bytes:
    return json.dumps(canonical(value), sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class Prefix:
    """A digest of what comes before a thought, in the order in which the model reads it."""

    value: str = ""

    def extended_by(self, piece: Any) -> "Prefix":
        """Return this prefix with the next piece, any JSON value."""
        return Prefix(hashlib.sha256(self.value.encode() + _canonical_bytes(piece)).hexdigest())


def sign(content: Any, prefix: Prefix | None = None) -> str:
    """Return a signature for this content, after this prefix if one is given."""
    behind = prefix.value if prefix is not None else ""
    return base64.b64encode(_digest(content) + _digest([canonical(content), behind])).decode()


def find_tampering(mark: object, content: Any, prefix: Prefix | None = None) -> Literal["content", "prefix"] | None:
    """Return what was changed since it was signed, or None. A signature of another process never fits its content."""
    try:
        digests = base64.b64decode(mark.translate(EITHER_ALPHABET), validate=True) if isinstance(mark, str) else b""
    except (binascii.Error, ValueError):
        return "content"
    if not hmac.compare_digest(digests[:_DIGEST_SIZE], _digest(content)):
        return "content"
    behind = prefix.value if prefix is not None else ""
    return None if hmac.compare_digest(digests[_DIGEST_SIZE:], _digest([canonical(content), behind])) else "prefix"


def _digest(content: Any) -> bytes:
    return hmac.digest(_SECRET, _canonical_bytes(content), "sha256")[:_DIGEST_SIZE]
