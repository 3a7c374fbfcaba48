"""Where a line that goes to a folder first runs: `cd src && pytest`, looked at on the disk."""

import os
from dataclasses import replace
from pathlib import Path

from desktop_agent.permissions.shell.commands import parsed
from desktop_agent.tools.in_thread import in_thread
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.rules import CommandSubject, Subject
from desktop_agent.vocabulary.errors import ToolFailed, WrongUse


async def followed(subjects: tuple[Subject, ...], workspace: str | None) -> tuple[Subject, ...]:
    """The same, each line with the folder of the workspace that it goes to, as links lead now.

    One that leads out, or is not there, is left: then nobody knows where the line runs.
    """
    if workspace is None or not any(isinstance(each, CommandSubject) and _goes_to(each) for each in subjects):
        return subjects
    return await in_thread(lambda _sign: tuple(_followed(each, workspace) for each in subjects))


def _goes_to(subject: CommandSubject) -> str | None:
    return parsed(subject.line).goes_to


def _followed(subject: Subject, workspace: str) -> Subject:
    if not isinstance(subject, CommandSubject) or subject.folder is None or subject.goes_there:
        return subject
    path = _goes_to(subject)
    if path is None:
        return subject
    try:
        top = Workspace(Path(workspace))
        parts = top.locate(path if path.startswith("/") else f"{subject.folder}/{path}").parts
        folder = "/".join(parts) or "."
        folder.encode()
    except (ToolFailed, WrongUse, UnicodeEncodeError):
        return subject
    # Going to what is no folder, or may not be entered, fails: then the rest may run where the line began.
    place = top.folder.joinpath(*parts)
    can_be_entered = place.is_dir() and os.access(place, os.X_OK)
    return replace(subject, folder=folder, goes_there=True) if can_be_entered else subject
