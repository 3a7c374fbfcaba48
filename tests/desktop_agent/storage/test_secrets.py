"""Secrets in a real secret service, on its own bus, with its own home folder, used by child processes."""

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
# The login collection is created with a password; then the daemon restarts, and nobody enters that password.
LOCKED = """
printf "pw" | gnome-keyring-daemon --unlock --components=secrets >/dev/null
"$1" "$2" prepare >/dev/null
gnome-keyring-daemon --replace --daemonize --components=secrets >/dev/null 2>&1
exec "$@"
"""


@pytest.fixture
def isolated_environment(tmp_path: Path) -> dict[str, str]:
    """An environment without a bus or a screen, and with home folders of this test alone."""
    # The bus listens in the runtime folder, and the path of a socket may have 107 bytes at most.
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
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL) as server:
        os.close(write_end)
        with os.fdopen(read_end) as numbers:
            number = numbers.readline().strip()
        assert number
        yield f":{number}"
        server.terminate()


def run_child(environment: dict[str, str], *command: str) -> dict[str, Any]:
    """Return the results that the child prints as JSON, among output of the bus; none may contain the planted key."""
    # A new process group, so that a bus whose child hangs can be killed; its daemons end with the bus.
    child = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        output, errors = child.communicate(timeout=300)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    assert child.returncode == 0, errors
    assert PLANTED not in output + errors
    return json.loads(next(line for line in reversed(output.splitlines()) if line.startswith("{")))


def in_session(environment: dict[str, str], script: str, scenario: str) -> dict[str, Any]:
    for program in ("dbus-run-session", "gnome-keyring-daemon"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    shell = ["sh", "-c", script, "sh", sys.executable, str(CHILD), scenario]
    return run_child(environment, "dbus-run-session", "--", *shell)


def test_a_real_keyring_keeps_replaces_and_forgets(isolated_environment: dict[str, str], tmp_path: Path) -> None:
    results = in_session(isolated_environment, UNLOCKED, "keep")
    assert results["before"] is None
    assert results["after_set"] is True
    assert results["in_another_store"] is True
    assert results["other_service"] is None
    assert results["memory_first"] == "in memory"
    assert results["after_replacing"] == "second"
    assert results["remembered_after_replacing"] is None
    assert results["after_deleting"] is None
    assert results["deleting_again"] == "no error"
    assert "SecretService" in results["backend"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(PLANTED.encode() in path.read_bytes() for path in files)


def test_a_locked_keyring_is_said_to_be_locked(isolated_environment: dict[str, str]) -> None:
    results = in_session(isolated_environment, LOCKED, "locked")
    assert results["errors"] == ["KeyringLocked", "KeyringLocked", "KeyringLocked"]
    assert results["gave_up_waiting"] == [False, False, False]
    assert results["session"] is True


def test_a_prompt_that_nobody_answers_does_not_hang(isolated_environment: dict[str, str], screen: str) -> None:
    results = in_session({**isolated_environment, "DISPLAY": screen}, LOCKED, "unanswered")
    assert results["errors"] == ["KeyringLocked", "KeyringLocked", "KeyringLocked"]
    assert results["gave_up_waiting"] == [True, True, True]
    assert results["session"] is True


def test_without_a_keyring_it_is_missing_and_memory_serves(isolated_environment: dict[str, str]) -> None:
    results = run_child(isolated_environment, sys.executable, str(CHILD), "missing")
    assert results["errors"] == ["KeyringMissing", "KeyringMissing", "KeyringMissing"]
    assert results["session"] is True
    assert results["after_deleting"] == "KeyringMissing"


@pytest.mark.parametrize(
    "backend", ["keyring.backends.null.Keyring", "strange_keyrings.Plaintext", "strange_keyrings.Weak"]
)
def test_an_unsafe_backend_counts_as_missing(isolated_environment: dict[str, str], backend: str) -> None:
    isolated_environment["PYTHON_KEYRING_BACKEND"] = backend
    isolated_environment["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    results = run_child(isolated_environment, sys.executable, str(CHILD), "missing")
    assert results["errors"] == ["KeyringMissing", "KeyringMissing", "KeyringMissing"]


def test_a_lock_that_is_wrapped_in_another_error_is_one(isolated_environment: dict[str, str]) -> None:
    isolated_environment["PYTHON_KEYRING_BACKEND"] = "strange_keyrings.Wrapping"
    isolated_environment["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    assert run_child(isolated_environment, sys.executable, str(CHILD), "locked")["errors"] == ["KeyringLocked"] * 3


def test_a_backend_that_waits_for_ever_is_given_up_and_does_not_hold_the_program(
    isolated_environment: dict[str, str],
) -> None:
    isolated_environment["PYTHON_KEYRING_BACKEND"] = "strange_keyrings.Waiting"
    isolated_environment["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    results = run_child(isolated_environment, sys.executable, str(CHILD), "unanswered")
    assert results["errors"] == ["KeyringLocked", "KeyringLocked", "KeyringLocked"]
    assert results["calls_to_the_backend"] == 1  # no second prompt beside the first


def test_a_key_appears_in_no_repr_error_traceback_or_log(isolated_environment: dict[str, str]) -> None:
    isolated_environment["PYTHON_KEYRING_BACKEND"] = "strange_keyrings.Leaking"
    isolated_environment["PYTHONPATH"] += os.pathsep + str(CHILD.parent)
    results = run_child(isolated_environment, sys.executable, str(CHILD), "leak")
    assert results["raised"] == ["SecretsUnavailable", "SecretsUnavailable"]
    assert results["looked_at"] > 1000
    assert results["seen_in"] == []


async def test_memory_comes_first_and_is_asked_without_a_keyring() -> None:
    store = SecretStore()
    store.remember_for_session("key", SecretStr("x"))
    secret = await store.get("key")
    assert secret is not None
    assert secret.get_secret_value() == "x"
    await store.delete("key")  # it was in memory only, so a missing keyring is no error
    with pytest.raises(KeyringMissing):
        await store.get("key")
    with pytest.raises(KeyringMissing):
        await store.delete("key")
