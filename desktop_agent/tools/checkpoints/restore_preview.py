"""Preview a restore without touching a file."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.tools.checkpoints.restore_steps import RestoreStep, SkippedFile, plan_step, skipped_because
from desktop_agent.tools.checkpoints.snapshots import FileSnapshot, parse_saved_path, take_snapshot
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.errors import Sentence, ToolFailed

_NOT_EMPTY = "“{path}” is a folder now, with something in it that belongs to somebody else."
_NOT_WRITABLE = "The folder of “{path}” cannot be written to."
_NO_FOLDER = "A part of “{path}” is a file, not a folder."
_MAX_LISTED = 1_000
_MISSING, _FOLDER, _UNKNOWN = FileState(), FileState(unread="folder"), FileState(unread="not_permitted")


@dataclass(slots=True)
class ForecastState:
    """The forecast for one file: as it is `now`, and as it would be `then`.

    `skipped` is the first reason why it would not be restored fully.
    """

    now: FileSnapshot
    then: FileState
    skipped: SkippedFile | None = None


def preview_restore(
    workspace: Workspace, checkpoints: Sequence[Checkpoint], token: CancelToken
) -> tuple[dict[str, ForecastState], dict[str, ForecastState]]:
    """Return what would become of the files of checkpoints, newest first: where the person lets nothing be replaced
    that was changed since, and where the person lets all of it be replaced.

    Where both end in the same state, the person has nothing to decide.
    """
    disk = DiskReader(workspace, token)
    plain, willing = (RestorePreview(disk, may_replace=may_replace) for may_replace in (False, True))
    return plain.preview(checkpoints), willing.preview(checkpoints)


class DiskReader:
    """Reads each file of a workspace once, so that all forecasts speak of the same versions."""

    def __init__(self, workspace: Workspace, token: CancelToken) -> None:
        self.workspace = workspace
        self._token = token
        self._snapshots: dict[str, FileSnapshot | SkippedFile] = {}

    def snapshot(self, path: str) -> FileSnapshot | SkippedFile:
        """Return a file as it is, or why that cannot be told."""
        self._token.raise_if_cancelled()
        if path not in self._snapshots:
            try:
                self._snapshots[path] = take_snapshot(self.workspace, parse_saved_path(path), self._token)
            except ToolFailed as error:
                self._snapshots[path] = skipped_because(path, error)
        return self._snapshots[path]

    def can_change(self, place: WorkspacePath) -> bool:
        """Return whether the folder of a place may be written to, or the nearest one above it that is there."""
        folder = self.workspace.folder.joinpath(*place.parts).parent
        # Not Path.is_dir, which raises where a folder may not be entered.
        while not os.path.isdir(folder):  # noqa: PTH112
            folder = folder.parent
        return os.access(folder, os.W_OK | os.X_OK)


class RestorePreview:
    """Previews the restore of checkpoints, newest first. `forecasts` has the files that would change.

    `may_replace`: the person lets all files be replaced that were changed since.
    """

    def __init__(self, disk: DiskReader, *, may_replace: bool) -> None:
        self._disk = disk
        self._may_replace = may_replace
        self.forecasts: dict[str, ForecastState] = {}
        # Folders that calls had made, and that would be removed.
        self._removed: set[str] = set()

    def preview(self, checkpoints: Sequence[Checkpoint]) -> dict[str, ForecastState]:
        """Return what would become of all their files."""
        for checkpoint in checkpoints:
            steps = [step for file in checkpoint.files if (step := self._plan(file)) is not None]
            # As in a restore: first remove what is in the way, the innermost first.
            steps.sort(key=lambda step: step.file.path.count("/"), reverse=True)
            steps = [step for step in steps if step.wants_file or self._clear(step)]
            self._remove_folders(checkpoint)
            for step in reversed(steps):
                if step.wants_file or step.wants_folder:
                    self._fill(step)
        return self.forecasts

    def _plan(self, file: SavedFile) -> RestoreStep | None:
        snapshot = self._disk.snapshot(file.path)
        if isinstance(snapshot, SkippedFile):
            self.forecasts[file.path] = ForecastState(FileSnapshot(_UNKNOWN, None), _UNKNOWN, snapshot)
            return None
        forecast = self.forecasts.get(file.path)
        if forecast is None:
            then = self._expected_state(file.path, snapshot.state)
            forecast = self.forecasts[file.path] = ForecastState(snapshot, then)
        expected = FileSnapshot(forecast.then, None if forecast.then == _MISSING else ())
        planned = plan_step(file, expected, may_replace=self._may_replace)
        if isinstance(planned, SkippedFile):
            forecast.skipped = forecast.skipped or planned
            return None
        return planned

    def _expected_state(self, path: str, now: FileState) -> FileState:
        """Return the state of a place that no earlier step restored."""
        if path in self._removed:
            return _MISSING
        return _FOLDER if now == _MISSING and self._holds_something(path) else now

    def _clear(self, step: RestoreStep) -> bool:
        """Remove what is there; return False for a folder with something in it."""
        forecast = self.forecasts[step.file.path]
        if not self._disk.can_change(step.place):
            self._skip(step, _NOT_WRITABLE)
            return False
        if forecast.then == _FOLDER and self._is_not_empty(step.file.path):
            self._skip(step, _NOT_EMPTY)
            return False
        forecast.then = _MISSING
        return True

    def _fill(self, step: RestoreStep) -> None:
        folders = ["/".join(step.place.parts[:count]) for count in range(1, len(step.place.parts))]
        if any(self._is_file(folder) for folder in folders):
            self._skip(step, _NO_FOLDER)
        elif self._clear(step):
            self.forecasts[step.file.path].then = step.file.before
            self._bring_back([*folders, step.file.path])

    def _skip(self, step: RestoreStep, template: str) -> None:
        forecast, path = self.forecasts[step.file.path], str(step.place)
        forecast.skipped = forecast.skipped or SkippedFile(path, Sentence(template, {"path": path}))

    def _bring_back(self, folders: Sequence[str]) -> None:
        """Bring back the folders that a restored file is in."""
        self._removed.difference_update(folders)
        for folder in folders:
            forecast = self.forecasts.get(folder)
            if forecast is not None and forecast.then == _MISSING:
                forecast.then = _FOLDER

    def _remove_folders(self, checkpoint: Checkpoint) -> None:
        """Remove the folders that were not there before the call, unless something lies in them."""
        for path in sorted(checkpoint.new_folders, key=lambda path: -path.count("/")):
            if self._is_folder(path) and not self._is_not_empty(path):
                self._removed.add(path)
                if path in self.forecasts:
                    self.forecasts[path].then = _MISSING

    def _is_folder(self, path: str) -> bool:
        if path in self.forecasts:
            return self.forecasts[path].then == _FOLDER
        snapshot = self._disk.snapshot(path)
        return isinstance(snapshot, FileSnapshot) and snapshot.state == _FOLDER

    def _is_file(self, path: str) -> bool:
        """Return whether something lies there that is no folder."""
        if path in self.forecasts:
            return self.forecasts[path].then not in (_MISSING, _FOLDER)
        with suppress(ToolFailed):
            status = self._disk.workspace.stat(parse_saved_path(path))
            return status is not None and not stat.S_ISDIR(status.st_mode)
        return False

    def _holds_something(self, path: str) -> bool:
        prefix = f"{path}/"
        return any(
            other_path.startswith(prefix) and forecast.then != _MISSING
            for other_path, forecast in self.forecasts.items()
        )

    def _is_not_empty(self, path: str) -> bool:
        if self._holds_something(path):
            return True
        prefix = f"{path}/"
        try:
            entries = self._disk.workspace.entries(parse_saved_path(path), _MAX_LISTED)
        except ToolFailed as error:
            # There is none on the disk, or it may not be listed.
            return not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError)
        names = {f"{prefix}{entry.name}" for entry in entries}
        return not names <= {*self.forecasts, *self._removed}
