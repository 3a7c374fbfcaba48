"""The filters of the search: a menu to choose from, and a chip for each that is chosen."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import PurePath

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QActionGroup, QShowEvent
from PySide6.QtWidgets import QMenu, QWidget

from desktop_agent.types.messages import Role
from desktop_agent.types.search import SearchChoices, SearchPlace, SearchQuery
from ui.style.boxes import vbox
from ui.style.controls import ToolButton, open_menu_at
from ui.style.layouts import FlowRows
from ui.style.text import escape_mnemonics, one_line, plain_tooltip
from ui.style.theme import SPACE_XS, ThemeSource, themed_icon

_MAX_NAME = 28
"""Characters on a chip."""
_ICON_SIZE = 12
_SEPARATOR = " / "


@dataclass(frozen=True, slots=True)
class ChosenFilters:
    """What narrows the search. `days` is the number of days before today, or -1 for this year."""

    days: int | None = None
    model: str | None = None
    workspace: str | None = None
    role: Role | None = None
    has_image: bool = False
    has_tool_call: bool = False
    in_files: bool = False
    folder: str | None = None
    tag: str | None = None
    program: str | None = None

    def apply(self, query: SearchQuery, now: datetime) -> SearchQuery:
        """Return the query with these filters. Days begin at midnight where `now` is."""
        return replace(
            query,
            since=self._since(now),
            model=self.model,
            workspace=self.workspace,
            folder=self.folder,
            tag=self.tag,
            program=self.program,
            roles=frozenset() if self.role is None else frozenset({self.role}),
            has_image=self.has_image,
            has_tool_call=self.has_tool_call,
            places=frozenset({SearchPlace.FILES}) if self.in_files else query.places,
        )

    def _since(self, now: datetime) -> datetime | None:
        if self.days is None:
            return None
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
        first = midnight.replace(month=1, day=1) if self.days < 0 else midnight - timedelta(self.days)
        # The time zone is added only here: its offset may have been another on an earlier day.
        return first.astimezone()


_NONE = ChosenFilters()


class SearchFilters(QWidget):
    """A quiet button with the menu; before it the chips, which remove their filter when pressed."""

    changed = Signal()
    choices_wanted = Signal()
    """The models and folders to choose from are to be read again."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self.chosen = _NONE
        self._choices = SearchChoices()
        self._menu = QMenu(self)
        self._menu.aboutToShow.connect(self._fill_menu)
        self._chips = {name: self._make_chip(name) for name in ChosenFilters.__dataclass_fields__}
        self._button = ToolButton()
        self._build()
        themes.changed.connect(self._show_chips)

    def apply(self, query: SearchQuery) -> SearchQuery:
        """Return the query with the filters, as of now."""
        return self.chosen.apply(query, datetime.now().astimezone())

    @property
    def is_active(self) -> bool:
        return self.chosen != _NONE

    @property
    def is_in_use(self) -> bool:
        """Return whether the keyboard or the menu is here."""
        return self._menu.isVisible() or any(item.hasFocus() for item in (*self._chips.values(), self._button))

    @property
    def tab_stops(self) -> Sequence[QWidget]:
        return (*self._chips.values(), self._button)

    def set_choices(self, choices: SearchChoices) -> None:
        """Offer these models and folders from the next opening of the menu on."""
        self._choices = choices

    def clear(self) -> None:
        """Remove all filters, without a signal."""
        self.chosen = _NONE
        self._show_chips()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.choices_wanted.emit()

    def _build(self) -> None:
        self.setAccessibleName(self.tr("Search filters"))
        self._menu.setAccessibleName(self.tr("Menu: {0}").format(self.tr("Filters")))
        self._button.setText(self.tr("Filters"))
        self._button.setAccessibleName(self.tr("Filters"))
        self._button.setProperty("kind", "filters")
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._button.clicked.connect(self._open_menu)
        row = FlowRows([*self._chips.values(), self._button], gap=SPACE_XS)
        vbox(row, parent=self, spacing=0, margins=0)
        self._show_chips()

    def _open_menu(self) -> None:
        # Not `setMenu`: the button would wait for the menu in a loop of its own.
        open_menu_at(self._button, self._menu, self._button.height())

    def _make_chip(self, name: str) -> ToolButton:
        chip = ToolButton()
        chip.setProperty("kind", "filter")
        chip.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        # The cross is behind the words.
        direction = Qt.LayoutDirection
        chip.setLayoutDirection(direction.LeftToRight if self.isRightToLeft() else direction.RightToLeft)
        chip.clicked.connect(partial(self._remove, name))
        chip.hide()
        return chip

    def _remove(self, name: str) -> None:
        had_focus = self._chips[name].hasFocus()
        self._choose(replace(self.chosen, **{name: getattr(_NONE, name)}))
        if had_focus:
            self._button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _choose(self, chosen: ChosenFilters) -> None:
        if chosen != self.chosen:
            self.chosen = chosen
            self._show_chips()
            self.changed.emit()

    def _show_chips(self) -> None:
        side = self._themes.scaled(_ICON_SIZE)
        size = self._themes.scaled(14)
        self._button.setIcon(themed_icon("sliders", self._themes.theme, size))
        self._button.setIconSize(QSize(size, size))
        for name, chip in self._chips.items():
            words = self._words_of(name)
            chip.setText(escape_mnemonics(one_line(words, _MAX_NAME)))
            chip.setAccessibleName(self.tr("Remove the filter: {0}").format(words))
            chip.setToolTip(plain_tooltip(chip.accessibleName()))
            chip.setIcon(themed_icon("close", self._themes.theme, side))
            chip.setIconSize(QSize(side, side))
            chip.setVisible(bool(words))

    def _words_of(self, name: str) -> str:
        """Return what a chip says; "" where the filter is not chosen."""
        value = getattr(self.chosen, name)
        if value is None or value is False:
            return ""
        match name:
            case "days":
                return dict(self._dates())[value]
            case "folder":
                return _SEPARATOR.join(dict(self._choices.folders).get(value, ())) or self.tr("Folder")
            case "program":
                return dict(self._choices.programs).get(value) or str(value)
            case "workspace":
                return PurePath(value).name or value
            case "role":
                return dict(self._speakers())[value]
            case "has_image" | "has_tool_call" | "in_files":
                return self._switch_words(name)
            case _:
                return str(value)

    def _switch_words(self, name: str) -> str:
        words = {
            "has_image": self.tr("Has a picture"),
            "has_tool_call": self.tr("Has a tool call"),
            "in_files": self.tr("In written files"),
        }
        return words[name]

    def _dates(self) -> Sequence[tuple[int | None, str]]:
        return (
            (None, self.tr("Any time")),
            (0, self.tr("Today")),
            (6, self.tr("Last 7 days")),
            (29, self.tr("Last 30 days")),
            (-1, self.tr("This year")),
        )

    def _speakers(self) -> Sequence[tuple[Role | None, str]]:
        return (
            (None, self.tr("Said by anybody")),
            (Role.USER, self.tr("Said by me")),
            (Role.ASSISTANT, self.tr("Said by the model")),
        )

    def _fill_menu(self) -> None:
        self._menu.clear()
        models = [(None, self.tr("Any model")), *((model, model) for model in self._choices.models)]
        paths = ((id_, _SEPARATOR.join(path)) for id_, path in self._choices.folders)
        tags = [(None, self.tr("Any tag")), *((tag, tag) for tag in self._choices.tags)]
        workspaces = [(None, self.tr("Any workspace folder")), *((path, path) for path in self._choices.workspaces)]
        self._add_choice(self.tr("Date"), self._dates(), "days")
        self._add_choice(self.tr("Model"), models, "model")
        if self._choices.folders:
            self._add_choice(self.tr("Folder"), [(None, self.tr("Any folder")), *paths], "folder")
        if self._choices.programs:
            programs = [(None, self.tr("Any program")), *self._choices.programs]
            self._add_choice(self.tr("Program"), programs, "program")
        if self._choices.tags:
            self._add_choice(self.tr("Tag"), tags, "tag")
        self._add_choice(self.tr("Workspace folder"), workspaces, "workspace")
        self._add_choice(self.tr("Said by"), self._speakers(), "role")
        self._menu.addSeparator()
        for name in ("has_image", "has_tool_call", "in_files"):
            words = self._switch_words(name)
            action = self._menu.addAction(words, self._chooser(name, not getattr(self.chosen, name)))
            action.setCheckable(True)
            action.setChecked(getattr(self.chosen, name))

    def _add_choice(self, title: str, choices: Sequence[tuple[object, str]], name: str) -> None:
        menu = self._menu.addMenu(title)
        menu.setAccessibleName(self.tr("Menu: {0}").format(title))
        menu.setEnabled(len(choices) > 1)
        group = QActionGroup(menu)
        for value, words in choices:
            action = menu.addAction(escape_mnemonics(one_line(words, 80)), self._chooser(name, value))
            action.setCheckable(True)
            action.setChecked(value == getattr(self.chosen, name))
            group.addAction(action)

    def _chooser(self, name: str, value: object) -> Callable[[], None]:
        return lambda: self._choose(replace(self.chosen, **{name: value}))
