"""A second start on the same data folder passes its request to the first window instead of opening another."""

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from desktop_agent.types.errors import Sentence, StorageFailed

if TYPE_CHECKING:
    import socket

    from PySide6.QtCore import QSocketNotifier

# A running window answers within milliseconds; the socket of a dead one refuses at once.
CONNECT_TIMEOUT_MS = 500
_PREFIX = "desktop-agent-"
_STARTING = "starting"
"""The address of a window that does not listen yet."""
_START_SECONDS = 20.0
"""How long a start with links or files waits for such a window to listen."""
_REPLY_SECONDS = 5.0
"""How long such a start waits for the window's confirmation: the window may be busy."""
_POLL_MS = 50
_MAX_BYTES = 1_000_000
_TAKEN = b"taken\n"


class StartRequest(NamedTuple):
    """What a start asks for: links and absolute paths to open, the window for a quick question, or nothing visible."""

    targets: tuple[str, ...] = ()
    background: bool = False
    quick_ask: bool = False

    def to_line(self) -> bytes:
        """Return it as a line of JSON."""
        # ASCII with escapes: the name of a file need not be UTF-8.
        return json.dumps(self._asdict()).encode("ascii") + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Parse a line; an invalid one is a request without targets."""
        try:
            values = json.loads(line)
            targets = tuple(target for target in values["targets"] if isinstance(target, str))
        except (ValueError, LookupError, TypeError, RecursionError):
            return cls()
        return cls(targets, values.get("background") is True, values.get("quick_ask") is True)


class SingleInstance(QObject):
    """A lock in the data folder that names its owner's socket.

    `requested` is emitted when the program was started again.
    """

    requested = Signal(object)
    """A StartRequest."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.is_raised = False
        """Whether the first window was reached, and is raised or has confirmed the request."""
        self._lock = FileLock(lock_path(folder, "window"), folder)
        self._server = _PipeServer(self) if sys.platform == "win32" else _SocketServer(self)
        self._server.received.connect(self._on_received)

    def is_first(self, request: StartRequest | None = None) -> bool:
        """Return whether no other window runs on this folder; if one does, pass it the request.

        If nothing can be locked, this is the first: opening the engine then reports the problem.
        """
        old_holder = self._lock.holder()
        try:
            is_first = self._lock.acquire(Holder.this_process("window", _STARTING))
        except StorageFailed:
            return True
        if not is_first:
            self.is_raised = self._hand_over(request or StartRequest())
        elif old_holder is not None and Path(old_holder.address).name.startswith(_PREFIX):
            # A crash leaves a dead socket file behind.
            _remove_socket(old_holder.address)
        return is_first

    def listen(self) -> None:
        """Listen for later starts. Call it after the first paint, as its imports take a while."""
        # Before the address is published: a start that reads it can connect.
        address = self._server.listen(f"{_PREFIX}{os.getpid()}-{time.time_ns():x}")
        self._lock.rename_holder(Holder.this_process("window", address))

    @property
    def sentence(self) -> Sentence:
        """What a second start tells the person."""
        holder = self._lock.holder()
        process = Sentence("another process")
        if holder is not None:
            values = {"pid": str(holder.pid), "since": holder.began, "host": holder.host}
            template = (
                "process {pid} on “{host}” since {since}" if holder.is_elsewhere else "process {pid} since {since}"
            )
            process = Sentence(template, values)
        if self.is_raised:
            return Sentence("Desktop Agent is already open ({who}); its window comes to the front.", {"who": process})
        template = (
            "Desktop Agent is already open on this data folder ({who}), and does not answer. "
            "End that process, or name another folder with --data-dir."
        )
        return Sentence(template, {"who": process})

    def close(self) -> None:
        """Release the lock."""
        self._server.close()
        self._lock.release()

    @Slot(bytes)
    def _on_received(self, line: bytes) -> None:
        self.requested.emit(StartRequest.from_line(line))

    def _hand_over(self, request: StartRequest) -> bool:
        """Return whether the first window was reached."""
        from PySide6.QtCore import QThread

        end = time.monotonic() + _START_SECONDS
        while True:
            holder = self._lock.holder()
            if holder is None or holder.is_elsewhere or holder.is_gone:
                return False
            if holder.address != _STARTING:
                return _send(holder.address, request.to_line(), wait=request != StartRequest())
            if request == StartRequest():
                # The window of a process that starts comes to the front by itself.
                return True
            if time.monotonic() > end:
                return False
            QThread.msleep(_POLL_MS)


def start_program(folder: Path) -> None:
    """Start the program once more, with this data folder."""
    from PySide6.QtCore import QProcess

    program, *words = program_command()
    QProcess.startDetached(program, [*words, "--data-dir", str(folder)])


def can_restart() -> bool:
    """Return whether the program can be started in place of itself: it may have been moved or removed since."""
    program = program_command()[0]
    return Path(program).is_file() and os.access(program, os.X_OK)


def restart_program(arguments: list[str]) -> None:
    """Start the program in place of this process, whose lock must be released. Returns only if that fails.

    On Linux and macOS the process stays the same: a terminal, `make run` or a sandboxed package does not notice.
    """
    program, *words = program_command()
    # PyInstaller: the new program must not use the files that this one unpacked, as a child would.
    os.environ["PYINSTALLER_RESET_ENVIRONMENT"] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if sys.platform == "win32":
            from PySide6.QtCore import QProcess

            QProcess.startDetached(program, [*words, *arguments])
        else:
            os.execv(program, [program, *words, *arguments])  # noqa: S606  no shell is wanted
    except OSError as error:
        sys.stderr.write(f"Desktop Agent could not be started again: {error.strerror or error}\n")


