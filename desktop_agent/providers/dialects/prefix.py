"""What a model had read when it answered, as a digest: some servers take reasoning back only behind exactly that."""

import hashlib
from typing import Any

from desktop_agent.providers.transport.json_text import dumps


def account_digest(base_url: str, model: str) -> str:
    """A digest of server and model: reasoning state made elsewhere cannot be read there."""
    return hashlib.blake2b(dumps([base_url, model]), digest_size=8).hexdigest()


class PrefixDigest:
    """Feed it the pieces of a request in the order in which the model reads them; `value` is the digest so far.

    Pieces are given as they go over the wire, without cache marks: those change nothing for the model.
    """

    def __init__(self, account: str) -> None:
        self._hash = hashlib.blake2b(account.encode(), digest_size=16)

    def add(self, piece: Any) -> None:
        """The next piece: anything that JSON can carry."""
        self._hash.update(dumps(piece))
        self._hash.update(b"\n")

    @property
    def value(self) -> str:
        """The digest of everything added so far."""
        return self._hash.hexdigest()
