"""The search over the list of pages: what is written finds pages and single settings."""

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
    """Return what these words find, the best first: titles, then what is said of them."""
    matcher = FuzzyMatcher(typed, by_letters=False)
    entries = (*setting_entries(), *more)
    ranked = [(matcher.rank(entry.title, f"{entry.page_title} {entry.words}"), entry) for entry in entries]
    fitting = sorted(((rank, entry) for rank, entry in ranked if rank is not None), key=lambda found: found[0])
    if not fitting:
        return [SettingRow(text=QCoreApplication.translate("SettingsSearch", "Nothing is called that."), is_faded=True)]
    return [
        SettingRow(
            text=entry.title,
            under=entry.page_title if entry.field else "",
            is_choosable=True,
            page=entry.page,
            field=entry.field,
        )
        for _, entry in fitting
    ]


class SettingsSearch(SearchPanel):
    """A field alone; while something is written in it, what that finds is under it."""

    used = Signal(bool)
    """Whether something is written."""

    def __init__(self, themes: ThemeSource, more: Callable[[], Sequence[SettingEntry]]) -> None:
        """`more` returns what else can be found."""
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
        """Whether something is written."""
        return bool(self.field.text().strip())

    def start(self) -> None:
        """Take the keyboard; what is written is replaced by what is typed."""
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def _take_key(self, key: int) -> bool:
        if key == Qt.Key.Key_Escape and self.field.text():
            self.field.clear()
            return True
        return super()._take_key(key)

    def _on_text(self) -> None:
        self._list.setVisible(self.is_used)
        # Without the list it must not take half of the height.
        vertical = QSizePolicy.Policy.Expanding if self.is_used else QSizePolicy.Policy.Maximum
        self.setSizePolicy(QSizePolicy.Policy.Preferred, vertical)
        self.used.emit(self.is_used)
