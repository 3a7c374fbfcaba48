"""Against a real secret service on a bus of its own, with a home of its own, in processes of their own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import KeyringMissing

CHILD = Path(__file__).with_name("keyring_child.py")
PLANTED = "sk-planted-0123456789-never-to-be-seen"

UNLOCKED = 'eval "$(printf "pw" | gnome-keyring-daemon --unlock --components=secrets)"; exec "$@"'
# The login collection is made with one password, then the daemon starts again and nobody gives that password.
LOCKED = """
printf "pw" | gnome-keyring-daemon --unlock --components=secrets >/dev/null
"$1" "$2" prepare >/dev/null
gnome-keyring-daemon --replace --daemonize --components=secrets >/dev/null 2>&1
exec "$@"
"""


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """An environment that knows no bus, no screen, and only homes of this test."""
    # The bus listens in the runtime folder, and a socket's path may have 107 bytes at most.
    folders = {name: tmp_path / name for name in ("home", "data", "config", "cache", "run")}
    for folder in folders.values():
        folder.mkdir(mode=0o700)
    return {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C.UTF-8",
        "HOME": str(folders["home"]),
        "XDG_DATA_HOME": str(folders["data"]),
        "XDG_CONFIG_HOME": str(folders["config"]),
        "XDG_CACHE_HOME": str(folders["cache"]),
        "XDG_RUNTIME_DIR": str(folders["run"]),
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "PLANTED": PLANTED,
    }


@pytest.fixture
def screen() -> Iterator[str]:
    """A screen on which the prompt can wait for ever."""
    if not shutil.which("Xvfb"):
        pytest.skip("Xvfb is not installed")
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL) as server:
        os.close(write)
        with os.fdopen(read) as numbers:
            number = numbers.readline().strip()
        assert number
        yield f":{number}"
        server.terminate()


def run(environment: dict[str, str], *command: str) -> dict[str, Any]:
    """What the child says, as a line of JSON; and whatever is said, never the planted key. The bus may say more."""
    # A group of its own, so that a bus whose child hangs can be ended; with the bus go the daemons on it.
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        told, complained = child.communicate(timeout=300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert child.returncode == 0, complained
    assert PLANTED not in told + complained
    return json.loads(next(line for line in reversed(told.splitlines()) if line.startswith("{")))


def in_session(environment: dict[str, str], script: str, scenario: str) -> dict[str, Any]:
    for program in ("dbus-run-session", "gnome-keyring-daemon"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    shell = ["sh", "-c", script, "sh", sys.executable, str(CHILD), scenario]
    return run(environment, "dbus-run-session", "--", *shell)


def test_a_real_keyring_keeps_replaces_and_forgets(alone: dict[str, str], tmp_path: Path) -> None:
    said = in_session(alone, UNLOCKED, "keep")
    assert said["before"] is None
    assert said["after_set"] is True
    assert said["in_another_store"] is True
    assert said["other_service"] is None
    assert said["memory_first"] == "in memory"
    assert said["after_replacing"] == "second"
    assert said["remembered_after_replacing"] is None
    assert said["after_deleting"] is None
    assert said["deleting_again"] == "no error"
    assert "SecretService" in said["backend"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(PLANTED.encode() in path.read_bytes() for path in files)


def test_a_locked_keyring_is_said_to_be_locked(alone: dict[str, str]) -> None:
    said = in_session(alone, LOCKED, "locked")
    assert said["errors"] == ["KeyringLocked", "KeyringLocked", "KeyringLocked"]
    assert said["gave_up_waiting"] == [False, False, False]
    assert said["session"] is True


def test_a_prompt_that_nobody_answers_does_not_hang(alone: dict[str, str], screen: str) -> None:
    said = in_session({**alone, "DISPLAY": screen}, LOCKED, "unanswered")
    assert said["errors"] == ["KeyringLocked", "KeyringLocked", "KeyringLocked"]
    assert said["gave_up_waiting"] == [True, True, True]
    assert said["session"] is True


def test_without_a_keyring_it_is_missing_and_memory_serves(alone: dict[str, str]) -> None:
    said = run(alone, sys.executable, str(CHILD), "missing")
    assert said["errors"] == ["KeyringMissing", "KeyringMissing", "KeyringMissing"]
    assert said["session"] is True
    assert said["after_deleting"] == "KeyringMissing"


@pytest.mark.parametrize(
    "backend", ["keyring.backends.null.Keyring", "strange_keyrings.Plaintext", "strange_keyrings.Weak"]
)
def test_an_unsafe_backend_counts_as_missing(alone: dict[str, str], backend: str) -> None:
    alone["PYTHON_KEYRING_BACKEND"] = backend
    alone["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    said = run(alone, sys.executable, str(CHILD), "missing")
    assert said["errors"] == ["KeyringMissing", "KeyringMissing", "KeyringMissing"]


def test_a_lock_that_is_wrapped_in_another_error_is_one(alone: dict[str, str]) -> None:
    alone["PYTHON_KEYRING_BACKEND"] = "strange_keyrings.Wrapping"
    alone["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    assert run(alone, sys.executable, str(CHILD), "locked")["errors"] == ["KeyringLocked"] * 3


def test_a_backend_that_waits_for_ever_is_given_up_and_does_not_hold_the_program(alone: dict[str, str]) -> None:
    alone["PYTHON_KEYRING_BACKEND"] = "strange_keyrings.Waiting"
    alone["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    said = run(alone, sys.executable, str(CHILD), "unanswered")
    assert said["errors"] == ["KeyringLocked", "KeyringLocked", "KeyringLocked"]
    assert said["calls_to_the_backend"] == 1  # no second prompt beside the first


def test_a_key_appears_in_no_repr_error_traceback_or_log(alone: dict[str, str]) -> None:
    alone["PYTHON_KEYRING_BACKEND"] = "strange_keyrings.Telling"
    alone["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    said = run(alone, sys.executable, str(CHILD), "tell")
    assert said["raised"] == ["SecretsUnavailable", "SecretsUnavailable"]
    assert said["looked_at"] > 1000
    assert said["seen_in"] == []


async def test_memory_comes_first_and_is_asked_without_a_keyring() -> None:
    store = SecretStore()
    store.remember_for_session("key", SecretStr("x"))
    found = await store.get("key")
    assert found is not None
    assert found.get_secret_value() == "x"
    await store.delete("key")  # it was in memory only, so a missing keyring is no error
    with pytest.raises(KeyringMissing):
        await store.get("key")
    with pytest.raises(KeyringMissing):
        await store.delete("key")
