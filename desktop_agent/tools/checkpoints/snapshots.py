"""Take a snapshot of a file, plan the steps that restore it, and preview a restore without touching a file."""

import hashlib
import os
import re
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.tools.open_folders import FileAttributes, read_attributes
from desktop_agent.tools.workspace import Workspace, WorkspacePath, reject_path
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile, UnreadReason
from desktop_agent.types.errors import AgentError, OutsideWorkspace, Sentence, StorageFailed, ToolFailed, WrongUse

MAX_SAVED_BYTES = 256 * 1024 * 1024
_CHUNK = 1024 * 1024
_ATTEMPTS = 3

FileStamp = tuple[int, ...]
_NO_EXTRAS = FileAttributes()


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """What was found. `stamp` changes with every change of it, None for nothing; `data` where bytes were asked for.

    `names` is how many names on the disk a file has (hard links), `extras` come with the bytes.
    """

    state: FileState
    stamp: FileStamp | None
    data: bytes | None = None
    link_count: int = 1
    extras: FileAttributes = _NO_EXTRAS


def saved_path(place: WorkspacePath) -> str:
    """A place as checkpoints hold it: byte for byte, also for names that are not Unicode."""
    return "/".join(place.parts)


def parse_saved_path(path: str) -> WorkspacePath:
    """The place again, literally: a link that somebody put there since leads nowhere. Raises OutsideWorkspace."""
    parts = tuple(path.split("/"))
    if not all(parts) or {".", ".."} & set(parts):
        reject_path(path, "is no path that was saved.")
    return WorkspacePath(parts)


