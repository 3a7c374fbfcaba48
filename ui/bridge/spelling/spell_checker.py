"""The spelling of words for the screens: which are wrong, what they could be, and the person's own words."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot

from desktop_agent.processes.worker import Worker, WorkerFailed, WorkerFailure
from desktop_agent.processes.worker_process import WorkerLimits
from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.types.preferences import Preferences, SpellingPreferences
from ui.bridge.event_loop import BackgroundTasks, in_background
from ui.bridge.settings import Settings
from ui.bridge.spelling.dictionaries import Dictionary, dictionary_folders, find_dictionaries, system_dictionary
from ui.bridge.spelling.spelling_worker import SpellingAnswer

_log = logging.getLogger(__name__)
_LIMITS = WorkerLimits(memory=1_000_000_000, seconds=20.0)
_TIMEOUT = 30.0
_MAX_WORDS = 2_000
"""Words in one call."""
_MAX_KNOWN = 50_000
_MAX_FAILURES = 3
"""Failures after which nothing is checked until the settings change: a dictionary may crash the process each time."""


class SpellChecker(QObject):
    """Checks in a worker process, which starts with the first word and ends when it is unused for a while."""

    changed = Signal()
    """Call `wrong` again: words were checked, or the accepted words changed."""
    found = Signal()
    """`dictionaries` was updated."""
    suggested = Signal(str, list)
    """A wrong word, and up to five that it could be."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        tasks: BackgroundTasks,
        languages: Sequence[str],
        parent: QObject | None = None,
    ) -> None:
        """`folder` is the data folder; `languages` are those of the system, the first one first."""
        super().__init__(parent)
        self._folder = folder
        self._settings = settings
        self._tasks = tasks
        self._languages = languages
        self.dictionaries: tuple[Dictionary, ...] = ()
        self._preferences = settings.preferences.spelling
        self._used = self._find_used()
        self._own = _own_words(self._preferences)
        self._ignored = set[str]()
        self._wrong_by_word: dict[str, bool] = {}
        self._pending = set[str]()
        self._failures = 0
        self._is_closed = False
        self._worker = Worker(
            "ui.bridge.spelling.spelling_worker:answer", list[SpellingAnswer], _LIMITS, timeout=_TIMEOUT
        )
        self._thread = WorkerThread("spelling")
        settings.changed.connect(self._on_changed)

    @property
    def system_dictionary(self) -> Dictionary | None:
        """The dictionary that is used where the person chose none."""
        return system_dictionary(self._languages, self.dictionaries)

    @in_background
    async def refresh(self) -> None:
        """Look for dictionaries; `found` follows."""
        self.dictionaries = await asyncio.to_thread(lambda: find_dictionaries(dictionary_folders(self._folder)))
        self.found.emit()
        self._update_used()

    def wrong(self, words: Collection[str]) -> set[str]:
        """Return those of the words that are known to be wrong. `changed` follows when others were checked."""
        if not self._used or self._failures >= _MAX_FAILURES:
            return set()
        unknown = [word for word in words if word not in self._wrong_by_word and word not in self._pending]
        if unknown:
            self._pending.update(unknown)
            self._tasks.start(self._check(unknown))
        return {word for word in words if self._wrong_by_word.get(word) and not self._is_accepted(word)}

    @in_background
    async def suggest(self, word: str) -> None:
        """Find what a wrong word could be; `suggested` answers."""
        self.suggested.emit(word, (await self._ask(self._used, [], word)).suggestions)

    def add(self, word: str) -> None:
        """Count a word as right from now on: it is one of the person's own."""
        words = "\n".join(filter(None, (self._preferences.words.rstrip(), word)))
        self._own = self._own | {word}
        self._settings.change(self._settings.preferences.with_changes("spelling", words=words))
        self.changed.emit()

    def ignore(self, word: str) -> None:
        """Count a word as right until the program ends."""
        self._ignored.add(word)
        self.changed.emit()

    async def close(self) -> None:
        """End the process and the thread."""
        self._is_closed = True
        self._worker.close()
        # Running calls end without an answer, so that this is quick.
        await self._thread.run(lambda: None)
        self._thread.stop()

    def _is_accepted(self, word: str) -> bool:
        """Return whether the person accepted the word. As in dictionaries, a lowercase word may begin a sentence."""
        return any(form in words for form in (word, word.lower()) for words in (self._own, self._ignored))

    def _find_used(self) -> tuple[Dictionary, ...]:
        if not self._preferences.check:
            return ()
        if self._preferences.languages:
            return tuple(
                dictionary for dictionary in self.dictionaries if dictionary.language in self._preferences.languages
            )
        default = self.system_dictionary
        return () if default is None else (default,)

    @Slot(Preferences)
    def _on_changed(self, preferences: Preferences) -> None:
        if preferences.spelling != self._preferences:
            self._preferences = preferences.spelling
            self._own = _own_words(preferences.spelling)
            self._update_used()

    def _update_used(self) -> None:
        """Update the dictionaries in use; forget results of other ones."""
        used = self._find_used()
        if used != self._used:
            self._used, self._failures = used, 0
            self._wrong_by_word.clear()
            self._pending.clear()
        self.changed.emit()

    async def _check(self, words: list[str]) -> None:
        used = self._used
        for start in range(0, len(words), _MAX_WORDS):
            part = words[start : start + _MAX_WORDS]
            answer = await self._ask(used, part)
            if used != self._used:
                return
            if len(self._wrong_by_word) > _MAX_KNOWN:
                self._wrong_by_word.clear()
            wrong = set[str](answer.wrong)
            self._wrong_by_word.update((word, word in wrong) for word in part)
            self._pending.difference_update(part)
            self.changed.emit()

    async def _ask(self, used: tuple[Dictionary, ...], words: list[str], misspelt: str = "") -> SpellingAnswer:
        """Ask the worker process; without an answer, no word is wrong."""
        if self._is_closed:
            return SpellingAnswer([], [])
        paths = [dictionary.path for dictionary in used]
        try:
            return await self._thread.run(lambda: self._worker.ask(paths, words, misspelt))
        except WorkerFailed as error:
            if error.failure is not WorkerFailure.STOPPED:
                self._failures += 1
                _log.warning("the spelling cannot be checked: %s", error.failure)
            return SpellingAnswer([], [])


def _own_words(preferences: SpellingPreferences) -> frozenset[str]:
    return frozenset(preferences.words.split())
