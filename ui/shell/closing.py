"""What to do with what could not be saved, asked before the window goes."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QObject, QStandardPaths, Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QWidget

from desktop_agent.vocabulary.errors import AgentError, Sentence
from ui.bridge.contents.saved_files import save_file
from ui.bridge.leftover import UnsavedContent
from ui.look.parts.question_box import QuestionBox
from ui.look.sentences import translate_sentence
from ui.look.theme import ThemeSource


class CloseConfirmation(QObject):
    """Asks, as often as it takes, until nothing is left or the person gave an answer."""

    def __init__(
        self,
        window: QWidget,
        themes: ThemeSource,
        unsaved: Callable[[], Awaitable[UnsavedContent]],
        can_ask: Callable[[], bool],
    ) -> None:
        super().__init__(window)
        self._window = window
        self._themes = themes
        self._get_unsaved = unsaved
        self._can_ask = can_ask
        self._open_dialog: QDialog | None = None
        self._saved: tuple[Path, UnsavedContent] | None = None

    async def confirm(self) -> bool:
        """Whether the program may end. Nothing is asked where nothing is left, or nobody may be there."""
        problem: Sentence | None = None
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
        """Whether the person had what is left at the very end saved elsewhere; what came since then is added now."""
        if self._saved is None:
            return False
        path, saved = self._saved
        try:
            if unsaved != saved:
                await _write_unsaved(unsaved, path)
        except AgentError:
            return False
        return True

    def end(self) -> None:
        """The system ends the program: nobody is asked any more."""
        if self._open_dialog is not None:
            self._open_dialog.done(0)

    async def _ask(self, unsaved: UnsavedContent, problem: Sentence | None) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        title, question = self.tr("Close Desktop Agent?"), self.tr("Not everything could be saved.")
        words = [translate_sentence(unsaved.sentence), self.tr("If you quit now, what was not saved is lost.")]
        words = [*([translate_sentence(problem)] if problem is not None else []), *words]
        box = self._open_dialog = QuestionBox(self._themes, title, question, "\n\n".join(words), self._window)
        # Enter and Escape lose nothing.
        box.add_answer(self.tr("Save elsewhere…"), "elsewhere", "primary")
        box.add_answer(self.tr("Try again"), "again")
        box.add_answer(self.tr("Quit without saving"), "quit", "danger")
        box.add_answer(self.tr("Keep open"), "stay")

        def on_answered(given: str) -> None:
            if not answer.done():
                answer.set_result(given)

        box.answered.connect(on_answered)
        box.open()
        try:
            return await answer
        finally:
            self._open_dialog = None

    async def _save_elsewhere(self) -> bool:
        """Ask where, and write there what is left by then: meanwhile the work goes on. False where no place was chosen.

        Raises StorageFailed for a place that refuses.
        """
        chosen: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        dialog = self._open_dialog = QFileDialog(self._window, self.tr("Save what is left"))
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


async def _write_unsaved(unsaved: UnsavedContent, path: Path) -> None:
    await save_file(path, await asyncio.to_thread(unsaved.to_markdown))
