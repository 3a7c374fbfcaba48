"""The limit, a bare window with a QTextEdit that inserts the same pieces: `python -m tests.bench.window.bare PIECES`.

It reads no socket: at each frame it inserts, one by one, the pieces that a server would have written by then. It prints
the CPU seconds that the process used for the answer, and the number of characters that it shows.
"""

import json
import sys
import time

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QApplication, QTextEdit

from tests.bench.window.server import RATE, pieces_of

SIZE = (1180, 800)
FRAME_MS, REST_MS = 16, 1000


class Bare(QTextEdit):
    """Inserts the pieces until the answer is complete."""

    def __init__(self, pieces: list[str]) -> None:
        super().__init__()
        self._pieces, self._inserted = pieces, 0
        self.setReadOnly(True)
        self.resize(*SIZE)
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._on_frame)
        QTimer.singleShot(REST_MS, self._begin)

    def _begin(self) -> None:
        self._cpu_began, self._began = time.process_time(), time.monotonic()
        self._timer.start(FRAME_MS)

    def _on_frame(self) -> None:
        due = min(len(self._pieces), int((time.monotonic() - self._began) * RATE))
        cursor, bar = QTextCursor(self.document()), self.verticalScrollBar()
        for piece in self._pieces[self._inserted : due]:
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(piece)
        bar.setValue(bar.maximum())
        self._inserted = due
        if due == len(self._pieces):
            self._timer.stop()
            QTimer.singleShot(REST_MS, self._close)

    def _close(self) -> None:
        spent = time.process_time() - self._cpu_began
        sys.stdout.write(json.dumps({"cpu_s": spent, "characters": len(self.toPlainText())}) + "\n")
        sys.stdout.flush()
        self.close()


def main() -> int:
    """Show the window until the answer is complete."""
    app = QApplication(sys.argv[:1])
    window = Bare(pieces_of(int(sys.argv[1])))
    window.show()
    return app.exec()


if __name__ == "__main__":
    sys.exit(main())
