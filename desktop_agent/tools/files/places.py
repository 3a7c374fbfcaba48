"""Where a path that a model gave leads, for rules and for the keeping of files."""

from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.conduct.rules import PathSubject
from desktop_agent.vocabulary.errors import Sentence, ToolFailed


async def path_subjects(workspace: Workspace, path: str) -> tuple[PathSubject, ...]:
    """The absolute path, links followed. Raises OutsideWorkspace, and ToolFailed for a name that is no text."""
    place = await _locate(workspace, path)
    return (PathSubject(workspace.folder.joinpath(*place.parts).as_posix()),)


async def changed_paths(workspace: Workspace, path: str) -> tuple[str, ...]:
    """The same relative to the workspace; nothing for its own folder. Raises the same."""
    place = await _locate(workspace, path)
    return (str(place),) if place.parts else ()


async def relative_path(workspace: Workspace, path: str) -> str:
    """The same for a folder, `.` for the workspace's own. Raises the same."""
    return str(await _locate(workspace, path))


async def _locate(workspace: Workspace, path: str) -> WorkspacePath:
    place = await run_in_thread(lambda _token: workspace.locate(path))
    try:
        "/".join((str(workspace.folder), *place.parts)).encode()
    except UnicodeEncodeError:
        # Shown with a replacement, it would be another file's name to a rule.
        raise ToolFailed(Sentence("The name of “{path}” on the disk is no text.", {"path": str(place)})) from None
    return place
