"""The tool that writes a text file."""

from dataclasses import dataclass

from pydantic import Field

from desktop_agent.tools.files.changing import FileChange, SingleFileInput, file_changing_tool
from desktop_agent.tools.files.text_files import (
    NotText,
    TextFile,
    TextFormat,
    decode_text,
    encode_text,
    normalize_newlines,
)
from desktop_agent.tools.tool import Tool
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.tool_calls import DiffPreview, Preview, TextPreview

CONTENT_LIMIT = 4_000_000
_MAX_OLD_BYTES = 64_000_000
_DIFF_LIMIT = 2_000_000


class WriteFileInput(SingleFileInput):
    """What to write."""

    path: str = Field(min_length=1, description="The file, relative to the workspace folder; made if it is not there.")
    content: str = Field(max_length=CONTENT_LIMIT, description="The whole new text of the file.")


@dataclass(frozen=True, slots=True)
class _ExistingFile:
    """What lies there now: text, or bytes that are none, or (neither) nothing."""

    text: TextFile | None = None
    binary_size: int | None = None

    @property
    def format(self) -> TextFormat | None:
        """How to write it back."""
        return self.text.format if self.text else None


def write_file(workspace: Workspace) -> Tool[WriteFileInput]:
    """Make the tool for a workspace."""

    def work(params: WriteFileInput, change: FileChange) -> tuple[Text, ...]:
        change.check()
        place = workspace.locate(params.path)
        old = _read_existing(workspace, place)
        data, used = encode_text(params.content, old.format)
        workspace.write(place, data, before_replacing=change.begin)
        return change.finish(_report(place, old, len(data), used))

    def look(params: WriteFileInput) -> Preview:
        place = workspace.locate(params.path)
        return _preview(place, _read_existing(workspace, place), params.content)

    return file_changing_tool(
        workspace,
        "write_file",
        (
            "Write a text file of the workspace, replacing the whole file if it is there and making its folders "
            "if they are not. An existing file keeps its encoding and line ends."
        ),
        WriteFileInput,
        work,
        look,
    )


def _read_existing(workspace: Workspace, place: WorkspacePath) -> _ExistingFile:
    if place.parts and not workspace.exists(place):
        return _ExistingFile()
    data = workspace.read(place, _MAX_OLD_BYTES)
    try:
        return _ExistingFile(text=decode_text(data))
    except NotText:
        return _ExistingFile(binary_size=len(data))


def _preview(place: WorkspacePath, old: _ExistingFile, content: str) -> Preview:
    before = old.text.text if old.text else None
    if old.binary_size is not None:
        return TextPreview(f"Replaces the binary file {place} ({old.binary_size:,} bytes) with this text:\n\n{content}")
    if before is not None and len(before) > _DIFF_LIMIT:
        return TextPreview(f"Replaces {place} ({len(before):,} characters) with this text:\n\n{content}")
    return DiffPreview(str(place), before, normalize_newlines(content))


def _report(place: WorkspacePath, old: _ExistingFile, size: int, used: TextFormat) -> str:
    is_new = old.text is None and old.binary_size is None
    report = f"{'Created' if is_new else 'Replaced'} {place} ({size:,} bytes)."
    if old.format and used.encoding != old.format.encoding:
        report += f" It is {used.title} now, because {old.format.encoding.upper()} cannot hold the new text."
    return report
