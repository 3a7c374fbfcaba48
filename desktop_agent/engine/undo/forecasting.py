"""Works out what restoring would do: to files, by tools, and to what nothing takes back."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from desktop_agent.engine.undo.telling_the_model import shown
from desktop_agent.tools.file_keeper import Blobs
from desktop_agent.tools.in_thread import StopSign, in_thread
from desktop_agent.tools.keeping.foreseeing import Course, Foreseeing
from desktop_agent.tools.keeping.looking import look, place_of
from desktop_agent.tools.keeping.putting_back import failed
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, FileForecast, FileState, Forecast
from desktop_agent.vocabulary.errors import Sentence, ToolFailed, WrongUse
from desktop_agent.vocabulary.tool_calls import DiffPreview

_LONGEST = 2_000_000
_NOT_TEXT = "“{path}” is no text, or too long to be shown line by line."
_STAYS = "“{path}” stays as it is."
_CHANGED = "“{path}” is another one by now. Look again at what would be undone."
_LINKED = "“{path}” is known on this disk by other names, too; under those, what is there now stays."


async def forecast_of(
    checkpoints: Sequence[Checkpoint], why_not_undone: Callable[[Checkpoint], Sentence | None]
) -> Forecast:
    """What restoring these, newest first, would do. `why_not_undone` is for calls whose tools owe an undoing.

    The disk is looked at in a thread, and nothing is changed.
    """
    # As they are restored, but folder by folder: those of one folder change nothing in another.
    folders = sorted({each.workspace for each in checkpoints if each.files})
    files: list[FileForecast] = []
    for folder in folders:
        own = [each for each in checkpoints if each.workspace == folder]
        files += await in_thread(lambda sign, own=own, folder=folder: tuple(_foreseen(folder, own, sign)))
    owing = [(each.tool, why_not_undone(each)) for each in checkpoints if each.owes_undo]
    return Forecast(
        calls=tuple(each.id for each in checkpoints),
        files=tuple(files),
        undoing=tuple(name for name, _ in groupby(tool.split(" @ ")[0] for tool, why in owing if why is None)),
        not_undone=tuple(why for _, why in owing if why is not None),
    )


def _foreseen(folder: str, checkpoints: Sequence[Checkpoint], sign: StopSign) -> Iterator[FileForecast]:
    try:
        workspace = Workspace(Path(folder))
    except WrongUse as error:
        for path in dict.fromkeys(file.path for each in checkpoints for file in each.files):
            why = failed(path, error).why
            yield FileForecast(folder, path, FileState(), FileState(), FileState(), why)
        return
    plain = Foreseeing(workspace, sign, consent=False).take(checkpoints)
    willing = Foreseeing(workspace, sign, consent=True).take(checkpoints)
    for path in sorted(plain):
        made = _forecast(folder, path, plain[path], willing[path])
        if made.why is not None or made.fate() != "left" or made.is_conflict:
            yield made


def _forecast(folder: str, path: str, plain: Course, willing: Course) -> FileForecast:
    left = plain.left if plain.then != willing.then else willing.left or plain.left
    why = left.why if left else _linked(path, willing)
    return FileForecast(folder, path, plain.now, plain.then, willing.then, why, plain.stamp)


def _linked(path: str, course: Course) -> Sentence | None:
    """A file is replaced whole, so that no half of it is ever seen: that parts it from its other names."""
    if course.names < 2 or course.then in (course.now, FileState()):
        return None
    return Sentence(_LINKED, {"path": shown(path)})


async def difference(file: FileForecast, blobs: Blobs, *, replaced: bool) -> DiffPreview | Sentence:
    """The lines that would change in a file; for what has none, a sentence. Raises StorageFailed."""
    then = file.if_replaced if replaced else file.then
    if then == file.now:
        return Sentence(_STAYS, {"path": file.path})
    after = None if then.digest is None else _text(await blobs.get(then.digest))
    found = await in_thread(lambda sign: _read(file, sign))
    if isinstance(found, Sentence):
        return found
    before = None if found is None else _text(found)
    if (before is None and found is not None) or (after is None and then.digest is not None):
        return Sentence(_NOT_TEXT, {"path": file.path})
    return DiffPreview(file.path, before, after)


def _read(file: FileForecast, sign: StopSign) -> bytes | Sentence | None:
    """What stands there now; None for nothing, a sentence for what is not as it was foreseen."""
    try:
        found = look(Workspace(Path(file.folder)), place_of(file.name), sign, with_data=True)
    except (WrongUse, ToolFailed) as error:
        return error.sentence
    return found.data if found.state == file.now else Sentence(_CHANGED, {"path": file.path})


def _text(data: bytes) -> str | None:
    if len(data) > _LONGEST or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
