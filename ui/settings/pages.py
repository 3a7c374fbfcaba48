"""The pages of the settings and the fields on them: their titles, and the words by which a search finds them."""

from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from PySide6.QtCore import QCoreApplication

from desktop_agent.types.preferences import Preferences
from ui.forms.model_fields import translate_preference, words_in_control

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
            SettingEntry(
                page,
                name,
                translate_preference(field.title or name),
                title,
                _field_words(name, field),
            )
            for name, field in section.model_fields.items()
        ]
    return entries
