"""The steps that restore single files, and why others are left as they are."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from desktop_agent.tools.checkpoints.snapshots import (
    FileSnapshot,
    FileStamp,
    file_stamp,
    is_same_state,
    parse_saved_path,
    saved_attributes,
)
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.checkpoints import FileState, SavedFile, UnreadReason
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed

ReplaceConsent = Mapping[str, Collection[FileState]]
"""By path in the checkpoint: the states in which the person lets a file be replaced that was changed since."""

_NOT_SAVED: dict[UnreadReason | None, str] = {
    "too_large": "“{path}” was larger than 256 MB and not saved.",
    "not_permitted": "“{path}” could not be read before the call, so it was not saved.",
    "not_a_file": "“{path}” was not an ordinary file, so it was not saved.",
}
_NOT_SAVABLE: dict[UnreadReason | None, str] = {
    "too_large": "“{path}” is larger than 256 MB now, so it could not be saved first; it was left as it is.",
    "not_permitted": "“{path}” cannot be read now, so it could not be saved first; it was left as it is.",
    "not_a_file": "“{path}” is no longer an ordinary file, so it could not be saved first; it was left as it is.",
}
_CHANGED = "“{path}” was changed since; it was left as it is."
_UNCERTAIN = "The call on “{path}” never ended, so it is not known who changed the file since. It was left as it is."


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was not restored. `is_conflict`: it is not as the call left it; otherwise restoring was not possible.

    `is_undo`: what the call did beyond files was not undone; `path` is the tool then.
    """

    path: str
    why: Sentence
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


def plan_step(file: SavedFile, now: FileSnapshot, *, may_replace: bool) -> RestoreStep | SkippedFile | None:
    """Return what to do about a file; None when it is as it was before the call.

    `may_replace`: also where the file was changed since.
    """
    step = RestoreStep(file, parse_saved_path(file.path), now)
    path = str(step.place)
    if is_same_state(now.state, file.before):
        return None
    if file.before.unread in _NOT_SAVED:
        return SkippedFile(path, Sentence(_NOT_SAVED[file.before.unread], {"path": path}))
    if now.state.unread in _NOT_SAVABLE:
        return SkippedFile(path, Sentence(_NOT_SAVABLE[now.state.unread], {"path": path}))
    if step.wants_folder and now.stamp is None:
        # Nothing of anybody's lies there.
        return None if file.after == file.before else step
    if not is_same_state(now.state, file.after) and not may_replace:
        template = _UNCERTAIN if file.after is None else _CHANGED
        return SkippedFile(path, Sentence(template, {"path": path}), is_conflict=True)
    return step


def clear_path(workspace: Workspace, step: RestoreStep) -> None:
    """Remove what is now where no file was before. Raises ToolFailed."""
    if step.now.state.unread == "folder":
        workspace.remove_folder(step.place)
    elif step.now.stamp is not None:
        workspace.remove(step.place, _require_unchanged(workspace, step, step.now.stamp))


def restore_path(workspace: Workspace, step: RestoreStep, data: bytes, prefix: str) -> None:
    """Restore what was there; `data` for a file. `prefix` is for temporary names. Raises ToolFailed."""
    if step.wants_folder:
        workspace.make_folder(step.place, step.file.folder_mode)
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
    return SkippedFile(printable, error.sentence, is_conflict=isinstance(error, ChangedSinceSnapshot))


def _require_unchanged(workspace: Workspace, step: RestoreStep, expected: FileStamp | None) -> Callable[[], None]:
    def check() -> None:
        if file_stamp(workspace.stat(step.place)) != expected:
            raise ChangedSinceSnapshot(step.place)

    return check