def program_command() -> list[str]:
    """Return the command that starts this program. A packaged one is its own interpreter.

    An AppImage is started by its own file: its content is unmounted when this process ends.
    """
    if os.environ.get("APPIMAGE"):
        return [os.environ["APPIMAGE"]]
    if getattr(sys, "frozen", False):
        return [sys.executable]
    # The command of the installation, which finds the window.
    command = Path(sys.executable).parent / "desktop-agent"
    return [str(command)] if command.is_file() else [sys.executable, "-m", "ui"]


if sys.platform == "win32":
    from PySide6.QtNetwork import QLocalServer, QLocalSocket

    class _PipeServer(QObject):
        """A named pipe that only the same user may open."""

        received = Signal(bytes)

        def __init__(self, parent: QObject) -> None:
            super().__init__(parent)
            self._server = QLocalServer(self)
            self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
            self._server.newConnection.connect(self._on_connection)

        def listen(self, name: str) -> str:
            self._server.listen(name)
            return self._server.fullServerName()

        def close(self) -> None:
            self._server.close()

        def _on_connection(self) -> None:
            while self._server.hasPendingConnections():
                pipe = self._server.nextPendingConnection()
                pipe.setReadBufferSize(_MAX_BYTES)
                pipe.readyRead.connect(partial(self._on_bytes, pipe))
                pipe.disconnected.connect(pipe.deleteLater)

        def _on_bytes(self, pipe: QLocalSocket) -> None:
            if pipe.canReadLine():
                line = bytes(pipe.readLine().data())
                pipe.write(_TAKEN)
                pipe.disconnectFromServer()
                self.received.emit(line)

    def _send(address: str, line: bytes, *, wait: bool) -> bool:
        """Send the line. Returns whether somebody was there, and has taken it if that is waited for."""
        pipe = QLocalSocket()
        pipe.connectToServer(address)
        is_sent = pipe.waitForConnected(CONNECT_TIMEOUT_MS)
        if is_sent:
            pipe.write(line)
            is_sent = pipe.waitForBytesWritten(CONNECT_TIMEOUT_MS)
        if is_sent and wait:
            is_sent = pipe.waitForReadyRead(round(_REPLY_SECONDS * 1000))
        pipe.disconnectFromServer()
        return is_sent

    def _remove_socket(address: str) -> None:
        QLocalServer.removeServer(address)

else:
    # Not QtNetwork, which does the same: it takes 3 MB as long as the program runs.

    class _Connection(QObject):
        """Reads one line from a start, and confirms it."""

        received = Signal(bytes)

        def __init__(self, accepted: "socket.socket", parent: QObject) -> None:
            super().__init__(parent)
            accepted.setblocking(False)
            self._socket = accepted
            self._line = bytearray()
            self._notifier = _watch(accepted, self._read, self)
            # Close a connection that sends nothing.
            QTimer.singleShot(round(_REPLY_SECONDS * 1000), self, self.close)

        def close(self) -> None:
            self._notifier.setEnabled(False)
            self._socket.close()
            self.deleteLater()

        def _read(self) -> None:
            data = b""
            with suppress(OSError):
                data = self._socket.recv(65_536)
            self._line += data
            if b"\n" in data:
                with suppress(OSError):
                    self._socket.send(_TAKEN)
                self.close()
                self.received.emit(bytes(self._line))
            elif not data or len(self._line) > _MAX_BYTES:
                self.close()

    class _SocketServer(QObject):
        """A socket in the folder for temporary files that only the same user may open."""

        received = Signal(bytes)

        def __init__(self, parent: QObject) -> None:
            super().__init__(parent)
            self._address = ""
            self._socket: socket.socket | None = None
            self._notifier: QSocketNotifier | None = None

        def listen(self, name: str) -> str:
            """Return the address; "" if there can be none."""
            import socket

            from PySide6.QtCore import QDir

            address = f"{QDir.tempPath()}/{name}"
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.setblocking(False)
            try:
                listener.bind(address)
                # Before it listens, no other process can connect.
                Path(address).chmod(0o600)
                listener.listen()
            except OSError:
                listener.close()
                return ""
            self._address, self._socket = address, listener
            self._notifier = _watch(listener, self._on_connection, self)
            return address

        def close(self) -> None:
            if self._socket is None or self._notifier is None:
                return
            self._notifier.setEnabled(False)
            self._socket.close()
            self._socket = self._notifier = None
            _remove_socket(self._address)
            for connection in self.findChildren(_Connection):
                connection.close()

        def _on_connection(self) -> None:
            with suppress(OSError):
                while self._socket is not None:
                    _Connection(self._socket.accept()[0], self).received.connect(self.received)

    def _watch(readable: "socket.socket", on_readable: Callable[[], object], parent: QObject) -> "QSocketNotifier":
        # Late: PySide6 creates its type at the first use, and so that of QDir.
        from PySide6.QtCore import QSocketNotifier

        notifier = QSocketNotifier(readable.fileno(), QSocketNotifier.Type.Read, parent)
        notifier.activated.connect(on_readable)
        return notifier

    def _send(address: str, line: bytes, *, wait: bool) -> bool:
        """Send the line. Returns whether somebody was there, and has taken it if that is waited for."""
        import socket

        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(CONNECT_TIMEOUT_MS / 1000)
            try:
                client.connect(address)
            except (OSError, ValueError):  # a damaged file may hold no valid address
                return False
            client.settimeout(_REPLY_SECONDS)
            try:
                client.sendall(line)
                return not wait or client.recv(len(_TAKEN)) == _TAKEN
            except OSError:
                return not wait

    def _remove_socket(address: str) -> None:
        with suppress(OSError, ValueError):
            Path(address).unlink()
