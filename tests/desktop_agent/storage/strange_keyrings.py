"""Backends that misbehave, named to keyring by PYTHON_KEYRING_BACKEND.

In a module of their own: keyring takes every backend class that it sees for one to choose from.
"""

import os
import threading
from typing import ClassVar

import keyring.backend

PLANTED = os.environ.get("PLANTED", "")


class Waiting(keyring.backend.KeyringBackend):
    """A backend whose prompt nobody answers."""

    priority = 5
    calls = 0

    def get_password(self, service: str, username: str) -> str | None:
        type(self).calls += 1
        threading.Event().wait()

    set_password = delete_password = get_password


class Leaking(keyring.backend.KeyringBackend):
    """A backend that fails with the key in the text of its error."""

    priority = 5

    def get_password(self, service: str, username: str) -> str | None:
        raise ValueError(PLANTED)

    def set_password(self, service: str, username: str, password: str) -> None:
        try:
            raise OSError(password)
        except OSError as error:
            raise RuntimeError(f"could not store {password}") from error


class LockedException(Exception):
    """The exception of the secret service's library, which is recognised by its name."""


class Wrapping(keyring.backend.KeyringBackend):
    """A locked backend of the lowest accepted priority; its error wraps the reason."""

    priority = 1

    def get_password(self, service: str, username: str, password: str = "") -> str | None:
        try:
            raise LockedException
        except LockedException as error:
            raise RuntimeError("could not be opened") from error

    set_password = delete_password = get_password


class Weak(keyring.backend.KeyringBackend):
    """A backend that keyring itself does not recommend."""

    priority = 0.5
    kept: ClassVar[dict[str, str]] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[username] = password


class Plaintext(Weak):
    """A stand-in for a backend of keyrings.alt with a raised priority."""

    priority = 9


Plaintext.__module__ = "keyrings.alt.file"
