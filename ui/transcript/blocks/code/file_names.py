"""What a piece of code is called when it is saved."""

import re
from fnmatch import fnmatchcase

from ui.transcript.blocks.code.syntax import lexer_of

# Where the first pattern of the grammar is not what people use, and words that are no grammar.
_ENDINGS = {
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
_WHOLE_NAMES = {"dockerfile": "Dockerfile", "docker": "Dockerfile", "makefile": "Makefile", "make": "Makefile"}
_FILE = re.compile(r"[\w][\w .+@-]{0,80}\.[A-Za-z0-9]{1,8}")


def suggested_name(language: str, title: str = "") -> str:
    """By a file's name in the title of the block, or by the language: `code.py`, `result.txt`. Never with a folder."""
    for words in (title, language):
        if _FILE.fullmatch(words):
            return words
    word = language.lower()
    if word in _WHOLE_NAMES:
        return _WHOLE_NAMES[word]
    stem = title if title.isalnum() and len(title) < 40 else "code"
    return f"{stem}.{_ending(word)}"


def _ending(language: str) -> str:
    if language in _ENDINGS:
        return _ENDINGS[language]
    lexer = lexer_of(language) if language else None
    patterns = [str(each) for each in getattr(lexer, "filenames", ())]
    for pattern in patterns:
        ending = pattern.removeprefix("*.")
        if ending.isalnum() and fnmatchcase(f"code.{ending}", pattern):
            return ending.lower()
    return "txt"
