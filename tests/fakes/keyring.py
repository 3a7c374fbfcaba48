"""A keyring in memory, which lasts as long as the test."""

import keyring
import keyring.backend
import keyring.errors
import pytest


class InMemory(keyring.backend.KeyringBackend):
    """Behaves like an unlocked keyring."""

    priority = 1

    def __init__(self):
        super().__init__()
        self.kept: dict[str, str] = {}

    def get_password(self, service, username):
        return self.kept.get(username)

    def set_password(self, service, username, password):
        self.kept[username] = password

    def delete_password(self, service, username):
        if username not in self.kept:
            raise keyring.errors.PasswordDeleteError
        del self.kept[username]


@pytest.fixture
def kept():
    """The secrets in the keyring, by name."""
    before, in_memory = keyring.get_keyring(), InMemory()
    keyring.set_keyring(in_memory)
    yield in_memory.kept
    keyring.set_keyring(before)
