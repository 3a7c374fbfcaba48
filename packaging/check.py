"""Tries the built folder by hand: `python packaging/check.py [FOLDER]`, after `make package`.

Moves a copy elsewhere, asks it for its version and an answer from a loopback server, opens its window on a private
display, and compares size and start with a bare PySide6 window that was packaged the same way.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from build import BUILD, FOLDER, ROOT, size_of
from prune import libraries

from tests.frame.displays import display

ROUNDS = 5
PATIENCE = 30.0
ANSWER = "Packed and well."
BARE = """
import sys
from PySide6.QtWidgets import QApplication, QLabel

app = QApplication(sys.argv)
label = QLabel("bare")
label.resize(1100, 760)
label.show()
sys.exit(app.exec())
"""
# What may come from outside the folder: see DEPENDS in build.py.
SYSTEM = ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libGL", "libEGL", "libOpenGL", "ld-linux", "linux-vdso")
SYSTEM += ("libfontconfig.", "libresolv.", "libutil.", "libgcc_s.", "libstdc++.", "libxcb.", "libwayland-")
SYSTEM += ("libXau.", "libXdmcp.", "libbsd.", "libmd.")  # come with libxcb1


class Server(BaseHTTPRequestHandler):
    """Streams one answer as Chat Completions."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta, reason in (({"role": "assistant", "content": ANSWER}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def loopback_server() -> Iterator[str]:
    """Its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def environment(home: Path) -> dict[str, str]:
    """Little: no Python, nobody's home."""
    runtime = home / "run"
    runtime.mkdir(mode=0o700, exist_ok=True)
    kept = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8"}
    return {**kept, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


def bare_program() -> Path:
    """A label in a window, packaged the same way."""
    folder = BUILD / "bare"
    program = folder / "dist" / "bare" / "bare"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bare.py").write_text(BARE)
        options = ["--noconfirm", "--log-level", "ERROR", "--workpath", folder / "work", "--distpath", folder / "dist"]
        command = [sys.executable, "-m", "PyInstaller", *options, "--specpath", folder, folder / "bare.py"]
        subprocess.run(command, check=True)
    return program


def window_of(name: str, shown: dict[str, str]) -> bool:
    """Whether a window of this class is visible."""
    asked = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--class", name], env=shown, capture_output=True, check=False
    )
    return bool(asked.stdout.strip())


def start_seconds(command: list[str | Path], name: str, shown: dict[str, str]) -> float:
    """From the start of the program to its visible window; the program is ended afterwards."""
    begun = time.perf_counter()
    with subprocess.Popen(command, env=shown, stdin=subprocess.DEVNULL) as program:
        try:
            while not window_of(name, shown):
                if program.poll() is not None:
                    sys.exit(f"{name} ended with {program.returncode} before it showed a window")
                if time.perf_counter() - begun > PATIENCE:
                    sys.exit(f"{name} showed no window within {PATIENCE:.0f} s")
                time.sleep(0.005)
            return time.perf_counter() - begun
        finally:
            program.send_signal(signal.SIGTERM)
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()


def outside(folder: Path) -> list[str]:
    """Libraries that the loader takes from the system although the package does not ask for them, or does not find."""
    wrong: set[str] = set()
    found_as = {**os.environ, "LD_LIBRARY_PATH": str(folder / "_internal")}  # what the program sets for itself
    for file in libraries(folder):
        listed = subprocess.run(["ldd", file], env=found_as, capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            name, _, path = line.strip().partition(" => ")
            if path and str(folder) not in path and not name.startswith(SYSTEM):
                wrong.add(f"{name} => {path.split(' (')[0]}")
    return sorted(wrong)


def check(name: str, passed: object, detail: object) -> bool:
    """A line."""
    sys.stdout.write(f"{'ok  ' if passed else 'BAD '} {name}: {detail}\n")
    return bool(passed)


def headless(program: Path, home: Path) -> Iterator[bool]:
    """What needs no screen."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    asked = subprocess.run([program, "--version"], env=environment(home), capture_output=True, text=True, check=False)
    yield check("version", asked.stdout.strip() == f"desktop-agent {version}", asked.stdout.strip() or asked.stderr)
    with loopback_server() as url:
        command = [program, "ask", "--base-url", url, "--model", "m", "Well?"]
        asked = subprocess.run(
            command, env=environment(home), capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    told = f"{asked.stdout.strip()} {asked.stderr.strip()} (exit code {asked.returncode})"
    yield check("ask", ANSWER in asked.stdout and asked.returncode == 0, told)
    yield check("libraries from outside", not (found := outside(program.parent)), found or "only those it depends on")


def with_window(program: Path, home: Path) -> Iterator[bool]:
    """Size and start beside the bare window, and beside the same program run from the environment it was built in."""
    bare = bare_program()
    ours, theirs = size_of(program.parent) / 1e6, size_of(bare.parent) / 1e6
    yield check("size", ours < 260, f"{ours:.0f} MB, the bare window {theirs:.0f} MB")
    source = Path(sys.executable).with_name("desktop-agent")
    starts: dict[str, Callable[[dict[str, str]], float]] = {
        "packaged": lambda shown: start_seconds([program, "--demo"], "desktop-agent", shown),
        "from source": lambda shown: start_seconds([source, "--demo"], "desktop-agent", shown),
        "bare": lambda shown: start_seconds([bare], "bare", shown),
    }
    with display({**os.environ, **environment(home)}) as shown:
        times: dict[str, list[float]] = {name: [] for name in starts}
        for _ in range(ROUNDS):
            for name, start in starts.items():
                times[name].append(start(shown))
    medians = {name: statistics.median(found) for name, found in times.items()}
    told = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in medians.items())
    yield check("start", medians["packaged"] <= 1.05 * medians["from source"], told)


def main() -> int:
    """All of it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with tempfile.TemporaryDirectory(prefix="desktop agent ", ignore_cleanup_errors=True) as elsewhere:
        moved = Path(elsewhere, "moved")
        shutil.copytree(folder, moved, symlinks=True)
        home = Path(elsewhere, "home")
        home.mkdir()
        program = moved / "desktop-agent"
        results = [*headless(program, home), *with_window(program, home)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
