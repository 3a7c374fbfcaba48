"""Take a snapshot of a file, plan the steps that restore it, and preview a restore without touching a file."""

import hashlib
import os
import re
import stat
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
    """A file as it is now. `stamp` changes with every change of the file; None where there is no file.

    `data` and `extras` are there if bytes were requested. `link_count` is how many hard links a file has.
    """

    state: FileState
    stamp: FileStamp | None
    data: bytes | None = None
    link_count: int = 1
    extras: FileAttributes = _NO_EXTRAS


def saved_path(place: WorkspacePath) -> str:
    """Return a path as checkpoints store it: byte for byte, also for names that are not Unicode."""
    return "/".join(place.parts)


def parse_saved_path(path: str) -> WorkspacePath:
    """Parse a stored path literally: a link that somebody put there since leads nowhere. Raises OutsideWorkspace."""
    parts = tuple(path.split("/"))
    if not all(parts) or {".", ".."} & set(parts):
        reject_path(path, "is no path that was saved.")
    return WorkspacePath(parts)


def file_stamp(status: os.stat_result | None) -> FileStamp | None:
    """Return what distinguishes one version of a file from the next without reading it."""
    if status is None:
        return None
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def take_snapshot(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool = False
) -> FileSnapshot:
    """Read a file, at most MAX_SAVED_BYTES. Raises ToolFailed for what the disk refuses."""
    for _ in range(_ATTEMPTS):
        token.raise_if_cancelled()
        try:
            status = workspace.stat(place)
        except OutsideWorkspace:
            # A folder on the way was replaced by a link.
            return FileSnapshot(FileState(unread="not_a_file"), None)
        stamp = file_stamp(status)
        if status is None:
            return FileSnapshot(FileState(), stamp)
        unread = _unreadable_reason(status)
        if unread is not None:
            return FileSnapshot(FileState(unread=unread), stamp)
        content = _read_file(workspace, place, token, with_data=with_data)
        if file_stamp(workspace.stat(place)) != stamp:
            continue  # written to while it was read
        if content is None:
            return FileSnapshot(FileState(unread="not_permitted"), stamp)
        digest, data, extras = content
        state = FileState(digest=digest, mode=stat.S_IMODE(status.st_mode) & 0o777)
        return FileSnapshot(state, stamp, data, status.st_nlink, extras)
    raise ToolFailed(
        Sentence("“{path}” is being written to by another program.", {"path": str(place)}),
        "Wait until that program is done.",
    )


def saved_file(path: str, snapshot: FileSnapshot, after: FileState | None = None) -> SavedFile:
    """Return a snapshot as a checkpoint stores it."""
    attributes = tuple((name, b64encode(value).decode()) for name, value in snapshot.extras.attributes)
    return SavedFile(path=path, before=snapshot.state, after=after, attributes=attributes, owner=snapshot.extras.owner)


def saved_attributes(file: SavedFile) -> FileAttributes:
    """Decode stored attributes. Invalid base64 gives none."""
    try:
        return FileAttributes(
            tuple((name, b64decode(value, validate=True)) for name, value in file.attributes), file.owner
        )
    except ValueError:
        return FileAttributes(owner=file.owner)


def is_same_state(first: FileState, second: FileState | None) -> bool:
    """Return whether both are certainly the same; what could not be read equals nothing."""
    return first == second and first.unread in {None, "folder"}


def _unreadable_reason(status: os.stat_result) -> UnreadReason | None:
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    if not stat.S_ISREG(status.st_mode):
        return "not_a_file"
    return "too_large" if status.st_size > MAX_SAVED_BYTES else None


def _read_file(
    workspace: Workspace, place: WorkspacePath, token: CancelToken, *, with_data: bool
) -> tuple[str, bytes | None, FileAttributes] | None:
    """Read digest, bytes, extras; None for a file that may not be read, is gone, or grew beyond the limit."""
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
"""Whether files that were changed since may be replaced: all, none, or by path those in one of these states, or with
one of these stamps where no bytes were read."""

