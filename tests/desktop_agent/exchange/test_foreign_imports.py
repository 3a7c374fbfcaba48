"""Exports of other programs, by hand from the documented shapes."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as PillowImage

from desktop_agent.exchange.import_conversations import ConversationImport, ExportKind
from desktop_agent.types.blocks import (
    Block,
    Citation,
    Image,
    Json,
    ServerStep,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.messages import Message, MessageState, Role

EXPORTS = Path(__file__).parent / "exports"


def png() -> bytes:
    file = io.BytesIO()
    PillowImage.new("RGB", (3, 2), "green").save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def chatgpt_zip(tmp_path: Path) -> Path:
    path = tmp_path / "chatgpt.zip"
    first, second = json.loads((EXPORTS / "chatgpt.json").read_text(encoding="utf-8"))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.html", "<html>")
        archive.writestr("conversations-000.json", json.dumps([first]))
        archive.writestr("conversations-001.json", json.dumps([second]))
        archive.writestr("export_manifest.json", "{}")
        archive.writestr("file_0000abcd-sanitized.png", png())
    return path


def trees(path: Path) -> tuple[list[ConversationTree], ConversationImport]:
    with ConversationImport(path) as export:
        read = list(export)
    assert all(isinstance(result, ConversationTree) for result in read), read
    return [result for result in read if isinstance(result, ConversationTree)], export


def notes(export: ConversationImport) -> dict[str, int]:
    return {str(sentence): count for sentence, count in export.report.notes}


def blocks_of(messages: tuple[Message, ...]) -> list[tuple[Role, tuple[Block, ...]]]:
    return [(message.role, message.blocks) for message in messages]


def test_all_branches_of_chatgpt_come_and_the_one_in_view_is_the_head(chatgpt_zip: Path) -> None:
    (first, _), export = trees(chatgpt_zip)
    assert export.kind is ExportKind.CHATGPT
    prompt, answer, other = (node.message for node in first.messages)
    assert [node.parent for node in first.messages] == [None, prompt.id, prompt.id]
    assert first.branch() == (prompt, answer)
    assert (other.state, other.text, other.model) == (MessageState.INTERRUPTED, "A cup of ", "gpt-5-2-mini")
    source = Citation(title="Tea", url="https://tea.example/green")
    assert answer.blocks == (
        Thinking(text="**Looking**\n\nIt is green.", provider="chatgpt"),
        Thinking(text="Thought for 2s", provider="chatgpt"),
        Text(text="Tea. ([Tea](https://tea.example/green))", citations=(source,)),
    )
    assert (first.title, first.title_is_automatic, first.model) == ("Two answers", False, "gpt-5-2")
    assert first.created_at.isoformat() == "2026-01-01T00:00:00+00:00"


def test_pictures_of_chatgpt_come_from_the_archive_and_what_is_not_there_is_named(chatgpt_zip: Path) -> None:
    with ConversationImport(chatgpt_zip) as export:
        first, _ = export
        assert isinstance(first, ConversationTree)
        picture, *rest = first.messages[0].message.blocks
        assert isinstance(picture, Image)
        assert isinstance(picture.source, StoredSource)
        assert (picture.name, picture.source.width, picture.source.height) == ("tea.png", 3, 2)
        assert export.read_picture(picture.source) == png()
    assert rest == [Text(text="[Picture]"), Text(text="\n\nWhat is this?"), Text(text="\n\n[paper.pdf]")]
    assert export.report.pictures == 1
    assert notes(export) == {
        "“export_manifest.json” was not read: it holds no conversations.": 1,
        "A hidden message of the service, such as its instructions, was left out.": 2,
        "A picture is not in the export; its place is marked.": 1,
        "Only the name of an attached file is kept: the export does not contain the file.": 1,
        "Content of the kind “super_widget” is not known and was kept as it is.": 1,
        "A recording was left out. Its words are kept if the export has them.": 1,
    }


def test_calls_of_chatgpt_have_their_results(chatgpt_zip: Path) -> None:
    (_, second), _ = trees(chatgpt_zip)
    page = Text(text="One is one.", citations=(Citation(title="One", url="https://one.example"),))
    bio = {"content_type": "text", "parts": ["Remembered."]}
    assert blocks_of(second.branch()) == [
        (Role.USER, (Text(text="Count"),)),
        (Role.ASSISTANT, (ToolUse(id="call", name="python", input={"code": "print(1)"}),)),
        (Role.TOOL, (ToolResult(tool_use_id="call", content=[Text(text="1\n")]),)),
        (Role.ASSISTANT, (ToolUse(id="search", name="web.search", input={"query": "one"}),)),
        (Role.TOOL, (ToolResult(tool_use_id="search", content=[Text(text="L0: one"), page]),)),
        (
            Role.ASSISTANT,
            (
                Text(text="````python\na = '```'\n````"),
                Unknown(raw={"content_type": "super_widget", "value": 3}),
                ServerStep(provider="chatgpt", name="bio", text="Remembered.", raw=bio),
                Text(text="One."),
            ),
        ),
    ]
    assert (second.title, second.title_is_automatic) == ("", True)


def test_claude_comes_with_versions_calls_and_the_words_of_attachments() -> None:
    (first, second), export = trees(EXPORTS / "claude.json")
    assert export.kind is ExportKind.CLAUDE
    rain = "https://rain.example/"
    assert blocks_of(first.branch()) == [
        (Role.USER, (Text(text="Rain?"), Text(text="\n\nnotes.txt:\n\ncloud"), Text(text="\n\n[sky.jpg]"))),
        (
            Role.ASSISTANT,
            (
                Thinking(text="I look it up.", provider="claude"),
                ToolUse(id="toolu_1", name="web_search", input={"query": "rain"}),
            ),
        ),
        (
            Role.TOOL,
            (
                ToolResult(
                    tool_use_id="toolu_1",
                    content=[
                        Text(text="It rains.", citations=(Citation(title="Rain", url=rain),)),
                        Json(value={"type": "local_resource", "file_path": "/mnt/x"}),
                    ],
                ),
            ),
        ),
        (Role.ASSISTANT, (Text(text="Yes.", citations=(Citation(title="Rain", url=rain),)),)),
        (Role.USER, (Text(text="Thanks"),)),
    ]
    versions = [node for node in first.messages if node.parent == first.messages[0].message.id]
    assert [node.message.text for node in versions] == ["", "No."]
    assert [message.text for message in second.branch()] == ["Old?", "Yes, old."]
    assert notes(export) == {
        "Only the name of an attached file is kept: the export does not contain the file.": 1,
        "Content of the kind “hologram” is not known and was kept as it is.": 1,
        "A result without its call was kept as it is.": 1,
    }


@pytest.mark.parametrize("name", ["chatgpt.json", "claude.json"])
def test_the_second_import_has_the_same_ids(name: str) -> None:
    first, _ = trees(EXPORTS / name)
    assert trees(EXPORTS / name)[0] == first
    ids = [tree.id for tree in first] + [node.message.id for tree in first for node in tree.messages]
    assert len(set(ids)) == len(ids)


def test_a_longer_export_adds_to_the_same_conversation(tmp_path: Path) -> None:
    data: list[dict[str, Any]] = json.loads((EXPORTS / "claude.json").read_text(encoding="utf-8"))
    short, _ = trees(EXPORTS / "claude.json")
    data[1]["chat_messages"].append({"uuid": "o-3", "text": "More", "sender": "human"})
    (tmp_path / "longer.json").write_text(json.dumps(data), encoding="utf-8")
    longer, _ = trees(tmp_path / "longer.json")
    assert longer[1].id == short[1].id
    assert longer[1].messages[:2] == short[1].messages


def test_a_folder_that_was_unpacked_is_read_too(chatgpt_zip: Path, tmp_path: Path) -> None:
    folder = tmp_path / "unpacked" / "export"
    with zipfile.ZipFile(chatgpt_zip) as archive:
        archive.extractall(folder)
    assert trees(folder.parent)[0] == trees(chatgpt_zip)[0]


def test_progress_counts_the_bytes_and_ends_the_import(chatgpt_zip: Path) -> None:
    seen: list[tuple[int, int]] = []
    with ConversationImport(chatgpt_zip, lambda done, total: seen.append((done, total))) as export:
        list(export)
    assert seen[-1][0] == seen[-1][1] > 0

    class StoppedError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise StoppedError

    with ConversationImport(chatgpt_zip, stop) as export, pytest.raises(StoppedError):
        list(export)
