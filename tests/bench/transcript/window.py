"""A window on a screen that notes its paintings, and whose event loop runs step by step."""

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
_CHECK = 50
"""Milliseconds between two checks whether the window still works."""
_QUIET = 0.015
"""CPU seconds between two checks that count as no work: the timers of the measurement itself need them."""


class Window(QMainWindow):
    """Shows one widget at a time, in the program's own style. `on_painted` is called after each painting."""

    def __init__(self, watchdog: Watchdog) -> None:
        super().__init__()
        self.watchdog = watchdog
        self.themes = ThemeSource()
        self.on_painted: Callable[[], None] = lambda: None
        self.paintings = 0
        self.painted_at = 0.0
        self._style = ThemeApplier(application(), self.themes, self)
        self._style.apply()
        self.resize(*SIZE)
        self.setCentralWidget(QWidget())
        self.show()
        ends_at = time.monotonic() + 20
        # A window manager may be slow, and gives the window the focus after its first painting.
        while not (self.paintings and self.isActiveWindow()):
            self.until_quiet()
            if time.monotonic() > ends_at:
                raise TimeoutError("the window was not shown")

    def event(self, event: QEvent) -> bool:
        """Note a painting: after UpdateRequest the pixels have been handed to the screen."""
        handled = super().event(event)
        if event.type() == QEvent.Type.UpdateRequest:
            self.paintings += 1
            self.painted_at = time.perf_counter()
            self.on_painted()
        return handled

    def show_widget(self, widget: QWidget) -> None:
        """Show this widget instead, and return when it is painted."""
        self.setCentralWidget(widget)
        widget.setFocus()
        self.drive(iter([None] * 3))
        self.until_quiet()

    def drive(self, steps: Iterator[None]) -> None:
        """Take a step at each turn of the loop; everything else, such as painting, happens in between."""
        self._turn(lambda: next(steps, "end") == "end", 0)

    def until_quiet(self, patience: float = 20.0) -> None:
        """Wait until timers and threads have ended their work, at most for these seconds."""
        checked_at, cpu, quiet = time.perf_counter(), time.process_time(), 0
        ends_at = checked_at + patience

        def is_over() -> bool:
            nonlocal checked_at, cpu, quiet
            now = time.perf_counter()
            if now - checked_at >= _CHECK / 1000:
                previous, cpu = cpu, time.process_time()
                quiet = quiet + 1 if cpu - previous < _QUIET * (now - checked_at) * 1000 / _CHECK else 0
                checked_at = now
            return quiet >= 3 or now > ends_at

        self._turn(is_over, 5)

    def calm(self) -> None:
        """Prepare a measurement: wait until all is quiet, and collect garbage now rather than during it."""
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
    """Return the application of this process."""
    app = QApplication.instance()
    return app if isinstance(app, QApplication) else QApplication(sys.argv[:1])


@contextmanager
def shown_window() -> Generator[Window]:
    """A window with a watchdog, until the context ends."""
    app = application()
    with Watchdog() as watchdog:
        window = Window(watchdog)
        try:
            yield window
        finally:
            window.close()
            window.deleteLater()
            app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
