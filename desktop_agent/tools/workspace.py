"""The one folder that file tools may touch: check the paths that a model wrote, and reach the disk safely."""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn

from desktop_agent.tools.open_folders import (
    HAS_DESCRIPTORS,
    FileAttributes,
    Folder,
    apply_attributes,
    copy_attributes,
    open_folder,
)
from desktop_agent.tools.replaced_folders import CHOOSE_AGAIN, is_replaced, replaced_sentence, require_in_place
from desktop_agent.types.errors import OutsideWorkspace, Sentence, ToolFailed, WrongUse

# “Naming Files, Paths, and Namespaces” (Microsoft): reserved with any extension, in any case, superscripts too.
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])\s*(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_MAX_LENGTH = 4096
_FOLDER_GONE = "Choose another folder for the conversation, or make this one again."


def reject_path(path: str, why: str) -> NoReturn:
    """Raise OutsideWorkspace about this path; `why` continues a sentence that begins with it."""
    printable = path if len(path) <= 200 else path[:200] + "…"
    printable = "".join(char if char.isprintable() else "�" for char in printable)
    raise OutsideWorkspace(Sentence("“{path}” " + why, {"path": printable}))


def split_path(path: str, *, windows_names: bool) -> tuple[str, ...]:
    """Split at / and \\ alike, without empty parts and ".". Raises OutsideWorkspace.

    `..` stays, but only where it does not climb above the start. `windows_names` adds what Windows gives a meaning:
    device names, colons, trailing dots and spaces.
    """
    _check_text(path)
    parts = tuple(part for part in re.split(r"[/\\]", path) if part not in {"", "."})
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            reject_path(path, "leads out of the workspace folder.")
        if windows_names and part != "..":
            _check_windows_name(path, part)
    return parts


def _check_text(path: str) -> None:
    if len(path) > _MAX_LENGTH:
        reject_path(path, "is too long for a path.")
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        reject_path(path, "contains a control character.")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in path):
        reject_path(path, "contains half a character.")
    if path.startswith("~"):
        reject_path(path, "begins with ~, which stands for a home folder; write the path inside the workspace.")


def _check_windows_name(path: str, part: str) -> None:
    if _DEVICES.fullmatch(part.rstrip(". ")):
        reject_path(path, "is the name of a device on Windows.")
    if ":" in part:
        reject_path(path, "contains a colon, which names a drive or a hidden stream on Windows.")
    if part != part.rstrip(". "):
        reject_path(path, "ends in a dot or a space, which Windows would drop.")


_ERROR_SENTENCES: dict[int, str] = {
    errno.ENOENT: "There is no “{path}” in the workspace.",
    errno.ENOTDIR: "A part of “{path}” is a file, not a folder.",
    errno.EISDIR: "“{path}” is a folder, not a file.",
    errno.EACCES: "The system does not permit access to “{path}”.",
    errno.EPERM: "The system does not permit access to “{path}”.",
    errno.ENAMETOOLONG: "The name “{path}” is too long for this disk.",
    errno.ENOSPC: "The disk is full; “{path}” was not written.",
    errno.EROFS: "“{path}” is on a read-only disk.",
    errno.EEXIST: "“{path}” is a file, not a folder.",
    errno.ENOTEMPTY: "“{path}” is a folder with something in it.",
    errno.EXDEV: "“{path}” is on another disk and cannot be moved there; write a copy and delete the old file.",
}
_NO_EXTRAS = FileAttributes()


@dataclass(frozen=True, slots=True)
class WorkspacePath:
    """A checked path inside a workspace, free of links at the time of the check. No parts: the folder itself."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        # Names on disk need not be Unicode; what leaves for the model and the screen must be.
        return "/".join(self.parts).encode("utf-8", "replace").decode() or "."

    def child(self, name: str) -> "WorkspacePath":
        """Return the path of a name in it."""
        return WorkspacePath((*self.parts, name))


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry of a folder; `size` in bytes for files."""

    name: str
    kind: Literal["folder", "file", "link", "other"]
    size: int = 0


