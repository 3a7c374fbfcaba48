"""Attach pictures, resources and long pasted texts; files are read, checked and scaled in threads."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from desktop_agent.types.errors import AgentError, ImageRefused
from desktop_agent.types.messages import AttachedText
from desktop_agent.types.tool_calls import UntrustedSource
from ui.composer.attachment_chips import (
    THUMBNAIL_SIZE,
    Attachment,
    AttachmentChip,
    AttachmentEntry,
    AttachmentRow,
    PastedText,
)
from ui.composer.attachment_items import (
    SUFFIXES,
    AttachmentFetch,
    FetchResult,
    PendingPicture,
    PictureIntake,
    ServerPicture,
    UnreadablePicture,
    encode_png,
    looks_like_picture,
    read_other_file,
    read_picture_file,
    thumbnail,
)
from ui.style.controls import announce
from ui.style.text import format_bytes, format_number, show_hidden, translate_sentence
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from PySide6.QtWidgets import QFileDialog

P = ParamSpec("P")
T = TypeVar("T")

# For twice the zoom on a screen with two device pixels to one.
THUMBNAIL_PIXELS = THUMBNAIL_SIZE * 4


class Attachments(AttachmentRow):
    """The attachments of a message. Pictures are prepared in threads; the running loop must be asyncio's."""

    def __init__(self, themes: ThemeSource, intake: PictureIntake, editor: QWidget) -> None:
        super().__init__(editor)
        self._themes = themes
        self._intake = intake
        self._file_dialog: QFileDialog | None = None
        # Once the chips have their new size.
        self._fit_timer = QTimer(self, singleShot=True, interval=0)
        self._fit_timer.timeout.connect(self.fit_height)
        themes.changed.connect(self._fit_timer.start)

    def choose_files(self, title: str, attach: Callable[[Sequence[str]], object]) -> None:
        """Open a file dialog, without waiting for it; `attach` gets the paths."""
        from PySide6.QtWidgets import QFileDialog

        dialog = self._file_dialog = QFileDialog(self.parentWidget(), title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setNameFilters([self.tr("All files") + " (*)", self.tr("Pictures") + f" (*{' *'.join(SUFFIXES)})"])
        dialog.filesSelected.connect(attach)
        dialog.open()

    def close_file_dialog(self) -> None:
        """Close the file dialog, if it is open."""
        dialog, self._file_dialog = self._file_dialog, None
        if dialog is not None and isValid(dialog):
            dialog.close()

    def add_files(self, paths: Sequence[Path]) -> None:
        """Attach files of pictures and texts."""
        for path in paths:
            if looks_like_picture(path):
                self._add_picture(path.name, lambda path=path: _in_thread(read_picture_file, path))
            else:
                self.add_fetches([AttachmentFetch(path.name, partial(self._read_file, path))])

    def add_pasted(self, data: bytes | QImage, name: str = "") -> None:
        """Attach a picture from the clipboard, under this name or a default one."""
        name = name or self.tr("Pasted picture")
        if isinstance(data, QImage):
            self._add_picture(name, lambda: _in_thread(encode_png, data))
            return

        async def read() -> bytes:
            return data

        self._add_picture(name, read)

    def add_items(self, attached: Sequence[Attachment], before: AttachmentEntry | None = None) -> None:
        """Attach what was prepared before, for example in a draft; at the end, or before another attachment."""
        for attachment in attached:
            match attachment:
                case AttachedText():
                    self._show_resource(self._add_resource_chip(attachment.title, before), attachment)
                case PastedText():
                    self.add_text(attachment.text)
                case UntrustedSource():
                    self._prompt_sources += [attachment] if attachment not in self._prompt_sources else []
                case PendingPicture():
                    entry = self._add_picture_chip(attachment.name, before)
                    entry.attachment = attachment
                    self._show_details(entry, attachment)
                    self._start_task(entry, self._draw_thumbnail(entry, attachment.taken.data))
                case UnreadablePicture():
                    entry = self._add_picture_chip(attachment.image.name or self.tr("Picture"))
                    entry.attachment = attachment
                    entry.chip.show_detail(self.tr("Cannot be read now"))
        self.changed.emit()

    def create_fetch(
        self, title: str, read: Callable[[], Awaitable[Sequence[AttachedText | ServerPicture]]]
    ) -> AttachmentFetch:
        """Create a fetch of a server's resource; pass it to `add_fetches`. Removing its chip cancels it."""
        return AttachmentFetch(title, lambda: self._read_resources(read))

    def create_picture_fetch(self, picture: ServerPicture) -> AttachmentFetch:
        """Create a fetch of a server's picture, in the same way."""
        return AttachmentFetch(picture.title, lambda: self._prepare_server_picture(picture), is_picture=True)

    def add_fetches(self, fetches: Sequence[AttachmentFetch]) -> None:
        """Attach fetches that are under way, also ones started for another composer or draft."""
        for fetch in fetches:
            if fetch.is_picture:
                entry = self._add_picture_chip(fetch.name)
            else:
                entry = self._add_resource_chip(fetch.name)
                entry.chip.setAccessibleName(self.tr("Attached resource: {0}").format(show_hidden(fetch.name)))
            entry.fetch = fetch
            entry.chip.show_detail(self.tr("Preparing…") if fetch.is_picture else self.tr("Reading…"))
            self._start_task(entry, self._finish_fetch(entry, fetch))
        self.changed.emit()

    def add_text(self, text: str) -> None:
        """Attach a long pasted text: the editor would freeze on it."""
        # Encoding 50 MB only to count bytes would block the window.
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        name = self.tr("Pasted text, {0}").format(format_bytes(size))
        chip = AttachmentChip(self._themes, "document", name)
        chip.setAccessibleName(name)
        chip.show_detail(self.tr("Sent after the message"))
        self._add_entry(AttachmentEntry(chip, PastedText(text)))
        self.changed.emit()

    def _add_picture(self, name: str, read: Callable[[], Awaitable[bytes]]) -> None:
        self.add_fetches([AttachmentFetch(name, lambda: self._prepare(name, read), is_picture=True)])

    async def _prepare(
        self, name: str, read: Callable[[], Awaitable[bytes]], server: str = "", server_id: str = ""
    ) -> FetchResult:
        try:
            return FetchResult([PendingPicture(name, await self._intake(await read(), name), server, server_id)])
        except ImageRefused as error:
            return FetchResult(problems=[error])

    async def _prepare_server_picture(self, picture: ServerPicture) -> FetchResult:
        async def read() -> bytes:
            return picture.data

        return await self._prepare(picture.title, read, picture.server, picture.server_id)

    async def _read_resources(
        self, read: Callable[[], Awaitable[Sequence[AttachedText | ServerPicture]]]
    ) -> FetchResult:
        items: list[PendingPicture | AttachedText] = []
        problems: list[AgentError] = []
        try:
            for content in await read():
                fetched = (
                    await self._prepare_server_picture(content)
                    if isinstance(content, ServerPicture)
                    else FetchResult([content])
                )
                items += fetched.items
                problems += fetched.problems
        except AgentError as error:
            problems.append(error)
        return FetchResult(items, problems)

    async def _read_file(self, path: Path) -> FetchResult:
        if await _in_thread(path.is_dir):
            return FetchResult(folder=str(path))

        async def read() -> Sequence[AttachedText | ServerPicture]:
            return [await _in_thread(read_other_file, path)]

        return await self._read_resources(read)

    async def _finish_fetch(self, entry: AttachmentEntry, fetch: AttachmentFetch) -> None:
        fetched = FetchResult()
        try:
            fetched = await fetch.result()
        finally:
            # After any failure: a picture that never arrives must not block sending. The window may be closed by now.
            if isValid(self):
                self._end_fetch(entry, fetched)
        if not isValid(self):
            return
        if fetched.folder:
            self.folder_found.emit(fetched.folder)
        for problem in fetched.problems:
            announce(self, translate_sentence(problem.sentence))
            self.problem.emit(problem.sentence, problem.remedy)
        if isinstance(entry.attachment, PendingPicture):
            self._show_details(entry, entry.attachment)
            await self._draw_thumbnail(entry, entry.attachment.taken.data)

    def _end_fetch(self, entry: AttachmentEntry, fetched: FetchResult) -> None:
        """Show what was fetched in the place of the entry. All are sent in the order in which they were chosen."""
        entry.fetch = None
        is_here = entry in self._entries
        if is_here and (fetched.problems or not fetched.items):
            self.lost.emit()
        match fetched.items:
            case [PendingPicture() as picture] if entry.is_picture:
                entry.attachment = picture
            case [AttachedText() as resource] if is_here:
                self._show_resource(entry, resource)
            case items:
                entry.task = None  # the current task: discarding must not cancel it
                self.add_items(items, entry if is_here else None)
                self._discard_entry(entry)
        self.changed.emit()

    def _add_resource_chip(self, title: str, before: AttachmentEntry | None = None) -> AttachmentEntry:
        return self._add_entry(AttachmentEntry(AttachmentChip(self._themes, "document", show_hidden(title))), before)

    def _show_resource(self, entry: AttachmentEntry, resource: AttachedText) -> None:
        entry.attachment = resource
        title = show_hidden(resource.title)
        name = self.tr("Attached resource: {0}") if resource.server else self.tr("Attached file: {0}")
        entry.chip.show_name(title)
        entry.chip.setAccessibleName(name.format(title))
        words = self.tr("{0} · from {1}") if resource.server else "{0}"
        entry.chip.show_detail(words.format(format_bytes(resource.size), show_hidden(resource.server)))

    async def _draw_thumbnail(self, entry: AttachmentEntry, data: bytes) -> None:
        image = await _in_thread(thumbnail, data, THUMBNAIL_PIXELS)
        # Its window may be closed meanwhile.
        if isValid(entry.chip):
            entry.chip.show_picture(image)

    def _show_details(self, entry: AttachmentEntry, picture: PendingPicture) -> None:
        size, tokens = format_bytes(picture.size), format_number(picture.tokens)
        words = self.tr("{0} · about {1} tokens").format(size, tokens)
        if picture.server:
            words = self.tr("{0} · from {1}").format(size, show_hidden(picture.server))
        entry.chip.show_detail(words)
        notes = [translate_sentence(note) for note in picture.taken.notes]
        if notes:
            entry.chip.setAccessibleDescription(" ".join([words, *notes]))

    def _add_picture_chip(self, name: str, before: AttachmentEntry | None = None) -> AttachmentEntry:
        chip = AttachmentChip(self._themes, "picture", name)
        chip.setAccessibleName(self.tr("Attached image: {0}").format(name))
        return self._add_entry(AttachmentEntry(chip, is_picture=True), before)


def _in_thread(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> Awaitable[T]:
    # Late: the window is drawn before the loop runs.
    import asyncio

    return asyncio.to_thread(work, *args, **named)
