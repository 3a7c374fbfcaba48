"""API keys and other secrets, in the operating system's keyring and nowhere else.

This is the only module that imports `keyring`. No plain text of a secret is a local variable of a frame that an error
could carry away: what the keyring raises stays in its thread, and only the kind of failure leaves it.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from pydantic import SecretStr

from desktop_agent.types.errors import KeyringLocked, KeyringMissing, SecretsUnavailable

SERVICE = "Desktop Agent"
TIMEOUT = 5.0

_UNSAFE_MODULES = ("keyrings.alt", "keyring.backends.null", "keyring.backends.fail")
_LOCKED_WORDS = {"LockedException", "PromptDismissedException"}
_Answer = TypeVar("_Answer")


class _Backend(Protocol):
    """What is used of keyring's backends."""

    name: str
    priority: float

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


class _NoSafeKeyring(Exception):
    """There is no backend, or only some that keep secrets in clear."""


class SecretStore:
    """Secrets by name. Every call returns within about twice the time limit, even if the keyring hangs.

    A secret from `remember_for_session` is kept in memory only and comes before the keyring's.
    """

    def __init__(self, service: str = SERVICE, timeout: float = TIMEOUT) -> None:
        self._service = service
        self._timeout = timeout
        self._session: dict[str, SecretStr] = {}
        self._lock = asyncio.Lock()
        self._pending_call: _KeyringCall[Any] | None = None

    async def get(self, name: str) -> SecretStr | None:
        """Return the secret, or None. Raises KeyringMissing, KeyringLocked, SecretsUnavailable."""
        if name in self._session:
            return self._session[name]
        return await self._call_keyring(lambda: _get_secret(self._service, name))

    async def set(self, name: str, value: SecretStr) -> None:
        """Store or replace the secret. Raises KeyringMissing, KeyringLocked, SecretsUnavailable.

        After KeyringLocked the keyring may still take the secret once it is unlocked.
        """
        await self._call_keyring(lambda: _set_secret(self._service, name, value))
        self._session.pop(name, None)

    async def delete(self, name: str) -> None:
        """Delete the secret, if there is one. Raises KeyringLocked, SecretsUnavailable, and KeyringMissing unless it
        was in memory only.
        """
        was_in_memory = self._session.pop(name, None) is not None
        try:
            await self._call_keyring(lambda: _delete_secret(self._service, name))
        except KeyringMissing:
            if not was_in_memory:
                raise

    def remember_for_session(self, name: str, value: SecretStr) -> None:
        """Keep the secret in memory until the program ends: the person's choice when there is no keyring."""
        self._session[name] = value

    def remembered_secret(self, name: str) -> SecretStr | None:
        """Return the secret if it is kept in memory; the keyring is not asked."""
        return self._session.get(name)

    async def find_keyring(self) -> str:
        """Find the keyring and return its name. Raises KeyringMissing, KeyringLocked, SecretsUnavailable."""
        return await self._call_keyring(_name_of_backend)

    async def _call_keyring(self, question: Callable[[], _Answer]) -> _Answer:
        async with self._lock:
            # An earlier call may still wait for the person to unlock the keyring: not a second prompt beside it.
            if self._pending_call:
                await self._wait_for(self._pending_call)
            call = self._pending_call = _KeyringCall(question)
            answer = await self._wait_for(call)
            self._pending_call = None
        if isinstance(answer, SecretsUnavailable):
            raise answer
        return answer

    async def _wait_for(self, call: "_KeyringCall[_Answer]") -> "_Answer | SecretsUnavailable":
        waiting = asyncio.wrap_future(call.future)
        await asyncio.wait([waiting], timeout=self._timeout)
        if not call.future.done():
            waiting.cancel()
            raise KeyringLocked("The keyring does not answer; it may be waiting to be unlocked.")
        call.thread.join()  # it has nothing left to do
        return call.future.result()


class _KeyringCall(Generic[_Answer]):
    """One request to the keyring, in a daemon thread: one that hangs does not keep the program alive."""

    def __init__(self, question: Callable[[], _Answer]) -> None:
        self.future: Future[_Answer | SecretsUnavailable] = Future()
        self.future.set_running_or_notify_cancel()  # from here on nobody can cancel it
        self.thread = threading.Thread(target=self._run, args=(question,), name="keyring", daemon=True)
        self.thread.start()

    def _run(self, question: Callable[[], _Answer]) -> None:
        try:
            answer = question()
        except Exception as error:  # noqa: BLE001  backends are plug-ins and raise whatever their libraries raise
            answer = _refusal(error)
        self.future.set_result(answer)


def _refusal(error: Exception) -> SecretsUnavailable:
    """Return our own error. Of the keyring's it has the name of the class: nothing that could hold a secret."""
    from keyring import errors  # late: see _keyring

    name = type(error).__name__
    if isinstance(error, (errors.NoKeyringError, _NoSafeKeyring)):
        return KeyringMissing("This computer offers no safe keyring for API keys.", detail=name)
    if isinstance(error, errors.KeyringLocked) or _LOCKED_WORDS & set(_names(error)):
        return KeyringLocked("The keyring is locked.", detail=name)
    return SecretsUnavailable("The keyring could not be used.", detail=name)


def _names(error: BaseException | None) -> list[str]:
    """Return class names along the chain: the secret service's "locked" arrives wrapped in keyring's InitError."""
    names: list[str] = []
    while error is not None:
        names.append(type(error).__name__)
        error = error.__cause__
    return names


def _keyring() -> _Backend:
    """Return the safe keyring that the system offers. Raises _NoSafeKeyring, and whatever a backend raises.

    The import is late because it takes a tenth of a second and looks for services.
    """
    import keyring

    chosen: Any = keyring.get_keyring()
    # A chain would fall back to its unsafe members when a safe one has nothing.
    candidates = getattr(chosen, "backends", [chosen])
    for backend in candidates:
        if _is_safe(backend):
            return backend
    raise _NoSafeKeyring


def _is_safe(backend: _Backend) -> bool:
    """Return whether a backend keeps secrets safely. Null, fail and keyrings.alt keep nothing, or keep it in clear;
    keyring itself recommends priority 1 and above.
    """
    return not type(backend).__module__.startswith(_UNSAFE_MODULES) and backend.priority >= 1


def _name_of_backend() -> str:
    return str(_keyring().name)


def _get_secret(service: str, name: str) -> SecretStr | None:
    plain = _keyring().get_password(service, name)
    return None if plain is None else SecretStr(plain)


def _set_secret(service: str, name: str, value: SecretStr) -> None:
    _keyring().set_password(service, name, value.get_secret_value())


def _delete_secret(service: str, name: str) -> None:
    from keyring import errors  # late: see _keyring

    with suppress(errors.PasswordDeleteError):  # there was none
        _keyring().delete_password(service, name)
