"""Half-done files that a restoring leaves behind when the program dies in the middle of it. Runs in a thread."""

import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from desktop_agent.tools.keeping.looking import parse_saved_path
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.errors import ToolFailed, WrongUse

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
