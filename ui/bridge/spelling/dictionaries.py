"""Hunspell dictionaries of this computer: where they are, and which one is for the language of the system."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

FOLDER = "hunspell"
"""In the data folder, for dictionaries that the person puts there."""


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A language as its files are named ("de_AT"), and their path without suffix."""

    language: str
    path: str


def is_library_installed() -> bool:
    """Return whether hunspell is installed: not every system has a wheel of it."""
    return find_spec("hunspell") is not None


def dictionary_folders(data_folder: Path) -> list[Path]:
    """Return the folders to look in, the person's own first. The last one comes with the library."""
    folders = [data_folder / FOLDER]
    if sys.platform.startswith("linux"):
        shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
        folders.append(Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "hunspell")
        for folder in filter(None, shared.split(":")):
            folders += (Path(folder) / "hunspell", Path(folder) / "myspell" / "dicts")
    spec = find_spec("hunspell")
    if spec is not None and spec.origin:
        folders.append(Path(spec.origin).parent / "dictionaries")
    return folders


def find_dictionaries(folders: Iterable[Path]) -> tuple[Dictionary, ...]:
    """Return one dictionary for each language, from the first folder that has both its files. Nothing is read."""
    if not is_library_installed():
        return ()
    dictionaries: dict[str, Dictionary] = {}
    for folder in folders:
        try:
            names = {file.name for file in folder.iterdir()}
        except OSError:
            continue
        for language in (name.removesuffix(".aff") for name in names if name.endswith(".aff")):
            if f"{language}.dic" in names:
                dictionaries.setdefault(language, Dictionary(language, str(folder.absolute() / language)))
    return tuple(dictionaries[language] for language in sorted(dictionaries))


def system_dictionary(languages: Sequence[str], dictionaries: Sequence[Dictionary]) -> Dictionary | None:
    """Return the dictionary for the first language of the system ("de-AT", "en"), if there is one.

    If there is none for the country, return one of another country with the same language.
    """
    name = languages[0].replace("-", "_") if languages else ""
    # For systems without a language, English.
    language = "en" if name in {"", "C", "POSIX"} else name.partition("_")[0]
    same = [dictionary for dictionary in dictionaries if dictionary.language.partition("_")[0] == language]
    exact = (dictionary for dictionary in same if dictionary.language == name)
    # The variant that most of the world learns, or that of the country that gave the language its name.
    usual = (dictionary for dictionary in same if dictionary.language in {"en_US", f"{language}_{language.upper()}"})
    return next(iter((*exact, *usual, *same)), None)