_NOT_SAVED: dict[UnreadReason, str] = {
    "folder": "“{path}” was a folder.",
    "too_large": "“{path}” was larger than 256 MB and not saved.",
    "not_permitted": "“{path}” could not be read before the call, so it was not saved.",
    "not_a_file": "“{path}” was not an ordinary file, so it was not saved.",
}
_CHANGED = "“{path}” was changed since; it was left as it is."
_NOT_SAVABLE: dict[UnreadReason, str] = {
    "too_large": "“{path}” was changed since, and is larger than 256 MB, so it would not be saved first; it was left "
    "as it is.",
    "not_permitted": "“{path}” was changed since, and cannot be read, so it would not be saved first; it was left as "
    "it is.",
    "not_a_file": "“{path}” is no longer an ordinary file, so it could not be saved first; it was left as it is.",
}
_UNCERTAIN = "The call on “{path}” never ended, so it is not known who changed the file since. It was left as it is."
_KEEP_OR_REPLACE = Sentence("Keep it, or restore once more and choose to replace it.")
_BY_HAND = Sentence("Put it back by hand from a copy of your own.")
_RETRY = Sentence("Remove the cause, then restore once more.")


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not restored. `is_conflict`: it is not as the call left it; otherwise restoring was not possible.

    `is_undo`: what the call did beyond files was not undone; `path` is the tool then.
    """

    path: str
    why: Sentence
    remedy: Sentence
    is_conflict: bool = False
    is_undo: bool = False


class ChangedSinceSnapshot(ToolFailed):
    """The file changed between the snapshot and the action."""

    kind = "changed"

    def __init__(self, place: WorkspacePath) -> None:
        super().__init__(Sentence(_CHANGED, {"path": str(place)}))


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """A file that is to be restored, and what is there now."""

    file: SavedFile
    place: WorkspacePath
    now: FileSnapshot

    @property
    def wants_file(self) -> bool:
        return self.file.before.digest is not None

    @property
    def wants_folder(self) -> bool:
        return self.file.before.unread == "folder"


def plan_step(
    workspace: Workspace, file: SavedFile, token: CancelToken, consent: ReplaceConsent
) -> RestoreStep | SkippedFile | None:
    """Return what to do about a file; None when it is as it was before the call."""
    try:
        now = take_snapshot(workspace, parse_saved_path(file.path), token)
    except ToolFailed as error:
        return skipped_because(file.path, error)
    return plan_step_for(file, now, consent)


def plan_step_for(file: SavedFile, now: FileSnapshot, consent: ReplaceConsent) -> RestoreStep | SkippedFile | None:
    """Return what to do about a file of which a snapshot was taken."""
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
    """Return whether the person lets a file that was changed since be replaced, as it is now."""
    if isinstance(consent, bool):
        return consent
    if now is None:
        return path in consent
    # States of files that could not be read are all equal.
    version = now.state if now.state.unread in {None, "folder"} else now.stamp
    return version in consent.get(path, ())


def clear_path(workspace: Workspace, step: RestoreStep) -> None:
    """Remove what is now where no file was before. Raises ToolFailed."""
    if step.now.state.unread == "folder":
        workspace.remove_folder(step.place)
    elif step.now.stamp is not None:
        workspace.remove(step.place, _require_unchanged(workspace, step, step.now.stamp))


def restore_path(workspace: Workspace, step: RestoreStep, data: bytes, prefix: str) -> None:
    """Restore what was there; `data` for a file. `prefix` is for temporary names. Raises ToolFailed."""
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
    """Report what could not be done."""
    printable = path.encode("utf-8", "replace").decode()
    if isinstance(error, ChangedSinceSnapshot):
        return SkippedFile(printable, error.sentence, _KEEP_OR_REPLACE, is_conflict=True)
    return SkippedFile(printable, error.sentence, error.remedy if isinstance(error, StorageFailed) else _RETRY)


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
    """The forecast for one file: as it is `now`, and as it would be `then`.

    `skipped` is the first reason why it would not be restored fully. `stamp` and `link_count` as in FileSnapshot.
    """

    now: FileState
    then: FileState
    skipped: SkippedFile | None = None
    stamp: FileStamp | None = None
    link_count: int = 1


class RestorePreview:
    """Previews the restore of checkpoints, newest first. `forecasts` has the files that would change."""

    def __init__(self, workspace: Workspace, token: CancelToken, consent: ReplaceConsent) -> None:
        self._workspace = workspace
        self._token = token
        self._consent = consent
        self.forecasts: dict[str, ForecastState] = {}
        # Folders that calls had made, and that would be removed.
        self._removed: set[str] = set()

    def preview(self, checkpoints: Sequence[Checkpoint]) -> dict[str, ForecastState]:
        """Return what would become of all their files."""
        for checkpoint in checkpoints:
            steps = [step for file in checkpoint.files if (step := self._plan(file)) is not None]
            # As in a restore: first remove what is in the way, the innermost first, then write files.
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
        forecast = self.forecasts.get(file.path)
        if forecast is None:
            try:
                snapshot = take_snapshot(self._workspace, parse_saved_path(file.path), self._token)
            except ToolFailed as error:
                self.forecasts[file.path] = ForecastState(_MISSING, _MISSING, skipped_because(file.path, error))
                return None
            then = self._expected_state(file.path, snapshot.state)
            forecast = self.forecasts[file.path] = ForecastState(
                snapshot.state, then, None, snapshot.stamp, snapshot.link_count
            )
        snapshot = FileSnapshot(forecast.then, None if forecast.then == _MISSING else ())
        planned = plan_step_for(file, snapshot, self._consent)
        if isinstance(planned, SkippedFile):
            forecast.skipped = forecast.skipped or planned
            return None
        return planned

    def _expected_state(self, path: str, now: FileState) -> FileState:
        """Return the state of a place that no earlier step restored."""
        if path in self._removed:
            return _MISSING
        return _FOLDER if now == _MISSING and self._holds_something(path) else now

    def _apply(self, step: RestoreStep) -> None:
        forecast = self.forecasts[step.file.path]
        if forecast.then.unread == "folder" and not step.wants_folder and self._is_not_empty(step.file.path):
            path = str(step.place)
            forecast.skipped = forecast.skipped or SkippedFile(path, Sentence(_NOT_EMPTY, {"path": path}), _EMPTY_FIRST)
            return
        forecast.then = step.file.before
        self._removed.discard(step.file.path)
        if forecast.then != _MISSING:
            parent = parse_saved_path(step.file.path).parts[:-1]
            for count in range(len(parent), 0, -1):
                # A restored file brings back the folders that it is in.
                folder = self.forecasts.get("/".join(parent[:count]))
                self._removed.discard("/".join(parent[:count]))
                if folder is not None and folder.then == _MISSING:
                    folder.then = _FOLDER

    def _remove_folders(self, checkpoint: Checkpoint) -> None:
        """Remove the folders that the call certainly made, unless something lies in them."""
        if not all(
            file.after is not None or is_replacing_allowed(self._consent, file.path) for file in checkpoint.files
        ):
            return
        for path in sorted(checkpoint.new_folders, key=lambda path: -path.count("/")):
            forecast = self.forecasts.get(path)
            if self._is_folder(path) and not self._is_not_empty(path):
                self._removed.add(path)
                if forecast is not None:
                    forecast.then = _MISSING

    def _is_folder(self, path: str) -> bool:
        if path in self.forecasts:
            return self.forecasts[path].then == _FOLDER
        with suppress(ToolFailed):
            return take_snapshot(self._workspace, parse_saved_path(path), self._token).state == _FOLDER
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
            entries = self._workspace.entries(parse_saved_path(path), _MAX_LISTED)
        except ToolFailed:
            return False  # there is none on the disk
        names = {f"{prefix}{entry.name}" for entry in entries}
        return not names <= {*self.forecasts, *self._removed}


_TEMPORARY_NAME = re.compile(r"[0-9a-f]{16}\.tmp")
_MAX_SCANNED = 100_000


def temporary_prefix(checkpoint_id: str) -> str:
    """Return how temporary names of this checkpoint's restore begin, and no others."""
    return f".{hashlib.sha256(checkpoint_id.encode()).hexdigest()[:32]}-"


def remove_leftovers(workspace: Workspace, checkpoint: Checkpoint) -> None:
    """Remove what an earlier restore of this checkpoint left behind. What cannot be removed stays."""
    prefix = temporary_prefix(checkpoint.id)
    for parent in {file.path.rpartition("/")[0] for file in checkpoint.files}:
        with suppress(ToolFailed):
            folder = parse_saved_path(parent) if parent else WorkspacePath(())
            for entry in workspace.entries(folder, _MAX_SCANNED):
                name = entry.name
                if entry.kind == "file" and name.startswith(prefix) and _TEMPORARY_NAME.fullmatch(name[len(prefix) :]):
                    workspace.remove(folder.child(name))


def remove_interrupted_leftovers(checkpoints: Sequence[Checkpoint]) -> None:
    """Remove leftovers of all restores that began and never ended."""
    interrupted = {checkpoint.undoes for checkpoint in checkpoints}
    for checkpoint in checkpoints:
        if checkpoint.id in interrupted and checkpoint.workspace and not checkpoint.restored:
            with suppress(WrongUse):
                remove_leftovers(Workspace(Path(checkpoint.workspace)), checkpoint)
