"""Storage in the window: the disk's banner, the trash, conversations not stored, the question about unsaved content."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, QStandardPaths, Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from desktop_agent.types.errors import AgentError, Sentence, StorageFailed, join_remedy
from ui.bridge.drafts import UnsavedContent
from ui.bridge.library import ConversationLibrary
from ui.bridge.sentence_lists import quoted_names
from ui.bridge.storage import DiskMonitor, save_file
from ui.shell.banners import Banner, BannerArea, BannerButton
from ui.style.controls import show_in_front
from ui.style.text import show_hidden, translate_sentence
from ui.style.theme import ThemeSource
from ui.style.widgets import QuestionBox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ui.bridge.conversation import OpenConversation
    from ui.bridge.conversation_listing import ListedConversation
    from ui.settings.trash_dialog import TrashDialog
    from ui.shell.layout import PageFrame
    from ui.sidebar.conversation_list import ConversationList
    from ui.sidebar.unstored import UnstoredBar, UnstoredList


DISK_BANNER_KEY = "disk"
_KEPT_KEY = "kept"
_REMARK_MS = 12_000


_UNSEEN = "Folders with backups that are not there now, and may still have what was deleted for good: {folders}."


def _kept_copies(copies: int, damaged: int) -> Sentence | None:
    values = {"count": str(copies), "damaged": str(damaged)}
    if copies and damaged:
        return Sentence(
            "Backups and copies that still have what was deleted for good: {count}. "
            "Damaged files that may have it too: {damaged}.",
            values,
        )
    if copies:
        return Sentence("Backups and copies that still have what was deleted for good: {count}.", values)
    if damaged:
        return Sentence("Damaged files that may still have what was deleted for good: {damaged}.", values)
    return None


class DiskBanner(QObject):
    """One banner for whatever the disk refuses; it is removed when the disk takes everything again."""

    def __init__(self, disk: DiskMonitor, banners: BannerArea, parent: QObject) -> None:
        super().__init__(parent)
        self._disk = disk
        self._banners = banners
        disk.noticed.connect(banners.show_notice)
        disk.trouble_changed.connect(self._show)
        disk.checked.connect(self._show_check)
        disk.backups.deleted_but_kept.connect(self._offer_deletion)

    def _show_check(self, result: Sentence, is_whole: bool) -> None:  # noqa: FBT001  a slot
        # A fault is shown as any other error.
        if is_whole:
            self._banners.show_banner(Banner("check", result, level="remark", duration_ms=_REMARK_MS))

    def _offer_deletion(self, paths: "list[Path]", damaged: "list[Path]", missing: "list[Path]") -> None:
        """Offer to delete backups that still have what was deleted for good: the person may want to keep them."""
        backups, buttons = self._disk.backups, list[BannerButton]()
        sentence = _kept_copies(len(paths), len(damaged))
        if sentence is not None:
            buttons.append(BannerButton(self.tr("Delete them too"), lambda: backups.delete(*paths, *damaged)))
        if missing:
            values = {"folders": quoted_names([show_hidden(str(path)) for path in missing])}
            words = "Backups were written into folders that are not there now, and may have it too: {folders}."
            unseen = Sentence(words if sentence else _UNSEEN, values)
            sentence = unseen if sentence is None else join_remedy(sentence, unseen)
            buttons.append(BannerButton(self.tr("These folders are gone"), lambda: backups.forget_folders(missing)))
        if sentence is not None:
            self._banners.show_banner(Banner(_KEPT_KEY, sentence, level="notice", buttons=tuple(buttons)))

    def show(self) -> None:
        """Show the current state."""
        self._show(self._disk.trouble)

    def covers(self, error: AgentError) -> bool:
        """Return whether the banner is about this error; show the banner again if the person closed it."""
        trouble = self._disk.trouble
        if trouble is None or str(error) != str(trouble):
            return False
        if DISK_BANNER_KEY not in self._banners.keys:
            self._show(trouble)
        return True

    def _show(self, trouble: StorageFailed | None) -> None:
        if trouble is None:
            self._banners.remove(DISK_BANNER_KEY)
        else:
            self._banners.show_banner(Banner(DISK_BANNER_KEY, trouble.sentence, trouble.remedy))


class TrashPresenter(QObject):
    """Offers an undo of each deletion while the conversation is in the trash; shows the trash."""

    def __init__(self, themes: ThemeSource, library: ConversationLibrary, banners: BannerArea, window: QWidget) -> None:
        super().__init__(window)
        self._themes = themes
        self._library = library
        self._banners = banners
        self._window = window
        self._dialog: TrashDialog | None = None
        self._offer: tuple[str, Banner] | None = None
        """The id of the last deleted conversation, and the banner with its undo."""
        library.deleted.connect(self._offer_undo)
        library.restored.connect(self._withdraw)
        library.trash.listed.connect(self._on_listed)

    def show(self) -> None:
        """Show the trash."""
        if self._dialog is None:
            # Late: seldom opened.
            from ui.settings.trash_dialog import TrashDialog

            self._dialog = TrashDialog(self._themes, self._library, self._window)
        self._library.trash.list()
        show_in_front(self._dialog)

    def show_problem(self, error: AgentError) -> None:
        """Show an error in the dialog while it is open: it may hide the window's banners."""
        if self._dialog is not None and self._dialog.isVisible():
            self._dialog.show_problem(error.whole)

    def _offer_undo(self, conversation_id: str, title: str, was_shown: bool) -> None:  # noqa: FBT001  # a slot
        text = self.tr("“{0}” was put into the trash.").format(title)
        undo = partial(self._library.restore, conversation_id, shows=was_shown)
        self._offer = conversation_id, self._banners.show_undo(text, undo)

    def _withdraw(self, conversation_id: str) -> None:
        if self._offer is not None and self._offer[0] == conversation_id:
            self._banners.remove_if_shown(self._offer[1])
            self._offer = None

    def _on_listed(self, deleted: "Sequence[ListedConversation]") -> None:
        # A purged conversation cannot be restored.
        if self._offer is not None and all(conversation.id != self._offer[0] for conversation in deleted):
            self._withdraw(self._offer[0])


