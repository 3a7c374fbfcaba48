"""Copying: at once when it is little, in slices between frames when it is a whole long conversation."""

from collections.abc import Iterator
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QMimeData, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QImage

from ui.transcript.copying.forms import CopyFormats
from ui.transcript.copying.passage import CopyExtract, CopyStep

MARKDOWN_TYPE = "text/markdown"

_SLICE_SECONDS = 0.006
"""Seconds of work between two looks at the event loop."""


class ClipboardWriter(QObject):
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
        self._timer.timeout.connect(self._continue)

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
            data.setData(MARKDOWN_TYPE, text.encode("utf-8", "replace"))
            QGuiApplication.clipboard().setMimeData(data)

    def copy_image(self, image: QImage) -> None:
        """This picture."""
        self.stop()
        QGuiApplication.clipboard().setImage(image)

    def copy_steps(self, steps: Iterator[CopyStep], *, markdown: bool = False) -> None:
        """What these steps make: plain, Markdown and HTML; with `markdown` the plain text is Markdown too."""
        self.stop()
        self._done = 0
        self._steps = self._copy_in_steps(steps, markdown=markdown)
        self._timer.start()
        self._continue()

    def stop(self) -> None:
        """Give up a copy that is not complete."""
        self._timer.stop()
        self._steps = iter(())
        if self._is_slow:
            self._is_slow = False
            self.progress.emit("")

    def _copy_in_steps(self, steps: Iterator[CopyStep], *, markdown: bool) -> Iterator[None]:
        forms = CopyFormats()
        for step in steps:
            if isinstance(step, CopyExtract):
                forms.add(step)
            elif isinstance(step, str):
                forms.add_heading(step)
            else:
                forms.finish_message()
                self._done = step
            yield
        yield from forms.join_in_steps()
        data = QMimeData()
        data.setText(forms.markdown if markdown else forms.plain)
        data.setData(MARKDOWN_TYPE, forms.markdown.encode("utf-8", "replace"))
        yield
        if not markdown:
            data.setHtml(forms.html)
            yield
        if forms.plain:
            QGuiApplication.clipboard().setMimeData(data)

    def _continue(self) -> None:
        until = perf_counter() + _SLICE_SECONDS
        for _ in self._steps:
            if perf_counter() > until:
                self._is_slow = True
                words = QCoreApplication.translate("Transcript", "Copying… {0} messages so far.")
                self.progress.emit(words.format(self._done))
                return
        self.stop()
