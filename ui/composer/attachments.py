"""What is attached to the message being written: pictures on their way in, and pasted texts too long for an editor."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QHBoxLayout, QScrollArea, QWidget

from desktop_agent.vocabulary.errors import ImageRefused
from ui.composer.attachment_chip import THUMBNAIL, AttachmentChip
from ui.composer.pictures import Intake, PendingPicture, as_png, read_file, thumbnail
from ui.look.controls import announce
from ui.look.sentences import size_in_words, spoken
from ui.look.theme import SPACE_S, ThemeSource

# Three device pixels to one is as fine as screens get.
THUMBNAIL_PIXELS = THUMBNAIL * 3


@dataclass(eq=False)
class _Attachment:
    chip: AttachmentChip
    picture: PendingPicture | None = None
    text: str | None = None
    task: asyncio.Task[None] | None = None


class Attachments(QScrollArea):
    """A row of chips. Pictures are read, checked and scaled in the background; the running loop must be asyncio's."""

    changed = Signal()
    problem = Signal(object, object)
    """What is wrong with a picture and what to do about it: two Sentences."""

    def __init__(self, themes: ThemeSource, intake: Intake, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._intake = intake
        self._held: list[_Attachment] = []
        inner = QWidget()
        self._row = QHBoxLayout(inner)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(SPACE_S)
        self._row.addStretch(1)
        self.setWidget(inner)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(self.tr("Attachments"))
        inner.setAutoFillBackground(False)
        self.viewport().setAutoFillBackground(False)
        self.hide()

    @property
    def pictures(self) -> list[PendingPicture]:
        """Those that are ready, in order."""
        return [each.picture for each in self._held if each.picture is not None]

    @property
    def texts(self) -> list[str]:
        """Pasted texts, in order."""
        return [each.text for each in self._held if each.text is not None]

    @property
    def is_preparing(self) -> bool:
        """Whether a picture is still on its way in."""
        return any(each.picture is None and each.text is None for each in self._held)

    @property
    def chips(self) -> list[AttachmentChip]:
        """In order."""
        return [each.chip for each in self._held]

    def add_files(self, paths: Sequence[Path]) -> None:
        """Attach picture files."""
        for path in paths:
            self._take(path.name, lambda path=path: asyncio.to_thread(read_file, path))

    def add_pasted(self, data: bytes | QImage) -> None:
        """Attach a picture from the clipboard."""
        name = self.tr("Pasted image")
        if isinstance(data, QImage):
            self._take(name, lambda: asyncio.to_thread(as_png, data))
            return

        async def at_hand() -> bytes:
            return data

        self._take(name, at_hand)

    def add_ready(self, pictures: Sequence[PendingPicture]) -> None:
        """Attach pictures of a draft, which were taken in before."""
        for picture in pictures:
            held = self._add(picture.name)
            held.picture = picture
            self._describe(held, picture)
            self._start(held, self._draw(held, picture.taken.data))
        self.changed.emit()

    def add_text(self, text: str) -> None:
        """Keep a long pasted text beside the editor, which would freeze on it. It is sent with the message."""
        # Encoding 50 MB only to count them would hold the window up.
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        name = self.tr("Pasted text, {0}").format(size_in_words(size))
        chip = AttachmentChip(self._themes, "document", name)
        chip.setAccessibleName(name)
        chip.show_detail(self.tr("Sent after the message"))
        self._hold(_Attachment(chip, text=text))
        self.changed.emit()

    def clear(self) -> None:
        """Remove all; what is still on its way in is forgotten."""
        for each in tuple(self._held):
            self._drop(each)
        self.changed.emit()

    def _take(self, name: str, read: Callable[[], Awaitable[bytes]]) -> None:
        held = self._add(name)
        held.chip.show_detail(self.tr("Preparing…"))
        self._start(held, self._prepare(held, name, read))
        self.changed.emit()

    async def _prepare(self, held: _Attachment, name: str, read: Callable[[], Awaitable[bytes]]) -> None:
        try:
            taken = await self._intake(await read(), name)
            picture = held.picture = PendingPicture(name, taken)
        except ImageRefused as error:
            announce(self, spoken(error.sentence))
            self.problem.emit(error.sentence, error.remedy)
            return
        finally:
            # Whatever went wrong, a picture that never comes must not keep the message from being sent.
            if held.picture is None:
                held.task = None  # which is this one: dropping must not cancel it
                self._drop(held)
                self.changed.emit()
        self._describe(held, picture)
        self.changed.emit()
        await self._draw(held, taken.data)

    async def _draw(self, held: _Attachment, data: bytes) -> None:
        image = await asyncio.to_thread(thumbnail, data, THUMBNAIL_PIXELS)
        held.chip.show_picture(image)

    def _describe(self, held: _Attachment, picture: PendingPicture) -> None:
        words = self.tr("{0} · about {1} tokens").format(size_in_words(picture.size), f"{picture.tokens:,}")
        held.chip.show_detail(words)
        notes = [spoken(note) for note in picture.taken.notes]
        if notes:
            held.chip.setAccessibleDescription(" ".join([words, *notes]))

    def _add(self, name: str) -> _Attachment:
        chip = AttachmentChip(self._themes, "picture", name)
        chip.setAccessibleName(self.tr("Attached image: {0}").format(name))
        return self._hold(_Attachment(chip))

    def _hold(self, held: _Attachment) -> _Attachment:
        held.chip.removed.connect(lambda: self._remove(held))
        self._held.append(held)
        self._row.insertWidget(self._row.count() - 1, held.chip)
        self.setFixedHeight(held.chip.sizeHint().height() + self.horizontalScrollBar().sizeHint().height())
        self.show()
        return held

    def _remove(self, held: _Attachment) -> None:
        at = self._held.index(held)
        self._drop(held)
        if self._held:
            self._held[min(at, len(self._held) - 1)].chip.setFocus()
        self.changed.emit()

    def _drop(self, held: _Attachment) -> None:
        if held not in self._held:
            return
        self._held.remove(held)
        if held.task is not None:
            held.task.cancel()
        self._row.removeWidget(held.chip)
        held.chip.hide()
        held.chip.deleteLater()
        self.setVisible(bool(self._held))

    def _start(self, held: _Attachment, work: Coroutine[Any, Any, None]) -> None:
        held.task = asyncio.get_running_loop().create_task(work)
