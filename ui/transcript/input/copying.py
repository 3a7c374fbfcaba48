"""Copying: at once when it is little, in slices between frames when it is a whole long conversation."""

from collections.abc import Iterator
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QMimeData, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QImage

from ui.transcript.copying.forms import Forms
from ui.transcript.copying.passage import Extract, Step

MARKDOWN = "text/markdown"

_SLICE = 0.006
"""Seconds of work between two looks at the event loop."""


class Copier(QObject):
    """Puts text on the clipboard; a later copy replaces one that is still being put together.

    `progress` is a sentence while that takes its time, and empty when it is over.
    """

    progress = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._steps: Iterator[object] = iter(())
        self._done = 0
        self._is_slow = False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._go_on)

    def copy(self, text: str) -> None:
        """This text, plain."""
        self.stop()
        if text:
            QGuiApplication.clipboard().setText(text)

    def copy_markdown(self, text: str) -> None:
        """This text, which is Markdown."""
        self.stop()
        if text:
            data = QMimeData()
            data.setText(text)
            data.setData(MARKDOWN, text.encode("utf-8", "replace"))
            QGuiApplication.clipboard().setMimeData(data)

    def copy_image(self, image: QImage) -> None:
        """This picture."""
        self.stop()
        QGuiApplication.clipboard().setImage(image)

    def copy_steps(self, steps: Iterator[Step], *, markdown: bool = False) -> None:
        """What these steps make: plain, Markdown and HTML; with `markdown` the plain text is Markdown too."""
        self.stop()
        self._done = 0
        self._steps = self._work(steps, markdown=markdown)
        self._timer.start()
        self._go_on()

    def stop(self) -> None:
        """Give up a copy that is not complete."""
        self._timer.stop()
        self._steps = iter(())
        if self._is_slow:
            self._is_slow = False
            self.progress.emit("")

    def _work(self, steps: Iterator[Step], *, markdown: bool) -> Iterator[None]:
        forms = Forms()
        for step in steps:
            if isinstance(step, Extract):
                forms.add(step)
            elif isinstance(step, str):
                forms.head(step)
            else:
                forms.end_message()
                self._done = step
            yield
        yield from forms.finish()
        data = QMimeData()
        data.setText(forms.markdown if markdown else forms.plain)
        data.setData(MARKDOWN, forms.markdown.encode("utf-8", "replace"))
        yield
        if not markdown:
            data.setHtml(forms.html)
            yield
        if forms.plain:
            QGuiApplication.clipboard().setMimeData(data)

    def _go_on(self) -> None:
        until = perf_counter() + _SLICE
        for _ in self._steps:
            if perf_counter() > until:
                self._is_slow = True
                words = QCoreApplication.translate("Transcript", "Copying… {0} messages so far.")
                self.progress.emit(words.format(self._done))
                return
        self.stop()
