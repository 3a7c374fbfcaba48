"""What every reader of another program's history offers, and the shapes in which it answers."""

import base64
import binascii
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

from pydantic import ValidationError

from desktop_agent.exchange.foreign_tree import EPOCH, MAX_MESSAGES, Overview, Thread, TreeBuilder, conversation_tree
from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.exchange.readers.files import NotReadable, modified_at, open_file, parse_json, sorted_entries
from desktop_agent.types.blocks import Base64Source, Image, detect_media_type
from desktop_agent.types.conversation_tree import ConversationOrigin, ConversationTree
from desktop_agent.types.errors import AgentError, Sentence

_MAX_NAME_LENGTH = 200
_DATA_URL = re.compile(r"data:[\w.+/-]*(?:;[\w=.-]+)*;base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where programs keep their data: the home folder, the environment, and the platform as in `sys.platform`."""

    home: Path
    environment: Mapping[str, str]
    platform: str = sys.platform

    @classmethod
    def current(cls) -> "Machine":
        """Return the one that this process runs on."""
        return cls(Path.home(), dict(os.environ))

    def folder(self, variable: str, *fallback: str) -> Path:
        """Return the folder that an environment variable names, else one in the home folder."""
        value = self.environment.get(variable, "")
        return Path(value) if Path(value).is_absolute() else self.home.joinpath(*fallback)

    @property
    def application_data(self) -> Path:
        """Where graphical programs keep their data."""
        if self.platform == "win32":
            return self.folder("APPDATA", "AppData", "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_DATA_HOME", ".local", "share")

    @property
    def application_settings(self) -> Path:
        """Where graphical programs keep their settings, and Electron everything."""
        if self.platform in {"win32", "darwin"}:
            return self.application_data
        return self.folder("XDG_CONFIG_HOME", ".config")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is read at most. Sizes are in bytes; what is beyond is skipped and counted.

    `file` bounds each file of lines, and together the files or rows that one conversation is made of.
    """

    line: int = 32_000_000
    file: int = 256_000_000
    document: int = 64_000_000
    picture: int = 20_000_000
    messages: int = MAX_MESSAGES
    entries: int = 400_000
    files: int = 200_000
    database_copy: int = 2_000_000_000
    pause: Callable[[], None] = lambda: None
    """Called between the pieces that are read: it may wait, and what it raises ends the reading."""


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation in a list. `id` is stable and unique in its program; `message_count` is None where that is slow.

    `file_state` differs after each change of its own file; empty where `updated_at` alone shows changes.
    """

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    workspace: str | None = None
    model: str | None = None
    message_count: int | None = None
    file_state: str = field(default="", compare=False)


def found_conversation(
    id_: str, overview: Overview, changed: datetime = EPOCH, message_count: int | None = None
) -> FoundConversation:
    """Return the row of a list for an overview; `changed`, of its file, stands in for missing times."""
    created = overview.created_at or changed
    return FoundConversation(
        id=id_,
        title=overview.title,
        created_at=created,
        updated_at=overview.updated_at or max(created, changed),
        workspace=overview.workspace or None,
        model=overview.model or None,
        message_count=message_count,
    )


class Reading:
    """Reads files of other programs within limits, and counts in a report what it passes over."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.report = ImportReport()

    def walk(self, root: Path, depth: int, wanted: Callable[[str], object]) -> Iterator[Path]:
        """Yield the files with wanted names at most `depth` folders below the root. The root may be a link."""
        count = 0
        pending = [(root, depth)]
        while pending:
            folder, levels = pending.pop()
            for entry in sorted_entries(folder):
                count += 1
                if count > self.limits.files:
                    self.report.omit(Omission.TOO_MANY)
                    return
                if entry.is_symlink():
                    self.report.omit(Omission.LINK)
                elif entry.is_dir(follow_symlinks=False):
                    if levels:
                        pending.append((Path(entry.path), levels - 1))
                elif wanted(entry.name):
                    self.limits.pause()
                    yield Path(entry.path)

    def within_size(self, paths: Iterable[Path]) -> Iterator[Path]:
        """Yield the files of one conversation until all together are too large; then the rest is left out."""
        size = self.limits.file
        for path in paths:
            with suppress(OSError):
                size -= path.lstat().st_size
            if size < 0:
                self.report.omit(Omission.TOO_LARGE)
                return
            yield path

    def objects(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of a file with one on each line."""
        for number, line in enumerate(self._lines(file)):
            if number >= self.limits.entries:
                self.report.omit(Omission.TOO_MANY)
                return
            value = parse_json(line)
            if isinstance(value, dict):
                yield value
            else:
                self.report.omit(Omission.BAD_LINE)

    def _lines(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the lines that are there now, stripped. Longer ones, and what is beyond the limit, are skipped."""
        size = os.fstat(file.fileno()).st_size
        if size > self.limits.file:
            self.report.omit(Omission.TOO_LARGE)
        remaining = min(size, self.limits.file)
        while remaining > 0:
            self.limits.pause()
            line = file.readline(min(self.limits.line, remaining) + 1)
            if not line:
                return
            remaining -= len(line)
            if len(line) <= self.limits.line or line.endswith(b"\n"):
                if stripped := line.strip():
                    yield stripped
                continue
            self.report.omit(Omission.LONG_LINE)
            while remaining > 0 and line and not line.endswith(b"\n"):
                line = file.readline(min(1_000_000, remaining))
                remaining -= len(line)

    def picture(self, data: str, name: str = "") -> tuple[Image, ...]:
        """Return a picture by its base64; none, and counted, if damaged or too large. Its content decides its type."""
        if len(data) <= self.limits.picture * 4 // 3 + 4:
            with suppress(ValidationError, binascii.Error, ValueError):
                media_type = detect_media_type(base64.b64decode(data[:64] + "=" * (-len(data[:64]) % 4)))
                if media_type is not None:
                    source = Base64Source(media_type=media_type, data=data)
                    return (Image(source=source, name=name[:_MAX_NAME_LENGTH] or None),)
        self.report.omit(Omission.PICTURE)
        return ()

    def picture_from_url(self, url: str, name: str = "") -> tuple[Image, ...]:
        """Return the picture of a data URL. Any other address is counted, and neither fetched nor passed on."""
        match = _DATA_URL.match(url[:200])
        return self.picture(url[match.end() :] if match else "", name)

    def document(self, path: Path) -> Any:
        """Return the JSON of a whole file. Raises NotReadable."""
        self.limits.pause()
        with open_file(path) as file:
            if os.fstat(file.fileno()).st_size > self.limits.document:
                raise NotReadable("it is too large")
            value = parse_json(file.read(self.limits.document))
        if value is None:
            raise NotReadable("it holds no JSON, or is nested too deep")
        return value

    def describe_files(
        self,
        files: Iterable[tuple[str, Path]],
        describe: Callable[[str, BinaryIO, datetime], FoundConversation | None],
    ) -> Iterator[FoundConversation]:
        """Yield what is found in each file, given with its id. An id counts once; what cannot be read is counted.

        `describe` gets the id, the file, and when it was changed last.
        """
        seen: set[str] = set()
        for conversation_id, path in files:
            if conversation_id in seen:
                continue
            seen.add(conversation_id)
            try:
                with open_file(path) as file:
                    # Before it is read: what is written meanwhile counts as a change.
                    status = os.fstat(file.fileno())
                    conversation = describe(conversation_id, file, modified_at(file))
            except (NotReadable, OSError):
                self.report.omit(Omission.UNREADABLE_FILE)
                continue
            if conversation is not None:
                yield replace(conversation, file_state=f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}")


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """A whole conversation, and what of it was not understood."""

    tree: ConversationTree
    report: ImportReport = field(default_factory=ImportReport)


class HistoryUnreadable(AgentError):
    """A conversation that another program left on the disk cannot be read."""

    kind = "history_unreadable"
    default_remedy = (
        "Check whether the other program still opens it. If that program is running, close it and try again."
    )


class ReadResult(NamedTuple):
    """What was read of a conversation. `changed` is when its file was changed, for missing times."""

    overview: Overview
    tree: TreeBuilder
    head: str | None
    changed: datetime = EPOCH


class ThreadReader:
    """Puts the messages of one conversation together."""

    def __init__(self, reading: Reading) -> None:
        self.report = reading.report
        self.tree = TreeBuilder(self.report, reading.limits.messages)
        self.thread = Thread(self.tree)
        self._reading = reading


class HistoryReader(ABC):
    """Reads the conversations that one program left on the disk. Writes nothing, locks nothing, fetches nothing.

    Blocking: call it in a thread. `program` is a stable word, the one in `ConversationOrigin`; `title` is its name for
    people. `report` has what the last listing passed over.
    """

    program: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, machine: Machine, limits: Limits = LIMITS) -> None:
        self._machine = machine
        self._limits = limits
        self.report = ImportReport()

    @abstractmethod
    def locations(self) -> tuple[Path, ...]:
        """Return the folders and files where the program keeps conversations, whether they are there or not."""

    def is_present(self) -> bool:
        """Return whether one of the folders is there."""
        return any(folder.is_dir() for folder in self.locations())

    def list_conversations(self) -> Iterator[FoundConversation]:
        """Yield the conversations in any order, reading only the beginnings and ends of files."""
        reading = Reading(self._limits)
        self.report = reading.report
        yield from self._list(reading)

    @abstractmethod
    def _list(self, reading: Reading) -> Iterator[FoundConversation]: ...

    def load(self, conversation_id: str) -> LoadedConversation:
        """Return one by its id. Raises HistoryUnreadable."""
        try:
            content = self._read(conversation_id, Reading(self._limits))
        except (NotReadable, OSError) as error:
            reason = error.reason if isinstance(error, NotReadable) else str(error)
            values: dict[str, str | Sentence] = {"program": self.title, "reason": reason}
            sentence = Sentence("This conversation of {program} cannot be read: {reason}.", values)
            raise HistoryUnreadable(sentence) from None
        origin = ConversationOrigin(program=self.program, id=conversation_id)
        tree = conversation_tree(origin, content.overview, content.tree, content.head, content.changed)
        return LoadedConversation(tree, content.tree.report)

    @abstractmethod
    def _read(self, conversation_id: str, reading: Reading) -> ReadResult:
        """Read one. Raises NotReadable and OSError."""
