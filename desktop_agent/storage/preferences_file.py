"""The file of preferences: JSON in the data folder, never with a secret in it."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from desktop_agent.storage.files import aside_path, failure_of, write_atomically
from desktop_agent.storage.paths import make_private
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.preferences import Preferences

_NAME = "preferences.json"
_Place = tuple[int | str, ...]


class PreferencesFile:
    """Loads and saves; `notices` says what was wrong at the last loading. Saving too often is the caller's concern."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME
        self.notices: tuple[Sentence, ...] = ()

    async def load(self) -> Preferences:
        """The preferences, without blocking the event loop; see `load_now`."""
        return await asyncio.to_thread(self.load_now)

    def load_now(self) -> Preferences:
        """The preferences, read in this thread, which takes a millisecond: for the start, before there is a loop.

        What the file does not say, or says wrongly, has its default; what this version does not know is kept. A file
        that is no JSON object is set aside under another name. Raises StorageFailed if the file cannot be read.
        """
        self.notices = ()
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Preferences()
        except OSError as error:
            raise failure_of(error, self.path) from error
        try:
            values: Any = json.loads(data)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return self._set_aside()
        return self._understood(cast("dict[str, Any]", values))

    async def save(self, preferences: Preferences) -> None:
        """Write the file, wholly or not at all. Raises StorageFailed."""
        await asyncio.to_thread(self.save_now, preferences)

    def save_now(self, preferences: Preferences) -> None:
        """The same in this thread, for the moment when the loop has ended."""
        # ASCII with escapes, because only so lone surrogates survive.
        text = json.dumps(preferences.model_dump(mode="json"), indent=2)
        try:
            make_private(self.path.parent)
            write_atomically(self.path, text.encode("ascii") + b"\n")
        except OSError as error:
            raise failure_of(error, self.path) from error

    def _set_aside(self) -> Preferences:
        aside = aside_path(self.path)
        try:
            self.path.replace(aside)
        except OSError as error:
            raise failure_of(error, self.path) from error
        template = (
            "The preferences were damaged. The file was kept as “{name}”, and all preferences have their defaults."
        )
        self.notices = (Sentence(template, {"name": aside.name}),)
        return Preferences()

    def _understood(self, values: dict[str, Any]) -> Preferences:
        notices: dict[str, Sentence] = {}
        while True:
            try:
                preferences = Preferences.model_validate(values)
            except ValidationError as error:
                found = error.errors(include_url=False, include_context=False)
                notices |= {title: _sentence(title, place) for place in map(_place, found) if (title := _title(place))}
                _remove(values, found)
            else:
                self.notices = tuple(notices.values())
                return preferences


def _sentence(title: str, place: _Place) -> Sentence:
    if any(isinstance(step, int) for step in place):
        return Sentence("An entry of the preference “{title}” cannot be used and was left out.", {"title": title})
    return Sentence("The preference “{title}” had a value that cannot be used; it has its default.", {"title": title})


def _place(details: ErrorDetails) -> _Place:
    """What to remove: an entry of a list rather than the list, a surplus key rather than its entry."""
    place = details["loc"]
    if details["type"] == "extra_forbidden":
        return place
    indexes = [at for at, step in enumerate(place) if isinstance(step, int)]
    return place[: indexes[0] + 1] if indexes else place


def _remove(values: dict[str, Any], found: list[ErrorDetails]) -> None:
    """Remove what pydantic objects to, once each, the last entries of a list first; at least something."""
    before = json.dumps(values)
    for place in reversed(list(dict.fromkeys(map(_place, found)))):
        at: Any = values
        for step in place[:-1]:
            at = at[step] if _holds(at, step) else None
        if place and _holds(at, place[-1]):
            del at[place[-1]]
    if json.dumps(values) == before:
        values.clear()


def _holds(container: Any, step: int | str) -> bool:
    if isinstance(container, list):
        return isinstance(step, int) and step < len(cast("list[Any]", container))
    return isinstance(container, dict) and step in container


def _title(path: _Place) -> str:
    """The preference's title as the settings show it; for what has none, its name in the file."""
    model: Any = Preferences
    title = ".".join(str(step) for step in path)
    for step in path:
        if not (isinstance(model, type) and issubclass(model, BaseModel) and step in model.model_fields):
            break
        field = model.model_fields[str(step)]
        title = field.title or title
        model = field.annotation
    return title
