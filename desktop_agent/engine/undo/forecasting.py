"""Works out what restoring would do: to files, by tools, and to what nothing takes back."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from desktop_agent.engine.undo.telling_the_model import displayed_path
from desktop_agent.tools.file_keeper import BlobStore
from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.keeping.foreseeing import ForecastState, RestorePreview
from desktop_agent.tools.keeping.looking import parse_saved_path, take_snapshot
from desktop_agent.tools.keeping.putting_back import skipped_because
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, FileRestorePlan, FileState, RestorePlan
from desktop_agent.vocabulary.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.vocabulary.tool_calls import DiffPreview

_MAX_DIFF_BYTES = 2_000_000
_NOT_TEXT = "“{path}” is no text, or too long to be shown line by line."
_UNCHANGED = "“{path}” stays as it is."
_CHANGED_SINCE = "“{path}” is another one by now. Look again at what would be undone."
_HAS_LINKS = "“{path}” is known on this disk by other names, too; under those, what is there now stays."


async def forecast_restore(
    checkpoints: Sequence[Checkpoint], why_not_undone: Callable[[Checkpoint], Sentence | None]
) -> RestorePlan:
    """What restoring these, newest first, would do. `reason_not_undone` is for calls whose tools owe an undoing.

    The disk is looked at in a thread, and nothing is changed.
    """
    # As they are restored, but folder by folder: those of one folder change nothing in another.
    folders = sorted({each.workspace for each in checkpoints if each.files})
    files: list[FileRestorePlan] = []
    for folder in folders:
        own = [each for each in checkpoints if each.workspace == folder]
        files += await run_in_thread(lambda sign, own=own, folder=folder: tuple(_forecast_files(folder, own, sign)))
    owing = [(each.tool, why_not_undone(each)) for each in checkpoints if each.needs_undo]
    return RestorePlan(
        checkpoint_ids=tuple(each.id for each in checkpoints),
        files=tuple(files),
        undo_tools=tuple(name for name, _ in groupby(tool.split(" @ ")[0] for tool, why in owing if why is None)),
        undo_refusals=tuple(why for _, why in owing if why is not None),
    )


def _forecast_files(folder: str, checkpoints: Sequence[Checkpoint], sign: CancelToken) -> Iterator[FileRestorePlan]:
    try:
        workspace = Workspace(Path(folder))
    except WrongUse as error:
        for path in dict.fromkeys(file.path for each in checkpoints for file in each.files):
            why = skipped_because(path, error).why
            yield FileRestorePlan(folder, path, FileState(), FileState(), FileState(), why)
        return
    plain = RestorePreview(workspace, sign, consent=False).preview(checkpoints)
    willing = RestorePreview(workspace, sign, consent=True).preview(checkpoints)
    for path in sorted(plain):
        made = _file_forecast(folder, path, plain[path], willing[path])
        if made.reason is not None or made.effect() != "left" or made.is_conflict:
            yield made


def _file_forecast(folder: str, path: str, plain: ForecastState, willing: ForecastState) -> FileRestorePlan:
    left = plain.left if plain.then != willing.then else willing.left or plain.left
    why = left.why if left else _link_warning(path, willing)
    return FileRestorePlan(folder, path, plain.now, plain.then, willing.then, why, plain.stamp)


def _link_warning(path: str, course: ForecastState) -> Sentence | None:
    """A file is replaced whole, so that no half of it is ever seen: that parts it from its other names."""
    if course.link_count < 2 or course.then in (course.now, FileState()):
        return None
    return Sentence(_HAS_LINKS, {"path": displayed_path(path)})


async def file_difference(file: FileRestorePlan, blobs: BlobStore, *, replaced: bool) -> DiffPreview | Sentence:
    """The lines that would change in a file; for what has none, a sentence. Raises StorageFailed."""
    then = file.overwritten_state if replaced else file.restored_state
    if then == file.current_state:
        return Sentence(_UNCHANGED, {"path": file.path})
    after = None if then.digest is None else _as_text(await blobs.get(then.digest))
    found = await run_in_thread(lambda sign: _read_current(file, sign))
    if isinstance(found, Sentence):
        return found
    before = None if found is None else _as_text(found)
    if (before is None and found is not None) or (after is None and then.digest is not None):
        return Sentence(_NOT_TEXT, {"path": file.path})
    return DiffPreview(file.path, before, after)


def _read_current(file: FileRestorePlan, sign: CancelToken) -> bytes | Sentence | None:
    """What stands there now; None for nothing, a sentence for what is not as it was foreseen."""
    try:
        found = take_snapshot(Workspace(Path(file.folder)), parse_saved_path(file.name), sign, with_data=True)
    except (WrongUse, ToolFailed) as error:
        return error.sentence
    return found.data if found.state == file.current_state else Sentence(_CHANGED_SINCE, {"path": file.path})


def _as_text(data: bytes) -> str | None:
    if len(data) > _MAX_DIFF_BYTES or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
