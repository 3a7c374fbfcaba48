"""What the packaged program does with parts that it starts or loads only when they are used."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopback import serving
from tests.fakes.dictionaries import GERMAN, write_dictionary
from tests.fakes.local_models import install_server, servers_of, write_model
from tests.fakes.window_process import NO_TITLES, Screen, opened, wait_until
from tests.frame.displays import program as installed
from tests.whole_app.steps import command_by_keys

Check = tuple[str, bool, str]
MISSPELT = {"recieve": "receive", "Katzze": "Katze"}
"""By the dictionary that the program brings, and by one of the person."""
KEYS = "Ctrl+Alt+Q"
MODEL = "tiny-Q8_0"
NEWER = "99.0.0"


def features(program: Path, shown: dict[str, str], home: Path) -> Iterator[Check]:
    """Try each of them in the packaged program."""
    yield spelling(program, shown, home / "spelled")
    yield keys_everywhere(program, shown, home / "keys")
    yield model_file(program, shown, home)
    yield new_version(program, shown, home / "updated")


def spelling(program: Path, shown: dict[str, str], data: Path) -> Check:
    """Check that the menu of a wrong word offers others: the worker process has the library and its dictionaries."""
    write_dictionary(data / "hunspell", "de_DE", GERMAN)
    write_preferences(data, spelling={"languages": ["de_DE", "en_US"]})
    with opened(shown, data, "--demo", command=[str(program)]) as (_, screen):
        screen.wait_for("Message")
        screen.focus("Message")
        for wrong, right in MISSPELT.items():
            screen.keys("ctrl+a")
            screen.type(wrong)
            screen.keys("Home")
            wait_until(f"{right!r} is offered", lambda right=right: is_offered(screen, right))
    return "spelling", True, ", ".join(f"{right} for {wrong}" for wrong, right in MISSPELT.items())


def is_offered(screen: Screen, word: str) -> bool:
    """Open the menu at the caret and close it. A word that is not checked yet has no suggestions there."""
    screen.keys("shift+F10")
    wait_until("a menu opens", lambda: screen.find("", "popup menu"))
    offered = screen.find(word, "menu item") is not None
    screen.keys("Escape")
    screen.wait_gone("", "popup menu")
    return offered


def keys_everywhere(program: Path, shown: dict[str, str], data: Path) -> Check:
    """Check that the keys of the quick question are grabbed from the X server."""
    write_preferences(data, chat={**NO_TITLES["chat"], "quick_ask_keys": KEYS})
    press = [installed("xdotool"), "key", KEYS.lower()]

    def is_open() -> bool:
        # They are grabbed after the first paint.
        subprocess.run(press, env=shown, check=True)
        return screen.find("Quick question") is not None

    with opened(shown, data, "--demo", command=[str(program)]) as (_, screen):
        screen.wait_for("Message")
        wait_until("the small window opens", is_open)
    return "keys that work everywhere", True, f"{KEYS} opens the small window"


def model_file(program: Path, shown: dict[str, str], home: Path) -> Check:
    """Check that a model file answers: its server, a program of the system, gets no library or plugin of ours."""
    model = write_model(home / ".lmstudio/models/a/b" / f"{MODEL}.gguf")
    server, variables = Path(install_server(home)), home / "environment"
    script = server.read_text()
    server.write_text(script.replace("exec ", f'env > "{variables}"\nexec '))
    environment = {**shown, "HOME": str(home), "DESKTOP_AGENT_LLAMA_SERVER": str(server)}
    with opened(environment, home / "modelled", command=[str(program)]) as (_, screen):
        screen.wait_for("Run a model file…")
        screen.press("Run a model file…")
        screen.wait_for(f"Run {MODEL}")
        screen.press(f"Run {MODEL}")
        screen.wait_for("Message")
        screen.send("Hello")
        screen.wait_says(f"Hello from {MODEL}")
    wait_until("its server ends", lambda: not servers_of(model))
    own = [line for line in variables.read_text().splitlines() if str(program.parent) in line]
    return "a model file", own == [], f"answers; variables of its server that point into the program: {own or 'none'}"


def new_version(program: Path, shown: dict[str, str], data: Path) -> Check:
    """Check that a build with a feed asks it when the person presses the button."""
    with serving() as server, with_update_feed(program, server.url.replace("/v1", "/newest.json")):
        server.documents["/newest.json"] = {"version": NEWER, "date": "2026-12-01", "page": "https://example.org/"}
        with opened(shown, data, "--demo", command=[str(program)]) as (_, screen):
            screen.wait_for("Message")
            command_by_keys(screen, "About Desktop Agent")
            screen.wait_for("Check for a new version")
            screen.press("Check for a new version")
            text = screen.wait_says(NEWER)
    line = next(line for line in text.splitlines() if NEWER in line)
    return "a new version is found", True, line


@contextmanager
def with_update_feed(program: Path, feed: str) -> Iterator[None]:
    """Give the program this feed of new versions, in place of the one of its build."""
    file = next(program.parent.rglob("resources/guide.md")).with_name("updates.json")
    before = file.read_bytes() if file.exists() else None
    file.write_text(json.dumps({"feed": feed}))
    try:
        yield
    finally:
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)


def write_preferences(data: Path, **preferences: Any) -> None:
    """Write the preferences of a data folder that no program has open."""
    data.mkdir(parents=True, exist_ok=True)
    (data / "preferences.json").write_text(json.dumps({**NO_TITLES, **preferences}))
