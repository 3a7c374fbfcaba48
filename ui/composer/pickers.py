"""The model picker and the workspace picker under the message editor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QSizePolicy

from desktop_agent.types.providers import DEMO_ENDPOINT, DEMO_MODEL, ModelInfo
from ui.bridge.model_servers import ModelGroup
from ui.style.controls import ToolButton, open_menu_at
from ui.style.file_dialogs import ask_folder
from ui.style.list_rows import ResultRow
from ui.style.pickers import SearchPopup
from ui.style.text import (
    escape_mnemonics,
    format_count,
    format_number,
    format_price,
    join_names,
    plain_tooltip,
    show_hidden,
    translate_sentence,
    truncate,
    with_keys,
)
from ui.style.theme import ThemeSource, themed_icon
from ui.style.widgets import CollapsingButton


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow(ResultRow):
    """A model, or a typed model id; without an id a heading or a note."""

    endpoint_id: str = ""
    model_id: str = ""


def model_rows(groups: Sequence[ModelGroup], typed: str, current: tuple[str, str]) -> list[ModelRow]:
    """Return the models that have all typed words in their id, title or server; `current` is (endpoint id, model id).

    Servers that have some come first: what is chosen unseen is one of those, and no id that nobody has.
    """
    servers = _without_demo(groups)
    found = sorted(servers, key=lambda group: not _matching_models(group, typed))
    rows = [row for group in found for row in _rows_of(group, typed.strip(), current)]
    if not servers:
        translate = QCoreApplication.translate
        none = translate("ModelRows", "No model is connected yet.")
        only_demo = translate("ModelRows", "Only the demo is connected yet.")
        rows = [ModelRow(text=only_demo if current[0] == DEMO_ENDPOINT else none)]
    return [*rows, *_demo_rows(typed.strip().casefold(), current)]


def _without_demo(groups: Sequence[ModelGroup]) -> list[ModelGroup]:
    return [group for group in groups if group.endpoint.kind != "demo"]


def _demo_model() -> ModelInfo:
    return ModelInfo(DEMO_MODEL, QCoreApplication.translate("ModelRows", "Demo"))


def _demo_rows(query: str, current: tuple[str, str]) -> list[ModelRow]:
    """Return the rows of the demo, the same whether its server runs or not: it starts when somebody uses it."""
    title, model = QCoreApplication.translate("ModelRows", "Demo (offline)"), _demo_model()
    if query not in title.casefold() and query not in model.id:
        return []
    today = datetime.now().astimezone().date()
    return [ModelRow(text=title, is_heading=True), _row_of(DEMO_ENDPOINT, model, current, today)]


def _rows_of(group: ModelGroup, typed: str, current: tuple[str, str]) -> list[ModelRow]:
    translate = QCoreApplication.translate
    models = _matching_models(group, typed)
    today = datetime.now().astimezone().date()
    rows = [_row_of(group.endpoint.id, model, current, today) for model in models]
    if typed and all(model.id != typed for model in group.models):
        rows.append(_custom_row(group.endpoint.id, typed, current))
    if group.problem is not None:
        rows.insert(0, ModelRow(text=translate_sentence(group.problem), badge="problem"))
    elif not group.models:
        rows.insert(0, ModelRow(text=translate("ModelRows", "No models"), badge="problem"))
    return [ModelRow(text=group.endpoint.title, is_heading=True), *rows]


def _matching_models(group: ModelGroup, typed: str) -> list[ModelInfo]:
    words, server = typed.casefold().split(), group.endpoint.title

    def has_all(model: ModelInfo) -> bool:
        names = "\n".join((model.id, model.title or "", server)).casefold()
        return all(word in names for word in words)

    return [model for model in group.models if has_all(model)]


def _row_of(endpoint_id: str, model: ModelInfo, current: tuple[str, str], today: date) -> ModelRow:
    title, facts, is_current = model.title or model.id, model_details(model, today), (endpoint_id, model.id) == current
    return ModelRow(
        text=title,
        under=" · ".join(facts),
        detail="✓" if is_current else "",
        tip=model_tooltip(model),
        spoken=join_names((title, *facts, *(["✓"] if is_current else []))),
        is_faded=model.retires is not None and model.retires <= today,
        is_choosable=True,
        is_current=is_current,
        endpoint_id=endpoint_id,
        model_id=model.id,
    )


def _custom_row(endpoint_id: str, typed: str, current: tuple[str, str]) -> ModelRow:
    return ModelRow(
        text=QCoreApplication.translate("ModelRows", "Use “{0}”").format(typed),
        tip=typed,
        is_choosable=True,
        is_current=(endpoint_id, typed) == current,
        endpoint_id=endpoint_id,
        model_id=typed,
    )


def model_details(model: ModelInfo, today: date) -> tuple[str, ...]:
    """Return what is known about a model, in a few words each."""
    translate, capabilities, facts = QCoreApplication.translate, model.capabilities, list[str]()
    if capabilities.context_window:
        facts.append(format_count(capabilities.context_window))
    abilities = (
        (capabilities.images, translate("ModelRows", "pictures")),
        (capabilities.makes_images, translate("ModelRows", "makes pictures")),
        (capabilities.tools, translate("ModelRows", "tools")),
        (capabilities.reasoning, translate("ModelRows", "reasoning")),
    )
    facts += [words for has_it, words in abilities if has_it]
    price = model.price
    if price is not None and price.input is not None and price.output is not None:
        facts.append(f"{format_price(price.input)} / {format_price(price.output)}")
    if model.retires is not None:
        is_retired = model.retires <= today
        words = translate("ModelRows", "retired {0}") if is_retired else translate("ModelRows", "retires {0}")
        facts.append(words.format(model.retires.isoformat()))
    return tuple(facts)


def model_tooltip(model: ModelInfo) -> str:
    """Return the id, and the figures with their units."""
    translate, price, lines = QCoreApplication.translate, model.price, [model.id]
    if model.capabilities.context_window:
        words = translate("ModelRows", "Context window: {0} tokens")
        lines.append(words.format(format_number(model.capabilities.context_window)))
    if price is not None and price.input is not None and price.output is not None:
        words = translate("ModelRows", "Price per million tokens: {0} in, {1} out")
        lines.append(words.format(format_price(price.input), format_price(price.output)))
    return "\n".join(lines)


POPUP_SIZE = QSize(440, 460)
MAX_NAME_LENGTH = 40
ARROW_SIZE = 14
"""Pixels at 100 % zoom."""
MIN_NAME_LENGTH = 8
"""Letters of a name that are left where there is no room for all of it."""


class ModelPicker(ToolButton):
    """Shows and changes the model. A model id that no server lists can be typed."""

    model_chosen = Signal(str, str)
    """Endpoint id and model id."""
    refresh_requested = Signal()
    connect_requested = Signal()
    model_file_requested = Signal()

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self.groups: Sequence[ModelGroup] = ()
        """The models to choose from."""
        self._current = ("", "")
        self._keys = "Ctrl+M"
        self._choose_instead: Callable[[str, str], None] | None = None
        words = {
            "name": self.tr("Models"),
            "refresh": self.tr("Refresh models"),
            "link": self.tr("Connect a model…"),
            "second_link": self.tr("Run a model file…"),
        }
        self._popup = SearchPopup(themes, self._search, POPUP_SIZE, self, **words)
        self._popup.panel.set_label(self.tr("Search models"), self.tr("Search, or type a model id"))
        self.setAccessibleName(self.tr("Model"))
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self.open_list)
        self._popup.chosen.connect(self._on_chosen)
        self._popup.left.connect(self._on_left)
        self._popup.refresh_requested.connect(self.refresh_requested)
        self._popup.link_followed.connect(self.connect_requested)
        self._popup.second_link_followed.connect(self.model_file_requested)
        themes.follow(self._apply_theme)
        self._update_text()

    def minimumSizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        more = metrics.horizontalAdvance(self.text()) - MIN_NAME_LENGTH * metrics.averageCharWidth()
        return self.sizeHint() - QSize(max(more, 0), 0)

    def set_models(self, groups: Sequence[ModelGroup]) -> None:
        """Set the models to choose from."""
        self.groups = groups
        self._popup.fill()
        self._update_text()

    def set_current(self, endpoint_id: str | None, model_id: str | None) -> None:
        """Set the model in use, if any."""
        self._current = (endpoint_id or "", model_id or "")
        self._popup.fill()
        self._update_text()

    def open_list(self) -> None:
        """Show the list above the button, or below where there is no room."""
        self._popup.show_over(self)

    def choose_once(self, choose: Callable[[str, str], None]) -> None:
        """Show the list for one choice that is not `model_chosen`: `choose` receives endpoint id and model id."""
        self.open_list()
        self._choose_instead = choose

    def show_keys(self, keys: str) -> None:
        """Show the keys that open the list."""
        self._keys = keys
        self._update_text()

    def _search(self, typed: str) -> Sequence[ModelRow]:
        return model_rows(self.groups, typed, self._current)

    def _on_chosen(self, row: ModelRow) -> None:
        choose, self._choose_instead = self._choose_instead or self.model_chosen.emit, None
        choose(row.endpoint_id, row.model_id)

    def _on_left(self) -> None:
        self._choose_instead = None

    def _update_text(self) -> None:
        endpoint_id, model_id = self._current
        group = next((group for group in _without_demo(self.groups) if group.endpoint.id == endpoint_id), None)
        models = (_demo_model(),) if endpoint_id == DEMO_ENDPOINT else () if group is None else group.models
        title = next((model.title or model.id for model in models if model.id == model_id), model_id)
        name = shown = whole = title or self.tr("Choose a model")
        if group is not None and title:
            server = group.endpoint.title
            whole = f"{title} · {server}"
            others = (model for other in self.groups if other is not group for model in other.models)
            if title in (model.title or model.id for model in others):
                name, shown = whole, f"{truncate(title, MAX_NAME_LENGTH // 2)} · {server}"
        self.setText(escape_mnemonics(truncate(shown, MAX_NAME_LENGTH)))
        self.setAccessibleDescription(name)
        self.setToolTip(plain_tooltip(with_keys(whole, self._keys)))

    def _apply_theme(self) -> None:
        # The arrow belongs behind the name, but Qt puts icons in front.
        ltr = QGuiApplication.layoutDirection() == Qt.LayoutDirection.LeftToRight
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft if ltr else Qt.LayoutDirection.LeftToRight)
        side = self._themes.scaled(ARROW_SIZE)
        self.setIcon(themed_icon("chevron-down", self._themes.theme, side))
        self.setIconSize(QSize(side, side))


class WorkspacePicker(CollapsingButton):
    """Shows and changes the folder. Without one the agent has no file tools."""

    folder_chosen = Signal(object, str)
    """A Path or None, and the conversation it is for: another one may have been opened since."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__(themes)
        self._folder: Path | None = None
        self._conversation_id = ""
        self._menu = QMenu(self)
        self._menu.setAccessibleName(self.tr("Workspace folder"))
        self._choose = self._menu.addAction(self.tr("Choose folder…"), self.choose_folder)
        self._none = self._menu.addAction(
            self.tr("No folder"), lambda: self.folder_chosen.emit(None, self._conversation_id)
        )
        self.setAccessibleName(self.tr("Workspace folder"))
        self.clicked.connect(self.open_menu)
        themes.follow(self._apply_theme)
        self.set_folder(None)

    def set_folder(self, folder: Path | None, conversation_id: str = "") -> None:
        """Set the folder in use and its conversation."""
        self._folder, self._conversation_id = folder, conversation_id
        # Qt would cut a name that is no UTF-8.
        path = "" if folder is None else show_hidden(str(folder))
        words = self.tr("No folder") if folder is None else show_hidden(folder.name) or path
        self.setText(" " + escape_mnemonics(words))
        self.setAccessibleDescription(path or words)
        tip = path or f"{words}\n" + self.tr("The agent works without files.")
        self.setToolTip(plain_tooltip(tip))
        self._none.setEnabled(folder is not None)

    def open_menu(self) -> None:
        """Offer to choose a folder or none."""
        open_menu_at(self, self._menu, -self._menu.sizeHint().height())
        self._menu.setActiveAction(self._choose)

    def choose_folder(self) -> None:
        """Open a folder dialog, without waiting for it."""
        conversation_id = self._conversation_id

        def on_chosen(folder: Path) -> None:
            self.folder_chosen.emit(folder, conversation_id)

        ask_folder(self, self.tr("Choose the workspace folder"), str(self._folder or Path.home()), on_chosen)

    def _apply_theme(self) -> None:
        self.draw("folder", self._themes.theme.text)
