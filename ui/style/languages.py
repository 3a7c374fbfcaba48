"""The language of the window: its own translations and Qt's, and the locale of dates and numbers."""

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from resources import resource_path

SOURCE_LANGUAGE = "en"
"""The language of the sources, which needs no file."""
LANGUAGES = (SOURCE_LANGUAGE, "de", "zh_CN")
"""Those of the preference, by the names of their files. The preferences themselves are not read before the paint."""

_IN_USE = "language"
"""The property of the application."""


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
        own = str(resource_path("translations", f"desktop_agent_{language}.qm"))
    except FileNotFoundError:
        # Late: it is there in every build, and in a checkout after `make`.
        import logging

        logging.getLogger(__name__).warning("the translation %s is missing: run make", language)
        return SOURCE_LANGUAGE
    # What is installed last is asked first.
    for file in (f"{QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)}/qtbase_{language}.qm", own):
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
    """Return how to write dates and numbers in a language where the system's region is; None: as the system does."""
    own = QLocale(language)
    is_same = (system.language(), system.script()) == (own.language(), own.script())
    # C is English of no region, and has formats of its own.
    if is_same or (system.language() is QLocale.Language.C and language == SOURCE_LANGUAGE):
        return None
    locale = QLocale(own.language(), own.script(), system.territory())
    if _has_halves(locale) and not _has_halves(system):
        # Qt has no English of that region. That of Europe counts 24 hours.
        return QLocale(own.language(), own.script(), QLocale.Country.Europe)
    return locale


def _has_halves(locale: QLocale) -> bool:
    """Return whether its clock counts 12 hours twice a day."""
    return "a" in locale.timeFormat(QLocale.FormatType.ShortFormat).lower()