def file_stamp(found: os.stat_result | None) -> FileStamp | None:
    """What tells one version of a file from the next without reading it."""
    if found is None:
        return None
    return (found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def take_snapshot(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool = False
) -> FileSnapshot:
    """Read what is there, at most SAVED_LIMIT bytes. Raises ToolFailed for what the disk refuses."""
    for _ in range(_ATTEMPTS):
        token.raise_if_cancelled()
        try:
            found = workspace.stat(place)
        except OutsideWorkspace:
            # A folder on the way was replaced by a link.
            return FileSnapshot(FileState(unread="not_a_file"), None)
        stamp = file_stamp(found)
        if found is None:
            return FileSnapshot(FileState(), stamp)
        unread = _unreadable_reason(found)
        if unread is not None:
            return FileSnapshot(FileState(unread=unread), stamp)
        read = _read_file(workspace, place, token, with_data=with_data)
        if file_stamp(workspace.stat(place)) != stamp:
            continue  # written to while it was read
        if read is None:
            return FileSnapshot(FileState(unread="not_permitted"), stamp)
        digest, data, extras = read
        state = FileState(digest=digest, mode=stat.S_IMODE(found.st_mode) & 0o777)
        return FileSnapshot(state, stamp, data, found.st_nlink, extras)
    raise ToolFailed(
        Sentence("“{path}” is being written to by another program.", {"path": str(place)}),
        "Wait until that program is done.",
    )


def saved_file(path: str, found: FileSnapshot, after: FileState | None = None) -> SavedFile:
    """What was found, as a checkpoint holds it."""
    attributes = tuple((name, b64encode(value).decode()) for name, value in found.extras.attributes)
    return SavedFile(path=path, before=found.state, after=after, attributes=attributes, owner=found.extras.owner)


def saved_attributes(file: SavedFile) -> FileAttributes:
    """The same back. Of what is no base64 nothing comes back."""
    try:
        return FileAttributes(
            tuple((name, b64decode(value, validate=True)) for name, value in file.attributes), file.owner
        )
    except ValueError:
        return FileAttributes(owner=file.owner)


def is_same_state(one: FileState, other: FileState | None) -> bool:
    """Whether both are certainly the same; what could not be read is not the same as anything."""
    return one == other and one.unread in {None, "folder"}


def _unreadable_reason(found: os.stat_result) -> UnreadReason | None:
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    if not stat.S_ISREG(found.st_mode):
        return "not_a_file"
    return "too_large" if found.st_size > MAX_SAVED_BYTES else None


def _read_file(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool
) -> tuple[str, bytes | None, FileAttributes] | None:
    """Digest, bytes, extras; None where it may not be read, or is not there any more, or grew beyond the limit."""
    hasher = hashlib.sha256()
    pieces: list[bytes] = []
    extras = _NO_EXTRAS
    size = 0
    try:
        with workspace.open_for_reading(place) as file:
            if with_data:
                extras = read_attributes(file.fileno())
            while (piece := file.read(_CHUNK)) and size <= MAX_SAVED_BYTES:
                token.raise_if_cancelled()
                size += len(piece)
                hasher.update(piece)
                if with_data:
                    pieces.append(piece)
    except ToolFailed as error:
        if isinstance(error.__cause__, PermissionError | FileNotFoundError):
            return None
        raise
    return None if size > MAX_SAVED_BYTES else (hasher.hexdigest(), b"".join(pieces) if with_data else None, extras)


ReplaceConsent = bool | Mapping[str, Collection[FileState | FileStamp]]
"""Whether files that were changed since may be replaced: all, none, or these as long as they are found so; those of
which no bytes were read, by their stamps."""

_NOT_SAVED: dict[UnreadReason, str] = {
    "folder": "“{path}” was a folder.",
    "too_large": "“{path}” was larger than 256 MB and not saved.",
    "not_permitted": "“{path}” could not be read before the call, so it was not saved.",
    "not_a_file": "“{path}” was no ordinary file, so it was not saved.",
}
_CHANGED = "“{path}” was changed since; it was left as it is."
_NOT_SAVABLE: dict[UnreadReason, str] = {
    "too_large": "“{path}” was changed since, and is larger than 256 MB, so it would not be saved first; it was left "
    "as it is.",
    "not_permitted": "“{path}” was changed since, and cannot be read, so it would not be saved first; it was left as "
    "it is.",
    "not_a_file": "“{path}” is no ordinary file by now, so it would not be saved first; it was left as it is.",
}
_UNCERTAIN = "The call on “{path}” never ended, so it is not known who changed it since; it was left as it is."
_KEEP_OR_REPLACE = Sentence("Keep it, or restore once more and choose to replace it.")
_BY_HAND = Sentence("Put it back by hand from a copy of your own.")
_RETRY = Sentence("Remove the cause, then restore once more.")


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not put back. `is_conflict`: because it is not as the call left it; else it was not possible.

    `is_undo`: what the call did besides was not undone; `path` is the tool then.
    """

    path: str
    why: Sentence
    remedy: Sentence
    is_conflict: bool = False
    is_undo: bool = False


class ChangedSinceSnapshot(ToolFailed):
    """It changed between the look and the deed."""

    kind = "changed"

    def __init__(self, place: WorkspacePath) -> None:
        super().__init__(Sentence(_CHANGED, {"path": str(place)}))


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """A file that is to be put back, and what stands there now."""

    file: SavedFile
    place: WorkspacePath
    now: FileSnapshot

    @property
    def wants_file(self) -> bool:
        """Whether there was a file."""
        return self.file.before.digest is not None

    @property
    def wants_folder(self) -> bool:
        """Whether there was a folder."""
        return self.file.before.unread == "folder"


def plan_step(
    workspace: Workspace, file: SavedFile, token: CancelToken, consent: ReplaceConsent
) -> RestoreStep | SkippedFile | None:
    """What is to be done about a file; None when it is as it was before the call."""
    try:
        now = take_snapshot(workspace, parse_saved_path(file.path), token)
    except ToolFailed as error:
        return skipped_because(file.path, error)
    return plan_step_for(file, now, consent)


def plan_step_for(file: SavedFile, now: FileSnapshot, consent: ReplaceConsent) -> RestoreStep | SkippedFile | None:
    """The same about a file that was found so."""
    step = RestoreStep(file, parse_saved_path(file.path), now)
    path = str(step.place)
    if is_same_state(now.state, file.before):
        return None
    if file.before.unread not in {None, "folder"}:
        return SkippedFile(path, Sentence(_NOT_SAVED[file.before.unread or "folder"], {"path": path}), _BY_HAND)
    if not is_same_state(now.state, file.after) and not is_replacing_allowed(consent, file.path, now):
        if step.wants_folder and now.stamp is None:
            return None  # nothing of anybody's lies there, and the files that were in it bring it back
        template = _NOT_SAVABLE.get(now.state.unread or "folder", _UNCERTAIN if file.after is None else _CHANGED)
        return SkippedFile(path, Sentence(template, {"path": path}), _KEEP_OR_REPLACE, is_conflict=True)
    return step


def is_replacing_allowed(consent: ReplaceConsent, path: str, now: FileSnapshot | None = None) -> bool:
    """Whether the person lets a file that was changed since be replaced, as it is now."""
    if isinstance(consent, bool):
        return consent
    if now is None:
        return path in consent
    # Of what could not be read, one version looks like the next.
    known = now.state if now.state.unread in {None, "folder"} else now.stamp
    return known in consent.get(path, ())


def clear_path(workspace: Workspace, step: RestoreStep) -> None:
    """Take away what stands where no file was. Raises ToolFailed."""
    if step.now.state.unread == "folder":
        workspace.remove_folder(step.place)
    elif step.now.stamp is not None:
        workspace.remove(step.place, _require_unchanged(workspace, step, step.now.stamp))


def restore_path(workspace: Workspace, step: RestoreStep, data: bytes, prefix: str) -> None:
    """Put back what was there; `data` for a file. `prefix` is for names that last a moment. Raises ToolFailed."""
    if step.wants_folder:
        workspace.make_folder(step.place)
        return
    expected = step.now.stamp
    if step.now.state.unread == "folder":
        workspace.remove_folder(step.place)
        expected = None
    check = _require_unchanged(workspace, step, expected)
    mode, extras = step.file.before.mode, saved_attributes(step.file)
    workspace.write(step.place, data, check, mode=mode, prefix=prefix, extras=extras)


def skipped_because(path: str, error: AgentError) -> SkippedFile:
    """The report of what could not be done."""
    shown = path.encode("utf-8", "replace").decode()
    if isinstance(error, ChangedSinceSnapshot):
        return SkippedFile(shown, error.sentence, _KEEP_OR_REPLACE, is_conflict=True)
    return SkippedFile(shown, error.sentence, error.remedy if isinstance(error, StorageFailed) else _RETRY)


def _require_unchanged(workspace: Workspace, step: RestoreStep, expected: FileStamp | None) -> Callable[[], None]:
    def check() -> None:
        if file_stamp(workspace.stat(step.place)) != expected:
            raise ChangedSinceSnapshot(step.place)

    return check


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


_TEMPORARY_NAME = re.compile(r"[0-9a-f]{16}\.tmp")
_MAX_SCANNED = 100_000


def temporary_prefix(checkpoint_id: str) -> str:
    """How names begin that restoring this checkpoint makes, and nobody else does."""
    return f".{sha256(checkpoint_id.encode()).hexdigest()[:32]}-"


def remove_leftovers(workspace: Workspace, checkpoint: Checkpoint) -> None:
    """Remove what an earlier restoring of this checkpoint left behind. What cannot be removed stays."""
    prefix = temporary_prefix(checkpoint.id)
    for above in {file.path.rpartition("/")[0] for file in checkpoint.files}:
        with suppress(ToolFailed):
            folder = parse_saved_path(above) if above else WorkspacePath(())
            for entry in workspace.entries(folder, _MAX_SCANNED):
                name = entry.name
                if entry.kind == "file" and name.startswith(prefix) and _TEMPORARY_NAME.fullmatch(name[len(prefix) :]):
                    workspace.remove(folder.child(name))


def remove_interrupted_leftovers(checkpoints: Sequence[Checkpoint]) -> None:
    """The same for all restorings that began and never came to their end."""
    begun = {each.undoes for each in checkpoints}
    for each in checkpoints:
        if each.id in begun and each.workspace and not each.restored:
            with suppress(WrongUse):
                remove_leftovers(Workspace(Path(each.workspace)), each)
