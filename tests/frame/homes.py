"""Replaces the environment before anything reads it, so that no test touches the person's files, keys or screen."""

import itertools
import os
import tempfile
from pathlib import Path

import pytest

# What would lead a test out of its own home, or change how it behaves from machine to machine.
FOREIGN = (
    "ALL_PROXY",
    "AT_SPI_BUS_ADDRESS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GNOME_KEYRING_CONTROL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LANGUAGE",
    "QT_ACCESSIBILITY",
    "QT_FONT_DPI",
    "QT_LINUX_ACCESSIBILITY_ALWAYS_ON",
    "QT_LOGGING_RULES",
    "QT_QPA_PLATFORMTHEME",
    "QT_SCALE_FACTOR",
    "QT_SCREEN_SCALE_FACTORS",
    "QT_STYLE_OVERRIDE",
    "WAYLAND_DISPLAY",
    "XDG_CURRENT_DESKTOP",
    "all_proxy",
    "http_proxy",
    "https_proxy",
)

# What a person sets for the tests themselves: how often to kill (tests/whole_app/test_kill.py), where a built llama.cpp
# lies (tests/llama_cpp/build.py).
SETTINGS = {"DESKTOP_AGENT_KILLS", "DESKTOP_AGENT_LLAMA_CPP"}


def pytest_configure(config: pytest.Config) -> None:
    """Replace the environment of the whole run, and restore it at the end."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    home = tempfile.TemporaryDirectory(prefix="desktop-agent-test-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    foreign = [name for name in os.environ if name.startswith("DESKTOP_AGENT_") or name.endswith("_API_KEY")]
    foreign = [name for name in foreign if name not in SETTINGS]
    for name in (*FOREIGN, *foreign):
        patch.delenv(name, raising=False)
    runtime = Path(home.name, "run")
    runtime.mkdir(mode=0o700)
    patch.setenv("HOME", home.name)
    patch.setenv("XDG_RUNTIME_DIR", str(runtime))
    patch.setenv("XDG_CACHE_HOME", str(Path(home.name, "cache")))
    patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    patch.setenv("LC_ALL", "C.UTF-8")
    # A person may look at a test on a real screen: QT_QPA_PLATFORM=xcb DISPLAY is not passed on, so set both there.
    patch.setenv("QT_QPA_PLATFORM", os.environ.get("QT_QPA_PLATFORM", "offscreen"))
    config.stash[HOME] = Path(home.name)


HOME = pytest.StashKey[Path]()
_count = itertools.count()


@pytest.fixture(autouse=True)
def own_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders for data, configuration and state of this test alone; made when something writes there."""
    home = request.config.stash[HOME] / f"test-{next(_count)}"
    for name in ("data", "config", "state"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(home / name))
    return home
