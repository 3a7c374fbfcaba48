"""Every ordinary file at or below a place of a workspace, folder by folder, without what is hidden."""

import stat
from collections.abc import Callable, Iterator

from desktop_agent.tools.workspace import FolderEntry, Workspace, WorkspacePath
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

MAX_FILES = 100_000
MAX_DEPTH = 40
# A folder with more than this is not looked through as a whole.
_SCAN_LIMIT = 50_000


class FileWalk:
    """One walk. Hidden files and folders, links and what is no file are passed over; `is_cut` when it was too much."""

    def __init__(self, workspace: Workspace, place: WorkspacePath, check: Callable[[], None]) -> None:
        self._workspace = workspace
        self._place = place
        self._check = check
        self._seen = 0
        self.is_cut = False

    def files(self) -> Iterator[tuple[WorkspacePath, int]]:
        """Each file and its size in bytes. Raises ToolFailed where there is nothing, and what `check` raises."""
        found = self._workspace.stat(self._place) if self._place.parts else None
        if self._place.parts and found is None:
            raise ToolFailed(Sentence("There is no “{path}” in the workspace.", {"path": str(self._place)}))
        if found is not None and stat.S_ISREG(found.st_mode):
            yield self._place, found.st_size
            return
        entries = self._workspace.entries(self._place, _SCAN_LIMIT)
        yield from self._walk(self._place, entries, MAX_DEPTH)

    def _walk(
        self, place: WorkspacePath, entries: tuple[FolderEntry, ...], depth: int
    ) -> Iterator[tuple[WorkspacePath, int]]:
        self.is_cut |= len(entries) == _SCAN_LIMIT
        for entry in entries:
            self._check()
            if self._seen >= MAX_FILES:
                self.is_cut = True
                return
            if entry.name.startswith("."):
                continue
            here = place.child(entry.name)
            if entry.kind == "file":
                self._seen += 1
                yield here, entry.size
            elif entry.kind == "folder":
                yield from self._walk(here, self._entries(here, depth), depth - 1)

    def _entries(self, place: WorkspacePath, depth: int) -> tuple[FolderEntry, ...]:
        """What is in it; nothing of a folder that is not ours to open, or gone by now."""
        if depth <= 0:
            self.is_cut = True
            return ()
        try:
            return self._workspace.entries(place, _SCAN_LIMIT)
        except ToolFailed:
            return ()
