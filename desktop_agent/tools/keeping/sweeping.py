"""Half-done files that a restoring leaves behind when the program dies in the middle of it. Runs in a thread."""

import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from desktop_agent.tools.keeping.looking import place_of
from desktop_agent.tools.workspace import Place, Workspace
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.errors import ToolFailed, WrongUse

_REST = re.compile(r"[0-9a-f]{16}\.tmp")
_MOST_ENTRIES = 100_000


def prefix_of(checkpoint_id: str) -> str:
    """How names begin that restoring this checkpoint makes, and nobody else does."""
    return f".{sha256(checkpoint_id.encode()).hexdigest()[:32]}-"


def sweep(workspace: Workspace, checkpoint: Checkpoint) -> None:
    """Remove what an earlier restoring of this checkpoint left behind. What cannot be removed stays."""
    prefix = prefix_of(checkpoint.id)
    for above in {file.path.rpartition("/")[0] for file in checkpoint.files}:
        with suppress(ToolFailed):
            folder = place_of(above) if above else Place(())
            for entry in workspace.entries(folder, _MOST_ENTRIES):
                name = entry.name
                if entry.kind == "file" and name.startswith(prefix) and _REST.fullmatch(name[len(prefix) :]):
                    workspace.remove(folder.inside(name))


def sweep_broken_off(checkpoints: Sequence[Checkpoint]) -> None:
    """The same for all restorings that began and never came to their end."""
    begun = {each.undoes for each in checkpoints}
    for each in checkpoints:
        if each.id in begun and each.workspace and not each.restored:
            with suppress(WrongUse):
                sweep(Workspace(Path(each.workspace)), each)