class Workspace:
    """A folder and no way out of it: not by `..`, absolute paths, links, case, device names or a swap in between.

    Links that stay inside are followed once, at the check; after that a link anywhere on the way is refused.
    Every method raises OutsideWorkspace for a path that leads out, and ToolFailed for what the disk refuses.

    `folder` is a real path, as it was when somebody chose it. Raises WrongUse where it is none any more: whoever may
    write in a folder above could have put a link in its place.
    """

    def __init__(
        self, folder: Path, *, windows_names: bool = os.name == "nt", by_descriptor: bool = HAS_DESCRIPTORS
    ) -> None:
        try:
            self.folder = folder.resolve(strict=True)
            is_folder = self.folder.is_dir()
        except (OSError, ValueError):  # imported names may hold what no path can
            is_folder = False
        if not is_folder:
            raise WrongUse(Sentence("There is no folder “{path}” to work in.", {"path": str(folder)}), _FOLDER_GONE)
        if is_replaced(folder, self.folder):
            raise WrongUse(replaced_sentence(folder, self.folder), CHOOSE_AGAIN)
        self._windows_names = windows_names
        self._by_descriptor = by_descriptor

    def locate(self, path: str) -> WorkspacePath:
        """Check a path as a model gave it, absolute or relative to the folder."""
        # At a root, a drive or a server.
        if path.startswith(("/", "\\")) or _DRIVE.match(path):
            return self._resolve(path, self._relative_to_folder(path))
        return self._resolve(path, split_path(path, windows_names=self._windows_names))

    def read(self, place: WorkspacePath, limit: int) -> bytes:
        """Read an ordinary file of at most `limit` bytes."""
        with self.open_for_reading(place) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            values = {"path": str(place), "limit": f"{limit / 1_000_000:.0f}"}
            raise ToolFailed(Sentence("“{path}” is larger than {limit} MB.", values))
        return data

    @contextlib.contextmanager
    def open_for_reading(self, place: WorkspacePath) -> Generator[BinaryIO]:
        """Open an ordinary file for reading."""
        with (
            self._translate_errors(place),
            self._open_parent(place) as (folder, name),
            _open_regular_file(place, folder.open(name, os.O_RDONLY)) as file,
        ):
            yield file

    def stat(self, place: WorkspacePath) -> os.stat_result | None:
        """Return the status, links not followed; None where there is nothing, or where a parent is a file."""
        with self._translate_errors(place):
            try:
                with self._open_parent(place) as (folder, name):
                    return folder.stat(name)
            except (FileNotFoundError, NotADirectoryError):
                self._stat_root()
                return None

    def exists(self, place: WorkspacePath) -> bool:
        """Return whether anything is there."""
        with (
            self._translate_errors(place),
            contextlib.suppress(FileNotFoundError),
            self._open_parent(place) as (folder, name),
        ):
            folder.stat(name)
            return True
        return False

    def write(
        self,
        place: WorkspacePath,
        data: bytes,
        before_replacing: Callable[[], None] = lambda: None,
        *,
        mode: int | None = None,
        prefix: str = ".",
        extras: FileAttributes = _NO_EXTRAS,
    ) -> None:
        """Write a file whole or not at all, making its parents; an existing file keeps its permissions and attributes.

        `before_replacing` runs when the new bytes are safe on disk under another name; what it raises leaves the old
        file as it was. `mode`: permissions to give it instead, even if it is write-protected. `prefix`: how that name
        begins. `extras` are set too, as far as the system allows.
        """
        with self._translate_errors(place), self._open_parent(place, make_parents=True) as (folder, name):
            mode = _mode_for(place, folder, name, mode)
            temporary = f"{prefix}{secrets.token_hex(8)}.tmp"
            try:
                creation_mode = 0o666 if mode is None else mode
                descriptor = folder.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, creation_mode)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    copy_attributes(folder, name, descriptor)
                    # Before the permissions, of which a change of the owner clears some.
                    apply_attributes(extras, descriptor)
                    if mode is not None and hasattr(os, "fchmod"):
                        os.fchmod(descriptor, mode)
                    os.fsync(descriptor)
                before_replacing()
                folder.replace(temporary, name)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    folder.remove(temporary)
            folder.sync()

    def remove(self, place: WorkspacePath, before_removing: Callable[[], None] = lambda: None) -> None:
        """Delete an ordinary file. `before_removing` is the last check; what it raises leaves the file."""
        with self._translate_errors(place), self._open_parent(place) as (folder, name):
            _require_regular_file(place, folder.stat(name))
            before_removing()
            folder.remove(name)
            folder.sync()

    def move(
        self,
        source: WorkspacePath,
        target: WorkspacePath,
        before_moving: Callable[[], None] = lambda: None,
        *,
        replace: bool = False,
    ) -> None:
        """Move an ordinary file, making its parents; never over an existing file unless `replace`.

        `before_moving` is the last check; what it raises leaves everything as it was, apart from new folders.
        """
        with self._translate_errors(source), self._open_parent(source) as (old, name):
            _require_regular_file(source, old.stat(name))
            with self._translate_errors(target), self._open_parent(target, make_parents=True) as (new, new_name):
                if replace:
                    _require_replaceable(target, new, new_name)
                with contextlib.nullcontext() if replace else _reserve(target, new, new_name):
                    before_moving()
                    _move(old, name, new, new_name)
                new.sync()
            old.sync()

    def make_folder(self, place: WorkspacePath, mode: int | None = None) -> None:
        """Make a folder and what is missing above it; an existing one is left as it is. `mode`: no more permissions."""
        with self._translate_errors(place), self._open_parent(place, make_parents=True) as (folder, name):
            with contextlib.suppress(FileExistsError):
                folder.make(name, 0o777 if mode is None else mode)
            folder.enter(name).close()
            folder.sync()

    def remove_folder(self, place: WorkspacePath) -> None:
        """Delete an empty folder."""
        with self._translate_errors(place), self._open_parent(place) as (folder, name):
            folder.remove_folder(name)
            folder.sync()

    def entries(self, place: WorkspacePath, limit: int) -> tuple[FolderEntry, ...]:
        """Return at most `limit` entries of a folder, by name; links are shown, never followed."""
        with self._translate_errors(place), self._open_folder(place.parts) as folder:
            entries = [_folder_entry(scanned) for scanned in islice(folder.scan(), limit)]
        return tuple(sorted(entries, key=lambda entry: (entry.name.casefold(), entry.name)))

    def _relative_to_folder(self, path: str) -> tuple[str, ...]:
        parts = split_path(path, windows_names=False)
        if ".." in parts:
            reject_path(path, "is an absolute path with “..” in it; write it relative to the workspace folder.")
        parts_below = self._parts_below(Path(path)) if Path(path).is_absolute() else None
        if parts_below is None:
            reject_path(path, "is outside the workspace folder.")
        return split_path("/".join(parts_below), windows_names=self._windows_names)

    def _resolve(self, path: str, parts: tuple[str, ...]) -> WorkspacePath:
        """Follow links once and check where they lead."""
        try:
            real = os.path.realpath(self.folder.joinpath(*parts))
        except OSError:
            # A link that was replaced while it was being read.
            reject_path(path, "changed while it was being followed; nothing was touched.")
        parts_below = self._parts_below(Path(real))
        if parts_below is None:
            reject_path(path, "leads out of the workspace folder.")
        return WorkspacePath(parts_below)

    def _parts_below(self, path: Path) -> tuple[str, ...] | None:
        """Return the components below the folder, or None. Compares files, not spelling: case is no way out."""
        root = self._stat_root()
        for ancestor in (path, *path.parents):
            with contextlib.suppress(OSError):
                if os.path.samestat(ancestor.stat(), root):
                    return path.relative_to(ancestor).parts
        return None

    def _stat_root(self) -> os.stat_result:
        require_in_place(self.folder)
        try:
            return self.folder.stat()
        except OSError as error:
            values = {"path": str(self.folder)}
            sentence = Sentence("The workspace folder “{path}” is not there any more.", values)
            raise ToolFailed(sentence, _FOLDER_GONE) from error

    @contextlib.contextmanager
    def _open_parent(self, place: WorkspacePath, *, make_parents: bool = False) -> Generator[tuple[Folder, str]]:
        """Return the open folder of a file, and the file's name in it."""
        if not place.parts:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), ".")
        with self._open_folder(place.parts[:-1], make=make_parents) as folder:
            yield folder, place.parts[-1]

    @contextlib.contextmanager
    def _open_folder(self, parts: tuple[str, ...], *, make: bool = False) -> Generator[Folder]:
        """Walk from the workspace folder to a folder, one open folder at a time."""
        try:
            folder = open_folder(self.folder, by_descriptor=self._by_descriptor)
        except OSError:
            require_in_place(self.folder)
            raise
        try:
            for part in parts:
                if make:
                    with contextlib.suppress(FileExistsError):
                        folder.make(part)
                entered = folder.enter(part)
                folder.close()
                folder = entered
            yield folder
        finally:
            folder.close()

    @contextlib.contextmanager
    def _translate_errors(self, place: WorkspacePath) -> Generator[None]:
        try:
            yield
        except OSError as error:
            if error.errno == errno.ELOOP:
                reject_path(str(place), "is a link that cannot be followed; nothing was touched.")
            values = {"path": str(place), "why": error.strerror or type(error).__name__}
            template = _ERROR_SENTENCES.get(error.errno or 0, "“{path}” cannot be used: {why}.")
            raise ToolFailed(Sentence(template, values)) from error


