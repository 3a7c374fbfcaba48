"""The page of spelling: whether it is checked, in which languages, and the person's own words."""

from collections.abc import Sequence

from PySide6.QtCore import QLocale, QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from desktop_agent.types.preferences import SpellingPreferences
from ui.forms.controls import Control
from ui.forms.form import Form
from ui.forms.model_fields import add_model_fields, translate_preference
from ui.style.boxes import vbox
from ui.style.layouts import PartFocus
from ui.style.removal import remove_widget
from ui.style.theme import SPACE_XS
from ui.style.widgets import WrappedChoice


class SpellingSettings(QWidget):
    """The fields of the section; `show_languages` fills in the languages later."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self._languages = _LanguageBoxes()
        field = SpellingPreferences.model_fields["languages"]
        boxes = self._languages
        control: Control[QWidget] = Control(
            widget=boxes, read=boxes.chosen, show=boxes.show_chosen, changed=boxes.changed
        )
        self._row = form.add_field(
            "languages",
            translate_preference(field.title or ""),
            control,
            help_text=translate_preference(field.description or ""),
        )
        add_model_fields(form, SpellingPreferences, ("words",))
        vbox(form, parent=self, margins=0, end_stretch=True)

    def show_languages(self, languages: Sequence[str], default: str, folder: str) -> None:
        """Show a box for each language that has a dictionary.

        `default` is used if none is chosen, "" if there is none; `folder` is for further dictionaries, "" if nothing
        can read them.
        """
        self._languages.show_languages(languages, default)
        note = self.tr("For other languages put dictionaries of Hunspell (two files, .aff and .dic) into {0}.")
        self._row.show_note(note.format(folder) if folder else "")
        if not folder:
            self._row.show_warning(self.tr("Spelling cannot be checked on this system: the library for it is missing."))
        elif not languages:
            self._row.show_warning(self.tr("No dictionary was found: spelling is not checked."))
        elif not default:
            self._row.show_warning(self.tr("There is no dictionary for the language of your system."))
        else:
            self._row.show_warning("")


class _LanguageBoxes(QWidget):
    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._boxes: dict[str, QCheckBox] = {}
        self._choices: list[WrappedChoice] = []
        self._chosen: tuple[str, ...] = ()
        self._default = ""
        self._column = vbox(parent=self, spacing=SPACE_XS, margins=0)
        self._focus = PartFocus(self, self)

    def show_languages(self, languages: Sequence[str], default: str) -> None:
        self._default = default
        if [*self._boxes] != [*languages]:
            for choice in self._choices:
                remove_widget(self._column, choice)
            self._boxes = {language: QCheckBox() for language in languages}
            self._choices = [WrappedChoice(box, _language_name(language)) for language, box in self._boxes.items()]
            for choice, box in zip(self._choices, self._boxes.values(), strict=True):
                box.toggled.connect(self._on_toggled)
                self._column.addWidget(choice)
            self._focus.part = next(iter(self._boxes.values()), self)
        self._check_boxes()

    def chosen(self) -> tuple[str, ...]:
        return self._chosen

    def show_chosen(self, languages: Sequence[str]) -> None:
        self._chosen = tuple(languages)
        self._check_boxes()

    def _check_boxes(self) -> None:
        checked = self._chosen or (self._default,)
        for language, box in self._boxes.items():
            with QSignalBlocker(box):
                box.setChecked(language in checked)

    def _on_toggled(self) -> None:
        # Keep languages without a dictionary: it may come back.
        missing = [language for language in self._chosen if language not in self._boxes]
        checked = [language for language, box in self._boxes.items() if box.isChecked()]
        self._chosen = (*checked, *missing)
        self.changed.emit()


def _language_name(language: str) -> str:
    """Return the native name of a dictionary's language: “Deutsch (Deutschland)” for "de_DE"."""
    locale = QLocale(language)
    if locale.language() is QLocale.Language.C:
        return language
    name, country = locale.nativeLanguageName(), locale.nativeTerritoryName()
    # The names of variants of a language already name the country.
    is_main = name == QLocale(language.partition("_")[0]).nativeLanguageName()
    whole = f"{name} ({country})" if country and is_main and "_" in language else name
    return whole if locale.name() == language or "_" not in language else f"{whole}, {language}"
