"""Where a path that a model gave leads, for rules and for the keeping of files."""

from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.workspace import Place, Workspace
from desktop_agent.vocabulary.conduct.rules import PathSubject
from desktop_agent.vocabulary.errors import Sentence, ToolFailed


async def subjects_of(workspace: Workspace, path: str) -> tuple[PathSubject, ...]:
    """The absolute path, links followed. Raises OutsideWorkspace, and ToolFailed for a name that is no text."""
    place = await _located(workspace, path)
    return (PathSubject(workspace.folder.joinpath(*place.parts).as_posix()),)


async def changes_of(workspace: Workspace, path: str) -> tuple[str, ...]:
    """The same relative to the workspace; nothing for its own folder. Raises the same."""
    place = await _located(workspace, path)
    return (str(place),) if place.parts else ()


async def relative_of(workspace: Workspace, path: str) -> str:
    """The same for a folder, `.` for the workspace's own. Raises the same."""
    return str(await _located(workspace, path))


async def _located(workspace: Workspace, path: str) -> Place:
    place = await in_thread(lambda _sign: workspace.locate(path))
    try:
        "/".join((str(workspace.folder), *place.parts)).encode()
    except UnicodeEncodeError:
        # Shown with a replacement, it would be another file's name to a rule.
        raise ToolFailed(Sentence("The name of “{path}” on the disk is no text.", {"path": str(place)})) from None
    return place
