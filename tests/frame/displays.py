"""Starts a private X server, session bus, accessibility bus and keyring, and ends them by their own process ids."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

START = 20.0
"""Seconds that a server gets to start."""

SERVER = "TEST_DISPLAY_SERVER"
"""The process of the X server, for a test that ends it."""

ACCESSIBILITY_BUS = ("/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher")


def program(*names: str) -> str:
    """The path of the first of these that is installed; without one the test fails and names the remedy."""
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    pytest.fail(f"{names[0]} is not installed. packaging/system-packages.sh test installs it.", pytrace=False)


def wait_for(what: str, ready: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until `ready`; fail the test after START seconds, or as soon as the process has ended."""
    deadline = time.monotonic() + START
    while not ready():
        if process is not None and process.poll() is not None:
            pytest.fail(f"{what} ended at once with {process.returncode}", pytrace=False)
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not start within {START:.0f} s", pytrace=False)
        time.sleep(0.02)


@contextmanager
def running(
    command: list[str], environment: Mapping[str, str], *, pass_fds: tuple[int, ...] = (), stdin: bytes | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process group of its own; the whole group ends with the context."""
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=pass_fds,
        start_new_session=True,
    )
    try:
        if stdin is not None and process.stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
        yield process
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM, then SIGKILL. The group outlives its leader while a program that a bus started still runs."""
    for how, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    process.wait(5.0)


@contextmanager
def display(environment: Mapping[str, str], size: str = "1600x1200") -> Iterator[dict[str, str]]:
    """Xvfb on a number that it finds free itself, with openbox as the window manager."""
    read_end, write_end = os.pipe()
    command = [program("Xvfb"), "-displayfd", str(write_end), "-screen", "0", f"{size}x24", "-nolisten", "tcp"]
    # Otherwise the server resets when its only client leaves: the xprop that asks for openbox would end the openbox
    # that is starting.
    command.append("-noreset")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running(command, environment, pass_fds=(write_end,)))
            os.close(write_end)
            number = read_line(read_end, "Xvfb", server)
        finally:
            os.close(read_end)
        shown = {**environment, "DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb"}
        shown[SERVER] = str(server.pid)
        _manage_windows(shown, stack)
        yield shown


def _manage_windows(shown: dict[str, str], stack: ExitStack) -> None:
    """Start openbox. It gives up at once while the server is still starting, so it gets three tries."""
    for tries_left in (2, 1, 0):
        manager = stack.enter_context(running([program("openbox"), "--sm-disable"], shown))
        try:
            return wait_for("openbox", lambda: has_window_manager(shown), manager)
        except pytest.fail.Exception:
            if not tries_left:
                raise
    return None


def read_line(descriptor: int, what: str, process: subprocess.Popen[bytes]) -> str:
    """One line from a pipe that a server writes when it is ready."""
    os.set_blocking(descriptor, False)
    received = bytearray()

    def is_complete() -> bool:
        try:
            received.extend(os.read(descriptor, 4096))
        except BlockingIOError:
            return False
        return b"\n" in received

    wait_for(what, is_complete, process)
    return received.decode().splitlines()[0]


def has_window_manager(environment: Mapping[str, str]) -> bool:
    """True when the root window names its manager (EWMH, _NET_SUPPORTING_WM_CHECK)."""
    command = [program("xprop"), "-root", "_NET_SUPPORTING_WM_CHECK"]
    reply = subprocess.run(command, env=dict(environment), capture_output=True, check=False)
    return b"window id" in reply.stdout


