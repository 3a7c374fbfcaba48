"""Exporting and importing conversations: dialogs and banners."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QDir, QObject, QStandardPaths, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from desktop_agent.types.errors import Sentence, join_remedy
from ui.bridge.desktop.opening import AddressOpener
from ui.bridge.exchange import Exchange, ExportFormat, ExportResult, FoundProgram, ImportResult
from ui.bridge.library import ConversationLibrary
from ui.bridge.sentence_lists import quoted_names
from ui.settings.found_histories import FoundHistoriesDialog
from ui.shell.attachments import safe_file_name
from ui.shell.banners import Banner, BannerButton
from ui.shell.window import MainWindow
from ui.style.controls import show_in_front
from ui.style.text import labelled, show_hidden, translate_sentence
from ui.style.widgets import QuestionBox

_KEY = "exchange"
_MAX_LINES = 200
_DONE_MS = 20_000
"""Milliseconds for which a result without problems is shown."""
_MAX_TITLES = 5
_MAX_TITLE = 60


def _suffix(export_format: ExportFormat | None) -> str:
    return "pdf" if export_format is None else export_format.value


def _is_folder(export_format: ExportFormat | None, ids: Sequence[str] | None) -> bool:
    """Return whether each conversation becomes a separate file."""
    is_page = export_format not in {ExportFormat.ARCHIVE, ExportFormat.JSON}
    return is_page and (ids is None or len(ids) > 1)


def _deleted_sentence(titles: Sequence[str]) -> Sentence:
    shown = [show_hidden(title[:_MAX_TITLE]) for title in titles[:_MAX_TITLES]]
    values = {"count": str(len(titles)), "titles": quoted_names(shown, *["…"] * (len(titles) > len(shown)))}
    return Sentence("Deleted meanwhile, so not exported ({count}): {titles}.", values)


class ExchangePresenter(QObject):
    """Asks for files, and shows progress and results as banners."""

    def __init__(self, exchange: Exchange, library: ConversationLibrary, window: MainWindow) -> None:
        super().__init__(window)
        self._exchange = exchange
        self._library = library
        self._banners = window.banners
        self._window = window
        self._dialog: QFileDialog | None = None
        self._found_dialog: FoundHistoriesDialog | None = None
        self._shows_progress = False
        self._opener = AddressOpener(self)
        self._opener.failed.connect(window.banners.show_notice)
        exchange.progressed.connect(self._show_progress)
        exchange.exported.connect(self._show_exported)
        exchange.imported.connect(self._show_imported)
        exchange.programs_found.connect(self._offer_found)
        exchange.stopped.connect(self._show_stopped)
        exchange.ended.connect(self._remove_progress)

    def export_current(self) -> None:
        """Ask where to write the open conversation, and in which format."""
        conversation = self._library.current
        if conversation is None or conversation.is_empty:
            self._banners.show_notice(Sentence("There is nothing in this conversation yet that could be exported."))
            return
        if conversation.is_found:
            self._banners.show_notice(
                Sentence("This conversation of another program is only read here. Continue it here, then export it.")
            )
            return
        self._ask_target(conversation.title or self.tr("Conversation"), self._formats_of_one(), [conversation.id])

    def export_all(self) -> None:
        """Ask where to write all conversations."""
        self._ask_target(self.tr("Conversations"), self._formats_of_many(), None)

    def export_marked(self, ids: Sequence[str], title: str) -> None:
        """Ask where to write these conversations; one alone into a file of this title."""
        if len(ids) == 1:
            self._ask_target(title or self.tr("Conversation"), self._formats_of_one(), ids)
        else:
            self._ask_target(self.tr("Conversations"), self._formats_of_many(), ids)

    def _formats_of_one(self) -> dict[str, ExportFormat | None]:
        return {
            self.tr("Web page (*.html)"): ExportFormat.HTML,
            self.tr("PDF, for printing (*.pdf)"): None,
            self.tr("Markdown (*.md)"): ExportFormat.MARKDOWN,
            **self._formats_to_import(),
        }

    def _formats_of_many(self) -> dict[str, ExportFormat | None]:
        return {
            **self._formats_to_import(),
            self.tr("Web pages in a folder (*)"): ExportFormat.HTML,
            self.tr("PDF files in a folder (*)"): None,
            self.tr("Markdown in a folder (*)"): ExportFormat.MARKDOWN,
        }

    def _formats_to_import(self) -> dict[str, ExportFormat | None]:
        return {
            self.tr("Archive with pictures, to be imported again (*.zip)"): ExportFormat.ARCHIVE,
            self.tr("JSON, to be imported again (*.json)"): ExportFormat.JSON,
        }

    def import_file(self) -> None:
        """Ask for an export, of this program or of an account elsewhere."""
        if self._dialog is not None:
            show_in_front(self._dialog)
            return
        dialog = self._create_dialog(self.tr("Import conversations"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("Exports (*.zip *.json)"), self.tr("All files (*)")])
        dialog.fileSelected.connect(self._import)
        dialog.open()

    def find_histories(self) -> None:
        """Look for other assistants on this computer, and offer to import their conversations."""
        self._exchange.find_programs()

    def _offer_found(self, programs: list[FoundProgram]) -> None:
        if self._found_dialog is not None:
            show_in_front(self._found_dialog)
            return
        dialog = self._found_dialog = FoundHistoriesDialog(programs, self._exchange.import_found, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.finished.connect(self._on_found_closed)
        dialog.open()

    def _on_found_closed(self) -> None:
        self._found_dialog = None

    def _ask_target(self, name: str, formats: dict[str, ExportFormat | None], ids: Sequence[str] | None) -> None:
        """Ask for a file in one of these formats, or for a folder; None is PDF, which is printed here."""
        if self._dialog is not None:
            show_in_front(self._dialog)
            return
        dialog = self._create_dialog(self.tr("Export"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setFileMode(QFileDialog.FileMode.AnyFile)
        dialog.setNameFilters(list(formats))
        dialog.setDefaultSuffix(_suffix(next(iter(formats.values()))))

        def on_filter(words: str) -> None:
            dialog.setDefaultSuffix("" if _is_folder(formats[words], ids) else _suffix(formats[words]))

        def on_selected(path: str) -> None:
            by_suffix = {f".{_suffix(listed)}": listed for listed in formats.values()}
            # A typed suffix takes precedence over the format chosen below it.
            export_format = by_suffix.get(Path(path).suffix.lower(), formats[dialog.selectedNameFilter()])
            self._export(Path(path), export_format, ids)

        dialog.filterSelected.connect(on_filter)
        dialog.fileSelected.connect(on_selected)
        dialog.selectFile(safe_file_name(name))
        dialog.open()

    def _export(self, path: Path, export_format: ExportFormat | None, ids: Sequence[str] | None) -> None:
        in_folder = _is_folder(export_format, ids)
        if export_format is not None:
            self._exchange.export(path, export_format, ids, in_folder=in_folder)
        elif ids is None or in_folder:
            self._exchange.export_pdfs(path, ids)
        else:
            self._exchange.export_pdf(path, ids[0])

    def _create_dialog(self, title: str) -> QFileDialog:
        dialog = self._dialog = QFileDialog(self._window, title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
        dialog.setDirectory(folder if QDir(folder).exists() else QDir.homePath())
        dialog.finished.connect(self._on_dialog_closed)
        return dialog

    def _on_dialog_closed(self) -> None:
        self._dialog = None

    def _import(self, path: str) -> None:
        self._show_progress(0, 0)
        self._exchange.import_file(Path(path))

    def _show_progress(self, done: int, total: int) -> None:
        percent = f"{100 * done // total}" if total else "0"
        sentence = Sentence("Working on your conversations: {percent} % done.", {"percent": percent})
        if self._shows_progress:
            # Shown anew, it would be read aloud again, and come back after it was closed.
            self._banners.update_sentence(_KEY, sentence)
            return
        self._shows_progress = True
        buttons = (BannerButton(self.tr("Stop"), self._exchange.stop),)
        self._banners.show_banner(Banner(_KEY, sentence, level="remark", buttons=buttons))

    def _show_stopped(self) -> None:
        sentence = Sentence("Stopped. What was complete by then is kept.")
        self._banners.show_banner(Banner("stopped", sentence, level="remark", duration_ms=_DONE_MS))

    def _remove_progress(self) -> None:
        self._shows_progress = False
        self._banners.remove(_KEY)
        # A failed import may have added some conversations.
        self._library.refresh()

    def _show_exported(self, result: ExportResult) -> None:
        path = result.files[0] if len(result.files) == 1 else result.files[0].parent
        sentence = Sentence("Exported to “{path}”.", {"path": show_hidden(str(path))})
        remarks: list[Sentence] = []
        if result.lost_pictures:
            words = "Pictures that could not be read: {count}. Their places are kept."
            remarks.append(Sentence(words, {"count": str(result.lost_pictures)}))
        if result.gone:
            remarks.append(_deleted_sentence(result.gone))
        remedy = remarks[0] if len(remarks) == 1 else join_remedy(*remarks) if remarks else None
        level = "notice" if remedy else "remark"
        folder = partial(self._opener.open_folder, result.files[0].parent)
        buttons = (BannerButton(self.tr("Open folder"), folder),)
        duration = None if remedy else _DONE_MS
        banner = Banner("exported", sentence, remedy, level=level, buttons=buttons, duration_ms=duration)
        self._banners.show_banner(banner)

    def _show_imported(self, result: ImportResult) -> None:
        sentence = Sentence("Imported conversations: {added}.", {"added": str(len(result.added))})
        if result.present:
            sentence = join_remedy(sentence, Sentence("Here already: {present}.", {"present": str(result.present)}))
        if result.skipped:
            skipped = Sentence("Left out: {skipped}.", {"skipped": str(len(result.skipped))})
            sentence = join_remedy(sentence, skipped)
        lines = self._report(result)
        buttons = (BannerButton(self.tr("Details…"), lambda: self._show_report(lines), True),) if lines else ()
        level = "notice" if lines else "remark"
        duration = None if lines else _DONE_MS
        self._banners.show_banner(Banner("imported", sentence, level=level, buttons=buttons, duration_ms=duration))

    def _report(self, result: ImportResult) -> list[str]:
        """Return a line for each conversation that was left out, and for each kind of content not understood."""
        lines = [labelled(show_hidden(entry.title), translate_sentence(entry.reason)) for entry in result.skipped]
        for sentence, count in result.report.notes:
            words = translate_sentence(sentence)
            lines.append(self.tr("{0} ({1} times)").format(words, count) if count > 1 else words)
        return lines

    def _show_report(self, lines: list[str]) -> None:
        shown = lines[:_MAX_LINES]
        if len(lines) > len(shown):
            shown.append(self.tr("And {0} more.").format(len(lines) - len(shown)))
        title, heading = self.tr("Import"), self.tr("What was not imported, or only in part")
        box = QuestionBox(self._window.themes, title, heading, "\n".join(shown), self._window)
        box.add_answer(self.tr("Close"), "")
        box.add_answer(self.tr("Copy report"), "copy", "primary")
        box.accepted.connect(lambda: QGuiApplication.clipboard().setText("\n".join(lines)))
        box.open()
