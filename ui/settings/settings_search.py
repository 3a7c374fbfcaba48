"""The search over the list of pages, which finds pages and single settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QSizePolicy

from ui.settings.pages import SettingEntry, setting_entries
from ui.style.fuzzy_matcher import FuzzyMatcher
from ui.style.list_rows import ResultRow
from ui.style.pickers import SearchPanel
from ui.style.theme import ThemeSource


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow(ResultRow):
    """A page, or with a `field` the control of one setting on it."""

    page: str = ""
    field: str = ""


def setting_rows(typed: str, more: Sequence[SettingEntry] = ()) -> list[SettingRow]:
    """Return the settings that match these words, the best first: by titles, by keywords, then by other words."""
    matcher = FuzzyMatcher(typed, by_letters=False)

    def rank_of(entry: SettingEntry) -> tuple[bool, int] | None:
        near = f"{entry.page_title} {entry.keywords}"
        if (rank := matcher.rank(entry.title, near)) is not None:
            return False, rank
        rank = matcher.rank(entry.title, f"{near} {entry.words}")
        return None if rank is None else (True, rank)

    entries = (*setting_entries(), *more)
    ranked = [(rank_of(entry), entry) for entry in entries]
    matching = [(rank, entry) for rank, entry in ranked if rank is not None]
    matching.sort(key=lambda ranked_entry: ranked_entry[0])
    if not matching:
        return [SettingRow(text=QCoreApplication.translate("SettingsSearch", "Nothing found."), is_faded=True)]
    return [
        SettingRow(
            text=entry.title,
            under=entry.page_title if entry.field else "",
            is_choosable=True,
            page=entry.page,
            field=entry.field,
        )
        for _, entry in matching
    ]


class SettingsSearch(SearchPanel):
    """A search field; while it has text, the results are below it."""

    used = Signal(bool)
    """Whether the field has text."""

    def __init__(self, themes: ThemeSource, more: Callable[[], Sequence[SettingEntry]]) -> None:
        """`more` returns further entries."""
        super().__init__(
            themes,
            lambda typed: setting_rows(typed, more()) if typed.strip() else [],
            self.tr("Found settings"),
        )
        self.set_label(self.tr("Search settings"))
        self.field.textChanged.connect(self._on_text)
        self._on_text()

    @property
    def is_used(self) -> bool:
        """Whether the field has text."""
        return bool(self.field.text().strip())

    def start(self) -> None:
        """Focus the field and select its text."""
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def _take_key(self, key: int) -> bool:
        if key == Qt.Key.Key_Escape and self.field.text():
            self.field.clear()
            return True
        return super()._take_key(key)

    def _on_text(self) -> None:
        self._list.setVisible(self.is_used)
        # Without the list, the search must not take half of the height.
        vertical = QSizePolicy.Policy.Expanding if self.is_used else QSizePolicy.Policy.Maximum
        self.setSizePolicy(QSizePolicy.Policy.Preferred, vertical)
        self.used.emit(self.is_used)
