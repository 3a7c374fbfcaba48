"""Whether a folder is still where it was chosen: since then, a link may have taken its place."""

import os
from pathlib import Path

from desktop_agent.types.errors import Sentence, ToolFailed

# The kernel follows at most so many links (path_resolution(7)).
_MAX_LINKS = 40
CHOOSE_AGAIN = "Choose the folder again if that is right, or another one."


def resolve_chosen(folder: Path) -> Path | None:
    """Return where a folder leads that somebody chooses now: from then on no link on the way is followed. Blocking.

    None if there is no such folder, or its name is no text and could not be stored.
    """
    try:
        real = folder.resolve(strict=True)
        str(real).encode()
    except (OSError, ValueError):
        return None
    return real if real.is_dir() else None


def is_replaced(folder: Path, real: Path) -> bool:
    """Return whether `folder` leads to `real` through a link that a program of the person's could have made.

    Folders are stored as real paths, so whatever leads elsewhere now was changed since. Links of the system
    (/home on some, /tmp on macOS) and drives that stand for a folder may be stored: they are not changed by writing
    into a folder.
    """
    real_path = os.path.normcase(real)
    if real_path == os.path.normcase(folder.absolute()):
        return False
    return real_path != os.path.normcase(_follow_system_links(folder))


def require_in_place(folder: Path) -> None:
    """Raise ToolFailed for a folder that was replaced, but not for one that does not exist. Blocking."""
    real = Path(os.path.realpath(folder))
    if is_replaced(folder, real):
        raise ToolFailed(replaced_sentence(folder, real), CHOOSE_AGAIN)


def replaced_sentence(folder: Path, real: Path) -> Sentence:
    """Return the sentence about a folder that was replaced."""
    # Names on disk need not be Unicode.
    path, shown = (str(name).encode("utf-8", "replace").decode() for name in (folder, real))
    return Sentence("“{path}” leads to “{real}” now.", {"path": path, "real": shown})


def _follow_system_links(folder: Path) -> Path:
    """Follow the drive, and links down to the first folder in which the person can change something."""
    whole = folder.absolute()
    place, remaining, links = Path(os.path.realpath(whole.anchor)), list(whole.parts[1:]), 0
    while remaining and links < _MAX_LINKS and _is_closed(place):
        place /= remaining.pop(0)
        try:
            target = place.parent / place.readlink()
        except OSError:
            continue
        links += 1
        target = Path(os.path.normpath(target))
        place, remaining = Path(target.anchor), [*target.parts[1:], *remaining]
    return place.joinpath(*remaining)


def _is_closed(folder: Path) -> bool:
    """Return whether the person can change nothing in this folder, as far as the system says so."""
    if os.name == "nt":
        return False
    try:
        return folder.stat().st_uid != os.geteuid() and not os.access(folder, os.W_OK)
    except OSError:
        return False
