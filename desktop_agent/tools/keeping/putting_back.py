"""Makes single files what they were, each only if it still is what was found a moment ago. Runs in a thread."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from desktop_agent.tools.in_thread import CancelToken
from desktop_agent.tools.keeping.looking import (
    FileSnapshot,
    FileStamp,
    file_stamp,
    is_same_state,
    parse_saved_path,
    saved_attributes,
    take_snapshot,
)
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.conduct.checkpoints import FileState, SavedFile, UnreadReason
from desktop_agent.vocabulary.errors import AgentError, Sentence, StorageFailed, ToolFailed

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
