"""The pages of the settings, the fields on them, and the search that finds both by their titles and other words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QSizePolicy

from desktop_agent.types.preferences import Preferences
from ui.forms.model_fields import translate_preference, words_in_control
from ui.style.fuzzy_matcher import FuzzyMatcher
from ui.style.list_rows import ResultRow
from ui.style.pickers import SearchPanel
from ui.style.theme import ThemeSource

CUSTOM_PAGES = frozenset({"providers", "local", "modes", "specialists", "mcp", "histories", "shortcuts"})
"""Sections that need more than a control for each field."""


@dataclass(frozen=True, slots=True)
class SettingEntry:
    """A field on a page, or with an empty `field` the page itself.

    `keywords` are what the page is about; `words`, its descriptions among them, find it too, behind other entries.

    On the page of keyboard shortcuts, the field is the name of an action.
    """

    page: str
    field: str
    title: str
    page_title: str
    words: str = ""
    keywords: str = ""


def page_groups() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the headings over the pages, and the pages under each."""
    translate = QCoreApplication.translate
    return (
        (translate("SettingsPages", "Connections"), ("providers", "local", "models")),
        (translate("SettingsPages", "General"), ("chat", "appearance", "spelling", "shortcuts", "network")),
        (translate("SettingsPages", "Tools and safety"), ("modes", "rules", "decisions", "mcp", "specialists")),
        (translate("SettingsPages", "Data"), ("histories", "storage", "usage")),
    )


def page_title(page: str) -> str:
    """Return the title of a page: a section of the preferences, "rules" or "decisions"."""
    translate = QCoreApplication.translate
    titles = {
        "providers": translate("SettingsPages", "Providers and keys"),
        "local": translate("SettingsPages", "Model files"),
        "modes": translate("SettingsPages", "Modes"),
        "rules": translate("SettingsPages", "Rules"),
        "decisions": translate("SettingsPages", "Decisions"),
        "mcp": translate("SettingsPages", "MCP servers"),
        "specialists": translate("SettingsPages", "Specialists"),
        "shortcuts": translate("SettingsPages", "Keyboard shortcuts"),
        "histories": translate("SettingsPages", "Other assistants"),
    }
    return titles.get(page) or translate_preference(page.capitalize())


def _page_keywords(page: str) -> str:
    """Return more words that find a page in the search: for topics that its fields do not name."""
    translate = QCoreApplication.translate
    words = {
        "providers": translate("SettingsPages", "API key, address, connect", "words that find this page"),
        "rules": translate("SettingsPages", "permissions, always allow, deny, revoke", "words that find this page"),
        "decisions": translate("SettingsPages", "permissions, log, tool calls, export", "words that find this page"),
        "modes": translate("SettingsPages", "permissions, copy a mode", "words that find this page"),
        "shortcuts": translate("SettingsPages", "keys", "words that find this page"),
        "storage": translate(
            "SettingsPages", "back up, restore, copies, data folder, check, compact", "words that find this page"
        ),
        "usage": translate("SettingsPages", "budgets, cost, price, limit, chart", "words that find this page"),
    }
    return words.get(page, "")


def _page_words(page: str, section: type[BaseModel] | None) -> str:
    """Return the titles and descriptions of the fields of a page that has no controls for them."""
    fields = section.model_fields.values() if section is not None and page in CUSTOM_PAGES else ()
    about = [text for field in fields for text in (field.title, field.description) if text]
    return " ".join(map(translate_preference, about))


def _field_words(name: str, field: FieldInfo) -> str:
    """Return more words that find a setting in the search: its description and its choices."""
    words = [translate_preference(field.description or ""), *words_in_control(field)]
    if name == "language":
        names = QCoreApplication.translate("SettingsPages", "English, German, Chinese", "words that find this setting")
        # In English too, for people who cannot read the language that is shown.
        words += [names, "Language"]
    return " ".join(words)


def setting_entries() -> list[SettingEntry]:
    """Return an entry for every page, and for every field that has its own control."""
    entries: list[SettingEntry] = []
    for page in (*Preferences.model_fields, "rules", "decisions"):
        title = page_title(page)
        annotation = Preferences.model_fields[page].annotation if page in Preferences.model_fields else None
        section = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
        entries.append(SettingEntry(page, "", title, title, _page_words(page, section), _page_keywords(page)))
        if page in CUSTOM_PAGES or section is None:
            continue
        entries += [
            SettingEntry(page, name, translate_preference(field.title or name), title, _field_words(name, field))
            for name, field in section.model_fields.items()
        ]
    return entries


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
            themes, lambda typed: setting_rows(typed, more()) if typed.strip() else [], self.tr("Found settings")
        )
        self.set_label(self.tr("Search settings"))
        self.field.textChanged.connect(self._on_text)
        self._on_text()

    @property
    def is_used(self) -> bool:
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
