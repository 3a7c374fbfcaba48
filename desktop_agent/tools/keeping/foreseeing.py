"""What restoring several checkpoints would make of their files, worked out without touching one. Runs in a thread."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from desktop_agent.tools.in_thread import CancelToken
from desktop_agent.tools.keeping.looking import FileSnapshot, FileStamp, parse_saved_path, take_snapshot
from desktop_agent.tools.keeping.putting_back import (
    ReplaceConsent,
    RestoreStep,
    SkippedFile,
    is_replacing_allowed,
    plan_step_for,
    skipped_because,
)
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

_NOT_EMPTY = "“{path}” is a folder now, with something in it that belongs to somebody else."
_EMPTY_FIRST = Sentence("Move what lies in it elsewhere, then undo again.")
_MAX_LISTED = 1_000
_MISSING, _FOLDER = FileState(), FileState(unread="folder")


@dataclass(slots=True)
class ForecastState:
    """One file: as it was found, as it would be, and the first reason why it would not be all that it was.

    `stamp` and `names` as in Look.
    """

    now: FileState
    then: FileState
    left: SkippedFile | None = None
    stamp: FileStamp | None = None
    link_count: int = 1


class RestorePreview:
    """Takes checkpoints newest first, as they are restored. `courses` has the files that would not stay unnoticed."""

    def __init__(self, workspace: Workspace, token: CancelToken, consent: ReplaceConsent) -> None:
        self._workspace = workspace
        self._token = token
        self._consent = consent
        self.forecasts: dict[str, ForecastState] = {}
        # Folders that calls had made, and that would be empty.
        self._gone: set[str] = set()

    def preview(self, checkpoints: Sequence[Checkpoint]) -> dict[str, ForecastState]:
        """What would become of all their files."""
        for checkpoint in checkpoints:
            steps = [step for file in checkpoint.files if (step := self._plan(file)) is not None]
            # As in a restoring: first what stands in the way goes, the innermost first, then files come back.
            for step in sorted(steps, key=lambda step: -step.file.path.count("/")):
                if not step.wants_file:
                    self._apply(step)
            self._remove_folders(checkpoint)
            for step in steps:
                if step.wants_file:
                    self._apply(step)
        return self.forecasts

    def _plan(self, file: SavedFile) -> RestoreStep | None:
        self._token.raise_if_cancelled()
        course = self.forecasts.get(file.path)
        if course is None:
            try:
                found = take_snapshot(self._workspace, parse_saved_path(file.path), self._token)
            except ToolFailed as error:
                self.forecasts[file.path] = ForecastState(_MISSING, _MISSING, skipped_because(file.path, error))
                return None
            then = self._expected_state(file.path, found.state)
            course = self.forecasts[file.path] = ForecastState(found.state, then, None, found.stamp, found.link_count)
        found = FileSnapshot(course.then, None if course.then == _MISSING else ())
        judged = plan_step_for(file, found, self._consent)
        if isinstance(judged, SkippedFile):
            course.left = course.left or judged
            return None
        return judged

    def _expected_state(self, path: str, now: FileState) -> FileState:
        """What is left of a place that no call was restored at so far."""
        if path in self._gone:
            return _MISSING
        return _FOLDER if now == _MISSING and self._holds_something(path) else now

    def _apply(self, step: RestoreStep) -> None:
        course = self.forecasts[step.file.path]
        if course.then.unread == "folder" and not step.wants_folder and self._is_not_empty(step.file.path):
            path = str(step.place)
            course.left = course.left or SkippedFile(path, Sentence(_NOT_EMPTY, {"path": path}), _EMPTY_FIRST)
            return
        course.then = step.file.before
        self._gone.discard(step.file.path)
        if course.then != _MISSING:
            above = parse_saved_path(step.file.path).parts[:-1]
            for count in range(len(above), 0, -1):
                # It comes with the folders that it lies in.
                folder = self.forecasts.get("/".join(above[:count]))
                self._gone.discard("/".join(above[:count]))
                if folder is not None and folder.then == _MISSING:
                    folder.then = _FOLDER

    def _remove_folders(self, checkpoint: Checkpoint) -> None:
        """Those that the call made, as far as nothing lies in them; only where it is known that it made them."""
        if not all(
            file.after is not None or is_replacing_allowed(self._consent, file.path) for file in checkpoint.files
        ):
            return
        for path in sorted(checkpoint.new_folders, key=lambda path: -path.count("/")):
            course = self.forecasts.get(path)
            if self._is_folder(path) and not self._is_not_empty(path):
                self._gone.add(path)
                if course is not None:
                    course.then = _MISSING

    def _is_folder(self, path: str) -> bool:
        if path in self.forecasts:
            return self.forecasts[path].then == _FOLDER
        with suppress(ToolFailed):
            return take_snapshot(self._workspace, parse_saved_path(path), self._token).state == _FOLDER
        return False

    def _holds_something(self, path: str) -> bool:
        inside = f"{path}/"
        return any(each.startswith(inside) and course.then != _MISSING for each, course in self.forecasts.items())

    def _is_not_empty(self, path: str) -> bool:
        """Whether something would lie in the folder."""
        if self._holds_something(path):
            return True
        inside = f"{path}/"
        try:
            entries = self._workspace.entries(parse_saved_path(path), _MAX_LISTED)
        except ToolFailed:
            return False  # there is none on the disk
        names = {f"{inside}{entry.name}" for entry in entries}
        return not names <= {*self.forecasts, *self._gone}
