"""Read the conversations of an export: ours, or that of another program's account; the content decides which.

It blocks, so it belongs in a thread. Nothing is unpacked, and nothing is fetched.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Any, Self

from desktop_agent.exchange.archive import DAMAGE, MAX_PICTURE_BYTES, base_name, open_files, picture_name, pictures_of
from desktop_agent.exchange.chatgpt_import import read_chatgpt_conversation
from desktop_agent.exchange.claude_import import read_claude_conversation
from desktop_agent.exchange.conversation_json import FORMAT, VERSION, read_conversation
from desktop_agent.exchange.foreign_values import object_of
from desktop_agent.exchange.import_report import ExchangeFailed, ImportReport, Skipped
from desktop_agent.exchange.json_stream import JsonArrayReader, UnreadableEntry
from desktop_agent.types.blocks import Image, StoredSource, detect_media_type, read_image_size
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import ImageRefused, Sentence

Progress = Callable[[int, int], None]
"""Called with the bytes of text that were read, and how many there are. What it raises ends the import."""

MAX_SKIPPED = 10_000
"""A file in which more cannot be read is no export."""
_CONVERSATIONS = re.compile(r"conversations(?:[-_]\d+)?\.json", re.IGNORECASE)
_FILE_ID = re.compile(r"file(?:-[A-Za-z0-9]+|_[0-9a-fA-F]+)")


class ExportKind(StrEnum):
    """Whose export it is."""

    OWN = "own"
    CHATGPT = "chatgpt"
    CLAUDE = "claude"


class ConversationImport:
    """One export that is being read. Iterating goes through it once; `report` grows meanwhile.

    While it is open, `read_picture` returns the bytes of pictures that are a StoredSource.
    """

    def __init__(self, path: Path, on_progress: Progress | None = None) -> None:
        """Open it. Raises ExchangeFailed for what holds no conversations that are known."""
        self.report = ImportReport()
        self._path = path
        self._on_progress = on_progress
        self._files = open_files(path)
        self._read_bytes = 0
        self._pictures: dict[str, str] = {}
        try:
            self._sizes = self._files.sizes()
            self._names = self._conversation_files()
            self.kind = self._detect()
        except BaseException:
            self._files.close()
            raise
        self._note_other_files()
        self._by_file_id = self._named_by_id() if self.kind is ExportKind.CHATGPT else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; pictures cannot be read any more."""
        self._files.close()

    def __iter__(self) -> Iterator[ConversationTree | Skipped]:
        """Yield each conversation, or why it is left out."""
        self._read_bytes = 0
        seen: set[str] = set()
        for name in self._names:
            for entry in self._entries(name):
                result = entry
                if isinstance(entry, ConversationTree):
                    if entry.id in seen:
                        reason = Sentence("Another conversation of this export has the same id.")
                        result = Skipped(entry.title, reason)
                    seen.add(entry.id)
                self._count(result)
                yield result
                if self.report.skipped > MAX_SKIPPED:
                    yield Skipped(base_name(name), Sentence("Too much of it is damaged: the rest was not read."))
                    return

    def _count(self, result: ConversationTree | Skipped) -> None:
        if isinstance(result, Skipped):
            self.report.skipped += 1
        else:
            self.report.conversations += 1
            self.report.messages += len(result.messages)

    def read_picture(self, source: StoredSource) -> bytes:
        """Return the bytes of a picture of this export. Raises ImageRefused for one that is missing or damaged."""
        data = self._member_bytes(self._pictures.get(source.digest) or self._own_name(source))
        if data is None:
            raise ImageRefused("A picture is not in the export, or it is damaged.", "Attach it again.")
        if hashlib.sha256(data).hexdigest() != source.digest:
            raise ImageRefused("A picture of the export was changed or damaged.", "Attach it again.")
        if detect_media_type(data) != source.media_type:
            # No server would take the conversation with it.
            raise ImageRefused(
                "A picture in the export is not a picture, or not of the type that it says.", "Attach it again."
            )
        return data

    def _conversation_files(self) -> list[str]:
        """Return the files with conversations, in order. A single file may have any name."""
        named = sorted(name for name in self._sizes if _CONVERSATIONS.fullmatch(base_name(name)))
        return named or (list(self._sizes) if len(self._sizes) == 1 else [])

    def _note_other_files(self) -> None:
        """Report which files of the account are not read: people, projects, feedback."""
        for name in sorted(self._sizes):
            if name.lower().endswith(".json") and name not in self._names:
                self.report.add(
                    Sentence("“{name}” was not read: it holds no conversations.", {"name": base_name(name)})
                )

    def _detect(self) -> ExportKind:
        """Return the kind of the first entry that says what it is. Raises ExchangeFailed where none does."""
        for name in self._names:
            try:
                with self._files.open(name) as file:
                    reader = JsonArrayReader(file.read)
                    head = reader.read_head()
                    if head.get("format") == FORMAT:
                        return self._own_kind(head.get("version"))
                    kind = next(filter(None, map(_kind_of, islice(reader, MAX_SKIPPED))), None)
            except DAMAGE:
                continue
            if kind is not None:
                return kind
        if (explained := self._files.explain(self._names)) is not None:
            raise explained
        sentence = Sentence("“{path}” holds no conversations that this version can read.", {"path": str(self._path)})
        raise ExchangeFailed(sentence)

    def _own_kind(self, version: object) -> ExportKind:
        if version != VERSION:
            sentence = Sentence("A newer version of this program wrote “{path}”.", {"path": str(self._path)})
            raise ExchangeFailed(sentence, "Install the newest version, and import it there.")
        return ExportKind.OWN

    def _entries(self, name: str) -> Iterator[ConversationTree | Skipped]:
        try:
            with self._files.open(name) as file:
                reader = JsonArrayReader(self._reporting_read(file))
                reader.read_head()
                for number, entry in enumerate(reader, 1):
                    yield self._read_entry(entry, f"{base_name(name)}: {number}")
                if reader.had_bad_bytes:
                    self.report.add(Sentence("Bytes that are not text were replaced."))
        except DAMAGE:
            yield Skipped(base_name(name), Sentence("The rest of this file is damaged and cannot be read."))

    def _reporting_read(self, file: IO[bytes]) -> Callable[[int], bytes]:
        total = sum(self._sizes[name] for name in self._names)

        def read(size: int) -> bytes:
            data = file.read(size)
            self._read_bytes += len(data)
            if self._on_progress is not None:
                self._on_progress(self._read_bytes, total)
            return data

        return read

    def _read_entry(self, entry: Any, place: str) -> ConversationTree | Skipped:
        if isinstance(entry, UnreadableEntry):
            return Skipped(place, entry.reason)
        members = object_of(entry)
        match ExportKind.OWN if self.kind is ExportKind.OWN and members else _kind_of(entry):
            case ExportKind.OWN:
                tree = read_conversation(members, self.report)
                return self._with_own_pictures(tree) if isinstance(tree, ConversationTree) else tree
            case ExportKind.CHATGPT:
                return read_chatgpt_conversation(members, self._find_picture, self.report)
            case ExportKind.CLAUDE:
                return read_claude_conversation(members, self.report)
            case None:
                return Skipped(place, Sentence("It is not a conversation."))

    def _with_own_pictures(self, tree: ConversationTree) -> ConversationTree:
        for image in (image for node in tree.messages for image in pictures_of(node.message)):
            if isinstance(image.source, StoredSource):
                if self._own_name(image.source) in self._sizes:
                    self.report.pictures += 1
                else:
                    self.report.add(Sentence("A picture is not in the export; its place is kept."))
        return tree

    def _own_name(self, source: StoredSource) -> str:
        """Return the name of the picture beside the conversations, which may lie in a folder of the archive."""
        folder = self._names[0].removesuffix(base_name(self._names[0]))
        return folder + picture_name(source)

    def _named_by_id(self) -> dict[str, str]:
        """Return the files of a ChatGPT export by the ids with which their names begin."""
        names: dict[str, str] = {}
        for name in sorted(self._sizes):
            if match := _FILE_ID.match(base_name(name)):
                names.setdefault(match[0], name)
        return names

    def _find_picture(self, file_id: str, name: str) -> Image | None:
        member = self._by_file_id.get(file_id)
        data = self._member_bytes(member) if member is not None else None
        if member is None or data is None:
            return None
        media_type, size = detect_media_type(data), read_image_size(data)
        if media_type is None or size is None:
            return None
        digest = hashlib.sha256(data).hexdigest()
        self._pictures[digest] = member
        self.report.pictures += 1
        source = StoredSource(digest=digest, media_type=media_type, size=len(data), width=size[0], height=size[1])
        return Image(source=source, name=" ".join(name.split())[:200] or None)

    def _member_bytes(self, name: str) -> bytes | None:
        if self._sizes.get(name, MAX_PICTURE_BYTES + 1) > MAX_PICTURE_BYTES:
            return None
        try:
            with self._files.open(name) as file:
                data = file.read(MAX_PICTURE_BYTES + 1)
        except DAMAGE:
            return None
        return data if len(data) <= MAX_PICTURE_BYTES else None


def _kind_of(entry: Any) -> ExportKind | None:
    members = object_of(entry)
    if isinstance(members.get("mapping"), dict):
        return ExportKind.CHATGPT
    return ExportKind.CLAUDE if isinstance(members.get("chat_messages"), list) else None
