"""A real secret service whose collection is locked, under `ask` and under what the window asks for its servers."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import Endpoint
from tests.desktop_agent.storage import test_secrets
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

KEYRING_CHILD = Path(test_secrets.__file__).with_name("keyring_child.py")
CHILD = Path(__file__).with_name("locked_keyring_child.py")
LISTING = Reply(json.dumps({"data": [{"id": "m"}]}).encode(), headers={"content-type": "application/json"})
CHOICES = ("keyring is locked", "Unlock the keyring and try again", "DESKTOP_AGENT_API_KEY")
# Both begin with a key in the keyring, `x` under the name `key`; then the daemon starts anew, with a password or none.
LOCKED = """
printf "pw" | gnome-keyring-daemon --unlock --components=secrets >/dev/null
"$1" "$2" prepare >/dev/null
gnome-keyring-daemon --replace --daemonize --components=secrets >/dev/null 2>&1
shift 2
exec "$@"
"""
UNLOCKED = LOCKED.replace("shift 2", 'printf "pw" | gnome-keyring-daemon --replace --unlock >/dev/null\nshift 2')

alone = test_secrets.isolated_environment


async def run(script: str, environment: Mapping[str, str], *command: str) -> tuple[int, str, str]:
    for program in ("dbus-run-session", "gnome-keyring-daemon"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    words = ["dbus-run-session", "--", "sh", "-c", script, "sh", sys.executable, str(KEYRING_CHILD), *command]
    pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
    # A group of its own: with it go the bus and the daemons on it.
    child = await asyncio.create_subprocess_exec(*words, env=environment, start_new_session=True, **pipes)
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await child.communicate()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
    return child.returncode or 0, out.decode(), err.decode()


def server() -> Loopback:
    answer = Reply(sse(chunk({"content": "Hello"}), chunk(finish="stop")))
    return Loopback(choose=lambda request: LISTING if request.path.endswith("/models") else answer)


def keys(server: Loopback) -> set[str | None]:
    return {request.headers.get("authorization") for request in server.requests}


async def saved(folder: Path, wants_key: Loopback) -> None:
    """A server that the window was given, whose key lies in the keyring."""
    mine = Endpoint(id="key", title="Mine", base_url=wants_key.url, needs_key=True, has_key=True)
    await asyncio.to_thread(folder.mkdir)
    providers = ProviderPreferences(endpoints=(mine,), endpoint_id="key", model="m")
    await PreferencesFile(folder).save(Preferences(providers=providers))


async def test_ask_of_a_server_without_a_key_never_loads_the_keyring(alone: dict[str, str], tmp_path: Path) -> None:
    async with server() as local:
        words = ["-m", "desktop_agent", "ask", "--data-dir", str(tmp_path / "d"), "--base-url", local.url, "hi"]
        code, out, err = await run(LOCKED, alone, sys.executable, "-X", "importtime", *words, "--model", "m")
    assert (code, out) == (0, "Hello\n")
    imported = {line.rpartition("|")[2].strip() for line in err.splitlines() if line.startswith("import time:")}
    assert "desktop_agent.storage.secrets" in imported
    assert not {name for name in imported if name.startswith(("keyring", "secretstorage"))}


@pytest.mark.parametrize(
    "by_address", few([False, True], 1, "the same sentence"), ids=["saved", "named by its address"]
)
async def test_ask_of_a_server_with_a_key_says_what_can_be_done(
    alone: dict[str, str], tmp_path: Path, by_address: bool
) -> None:
    async with server() as wants_key:
        await saved(tmp_path / "d", wants_key)
        words = [sys.executable, "-m", "desktop_agent", "ask", "--data-dir", str(tmp_path / "d"), "hi"]
        words += ["--base-url", wants_key.url, "--model", "m"] if by_address else []
        code, _, err = await run(LOCKED, alone, *words)
        assert code == 1
        assert [choice for choice in CHOICES if choice not in err] == []
        assert wants_key.requests == []
        assert (await run(UNLOCKED, alone, *words))[:2] == (0, "Hello\n")
        assert keys(wants_key) == {"Bearer x"}


async def test_ask_takes_a_key_for_this_once_beside_a_locked_keyring(alone: dict[str, str], tmp_path: Path) -> None:
    async with server() as wants_key:
        await saved(tmp_path / "d", wants_key)
        words = [sys.executable, "-m", "desktop_agent", "ask", "--data-dir", str(tmp_path / "d"), "hi"]
        words += ["--base-url", wants_key.url, "--model", "m"]
        code, out, _ = await run(LOCKED, {**alone, "DESKTOP_AGENT_API_KEY": "for-once"}, *words)
        assert (code, out) == (0, "Hello\n")
        assert keys(wants_key) == {"Bearer for-once"}


async def test_the_windows_servers_beside_a_locked_keyring(alone: dict[str, str]) -> None:
    async with server() as wants_key, server() as local:
        code, out, err = await run(LOCKED, alone, sys.executable, str(CHILD), wants_key.url, local.url)
        assert code == 0, err
        report = json.loads(out.splitlines()[-1])
        locked = "The keyring is locked. Unlock the keyring and try again, or keep the key in memory"
        assert (report["local"], report["has_keyring"]) == ("m", False)
        for name in ("locked", "given", "keep", "after_the_start"):
            assert report[name].startswith(locked), (name, report[name])
        assert (report["in_memory"], report["unlocked"]) == ("m", "m")
        assert keys(local) == {None}
        assert [request.headers.get("authorization") for request in wants_key.requests] == ["Bearer memory", "Bearer x"]
