"""A second start on the same data folder raises the first window instead of opening another."""

from pathlib import Path

from PySide6.QtCore import QByteArray, QCryptographicHash, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

# A window that runs answers within milliseconds; a dead one's socket refuses at once.
PATIENCE_MS = 500


class SingleInstance(QObject):
    """`raise_requested`: somebody started the program again."""

    raise_requested = Signal()

    def __init__(self, folder: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        # Qt's: Python's own would load OpenSSL before the window is drawn.
        place = QByteArray(str(folder.resolve()).encode("utf-8", "surrogateescape"))
        digest = bytes(QCryptographicHash.hash(place, QCryptographicHash.Algorithm.Sha256).data()).hex()
        self._name = f"desktop-agent-{digest[:24]}"
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def is_first(self) -> bool:
        """Whether no other window runs on this folder; if one does, it comes to the front."""
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if socket.waitForConnected(PATIENCE_MS):
            socket.disconnectFromServer()
            return False
        # A crash leaves a dead socket file behind, and listening fails while it is there.
        QLocalServer.removeServer(self._name)
        self._server.listen(self._name)
        return True

    def close(self) -> None:
        """Let the next start be the first."""
        self._server.close()

    def _on_connection(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.disconnected.connect(socket.deleteLater)
            socket.disconnectFromServer()
        self.raise_requested.emit()
