"""The language of the window: its own translations and Qt's, and the locale of dates and numbers."""

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from resources import resource_path

SOURCE_LANGUAGE = "en"
"""The language of the sources, which needs no file."""
LANGUAGES = (SOURCE_LANGUAGE, "de", "zh_CN")
"""The languages to choose from, by the names of their files. Here, as preferences are read after the first paint."""

_IN_USE = "language"
"""The property of the application that has the language in use."""


def install_language(app: QApplication, choice: str) -> str:
    """Install the translations of a language, or of the system's with "system". Returns the language.

    Call it before the first widget is made.
    """
    language = language_of(choice)
    app.setProperty(_IN_USE, language)
    if (locale := locale_of(language, QLocale.system())) is not None:
        QLocale.setDefault(locale)
    if language == SOURCE_LANGUAGE:
        return language
    from PySide6.QtCore import QLibraryInfo, QTranslator

    try:
        own_file = str(resource_path("translations", f"desktop_agent_{language}.qm"))
    except FileNotFoundError:
        # Late: it is there in every build, and in a checkout after `make`.
        import logging

        logging.getLogger(__name__).warning("the translation %s is missing: run make", language)
        return SOURCE_LANGUAGE
    # What is installed last is asked first.
    for file in (f"{QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)}/qtbase_{language}.qm", own_file):
        translator = QTranslator(app)
        if translator.load(file):
            app.installTranslator(translator)
    return language


def language_of(choice: str) -> str:
    """Return the language of a choice, which may be "system"."""
    return choice if choice in LANGUAGES else system_language(QLocale.system().uiLanguages())


def language_in_use() -> str:
    """Return the language that was installed at the start."""
    app = QApplication.instance()
    return (app.property(_IN_USE) if app is not None else None) or SOURCE_LANGUAGE


def system_language(wanted: list[str]) -> str:
    """Return the first language that a person wants ("de-AT", "zh-Hans-CN") and that there is; else the sources'."""
    for name in wanted:
        locale = QLocale(name)
        if locale.language() is QLocale.Language.Chinese:
            if locale.script() is QLocale.Script.SimplifiedHanScript:
                return "zh_CN"
        elif (code := QLocale.languageToCode(locale.language())) in LANGUAGES:
            return code
    return SOURCE_LANGUAGE


def locale_of(language: str, system: QLocale) -> QLocale | None:
    """Return the locale for dates and numbers of a language in the system's region; None for the system's locale."""
    default = QLocale(language)
    is_same = (system.language(), system.script()) == (default.language(), default.script())
    # C is English without a region, and has its own formats.
    if is_same or (system.language() is QLocale.Language.C and language == SOURCE_LANGUAGE):
        return None
    locale = QLocale(default.language(), default.script(), system.territory())
    if _has_12_hours(locale) and not _has_12_hours(system):
        # Qt has no English for that region. That for Europe has a clock of 24 hours.
        return QLocale(default.language(), default.script(), QLocale.Country.Europe)
    return locale


def _has_12_hours(locale: QLocale) -> bool:
    """Return whether its clock counts 12 hours twice a day."""
    return "a" in locale.timeFormat(QLocale.FormatType.ShortFormat).lower()