@contextmanager
def session_bus(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """A D-Bus session bus of its own."""
    read_end, write_end = os.pipe()
    command = [program("dbus-daemon"), "--session", "--nofork", "--nopidfile", f"--print-address={write_end}"]
    with ExitStack() as stack:
        try:
            daemon = stack.enter_context(running(command, environment, pass_fds=(write_end,)))
            os.close(write_end)
            address = read_line(read_end, "dbus-daemon", daemon)
        finally:
            os.close(read_end)
        yield {**environment, "DBUS_SESSION_BUS_ADDRESS": address}


def wait_for_name(name: str, environment: Mapping[str, str], process: subprocess.Popen[bytes]) -> None:
    """Wait until this process owns the name. A call to the name itself would make the bus start its own server."""
    ask = [program("dbus-send"), "--session", "--print-reply=literal", "--dest=org.freedesktop.DBus"]
    ask += ["/org/freedesktop/DBus", "org.freedesktop.DBus.GetConnectionUnixProcessID", f"string:{name}"]

    def is_owner() -> bool:
        reply = subprocess.run(ask, env=dict(environment), capture_output=True, check=False)
        return reply.stdout.split()[-1:] == [str(process.pid).encode()]

    wait_for(f"the owner of {name}", is_owner, process)


@contextmanager
def accessibility(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The accessibility bus on a session bus, switched on, so that Qt answers readers in other processes."""
    launcher = program(*ACCESSIBILITY_BUS)
    with running([launcher, "--launch-immediately"], environment) as process:
        call = [program("dbus-send"), "--session", "--print-reply", "--dest=org.a11y.Bus", "/org/a11y/bus"]

        def answers() -> bool:
            get_address = [*call, "org.a11y.Bus.GetAddress"]
            return subprocess.run(get_address, env=dict(environment), capture_output=True, check=False).returncode == 0

        wait_for("at-spi-bus-launcher", answers, process)
        # at-spi2-core 2.62 has no ScreenReaderEnabled.
        for name, is_everywhere in (("IsEnabled", True), ("ScreenReaderEnabled", False)):
            switch_on = ["org.freedesktop.DBus.Properties.Set", "string:org.a11y.Status", f"string:{name}"]
            subprocess.run(
                [*call, *switch_on, "variant:boolean:true"],
                env=dict(environment),
                capture_output=True,
                check=is_everywhere,
            )
        yield {**environment, "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "QT_ACCESSIBILITY": "1"}


@contextmanager
def keyring(environment: Mapping[str, str], password: str = "test") -> Iterator[dict[str, str]]:
    """An unlocked GNOME keyring on the session bus of this environment, in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="desktop-agent-keyring-", ignore_cleanup_errors=True) as home:
        owned = {**environment, "XDG_DATA_HOME": home, "GNOME_KEYRING_TEST_PATH": home}
        command = [program("gnome-keyring-daemon"), "--foreground", "--components=secrets", "--unlock"]
        with running(command, owned, stdin=password.encode()) as daemon:
            wait_for_name("org.freedesktop.secrets", owned, daemon)
            yield {**environment, "PYTHON_KEYRING_BACKEND": "keyring.backends.SecretService.Keyring"}


def base_environment(home: Path) -> dict[str, str]:
    """The environment of a child process of a test: that of the run, with this home folder and its own XDG folders."""
    runtime = home / "run"
    runtime.mkdir(parents=True, mode=0o700, exist_ok=True)
    folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "CONFIG", "STATE", "CACHE")}
    python_path = str(Path(__file__).parents[2])
    return {**os.environ, **folders, "HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": python_path}


def _needs_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("private displays and buses are built for Linux")


@contextmanager
def readable_display(home: Path) -> Iterator[dict[str, str]]:
    """A private display, session bus and accessibility bus."""
    _needs_linux()
    with display(base_environment(home)) as shown, session_bus(shown) as bus, accessibility(bus) as readable:
        yield readable


@pytest.fixture(scope="session")
def real_display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment for child processes that show windows: display, window manager, session and accessibility bus.

    The test process itself stays offscreen. Copy the dictionary before changing it; give each child its own
    XDG_DATA_HOME and XDG_CONFIG_HOME where what it stores matters.
    """
    with readable_display(tmp_path_factory.mktemp("display")) as environment:
        yield environment


@pytest.fixture(scope="session")
def real_keyring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment for child processes that store secrets: a session bus with an unlocked GNOME keyring."""
    _needs_linux()
    environment = base_environment(tmp_path_factory.mktemp("keyring"))
    with session_bus(environment) as bus, keyring(bus) as unlocked:
        yield unlocked
