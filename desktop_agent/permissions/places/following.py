"""Where a line that goes to a folder first runs: `cd src && pytest`, looked at on the disk."""

import os
from dataclasses import replace
from pathlib import Path

from desktop_agent.permissions.shell.commands import parse_line
from desktop_agent.tools.in_thread import run_in_thread
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.rules import CommandSubject, Subject
from desktop_agent.vocabulary.errors import ToolFailed, WrongUse


async def resolve_line_folders(subjects: tuple[Subject, ...], workspace: str | None) -> tuple[Subject, ...]:
    """The same, each line with the folder of the workspace that it goes to, as links lead now.

    One that leads out, or is not there, is left: then nobody knows where the line runs.
    """
    if workspace is None or not any(isinstance(each, CommandSubject) and _target_folder(each) for each in subjects):
        return subjects
    return await run_in_thread(lambda _token: tuple(_resolve_line_folder(each, workspace) for each in subjects))


def _target_folder(subject: CommandSubject) -> str | None:
    return parse_line(subject.line).goes_to


def _resolve_line_folder(subject: Subject, workspace: str) -> Subject:
    if not isinstance(subject, CommandSubject) or subject.folder is None or subject.goes_there:
        return subject
    path = _target_folder(subject)
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
