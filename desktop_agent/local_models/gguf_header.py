"""Read the header of a model file in the GGUF format, within limits.

The format is documented at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 3). Only what a person
chooses a model by is read; arrays, such as the words of the tokenizer, are skipped. Files may come from anybody.
"""

import os
import re
import stat
import struct
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from desktop_agent.types.errors import Sentence, WrongUse

# Versions 2 and 3 have the same layout; version 1 had 32-bit lengths and is not found any more.
_VERSIONS = (2, 3)
_MAX_KEYS = 10_000
_MAX_KEY_BYTES = 65_535
_MAX_TEXT_BYTES = 4_096
_MAX_ITEMS = 4_000_000
_MAX_HEADER_BYTES = 256 * 1024 * 1024
_MAX_DEPTH = 4
_BUFFER_BYTES = 1 << 20
_STRING, _ARRAY = 8, 9
# The format of struct for each type of value but strings and arrays.
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_QUANTISATION_IN_NAME = re.compile(r"(?:^|[-_.])(I?Q\d(?:_[A-Z0-9]+){0,2}|B?F16|F32|MXFP4)(?=[-_.]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a header says; None is what it does not say. `is_chat_model`: neither an adapter nor a part for pictures."""

    name: str | None
    architecture: str | None
    context_length: int | None
    quantisation: str | None
    is_chat_model: bool


def read_header(path: Path) -> GgufHeader:
    """Read the header of a file; blocks. Raises WrongUse for one that is no GGUF model, and OSError."""
    match = _QUANTISATION_IN_NAME.search(path.stem)
    # Not blocking: a pipe of this name would wait for somebody who writes.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb", buffering=_BUFFER_BYTES) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _invalid(path, Sentence("it is not an ordinary file"))
        try:
            values = _Reader(file, min(status.st_size, _MAX_HEADER_BYTES)).read_values(match is not None)
        except _InvalidHeaderError as error:
            raise _invalid(path, error.reason) from None
    architecture = _text(values.get("general.architecture"))
    kind = _text(values.get("general.type"))
    quantisation = _quantisations().get(str(values.get("general.file_type")))
    context = values.get(f"{architecture}.context_length")
    return GgufHeader(
        name=_text(values.get("general.name")),
        architecture=architecture,
        context_length=context if type(context) is int and context > 0 else None,
        quantisation=quantisation or (match[1].upper() if match else None),
        is_chat_model=architecture != "clip" and kind in (None, "model"),
    )


@cache
def _quantisations() -> dict[str, str]:
    table = tomllib.loads(Path(__file__).with_name("file_types.toml").read_text(encoding="utf-8"))
    return table["file_types"]


def _text(value: object) -> str | None:
    """Return a name on one line, without invisible characters."""
    if not isinstance(value, str):
        return None
    return "".join(letter if letter.isprintable() else " " for letter in value).strip()[:200] or None


def _invalid(path: Path, why: Sentence) -> WrongUse:
    sentence = Sentence("“{name}” is not a model in the GGUF format: {why}.", {"name": path.name, "why": why})
    return WrongUse(sentence, "Choose a file whose name ends in .gguf, or download it again.")


class _InvalidHeaderError(ValueError):
    def __init__(self, template: str) -> None:
        super().__init__(template)
        self.reason = Sentence(template)


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._remaining = size
        self._items = 0

    def read_values(self, name_says_quantisation: bool) -> dict[str, object]:  # noqa: FBT001
        """Read the values that are not arrays; stop early where all that are used are known."""
        if self._take(4) != b"GGUF":
            raise _InvalidHeaderError("it does not begin like one")
        version = self._number("<I")
        if version not in _VERSIONS:
            raise _InvalidHeaderError("its version of the format is not known")
        self._number("<Q")  # tensors
        count = self._number("<Q")
        if count > _MAX_KEYS:
            raise _InvalidHeaderError("its header has too many entries")
        values: dict[str, object] = {}
        for _ in range(int(count)):
            key = self._key()
            kind = int(self._number("<I"))
            if kind == _ARRAY:
                has_length = f"{values.get('general.architecture')}.context_length" in values
                if key.startswith("tokenizer.") and name_says_quantisation and has_length:
                    break
                self._skip_array(0)
            elif kind == _STRING:
                values[key] = self._bounded_string()
            else:
                values[key] = self._number(self._format(kind))
        return values

    def _bounded_string(self) -> str | None:
        length = int(self._number("<Q"))
        if length > _MAX_TEXT_BYTES:
            self._skip(length)  # a chat template
            return None
        return self._take(length).decode("utf-8", "replace")

    def _key(self) -> str:
        length = int(self._number("<Q"))
        if length > _MAX_KEY_BYTES:
            raise _InvalidHeaderError("a name in its header is too long")
        return self._take(length).decode("utf-8", "replace")

    def _skip_array(self, depth: int) -> None:
        kind, length = int(self._number("<I")), int(self._number("<Q"))
        if kind not in (_STRING, _ARRAY):
            self._skip(length * struct.calcsize(self._format(kind)))
            return
        self._items += length
        if self._items > _MAX_ITEMS or depth >= _MAX_DEPTH:
            raise _InvalidHeaderError("its header is too large")
        for _ in range(length):
            if kind == _ARRAY:
                self._skip_array(depth + 1)
            else:
                self._skip(int(self._number("<Q")))

    def _format(self, kind: int) -> str:
        if kind not in _FORMATS:
            raise _InvalidHeaderError("its header has a value of an unknown type")
        return _FORMATS[kind]

    def _number(self, value_format: str) -> int:
        return struct.unpack(value_format, self._take(struct.calcsize(value_format)))[0]

    def _take(self, length: int) -> bytes:
        self._claim(length)
        data = self._file.read(length)
        if len(data) < length:
            raise _InvalidHeaderError("it ends in its header")
        return data

    def _skip(self, length: int) -> None:
        self._claim(length)
        self._file.seek(length, os.SEEK_CUR)

    def _claim(self, length: int) -> None:
        self._remaining -= length
        if self._remaining < 0:
            raise _InvalidHeaderError("it ends in its header")


_SPLIT = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_MAX_FILES = 1_000


def first_of_split(path: Path) -> Path:
    """Return the first file of a model that is split into several, or the path itself."""
    match = _SPLIT.fullmatch(path.name)
    return path if match is None else path.with_name(f"{match['stem']}-00001-of-{match['count']}{path.suffix}")


def model_stem(path: Path) -> str:
    """Return the name of a file without its ending and its number among several."""
    match = _SPLIT.fullmatch(path.name)
    return path.stem if match is None else match["stem"]


def size_of_all(path: Path) -> int:
    """Return the bytes of all files of the model whose first file this is. Raises WrongUse if one is missing."""
    match = _SPLIT.fullmatch(path.name)
    if match is None:
        return path.stat().st_size
    total, count = 0, int(match["count"])
    if not 1 <= count <= _MAX_FILES:
        raise _invalid(path, Sentence("it is said to be split into too many files"))
    for number in range(1, count + 1):
        part = path.with_name(f"{match['stem']}-{number:05}-of-{match['count']}{path.suffix}")
        try:
            total += part.stat().st_size
        except OSError:
            sentence = Sentence("The model lacks the file “{name}”.", {"name": part.name})
            raise WrongUse(sentence, "Download the missing file into the same folder.") from None
    return total
