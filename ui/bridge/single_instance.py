"""A second start on the same data folder raises the first window instead of opening another."""

import os
import time
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from desktop_agent.types.errors import Sentence, StorageFailed

# A running window answers within milliseconds; the socket of a dead one refuses at once.
CONNECT_TIMEOUT_MS = 500
_PREFIX = "desktop-agent-"


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
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def is_first(self) -> bool:
        """Return whether no other window runs on this folder; if one does, raise it.

        If nothing can be locked, this is the first: opening the engine then reports the problem.
        """
        old_holder = self._lock.holder()
        # Listen before publishing the name: whoever reads it can connect.
        self._server.listen(f"{_PREFIX}{os.getpid()}-{time.time_ns():x}")
        try:
            is_first = self._lock.acquire(Holder.this_process("window", self._server.fullServerName()))
        except StorageFailed:
            return True
        if not is_first:
            self._server.close()
            self.is_raised = self._is_raised()
        elif old_holder is not None and Path(old_holder.address).name.startswith(_PREFIX):
            # A crash leaves a dead socket file behind.
            QLocalServer.removeServer(old_holder.address)
        return is_first

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
        if holder is None or holder.is_elsewhere:
            return False
        socket = QLocalSocket()
        socket.connectToServer(holder.address)
        is_raised = socket.waitForConnected(CONNECT_TIMEOUT_MS)
        socket.disconnectFromServer()
        return is_raised

    def _on_connection(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.disconnected.connect(socket.deleteLater)
            socket.disconnectFromServer()
        self.raise_requested.emit()
