"""Archives of conversations with their pictures, and reading of archives and folders that anybody may have made.

An archive of ours has `conversations.json` and `pictures/DIGEST.EXTENSION`. Equal conversations give equal bytes where
zlib is the same.
"""

import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from desktop_agent.exchange.conversation_json import write_conversations
from desktop_agent.exchange.import_report import ExchangeFailed
from desktop_agent.types.blocks import PICTURE_EXTENSIONS, Image, StoredSource, ToolResult
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message

CONVERSATIONS_NAME = "conversations.json"
ReadPicture = Callable[[StoredSource], bytes | None]
"""Returns the bytes of a stored picture; None for one that is gone."""

MAX_MEMBERS = 200_000
MAX_DIRECTORY_BYTES = 100_000_000
MAX_TEXT_BYTES = 20_000_000_000
MAX_PICTURE_BYTES = 50_000_000
_MAX_RATIO = 200
"""Uncompressed over compressed bytes of a long text. Conversations reach 10 to 30, a bomb 1,000."""

_LONG_TEXT = 50_000_000
_CHUNK = 1 << 20
DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, ValueError, RuntimeError)
"""What `zipfile` and `zlib` raise for damaged files, and readers of what comes out of them."""

_READABLE = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_IS_LOCKED = 1
"""In the flags of a member that is encrypted (APPNOTE 6.3.10, 4.4.4)."""

# The first moment that a zip can name, so that the time of the export is not in the bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class ExportCounts:
    """What was written. `lost_pictures` could not be read; the conversations name them all the same."""

    conversations: int
    pictures: int
    lost_pictures: int


def picture_name(source: StoredSource) -> str:
    """Return the name of a picture beside exported conversations."""
    return f"pictures/{source.digest}.{PICTURE_EXTENSIONS[source.media_type]}"


def pictures_of(message: Message) -> Iterator[Image]:
    """Yield the pictures of a message and of its results, in order."""
    for block in message.blocks:
        parts = block.content if isinstance(block, ToolResult) else (block,)
        yield from (part for part in parts if isinstance(part, Image))


