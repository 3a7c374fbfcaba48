"""Tiny dictionaries of hunspell, in files like the real ones."""

from pathlib import Path

ENGLISH = ("hello", "world", "the", "cat/S", "a", "is", "here", "don't")
GERMAN = ("Katze", "über", "ist", "hier", "die")
RUSSIAN = ("кошка", "здесь")


def write_dictionary(folder: Path, language: str, words: tuple[str, ...], encoding: str = "UTF-8") -> str:
    """Write both files, in which `/S` allows the plural. Returns their path without suffix."""
    folder.mkdir(parents=True, exist_ok=True)
    rules = f"SET {encoding}\nTRY esianrtolcdugmphbyfvkwz\nSFX S Y 1\nSFX S 0 s .\n"
    (folder / f"{language}.aff").write_text(rules, encoding=encoding)
    (folder / f"{language}.dic").write_text("\n".join([str(len(words)), *words, ""]), encoding=encoding)
    return str(folder / language)
