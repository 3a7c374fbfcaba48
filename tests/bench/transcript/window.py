"""A window on a screen, what was painted in it and when, and its loop, turned step by step."""

import gc
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QEvent, QEventLoop, Qt, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from tests.bench.transcript.watchdog import Watchdog
from ui.style.style_sheet import ThemeApplier
from ui.style.theme import ThemeSource

SIZE = (900, 800)
_LOOK = 50
"""Milliseconds between two looks whether the window still works."""
_QUIET = 0.015
"""Seconds of CPU between two looks that are nothing: the timers of the measurement itself."""


class Window(QMainWindow):
    """Shows one widget at a time, in the program's own style. `hears` is called after each painting."""

    def __init__(self, watchdog: Watchdog) -> None:
        super().__init__()
        self.watchdog = watchdog
        self.themes = ThemeSource()
        self.hears: Callable[[], None] = lambda: None
        self.paintings = 0
        self.painted_at = 0.0
        self._style = ThemeApplier(application(), self.themes, self)
        self._style.apply()
        self.resize(*SIZE)
        self.setCentralWidget(QWidget())
        self.show()
        until = time.monotonic() + 20
        # A window manager may take its time, and gives the focus later than the pixels.
        while not (self.paintings and self.isActiveWindow()):
            self.until_quiet()
            if time.monotonic() > until:
                raise TimeoutError("the window was not shown")

    def event(self, event: QEvent) -> bool:
        """After this one what is painted has been handed to the screen."""
        handled = super().event(event)
        if event.type() == QEvent.Type.UpdateRequest:
            self.paintings += 1
            self.painted_at = time.perf_counter()
            self.hears()
        return handled

    def hold(self, widget: QWidget) -> None:
        """Show this instead; returns when it is painted."""
        self.setCentralWidget(widget)
        widget.setFocus()
        self.drive(iter([None] * 3))
        self.until_quiet()

    def drive(self, steps: Iterator[None]) -> None:
        """Take a step at each turn of the loop; between two of them everything else happens, painting too."""
        self._turn(lambda: next(steps, "end") == "end", 0)

    def until_quiet(self, patience: float = 20.0) -> None:
        """Let timers and threads come to an end; returns at the latest after these seconds."""
        looked_at, used, quiet = time.perf_counter(), time.process_time(), 0
        ends_at = looked_at + patience

        def is_over() -> bool:
            nonlocal looked_at, used, quiet
            now = time.perf_counter()
            if now - looked_at >= _LOOK / 1000:
                before, used = used, time.process_time()
                quiet = quiet + 1 if used - before < _QUIET * (now - looked_at) * 1000 / _LOOK else 0
                looked_at = now
            return quiet >= 3 or now > ends_at

        self._turn(is_over, 5)

    def calm(self) -> None:
        """Before a measurement: all is quiet, and what earlier ones left is not collected in this one."""
        self.until_quiet()
        gc.collect()
        self.watchdog.reset()

    def _turn(self, is_over: Callable[[], bool], milliseconds: int) -> None:
        loop, timer = QEventLoop(), QTimer()
        timer.setTimerType(Qt.TimerType.PreciseTimer)

        def turn() -> None:
            self.watchdog.beat()
            if is_over():
                timer.stop()
                loop.quit()

        timer.timeout.connect(turn)
        timer.start(milliseconds)
        self.watchdog.beat()
        loop.exec()


def application() -> QApplication:
    """The one of this process."""
    found = QApplication.instance()
    return found if isinstance(found, QApplication) else QApplication(sys.argv[:1])


@contextmanager
def shown_window() -> Generator[Window]:
    """A window, and a watchdog beside it, until the context ends."""
    app = application()
    with Watchdog() as watchdog:
        window = Window(watchdog)
        try:
            yield window
        finally:
            window.close()
            window.deleteLater()
            app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
