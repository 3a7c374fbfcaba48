"""The file of preferences: JSON in the data folder, never with a secret in it."""

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from desktop_agent.storage.files import file_error, free_name, make_private_folder, write_atomically
from desktop_agent.types.errors import Sentence, StorageFailed
from desktop_agent.types.permissions import BUILT_IN_MODES
from desktop_agent.types.preferences import Preferences

_NAME = "preferences.json"
_Path = tuple[int | str, ...]
# Lists whose entries are permissions: none may ever allow more than was written.
_STRICT_LISTS = (("modes", "defined"), ("specialists", "defined"), ("mcp", "servers"))
_RESTRICTING_EFFECTS = ("deny", "ask")
# The key in which no two entries of a list may be equal. Built-in modes have taken some names already.
_UNIQUE_KEYS = {"modes": ("defined", "name"), "specialists": ("defined", "name"), "mcp": ("servers", "id")}
_RESERVED_NAMES = {"modes": frozenset(mode.name for mode in BUILT_IN_MODES)}


class PreferencesFile:
    """Loads and saves; `notices` says what was wrong at the last loading. The caller limits how often it saves."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _NAME
        self.notices: tuple[Sentence, ...] = ()
        self.on_refusal: Callable[[], Awaitable[None]] | None = None
        """Called when the disk has refused to save."""
        self._unsaved: Preferences | None = None
        """Preferences in use that are not in the file yet."""
        self._must_keep_old = False
        self._writing = threading.Lock()
        self._numbers = count(1)
        self._written = 0
        """The number of the save that is in the file."""

    async def load(self) -> Preferences:
        """Return the preferences, without blocking the event loop; see `load_now`."""
        return await asyncio.to_thread(self.load_now)

    def load_now(self) -> Preferences:
        """Read the preferences in this thread, in about a millisecond: for the start, before there is a loop.

        Missing or invalid entries have their defaults; unknown entries are kept. A file that is no JSON object is
        renamed. Raises StorageFailed if the file cannot be read.
        """
        self.notices, self._must_keep_old = (), False
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return Preferences()
        except OSError as error:
            raise file_error(error, self.path) from error
        try:
            values: Any = json.loads(data)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            return self._set_aside()
        return self._validated(cast("dict[str, Any]", values))

    async def save_unsaved(self) -> None:
        """Save the preferences that are not in the file yet. Raises StorageFailed."""
        if self._unsaved is not None:
            await self.save(self._unsaved)

    async def save(self, preferences: Preferences) -> None:
        """Write the file atomically, unless a later save was faster. Raises StorageFailed."""
        self._unsaved = preferences
        try:
            # In a thread from the start: a save that waits for another one on the loop would end with a quit.
            await asyncio.to_thread(self._save, preferences, next(self._numbers))
        except StorageFailed:
            if self.on_refusal is not None:
                await self.on_refusal()
            raise
        self._unsaved = None if self._unsaved is preferences else self._unsaved

    def _save(self, preferences: Preferences, number: int) -> None:
        with self._writing:
            if number > self._written:
                self._write(preferences)
                self._written = number

    def _write(self, preferences: Preferences) -> None:
        # ASCII with escapes, because only so lone surrogates survive.
        text = json.dumps(preferences.model_dump(mode="json"), indent=2)
        try:
            make_private_folder(self.path.parent, within=self.path.parent)
            self._keep_old()
            write_atomically(Path(os.path.realpath(self.path)), text.encode("ascii") + b"\n")
        except OSError as error:
            raise file_error(error, self.path, self.path.parent) from error

    def _keep_old(self) -> None:
        if self._must_keep_old and self.path.exists():
            shutil.copy2(self.path, free_name(self.path, "damaged"))
        self._must_keep_old = False

    def _set_aside(self) -> Preferences:
        aside = free_name(self.path, "damaged")
        try:
            self.path.replace(aside)
        except OSError:
            self._must_keep_old = True
            template = "The settings are damaged, and the file cannot be set aside. All of them have their defaults."
            self.notices = (Sentence(template),)
            return Preferences()
        template = "The settings were damaged. The file was kept as “{name}”, and all settings have their defaults."
        self.notices = (Sentence(template, {"name": aside.name}),)
        return Preferences()

    def _validated(self, values: dict[str, Any]) -> Preferences:
        notices: dict[str, Sentence] = {}
        while True:
            try:
                preferences = Preferences.model_validate(values)
            except ValidationError as error:
                errors = error.errors(include_url=False, include_context=False)
                places = _paths_to_remove(values, errors)
                dropped = [_notice(title, place) for place in places if (title := _title(place))]
                notices |= {str(notice): notice for notice in dropped}
                _remove(values, places)
            else:
                self._must_keep_old = bool(notices)
                self.notices = tuple(notices.values())
                return preferences


def _notice(title: str, place: _Path) -> Sentence:
    if any(isinstance(step, int) for step in place[:-1]) and not isinstance(place[-1], int):
        template = "This version understands an entry of the setting “{title}” only in part. That part applies."
        return Sentence(template, {"title": title})
    if any(isinstance(step, int) for step in place):
        return Sentence("An entry of the setting “{title}” cannot be used and was left out.", {"title": title})
    return Sentence("The setting “{title}” had a value that cannot be used; it has its default.", {"title": title})


def _paths_to_remove(values: dict[str, Any], errors: list[ErrorDetails]) -> list[_Path]:
    """Return the invalid paths, once each and none inside another; the last entries of a list first."""
    places = {_path_to_remove(values, error) for error in errors}
    outermost = [path for path in places if not any(path[:length] in places for length in range(len(path)))]
    return sorted(outermost, key=lambda place: [(type(step).__name__, step) for step in place], reverse=True)


def _path_to_remove(values: dict[str, Any], details: ErrorDetails) -> _Path:
    """Return an entry of a list rather than the list, a surplus key rather than its entry.

    In permissions a surplus key may be what restricts them: there the whole entry goes, or the rule that allows.
    """
    place = details["loc"]
    section = str(next(iter(place), ""))
    if section in _UNIQUE_KEYS and len(place) <= 2 and details["type"] in {"value_error", "too_long"}:
        return _path_of_duplicate(values, section, details)
    if details["type"] == "extra_forbidden":
        return _path_of_unknown_key(values, place) if place[:2] in _STRICT_LISTS else place
    entry = next((index for index, step in enumerate(place) if isinstance(step, int)), len(place))
    return place[: entry + 1]


def _path_of_duplicate(values: dict[str, Any], section: str, details: ErrorDetails) -> _Path:
    name, key = _UNIQUE_KEYS[section]
    entries: list[dict[str, Any]] = values[section][name]
    if details["type"] == "too_long":
        return section, name, len(entries) - 1
    seen = set(_RESERVED_NAMES.get(section, ()))
    for index, entry in enumerate(entries):
        if entry.get(key) in seen:
            return section, name, index
        seen.add(entry[key])
    return section, name


def _path_of_unknown_key(values: dict[str, Any], place: _Path) -> _Path:
    entry, in_rule, in_pattern = 3, 5, 6
    if len(place) <= in_rule or place[entry] != "rules":
        return place[:entry]
    section: Any = values
    for step in place[:in_rule]:
        section = section[step]
    if section.get("effect") not in _RESTRICTING_EFFECTS:
        return place[:in_rule]
    # In pydantic's path the kind of the pattern comes after “pattern”; the file has no such key.
    return (*place[:in_pattern], place[-1]) if len(place) > in_pattern else place


def _remove(values: dict[str, Any], places: list[_Path]) -> None:
    """Remove these paths, in this order; where that changes nothing, everything, so that loading comes to an end."""
    before = json.dumps(values)
    for place in places:
        section: Any = values
        for step in place[:-1]:
            section = section[step] if _has_key(section, step) else None
        if place and _has_key(section, place[-1]):
            del section[place[-1]]
    if json.dumps(values) == before:
        values.clear()


def _has_key(container: Any, step: int | str) -> bool:
    if isinstance(container, list):
        return isinstance(step, int) and step < len(cast("list[Any]", container))
    return isinstance(container, dict) and step in container


def _title(path: _Path) -> str:
    """Return the preference's title as the settings show it; else its name in the file."""
    model: Any = Preferences
    title = ".".join(str(step) for step in path)
    for step in path:
        if not (isinstance(model, type) and issubclass(model, BaseModel) and step in model.model_fields):
            break
        field = model.model_fields[str(step)]
        title = field.title or title
        model = field.annotation
    return title