def _open_regular_file(place: WorkspacePath, descriptor: int) -> BinaryIO:
    """Open an ordinary file for reading. Closes the descriptor of anything else."""
    try:
        _require_regular_file(place, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except (OSError, ToolFailed):
        os.close(descriptor)
        raise


def _require_regular_file(place: WorkspacePath, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
    if not stat.S_ISREG(status.st_mode):
        raise ToolFailed(Sentence("“{path}” is not an ordinary file.", {"path": str(place)}))


@contextlib.contextmanager
def _reserve(place: WorkspacePath, folder: Folder, name: str) -> Generator[None]:
    """Reserve the path with an empty file, so that nobody takes it; the file is removed if nothing replaced it."""
    try:
        descriptor = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ToolFailed(
            Sentence("There is a “{path}” already.", {"path": str(place)}),
            "Choose another name, or allow replacing it.",
        ) from None
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    try:
        yield
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(folder.stat(name), status):
                folder.remove(name)
        raise


def _move(old: Folder, name: str, new: Folder, new_name: str) -> None:
    status = old.stat(name)
    old.move(name, new, new_name)
    # Where both are names of the same file, the system leaves both.
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(old.stat(name), status):
            old.remove(name)


def _require_replaceable(place: WorkspacePath, folder: Folder, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        status = folder.stat(name)
        _require_regular_file(place, status)
        _require_writable(place, status)


def _require_writable(place: WorkspacePath, status: os.stat_result) -> None:
    # Replacing by rename would get around the write protection without anybody noticing.
    if not status.st_mode & 0o222:
        raise ToolFailed(Sentence("“{path}” is write-protected.", {"path": str(place)}))


def _mode_for(place: WorkspacePath, folder: Folder, name: str, mode: int | None) -> int | None:
    """Return `mode` if it is given, else the permissions of the replaced file, or None for a new one."""
    try:
        status = folder.stat(name)
    except FileNotFoundError:
        return mode
    _require_regular_file(place, status)
    if mode is not None:
        return mode
    _require_writable(place, status)
    return stat.S_IMODE(status.st_mode) & 0o777


def _folder_entry(entry: os.DirEntry[str]) -> FolderEntry:
    try:
        if entry.is_symlink():
            return FolderEntry(entry.name, "link")
        if entry.is_dir(follow_symlinks=False):
            return FolderEntry(entry.name, "folder")
        if entry.is_file(follow_symlinks=False):
            return FolderEntry(entry.name, "file", entry.stat(follow_symlinks=False).st_size)
    except OSError:
        # Gone since it was listed, or not ours to look at: the name is all there is to say.
        return FolderEntry(entry.name, "other")
    return FolderEntry(entry.name, "other")