def write_archive(file: IO[bytes], trees: Iterable[ConversationTree], read_picture: ReadPicture) -> ExportCounts:
    """Write a zip with the conversations and each of their stored pictures once. `trees` is iterated once."""
    sources: dict[str, StoredSource] = {}

    def collected() -> Iterator[ConversationTree]:
        for tree in trees:
            for image in (image for node in tree.messages for image in pictures_of(node.message)):
                if isinstance(image.source, StoredSource):
                    sources.setdefault(picture_name(image.source), image.source)
            yield tree

    pictures = 0
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open(_member(CONVERSATIONS_NAME, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as stream:
            count = write_conversations(collected(), stream.write)
        for name in sorted(sources):
            data = read_picture(sources[name])
            if data is not None:
                archive.writestr(_member(name, zipfile.ZIP_STORED), data)
                pictures += 1
    return ExportCounts(count, pictures, len(sources) - pictures)


def _member(name: str, compression: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _NO_TIME)
    member.compress_type = compression
    member.create_system = 3  # Unix, wherever it is written
    member.external_attr = (stat.S_IFREG | 0o600) << 16
    return member


class ImportFiles:
    """The files of one import, by their names inside an archive or a folder. All methods raise ExchangeFailed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self) -> dict[str, int]:
        """Return the names of all plain files and how many bytes they say they have."""
        raise NotImplementedError

    def open(self, name: str) -> IO[bytes]:
        """Open one of them. Reading raises OSError, and what `zipfile` and `zlib` raise for damaged ones."""
        raise NotImplementedError

    def explain(self, names: Iterable[str]) -> ExchangeFailed | None:
        """Return why no conversations are found in these files, if they are damaged or locked. It reads all of them."""
        try:
            for name in names:
                with self.open(name) as file:
                    # To the end, where an archive verifies its checksums.
                    while file.read(_CHUNK):
                        pass
        except DAMAGE:
            return _damaged(self._path)
        return None

    def close(self) -> None:
        """Close what is open."""


def open_files(path: Path) -> ImportFiles:
    """Open a zip, a folder in which one was unpacked, or a single file; the content decides which it is."""
    try:
        if path.is_dir():
            return _Folder(path)
        if not stat.S_ISREG(path.stat().st_mode):
            # Opening a pipe waits for its writer, and some devices never end.
            sentence = Sentence("“{path}” is neither a file nor a folder.", {"path": str(path)})
            raise ExchangeFailed(sentence, "Choose the file or the folder of an export.")
        with path.open("rb") as file:
            is_zip = file.read(4) in {b"PK\x03\x04", b"PK\x05\x06"}
        return _Zip(path) if is_zip else _SingleFile(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> ExchangeFailed:
    values = {"path": str(path), "why": error.strerror or type(error).__name__}
    return ExchangeFailed(Sentence("“{path}” cannot be read: {why}.", values), "Check that it exists and can be read.")


class _SingleFile(ImportFiles):
    def sizes(self) -> dict[str, int]:
        try:
            return {self._path.name: self._path.stat().st_size}
        except OSError as error:
            raise _unreadable(self._path, error) from error

    def open(self, name: str) -> IO[bytes]:
        del name
        return self._path.open("rb")

    def explain(self, names: Iterable[str]) -> ExchangeFailed | None:
        # A zip that was not recognised as one has a damaged beginning.
        return _damaged(self._path) if self._path.suffix.lower() == ".zip" else super().explain(names)


class _Folder(ImportFiles):
    """Plain files below a folder. Links are not followed, wherever they lead."""

    def sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for folder, _, names in os.walk(self._path, followlinks=False):
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):  # it was deleted meanwhile, or may not be read
                    details = path.lstat()
                    if stat.S_ISREG(details.st_mode):
                        sizes[path.relative_to(self._path).as_posix()] = details.st_size
            if len(sizes) > MAX_MEMBERS:
                raise ExchangeFailed("This folder has too many files.", "Choose the folder of the export alone.")
        return sizes

    def open(self, name: str) -> IO[bytes]:
        handle = os.open(self._path / name, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        return os.fdopen(handle, "rb")


class _Zip(ImportFiles):
    """Members of an archive that are plain files; nothing is ever unpacked to the disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if _directory_bytes(path) > MAX_DIRECTORY_BYTES:
            raise _too_large()
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise _damaged(path, str(error)) from error
        members = self._archive.infolist()
        self._members = {member.filename: member for member in members if _is_plain_file(member)}
        # Each may be short, and members may share their bytes: what counts is the length of the file.
        texts = sum(member.file_size for name, member in self._members.items() if name.lower().endswith(".json"))
        if len(members) > MAX_MEMBERS or _unpacks_to_too_much(texts, path.stat().st_size):
            self._archive.close()
            raise _too_large()

    def sizes(self) -> dict[str, int]:
        return {name: member.file_size for name, member in self._members.items()}

    def open(self, name: str) -> IO[bytes]:
        member = self._members[name]
        if _unpacks_to_too_much(member.file_size, member.compress_size):
            raise _too_large()
        return self._archive.open(member)

    def explain(self, names: Iterable[str]) -> ExchangeFailed | None:
        if (damaged := super().explain(names)) is not None:
            return damaged
        values = {"path": str(self._path)}
        others = [member for member in self._archive.infolist() if member.filename not in self._members]
        if any(member.flag_bits & _IS_LOCKED for member in others):
            sentence = Sentence("“{path}” is protected by a password.", values)
            return ExchangeFailed(sentence, "Unpack it with its password, and import the file with the conversations.")
        if any(member.compress_type not in _READABLE for member in others):
            sentence = Sentence("“{path}” is packed in a way that cannot be read here.", values)
            return ExchangeFailed(sentence, "Unpack it, and import the file with the conversations.")
        return None

    def close(self) -> None:
        self._archive.close()


def _unpacks_to_too_much(size: int, packed: int) -> bool:
    return size > MAX_TEXT_BYTES or (size > _LONG_TEXT and size > _MAX_RATIO * packed)


def _is_plain_file(member: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(member.external_attr >> 16)
    is_readable = member.compress_type in _READABLE and not member.flag_bits & _IS_LOCKED
    return is_readable and kind in {0, stat.S_IFREG} and not member.is_dir()


def _damaged(path: Path, detail: str = "") -> ExchangeFailed:
    sentence = Sentence("“{path}” is damaged and cannot be read.", {"path": str(path)})
    return ExchangeFailed(sentence, "Export or download it again.", detail=detail)


def _too_large() -> ExchangeFailed:
    return ExchangeFailed("This archive claims to contain more than any export does.", "Download the export again.")


def _directory_bytes(path: Path) -> int:
    """Return how long the list of members is, before it is read into memory (APPNOTE 6.3.10, 4.3.14 and 4.3.16)."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 16) - 98))
        end = file.read()
    place = end.rfind(b"PK\x05\x06")
    size = int.from_bytes(end[place + 12 : place + 16], "little") if place >= 0 else 0
    if size < 0xFFFFFFFF:
        return size
    place = end.rfind(b"PK\x06\x06")
    return int.from_bytes(end[place + 40 : place + 48], "little") if place >= 0 else size


def base_name(name: str) -> str:
    """Return the last part of a member's name."""
    return PurePosixPath(name.replace("\\", "/")).name
