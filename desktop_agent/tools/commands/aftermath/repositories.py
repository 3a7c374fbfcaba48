"""What git would later run outside of the confinement: hooks and settings of the repositories in a folder.

Where they lie is said in gitrepository-layout(5) and git-worktree(1).
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from desktop_agent.tools.commands.aftermath.git_settings import Setting, hook_folders, included, is_plain, settings_in

MOST = 200
"""Repositories, those inside of others among them, that are looked at."""
_DEEPEST = 8
_MOST_HOOKS = 200
_LONGEST = 1_000_000
_SAMPLE = ".sample"


@dataclass(slots=True)
class Guarded:
    """`files` and `folders` are what a command should not write; a folder of hooks may be missing.

    `pinned` are the folders on the way to them, which it should not move aside, each before those inside of it.
    `watched` may come to be there, and would be as bad. Each comes with the repository that it belongs to.
    """

    files: dict[Path, Path] = field(default_factory=dict[Path, Path])
    folders: dict[Path, Path] = field(default_factory=dict[Path, Path])
    watched: dict[Path, Path] = field(default_factory=dict[Path, Path])
    pinned: dict[Path, None] = field(default_factory=dict[Path, None])
    seen: set[Path] = field(default_factory=set[Path])

    @property
    def owners(self) -> set[Path]:
        """All repositories, and files that lead to one."""
        return {*self.seen, *self.files.values(), *self.watched.values()}

    def owner_of(self, place: Path) -> Path | None:
        """The repository of a file or hook."""
        direct = self.files.get(place) or self.watched.get(place) or self.folders.get(place)
        return direct or self.folders.get(place.parent)


def guarded(entries: Iterable[Path], writable: Path) -> Guarded:
    """Of the repositories that these entries lead to (`.git`, or a bare repository), as far as they can be written."""
    found = Guarded()
    everywhere = tuple(each for file in _of_the_person() for each in settings_in(file))
    for entry in entries:
        _add_entry(found, entry, writable, everywhere)
    return found


def state_of(found: Guarded) -> dict[Path, str]:
    """What is in each place now; two equal ones mean that nothing was changed."""
    places = [*found.files, *found.watched]
    state = {place: _content(place) for place in places}
    for folder in found.folders:
        state[folder] = _content(folder) if _is_link(folder) else ""
        state |= {hook: _content(hook) for hook in _hooks(folder)}
    return {place: content for place, content in state.items() if content}


def is_suspicious(found: Guarded, place: Path, known: set[Path]) -> bool:
    """Whether a place of a repository that came to be holds more than it does in every new one.

    `known` are the repositories that were there before.
    """
    if place.parent in found.folders or place in found.folders:
        return True
    if place.name == "commondir":
        return _real(place.parent / _first_line(place)) not in known
    return place.name != ".git" and not is_plain(settings_in(place))


def _of_the_person() -> tuple[Path, ...]:
    moved = os.environ.get("XDG_CONFIG_HOME")
    own = Path(moved) if moved else Path.home() / ".config"
    return (Path.home() / ".gitconfig", own / "git/config", Path("/etc/gitconfig"))


def _add_entry(found: Guarded, entry: Path, writable: Path, everywhere: tuple[Setting, ...]) -> None:
    top = entry.parent
    try:
        real = _real(entry)
        if _is_link(entry):
            found.watched[entry] = entry
        if _is_file(real):
            _add_file(found, real, writable, entry)
            words = real.read_bytes()[:_LONGEST].decode("utf-8", "replace")
            real = _real(real.parent / words.removeprefix("gitdir:").strip())
    except OSError:
        return
    _add_repository(found, real, top, writable, everywhere, _DEEPEST)


def _add_repository(
    found: Guarded, folder: Path, top: Path, writable: Path, everywhere: tuple[Setting, ...], depth: int
) -> None:
    """`folder` has what git keeps, `top` the files that it keeps it about."""
    if folder in found.seen or len(found.seen) >= MOST or depth <= 0 or not _is_repository(folder):
        return
    found.seen.add(folder)
    _pin(found, folder, writable)
    own: tuple[Setting, ...] = ()
    for name in ("config", "config.worktree", "commondir"):
        file = folder / name
        if os.path.lexists(file):
            _add_file(found, file, writable, folder)
            own += settings_in(file) if name != "commondir" else ()
        elif writable in folder.parents:
            found.watched[file] = folder
        for more in included(own, file):
            if _is_file(more):
                _add_file(found, more, writable, folder)
    is_whole = not os.path.lexists(folder / "commondir")
    for hooks in (*((folder / "hooks",) if is_whole else ()), *hook_folders((*everywhere, *own), top)):
        _add_hooks(found, hooks, writable, folder)
    for inside, its_top in _inside(folder, top):
        _add_repository(found, inside, its_top, writable, everywhere, depth - 1)
    if not is_whole:
        common = _real(folder / _first_line(folder / "commondir"))
        _add_repository(found, common, top, writable, everywhere, depth - 1)


def _is_repository(folder: Path) -> bool:
    whole, shared = _is_folder(folder / "objects"), _is_file(folder / "commondir")
    return os.path.lexists(folder / "HEAD") and (whole or shared)


def _inside(folder: Path, top: Path) -> Iterator[tuple[Path, Path]]:
    """Repositories that a repository keeps for submodules, and what it keeps for further working trees."""
    for each in _folders_in(folder / "worktrees"):
        yield each, Path(_first_line(each / "gitdir") or each).parent
    waiting = [folder / "modules"]
    for _ in range(MOST):
        if not waiting:
            return
        for each in _folders_in(waiting.pop()):
            if _is_repository(each):
                yield each, top
            else:
                waiting.append(each)


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(each.path) for each in entries if each.is_dir(follow_symlinks=False))[:MOST]
    except OSError:
        return []


def _add_file(found: Guarded, file: Path, writable: Path, owner: Path) -> None:
    if _is_link(file):
        found.watched[file] = owner
    real = _real(file)
    if writable in real.parents:
        found.files[real] = owner
        _pin(found, real.parent, writable)


def _add_hooks(found: Guarded, hooks: Path, writable: Path, owner: Path) -> None:
    if _is_link(hooks):
        found.watched[hooks] = owner
    real = _real(hooks)
    if writable in real.parents and (hooks == owner / "hooks" or _is_folder(real)):
        found.folders[real] = owner
        _pin(found, real.parent, writable)


def _pin(found: Guarded, folder: Path, writable: Path) -> None:
    if writable in folder.parents:
        found.pinned |= dict.fromkeys(
            (*reversed([each for each in folder.parents if writable in each.parents]), folder)
        )


def _hooks(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(each.path) for each in entries if not each.name.endswith(_SAMPLE))[:_MOST_HOOKS]
    except OSError:
        return []


def _is_link(place: Path) -> bool:
    return stat.S_ISLNK(_mode(place.lstat))


def _is_file(place: Path) -> bool:
    return stat.S_ISREG(_mode(place.stat))


def _is_folder(place: Path) -> bool:
    return stat.S_ISDIR(_mode(place.stat))


def _mode(look: Callable[[], os.stat_result]) -> int:
    """0 for what is not there, not ours to look at, or has no name that a file can have."""
    try:
        return look().st_mode
    except (OSError, ValueError):
        return 0


def _real(place: Path) -> Path:
    """Where links lead to, in circles too; a name that no file can have leads nowhere."""
    try:
        return Path(os.path.realpath(place))
    except (OSError, ValueError):
        return Path(os.sep)


def _first_line(file: Path) -> str:
    try:
        return file.read_bytes()[:_LONGEST].decode("utf-8", "replace").partition("\n")[0].strip()
    except OSError:
        return ""


def _content(place: Path) -> str:
    """Of a file what is in it, of a link where it leads; empty for nothing."""
    try:
        mode = place.lstat().st_mode
        if stat.S_ISLNK(mode):
            return f"link {place.readlink()}"
        if not stat.S_ISREG(mode):
            return f"kind {stat.S_IFMT(mode)}"
        with place.open("rb") as file:
            return f"{mode & 0o111} {hashlib.sha256(file.read(_LONGEST)).hexdigest()}"
    except OSError:
        return ""