class UnstoredPresenter(QObject):
    """Shows conversations that are never stored, and asks before one is lost."""

    def __init__(
        self,
        themes: ThemeSource,
        library: ConversationLibrary,
        frame: "PageFrame",
        sidebar: "ConversationList",
        banners: BannerArea,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self.themes = themes
        self._library = library
        self._frame = frame
        self._sidebar = sidebar
        self._banners = banners
        self.window = window
        self._bar: UnstoredBar | None = None
        self._rows: UnstoredList | None = None
        self._question: QuestionBox | None = None
        library.opened.connect(self._show_bar)
        library.unstored.changed.connect(self._show_rows)
        library.unstored.close_requested.connect(self.close_conversation)
        sidebar.new_unstored_requested.connect(partial(library.new, in_memory=True))

    def close_conversation(self, conversation_id: str) -> None:
        """Close the conversation; ask first if something would be lost."""
        if not self._library.unstored.has_content(conversation_id):
            self._library.close_unstored(conversation_id)
        elif self._question is None:
            box = self._question = self._create_question(self.tr("Close the conversation?"))
            box.answered.connect(partial(self._on_answered, conversation_id))
            box.open()

    async def confirm_end(self) -> bool:
        """Return whether the program may end. Asks if an unstored conversation has content."""
        count = len(self._library.unstored.with_content)
        if not count:
            return True
        box = self._question = self._create_question(self.tr("Close Desktop Agent?"), count)
        try:
            answer = await _answer_of(box)
        finally:
            self._question = None
        if answer == "keep":
            try:
                for row in self._library.unstored.with_content:
                    await self._library.unstored.store(row.id, stop=True)
            except AgentError as error:
                self._banners.show_error(error)
                return False
        return bool(answer)

    def cancel(self) -> None:
        """Close the question: the system ends the program."""
        if self._question is not None:
            self._question.done(0)

    def _create_question(self, title: str, count: int = 0) -> QuestionBox:
        """Create a question about `count` conversations that end with the program, or, for 0, about closing one."""
        question = self.tr("This conversation is not stored. Close it?")
        words = self.tr("Closing it loses what is in it. “Keep it” stores it as an ordinary conversation.")
        keep = self.tr("Keep it")
        if count == 1:
            question = self.tr("A conversation is not stored. Close it?")
        elif count:
            question = self.tr("Conversations that are not stored: {0}. Close them?").format(count)
            words = self.tr("Closing loses what is in them. “Keep them” stores them as ordinary conversations.")
            keep = self.tr("Keep them")
        box = QuestionBox(self.themes, title, question, words, self.window)
        # Enter and Escape lose nothing.
        box.add_answer(self.tr("Cancel"), "")
        box.add_answer(self.tr("Close"), "close", "danger")
        box.add_answer(keep, "keep", "primary")
        return box

    def _on_answered(self, conversation_id: str, answer: str) -> None:
        self._question = None
        if answer == "close":
            self._library.close_unstored(conversation_id)
        elif answer == "keep":
            self._library.store_unstored(conversation_id)

    def _show_rows(self) -> None:
        if self._rows is None:
            # Late: seldom needed.
            from ui.sidebar.unstored import UnstoredList

            rows = self._rows = UnstoredList(self.themes)
            self._sidebar.add_above_search(rows)
            rows.chosen.connect(self._sidebar.conversation_chosen)
            rows.close_pressed.connect(self.close_conversation)
        self._rows.show_rows(self._library.unstored.rows)

    def _show_bar(self, conversation: "OpenConversation") -> None:
        if self._rows is not None:
            self._rows.mark_open(conversation.id)
        if self._bar is None:
            if not conversation.is_in_memory:
                return
            # Late: seldom needed.
            from ui.sidebar.unstored import UnstoredBar

            bar = self._bar = UnstoredBar()
            self._frame.add_below_heading(bar)
            bar.keep_pressed.connect(lambda: self._with_current(self._library.store_unstored))
            bar.close_pressed.connect(lambda: self._with_current(self.close_conversation))
        self._bar.setVisible(conversation.is_in_memory)

    def _with_current(self, command: Callable[[str], None]) -> None:
        if self._library.current is not None:
            command(self._library.current.id)


class ClosingQuestion(QuestionBox):
    """Asks before the program is closed during work. Calls that only wait for the person survive the end."""

    def __init__(self, themes: ThemeSource, window: QWidget, *, loses_work: bool) -> None:
        translate = QCoreApplication.translate
        if loses_work:
            question = translate("MainWindow", "The model is still working.")
            text = translate("MainWindow", "Closing stops the model. The answer so far is kept.")
            stay, leave = translate("MainWindow", "Keep working"), translate("MainWindow", "Stop and close")
        else:
            question = translate("MainWindow", "A tool call waits for your decision.")
            text = translate("MainWindow", "The call keeps waiting. You are asked again at the next start.")
            stay, leave = translate("MainWindow", "Keep open"), translate("MainWindow", "Close")
        super().__init__(themes, translate("MainWindow", "Close Desktop Agent?"), question, text, window)
        self.loses_work = loses_work
        # Enter and Escape lose nothing.
        self.add_answer(stay, "")
        self.add_answer(leave, "close", "danger" if loses_work else "")


class CloseConfirmation(QObject):
    """Asks, repeatedly if needed, until nothing is unsaved or the person decided."""

    def __init__(
        self,
        unstored: UnstoredPresenter,
        unsaved: Callable[[], Awaitable[UnsavedContent]],
        can_ask: Callable[[], bool],
    ) -> None:
        super().__init__(unstored.window)
        self._unstored = unstored
        self._window = unstored.window
        self._themes = unstored.themes
        self._get_unsaved = unsaved
        self._can_ask = can_ask
        self._open_dialog: QDialog | None = None
        self._saved: tuple[Path, UnsavedContent] | None = None

    async def confirm(self) -> bool:
        """Return whether the program may end. Asks nothing if all is saved, or if the person may be away."""
        problem: Sentence | None = None
        if self._can_ask() and not await self._unstored.confirm_end() and self._can_ask():
            return False
        while (unsaved := await self._get_unsaved()) and self._can_ask():
            answer = await self._ask(unsaved, problem)
            problem = None
            if answer == "elsewhere":
                try:
                    if await self._save_elsewhere():
                        return True
                except AgentError as error:
                    problem = error.sentence
            elif answer == "quit" or (answer != "again" and self._can_ask()):
                return answer == "quit"
        return True

    async def is_saved_elsewhere(self, unsaved: UnsavedContent) -> bool:
        """Return whether the person saved the content to another file; update that file if content came since."""
        if self._saved is None:
            return False
        path, saved = self._saved
        try:
            if unsaved != saved:
                await _write_unsaved(unsaved, path)
        except AgentError:
            return False
        return True

    def cancel(self) -> None:
        """Cancel the question: the system ends the program."""
        self._unstored.cancel()
        if self._open_dialog is not None:
            self._open_dialog.done(0)

    async def _ask(self, unsaved: UnsavedContent, problem: Sentence | None) -> str:
        title, question = self.tr("Close Desktop Agent?"), self.tr("Not everything could be saved.")
        words = [translate_sentence(unsaved.sentence), self.tr("If you quit now, unsaved changes are lost.")]
        words = [*([translate_sentence(problem)] if problem is not None else []), *words]
        box = self._open_dialog = QuestionBox(self._themes, title, question, "\n\n".join(words), self._window)
        # Enter and Escape lose nothing.
        box.add_answer(self.tr("Keep open"), "stay")
        box.add_answer(self.tr("Quit without saving"), "quit", "danger")
        box.add_answer(self.tr("Try again"), "again")
        box.add_answer(self.tr("Save elsewhere…"), "elsewhere", "primary")
        try:
            return await _answer_of(box)
        finally:
            self._open_dialog = None

    async def _save_elsewhere(self) -> bool:
        """Ask for a path and write what is unsaved by then, as work goes on. Return False if no path was chosen.

        Raises StorageFailed if the file cannot be written.
        """
        chosen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        dialog = self._open_dialog = QFileDialog(self._window, self.tr("Save unsaved conversations"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setDirectory(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation))
        dialog.selectFile(
            self.tr("Unsaved conversations {0}.md").format(datetime.now().astimezone().date().isoformat())
        )

        def on_finished(result: int) -> None:
            if not chosen.done():
                chosen.set_result(dialog.selectedFiles()[0] if result and dialog.selectedFiles() else "")

        dialog.finished.connect(on_finished)
        dialog.open()
        try:
            path = await chosen
        finally:
            self._open_dialog = None
        if not path:
            return False
        unsaved = await self._get_unsaved()
        await _write_unsaved(unsaved, Path(path))
        self._saved = Path(path), unsaved
        return True


async def _answer_of(box: QuestionBox) -> str:
    chosen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_answered(answer: str) -> None:
        if not chosen.done():
            chosen.set_result(answer)

    box.answered.connect(on_answered)
    box.open()
    return await chosen


async def _write_unsaved(unsaved: UnsavedContent, path: Path) -> None:
    await save_file(path, await asyncio.to_thread(unsaved.to_markdown))
