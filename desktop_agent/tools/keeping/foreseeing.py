"""What restoring several checkpoints would make of their files, worked out without touching one. Runs in a thread."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from desktop_agent.tools.in_thread import StopSign
from desktop_agent.tools.keeping.looking import Look, Stamp, look, place_of
from desktop_agent.tools.keeping.putting_back import Consent, LeftAlone, Step, consents, failed, judgement
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

_FULL = "“{path}” is a folder now, with something in it that belongs to somebody else."
_EMPTY_IT = Sentence("Move what lies in it elsewhere, then undo again.")
_MOST_ENTRIES = 1_000
_NOTHING, _FOLDER = FileState(), FileState(unread="folder")


@dataclass(slots=True)
class Course:
    """One file: as it was found, as it would be, and the first reason why it would not be all that it was.

    `stamp` and `names` as in Look.
    """

    now: FileState
    then: FileState
    left: LeftAlone | None = None
    stamp: Stamp | None = None
    names: int = 1


class Foreseeing:
    """Takes checkpoints newest first, as they are restored. `courses` has the files that would not stay unnoticed."""

    def __init__(self, workspace: Workspace, sign: StopSign, consent: Consent) -> None:
        self._workspace = workspace
        self._sign = sign
        self._consent = consent
        self.courses: dict[str, Course] = {}
        # Folders that calls had made, and that would be empty.
        self._gone: set[str] = set()

    def take(self, checkpoints: Sequence[Checkpoint]) -> dict[str, Course]:
        """What would become of all their files."""
        for checkpoint in checkpoints:
            steps = [step for file in checkpoint.files if (step := self._judged(file)) is not None]
            # As in a restoring: first what stands in the way goes, the innermost first, then files come back.
            for step in sorted(steps, key=lambda step: -step.file.path.count("/")):
                if not step.wants_file:
                    self._make(step)
            self._remove_folders(checkpoint)
            for step in steps:
                if step.wants_file:
                    self._make(step)
        return self.courses

    def _judged(self, file: SavedFile) -> Step | None:
        self._sign.check()
        course = self.courses.get(file.path)
        if course is None:
            try:
                found = look(self._workspace, place_of(file.path), self._sign)
            except ToolFailed as error:
                self.courses[file.path] = Course(_NOTHING, _NOTHING, failed(file.path, error))
                return None
            then = self._by_then(file.path, found.state)
            course = self.courses[file.path] = Course(found.state, then, None, found.stamp, found.names)
        found = Look(course.then, None if course.then == _NOTHING else ())
        judged = judgement(file, found, self._consent)
        if isinstance(judged, LeftAlone):
            course.left = course.left or judged
            return None
        return judged

    def _by_then(self, path: str, now: FileState) -> FileState:
        """What is left of a place that no call was restored at so far."""
        if path in self._gone:
            return _NOTHING
        return _FOLDER if now == _NOTHING and self._holds_something(path) else now

    def _make(self, step: Step) -> None:
        course = self.courses[step.file.path]
        if course.then.unread == "folder" and not step.wants_folder and self._is_full(step.file.path):
            path = str(step.place)
            course.left = course.left or LeftAlone(path, Sentence(_FULL, {"path": path}), _EMPTY_IT)
            return
        course.then = step.file.before
        self._gone.discard(step.file.path)
        if course.then != _NOTHING:
            above = place_of(step.file.path).parts[:-1]
            for count in range(len(above), 0, -1):
                # It comes with the folders that it lies in.
                folder = self.courses.get("/".join(above[:count]))
                self._gone.discard("/".join(above[:count]))
                if folder is not None and folder.then == _NOTHING:
                    folder.then = _FOLDER

    def _remove_folders(self, checkpoint: Checkpoint) -> None:
        """Those that the call made, as far as nothing lies in them; only where it is known that it made them."""
        if not all(file.after is not None or consents(self._consent, file.path) for file in checkpoint.files):
            return
        for path in sorted(checkpoint.new_folders, key=lambda path: -path.count("/")):
            course = self.courses.get(path)
            if self._is_folder(path) and not self._is_full(path):
                self._gone.add(path)
                if course is not None:
                    course.then = _NOTHING

    def _is_folder(self, path: str) -> bool:
        if path in self.courses:
            return self.courses[path].then == _FOLDER
        with suppress(ToolFailed):
            return look(self._workspace, place_of(path), self._sign).state == _FOLDER
        return False

    def _holds_something(self, path: str) -> bool:
        inside = f"{path}/"
        return any(each.startswith(inside) and course.then != _NOTHING for each, course in self.courses.items())

    def _is_full(self, path: str) -> bool:
        """Whether something would lie in the folder."""
        if self._holds_something(path):
            return True
        inside = f"{path}/"
        try:
            entries = self._workspace.entries(place_of(path), _MOST_ENTRIES)
        except ToolFailed:
            return False  # there is none on the disk
        names = {f"{inside}{entry.name}" for entry in entries}
        return not names <= {*self.courses, *self._gone}
