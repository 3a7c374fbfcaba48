"""A second start on the same data folder raises the first window instead of opening another."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QDir, QObject, QSocketNotifier, Signal

from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from desktop_agent.types.errors import Sentence, StorageFailed

if TYPE_CHECKING:
    import socket

# A running window answers within milliseconds; the socket of a dead one refuses at once.
CONNECT_TIMEOUT_MS = 500
_PREFIX = "desktop-agent-"
_STARTING = "starting"
"""The address of a window that does not listen yet."""


class SingleInstance(QObject):
    """A lock in the data folder that names its owner's socket.

    `raise_requested` is emitted when the program was started again.
    """

    raise_requested = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_raised = False
        """Whether the first window was raised."""
        self._lock = FileLock(lock_path(folder, "window"), folder)
        self._server = _PipeServer(self) if sys.platform == "win32" else _SocketServer(self)
        self._server.connected.connect(self.raise_requested)

    def is_first(self) -> bool:
        """Return whether no other window runs on this folder; if one does, raise it.

        If nothing can be locked, this is the first: opening the engine then reports the problem.
        """
        old_holder = self._lock.holder()
        try:
            is_first = self._lock.acquire(Holder.this_process("window", _STARTING))
        except StorageFailed:
            return True
        if not is_first:
            self.is_raised = self._is_raised()
        elif old_holder is not None and Path(old_holder.address).name.startswith(_PREFIX):
            # A crash leaves a dead socket file behind.
            _remove_socket(old_holder.address)
        return is_first

    def listen(self) -> None:
        """Listen to later starts. Not before the window is painted: what is needed for it takes a while to load."""
        # Before the name is published: whoever reads it can connect.
        address = self._server.listen(f"{_PREFIX}{os.getpid()}-{time.time_ns():x}")
        self._lock.rename_holder(Holder.this_process("window", address))

    @property
    def sentence(self) -> Sentence:
        """The answer to a second start."""
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

    def _is_raised(self) -> bool:
        holder = self._lock.holder()
        if holder is None or holder.is_elsewhere or holder.is_gone:
            return False
        # The window of a process that starts comes to the front by itself.
        return holder.address == _STARTING or _can_connect(holder.address)


if sys.platform == "win32":
    from PySide6.QtNetwork import QLocalServer, QLocalSocket

    class _PipeServer(QObject):
        """A named pipe that only the same user may open."""

        connected = Signal()

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
                pipe.disconnected.connect(pipe.deleteLater)
                pipe.disconnectFromServer()
            self.connected.emit()

    def _can_connect(address: str) -> bool:
        pipe = QLocalSocket()
        pipe.connectToServer(address)
        is_connected = pipe.waitForConnected(CONNECT_TIMEOUT_MS)
        pipe.disconnectFromServer()
        return is_connected

    def _remove_socket(address: str) -> None:
        QLocalServer.removeServer(address)

else:
    # Not QtNetwork, which does the same: it takes 3 MB as long as the program runs.

    class _SocketServer(QObject):
        """A socket in the folder for temporary files that only the same user may open."""

        connected = Signal()

        def __init__(self, parent: QObject) -> None:
            super().__init__(parent)
            self._address = ""
            self._socket: socket.socket | None = None
            self._notifier: QSocketNotifier | None = None

        def listen(self, name: str) -> str:
            """Return the address; "" if there can be none."""
            import socket

            address = f"{QDir.tempPath()}/{name}"
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.setblocking(False)
            try:
                listener.bind(address)
                # Until it listens, nobody can connect.
                Path(address).chmod(0o600)
                listener.listen()
            except OSError:
                listener.close()
                return ""
            self._address, self._socket = address, listener
            self._notifier = QSocketNotifier(listener.fileno(), QSocketNotifier.Type.Read, self)
            self._notifier.activated.connect(self._on_connection)
            return address

        def close(self) -> None:
            if self._socket is None or self._notifier is None:
                return
            self._notifier.setEnabled(False)
            self._socket.close()
            self._socket = self._notifier = None
            _remove_socket(self._address)

        def _on_connection(self) -> None:
            with suppress(OSError):
                while self._socket is not None:
                    self._socket.accept()[0].close()
            self.connected.emit()

    def _can_connect(address: str) -> bool:
        import socket

        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(CONNECT_TIMEOUT_MS / 1000)
            try:
                client.connect(address)
            except (OSError, ValueError):  # what stands in a damaged file may be no name
                return False
            return True

    def _remove_socket(address: str) -> None:
        with suppress(OSError, ValueError):
            Path(address).unlink()
