"""The person's own table of models: `models.toml` in the data folder. docs/models.md says what may stand in it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_agent.vocabulary.errors import Sentence

if TYPE_CHECKING:
    from desktop_agent.providers.catalogue.tables import ModelTable, TableError

MODELS_FILE = "models.toml"


async def load_model_overrides(folder: Path) -> "tuple[ModelTable | None, tuple[Sentence, ...]]":
    """The table, if there is one, and what is wrong with it in words. Read in a thread; raises nothing."""
    return await asyncio.to_thread(_read_overrides, folder / MODELS_FILE)


def _read_overrides(path: Path) -> "tuple[ModelTable | None, tuple[Sentence, ...]]":
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None, ()
    except OSError as error:
        return None, (_unusable_file(path, error.strerror or type(error).__name__),)
    # Imported late: few people have such a file, and the start is measured.
    import tomllib

    from desktop_agent.providers.catalogue.tables import parse_table

    try:
        table = parse_table(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return None, (_unusable_file(path, f"line {line} is not text in UTF-8"),)
    except tomllib.TOMLDecodeError as error:
        # The parser's own words end with line and column.
        return None, (_unusable_file(path, str(error)),)
    except (ValueError, RecursionError):
        # Python's own limits: thousands of digits or of brackets.
        return None, (_unusable_file(path, "a number is too long, or it is nested too deeply"),)
    return table, tuple(_skipped_entry(path, each) for each in table.errors)


def _unusable_file(path: Path, why: str) -> Sentence:
    return Sentence("Your file “{name}” cannot be used: {why}.", {"name": path.name, "why": why})


def _skipped_entry(path: Path, strange: "TableError") -> Sentence:
    values = {"name": path.name, "place": strange.place, "why": strange.reason}
    if strange.line is None:
        return Sentence("In your file “{name}”, {place} was left out: {why}.", values)
    values["line"] = str(strange.line)
    return Sentence("In your file “{name}”, line {line}, {place} was left out: {why}.", values)
