"""What a piece of code is called when it is saved."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

# Where the first pattern of the grammar is not what people use, and words that are no grammar.
_EXTENSIONS = {
    "text": "txt",
    "plain": "txt",
    "plaintext": "txt",
    "bash": "sh",
    "sh": "sh",
    "shell": "sh",
    "zsh": "sh",
    "console": "txt",
    "mermaid": "mmd",
    "latex": "tex",
    "csv": "csv",
    "tsv": "tsv",
    "svg": "svg",
    "env": "env",
    "gitignore": "gitignore",
}
_FILE_NAMES = {"dockerfile": "Dockerfile", "docker": "Dockerfile", "makefile": "Makefile", "make": "Makefile"}
_FILE = re.compile(r"[\w][\w .+@-]{0,80}\.[A-Za-z0-9]{1,8}")


def suggest_file_name(language: str, title: str = "") -> str:
    """By a file's name in the title of the block, or by the language: `code.py`, `result.txt`. Never with a folder."""
    for words in (title, language):
        if _FILE.fullmatch(words):
            return words
    word = language.lower()
    if word in _FILE_NAMES:
        return _FILE_NAMES[word]
    stem = title if title.isalnum() and len(title) < 40 else "code"
    return f"{stem}.{_extension(word)}"


def _extension(language: str) -> str:
    if language in _EXTENSIONS:
        return _EXTENSIONS[language]
    for pattern in _patterns(language):
        ending = pattern.removeprefix("*.")
        if ending.isalnum() and fnmatchcase(f"code.{ending}", pattern):
            return ending.lower()
    return "txt"


def _patterns(language: str) -> Sequence[str]:
    """Of the files in a language, by the table of Pygments; no grammar is loaded."""
    if not language:
        return ()
    # Only who saves code needs the table.
    from pygments.lexers import get_all_lexers

    return next((patterns for _, names, patterns, _ in get_all_lexers(plugins=False) if language in names), ())
