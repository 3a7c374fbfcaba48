"""The dialogs of folders and tags: what a folder is, a folder to choose, and the tags of conversations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QDialog, QLineEdit, QToolButton, QWidget

from desktop_agent.types.folders import (
    MAX_FOLDER_INSTRUCTIONS,
    MAX_FOLDER_NAME,
    Folder,
    FolderColour,
    clean_instructions,
    clean_name,
    folder_paths,
)
from ui.forms.controls import text_area
from ui.forms.form import Form
from ui.style.controls import announce, button
from ui.style.layouts import FlowRows
from ui.style.list_rows import ResultRow
from ui.style.pickers import SearchPanel
from ui.style.text import format_number, plain_tooltip
from ui.style.theme import ICON_SIZE, SPACE_S, ThemeSource, folder_tint, pixmap
from ui.style.widgets import lay_out_dialog

_WIDTH = 380
_PICKER_HEIGHT = 420
"""Pixels."""
_INSTRUCTION_LINES = 5
_SEPARATOR = " / "


class FolderDialog(QDialog):
    """The name, the colour and the instructions of a folder. Not modal."""

    chosen = Signal(Folder)

    def __init__(self, themes: ThemeSource, folder: Folder, parent: QWidget) -> None:
        """Edit a folder; one without an id is to be made."""
        super().__init__(parent)
        self._themes = themes
        self._over = parent
        self._folder = folder
        self._name = QLineEdit(folder.name)
        self._name.setMaxLength(MAX_FOLDER_NAME)
        self._name.setAccessibleName(self.tr("Name of the folder"))
        self._name.setPlaceholderText(self.tr("Name"))
        self._colours = QButtonGroup(self)
        self._swatches = [self._make_swatch(colour) for colour in FolderColour]
        self._swatches[list(FolderColour).index(folder.colour)].setChecked(True)
        self._form = self._make_form()
        title = self.tr("Name, colour and instructions") if folder.id else self.tr("New folder")
        self.resize(self._usual_width, 0)
        self._accept = button(self.tr("Save") if folder.id else self.tr("Create"), self._choose, "primary")
        self._accept.setDefault(True)
        buttons = FlowRows((button(self.tr("Cancel"), self.reject), self._accept), trailing=True)
        colours = FlowRows(self._swatches, gap=SPACE_S)
        lay_out_dialog(self, title, self._name, colours, self._form, buttons)
        self._name.textChanged.connect(self._refresh)
        self._form.changed.connect(self._fit_height)
        themes.changed.connect(self._draw_swatches)
        # Queued: after the new sizes of all texts.
        themes.changed.connect(self._refit, Qt.ConnectionType.QueuedConnection)
        self._draw_swatches()
        self._name.selectAll()
        self._refresh()

    def showEvent(self, event: QShowEvent) -> None:
        """Only now the fonts are those of the style."""
        super().showEvent(event)
        self._fit_height()

    @property
    def _usual_width(self) -> int:
        return min(self._themes.scaled(_WIDTH), self._over.width())

    def _refit(self) -> None:
        self.resize(self._usual_width, self.height())
        self._fit_height()

    def _fit_height(self) -> None:
        """Make room for all lines, also of an error."""
        for widget in (self._form.rows["instructions"], self._form, self):
            if (layout := widget.layout()) is not None:
                layout.activate()
        self.resize(self.width(), max(self.height(), self.heightForWidth(self.width())))

    def _make_form(self) -> Form:
        form = Form()
        title = self.tr("Instructions for every conversation in this folder")
        instructions = text_area(_INSTRUCTION_LINES)
        form.add_field("instructions", title, instructions, self._instructions_error, is_optional=True)
        form.show_values({"instructions": self._folder.instructions})
        return form

    def _instructions_error(self, text: str) -> str:
        if len(clean_instructions(text)) <= MAX_FOLDER_INSTRUCTIONS:
            return ""
        words = self.tr("The instructions have more than {0} characters. Shorten them.")
        return words.format(format_number(MAX_FOLDER_INSTRUCTIONS))

    def _make_swatch(self, colour: FolderColour) -> QToolButton:
        name = _colour_names()[colour]
        swatch = QToolButton()
        swatch.setCheckable(True)
        swatch.setProperty("kind", "quiet")
        swatch.setProperty("square", "true")
        swatch.setAccessibleName(name)
        swatch.setToolTip(plain_tooltip(name))
        self._colours.addButton(swatch)
        return swatch

    def _draw_swatches(self) -> None:
        side = self._themes.scaled(ICON_SIZE)
        for colour, swatch in zip(FolderColour, self._swatches, strict=True):
            swatch.setIcon(QIcon(pixmap("folder", folder_tint(self._themes.theme, colour.value), side, 2)))
            swatch.setIconSize(QSize(side, side))

    def _refresh(self) -> None:
        self._accept.setEnabled(bool(clean_name(self._name.text(), MAX_FOLDER_NAME)))

    def _choose(self) -> None:
        colour = next(colour for colour, swatch in zip(FolderColour, self._swatches, strict=True) if swatch.isChecked())
        if not self._form.show_errors():
            name, instructions = self._name.text(), self._form.values["instructions"]
            self.chosen.emit(replace(self._folder, name=name, colour=colour, instructions=instructions))
            self.accept()


def _colour_names() -> Mapping[FolderColour, str]:
    translate = QCoreApplication.translate
    return {
        FolderColour.GREY: translate("FolderDialog", "Grey"),
        FolderColour.RED: translate("FolderDialog", "Red"),
        FolderColour.ORANGE: translate("FolderDialog", "Orange"),
        FolderColour.YELLOW: translate("FolderDialog", "Yellow"),
        FolderColour.GREEN: translate("FolderDialog", "Green"),
        FolderColour.TEAL: translate("FolderDialog", "Teal"),
        FolderColour.BLUE: translate("FolderDialog", "Blue"),
        FolderColour.PURPLE: translate("FolderDialog", "Purple"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _TargetRow(ResultRow):
    """A folder to move into; or `new_name` for one that is to be made; or neither for the top."""

    folder: str | None = None
    new_name: str = ""


class _PickDialog(QDialog):
    """A search field over a list, with buttons below."""

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        super().__init__(parent)
        self.panel = SearchPanel(themes, self.rows_for, self.tr("Found"))
        self.panel.chosen.connect(self.choose)
        size = QSize(_WIDTH, _PICKER_HEIGHT) * (themes.zoom / 100)
        self.resize(size.boundedTo(self.screen().availableSize()))

    def rows_for(self, typed: str) -> Sequence[ResultRow]:
        raise NotImplementedError

    def choose(self, row: ResultRow) -> None:
        raise NotImplementedError

    def build(self, title: str, hint: str, *buttons: QWidget) -> None:
        """Lay it out with this title, and the hint in the field, and show all rows."""
        self.panel.set_label(title, hint)
        lay_out_dialog(self, title, self.panel, FlowRows(buttons, trailing=True), grow=self.panel)
        self.panel.reset()
        self.panel.setFocus()


class FolderPicker(_PickDialog):
    """Asks for a folder to move things into; `left_out` and what is in it cannot be chosen. Not modal."""

    chosen = Signal(object)
    """The id of the folder; None for the top."""
    new_wanted = Signal(str)
    """The name of a folder that is to be made at the top."""

    def __init__(self, themes: ThemeSource, folders: Sequence[Folder], parent: QWidget, left_out: str = "") -> None:
        paths = folder_paths(folders)
        excluded = paths.get(left_out)
        self._offers_new = not left_out
        targets = [
            (path, folder)
            for folder in folders
            if (path := paths[folder.id]) and (excluded is None or path[: len(excluded)] != excluded)
        ]
        self._paths = sorted(targets, key=lambda target: [name.casefold() for name in target[0]])
        super().__init__(themes, parent)
        title, hint = self.tr("Move to a folder"), self.tr("Find a folder, or name a new one")
        self.build(title, hint, button(self.tr("Cancel"), self.reject))

    def rows_for(self, typed: str) -> Sequence[ResultRow]:
        """Return the folders that have all the words in their path, the top, and one to be made."""
        words = typed.casefold().split()
        rows = [
            _TargetRow(
                text=folder.name,
                under=_SEPARATOR.join(path[:-1]),
                icon="folder",
                tint=folder.colour.value,
                spoken=_SEPARATOR.join(path),
                is_choosable=True,
                folder=folder.id,
            )
            for path, folder in self._paths
            if all(word in " ".join(path).casefold() for word in words)
        ]
        if not words:
            rows.insert(0, _TargetRow(text=self.tr("No folder"), icon="chevron-up", is_choosable=True))
        name = clean_name(typed, MAX_FOLDER_NAME)
        if name and self._offers_new and all(row.text.casefold() != name.casefold() for row in rows):
            new = self.tr("New folder “{0}”").format(name)
            rows.append(_TargetRow(text=new, icon="plus", is_choosable=True, new_name=name))
        return rows

    def choose(self, row: ResultRow) -> None:
        """Take this folder."""
        if isinstance(row, _TargetRow):
            if row.new_name:
                self.new_wanted.emit(row.new_name)
            else:
                self.chosen.emit(row.folder)
        self.accept()


class TagDialog(_PickDialog):
    """The tags of conversations: Enter gives one to all of them, or takes it away. Not modal.

    After a tag that was typed, Enter in the empty field closes the dialog as “Done” does.
    """

    chosen = Signal(list, list)
    """The tags that were added, and those that were removed."""

    def __init__(
        self, themes: ThemeSource, tags: Sequence[str], given: Sequence[Sequence[str]], parent: QWidget
    ) -> None:
        """`given` are the tags of each conversation."""
        self._tags = list(tags)
        common = set(given[0]).intersection(*given[1:]) if given else set[str]()
        self._tags_before, self._tags_now = common, set(common)
        self._in_some = {tag for names in given for tag in names} - common
        super().__init__(themes, parent)
        self.panel.confirmed.connect(self._confirm)
        cancel, done = button(self.tr("Cancel"), self.reject), button(self.tr("Done"), self._finish, "primary")
        self.build(self.tr("Tags"), self.tr("Find a tag, or name a new one"), cancel, done)

    def rows_for(self, typed: str) -> Sequence[ResultRow]:
        """Return the tags with what was typed, and one to be made."""
        query = clean_name(typed, MAX_FOLDER_NAME).casefold()
        rows = [self._row(tag) for tag in self._tags if query in tag.casefold()]
        if query and all(tag.casefold() != query for tag in self._tags):
            new = self.tr("New tag “{0}”").format(clean_name(typed, MAX_FOLDER_NAME))
            rows.append(ResultRow(text=new, icon="plus", is_choosable=True, tip=clean_name(typed, MAX_FOLDER_NAME)))
        if not rows:
            rows.append(ResultRow(text=self.tr("Type the name of a tag."), is_faded=True))
        return rows

    def choose(self, row: ResultRow) -> None:
        """Give this tag, or take it away."""
        tag, is_typed = row.tip, bool(self.panel.field.text())
        if tag not in self._tags:
            self._tags.insert(0, tag)
        self._tags_now ^= {tag}
        self._in_some.discard(tag)
        self.panel.field.clear()
        self.panel.fill()
        if is_typed:
            self.panel.clear_mark()
            announce(self.panel.field, self._row(tag).spoken)

    def _row(self, tag: str) -> ResultRow:
        is_given = tag in self._tags_now
        state = (
            self.tr("assigned")
            if is_given
            else self.tr("assigned to some")
            if tag in self._in_some
            else self.tr("not assigned")
        )
        icon = "check" if is_given else "minus" if tag in self._in_some else "tag"
        return ResultRow(text=tag, icon=icon, spoken=f"{tag}, {state}", tip=tag, is_choosable=True)

    def _confirm(self) -> None:
        # Without any tag nothing can have been chosen: the dialog asks for a name.
        if self._tags:
            self._finish()

    def _finish(self) -> None:
        added = sorted(self._tags_now - self._tags_before)
        removed = sorted(self._tags_before - self._tags_now)
        if added or removed:
            self.chosen.emit(added, removed)
        self.accept()
