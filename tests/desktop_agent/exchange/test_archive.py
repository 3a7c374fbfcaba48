"""Our archives, and what strangers put into theirs."""

import hashlib
import io
import json
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from desktop_agent.exchange import archive
from desktop_agent.exchange.archive import ExportCounts, write_archive
from desktop_agent.exchange.import_conversations import ConversationImport, ExportKind
from desktop_agent.exchange.import_report import ExchangeFailed, Skipped
from desktop_agent.types.blocks import StoredSource
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.errors import ImageRefused
from tests.desktop_agent.exchange.sample_trees import (
    GREEN,
    PICTURES,
    RED,
    as_imported,
    full_tree,
    long_tree,
    png,
    read_picture,
    stored,
)


def written(*trees: ConversationTree) -> bytes:
    file = io.BytesIO()
    write_archive(file, trees, read_picture)
    return file.getvalue()


def saved(tmp_path: Path, data: bytes, name: str = "export.zip") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def read(path: Path) -> tuple[list[ConversationTree | Skipped], ConversationImport]:
    with ConversationImport(path) as export:
        return list(export), export


def notes(export: ConversationImport) -> list[str]:
    return [str(sentence) for sentence, _ in export.report.notes]


def zip_of(tmp_path: Path, files: dict[str, bytes | str], **options: int) -> Path:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return saved(tmp_path, file.getvalue())


OWN = '{"format":"desktop-agent-conversations","version":1,"conversations":['


def test_an_archive_comes_back_and_is_the_same_bytes_again(tmp_path: Path) -> None:
    trees = [full_tree(), long_tree(2)]
    data = written(*trees)
    with ConversationImport(saved(tmp_path, data)) as export:
        again = io.BytesIO()
        counts = write_archive(
            again, (tree for tree in export if isinstance(tree, ConversationTree)), export.read_picture
        )
        assert export.kind is ExportKind.OWN
    assert again.getvalue() == data
    assert counts == ExportCounts(conversations=2, pictures=2, lost_pictures=0)
    assert (export.report.conversations, export.report.messages, export.report.pictures) == (2, 8, 2)
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        names = zipped.namelist()
        assert names[0] == "conversations.json"
        assert names[1:] == sorted(f"pictures/{digest}.png" for digest in PICTURES)
        assert {member.date_time[0] for member in zipped.infolist()} == {1980}


def test_a_picture_that_is_gone_is_counted_and_the_conversation_stays(tmp_path: Path) -> None:
    file = io.BytesIO()
    counts = write_archive(file, [full_tree()], lambda source: None)
    assert counts == ExportCounts(conversations=1, pictures=0, lost_pictures=2)
    results, export = read(saved(tmp_path, file.getvalue()))
    assert results == [as_imported(full_tree())]
    assert notes(export) == ["A picture is not in the export; its place is kept."]


def test_a_picture_that_was_changed_is_refused(tmp_path: Path) -> None:
    text = json.dumps([])
    name = f"pictures/{stored(GREEN).digest}.png"
    path = zip_of(tmp_path, {"conversations.json": OWN + "]}", name: RED, "other": text})
    with ConversationImport(path) as export:
        with pytest.raises(ImageRefused):
            export.read_picture(stored(GREEN))
        with pytest.raises(ImageRefused):
            export.read_picture(stored(png("blue")))


def test_what_a_newer_version_wrote_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = saved(tmp_path, b'{"format":"desktop-agent-conversations","version":2,"conversations":[]}', "new.json")
    with pytest.raises(ExchangeFailed, match="newer version") as caught:
        ConversationImport(path)
    assert "Install the newest version" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.json", b""),
        ("a.json", b"[]"),
        ("a.json", b'[{"a": 1}]'),
        ("a.json", b'{"conversations": []}'),
        ("a.json", b"\x00" * 1000),
        ("a.json", b"[" * 100_000),
        ("a.json", b'{"format": "desktop-agent-conversations"'),
        ("a.zip", b"PK\x03\x04" + b"x" * 100),
        ("a.zip", b"PK\x05\x06" + b"\0" * 18),
        ("a.txt", "Once upon a time".encode("utf-16")),
    ],
)
def test_what_is_no_export_is_refused_with_a_sentence(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises(ExchangeFailed) as caught:
        ConversationImport(saved(tmp_path, data, name))
    assert str(caught.value).endswith(".")


def test_a_missing_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExchangeFailed, match="cannot be read"):
        ConversationImport(tmp_path / "none.zip")


@pytest.mark.parametrize("where", range(40, 4000, 330))
def test_a_damaged_archive_gives_what_is_whole_or_a_sentence(tmp_path: Path, where: int) -> None:
    data = bytearray(written(full_tree(), long_tree(20)))
    for place in range(where, min(where + 8, len(data))):
        data[place] ^= 0xFF
    try:
        results, _ = read(saved(tmp_path, bytes(data)))
    except ExchangeFailed:
        return
    assert all(isinstance(result, (ConversationTree, Skipped)) for result in results)


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_truncated_archive_is_refused(tmp_path: Path, part: float) -> None:
    data = written(full_tree(), long_tree(20))
    with pytest.raises(ExchangeFailed):
        ConversationImport(saved(tmp_path, data[: int(len(data) * part)]))


def test_names_that_lead_elsewhere_are_only_names(tmp_path: Path) -> None:
    secret = saved(tmp_path, b"secret", "secret.png")
    mapping = {
        "a": {
            "parent": None,
            "children": [],
            "message": {
                "author": {"role": "user"},
                "content": {
                    "content_type": "multimodal_text",
                    "parts": [
                        {"content_type": "image_asset_pointer", "asset_pointer": f"file-service://{pointer}"}
                        for pointer in ("../secret.png", str(secret), "file-../../secret", "file-x")
                    ],
                },
            },
        }
    }
    files = {
        "../../conversations.json": json.dumps([{"mapping": mapping, "id": "../../c"}]),
        "/etc/file-x.png": "not a picture",
        "..\\file-y.png": GREEN,
    }
    results, export = read(zip_of(tmp_path, files))
    (tree,) = results
    assert isinstance(tree, ConversationTree)
    assert tree.messages[0].message.text == "\n\n".join(["[Picture]"] * 4)
    assert export.report.pictures == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["export.zip", "secret.png"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "conversations.json").write_text(OWN + "]}", encoding="utf-8")
    (folder / "conversations.json").symlink_to(outside / "conversations.json")
    (folder / "more").symlink_to(outside)
    with pytest.raises(ExchangeFailed):
        ConversationImport(folder)
    member = zipfile.ZipInfo("conversations.json")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr(member, OWN + "]}")
    with pytest.raises(ExchangeFailed):
        ConversationImport(saved(tmp_path, file.getvalue()))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_nothing_waits_for_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "conversations.json")
    with pytest.raises(ExchangeFailed):
        ConversationImport(tmp_path)
    with pytest.raises(ExchangeFailed, match="neither a file nor a folder"):
        ConversationImport(tmp_path / "conversations.json")


@pytest.mark.skipif(not Path("/dev/zero").is_char_device(), reason="there are no such devices")
def test_a_device_that_never_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "export.json").symlink_to("/dev/zero")
    with pytest.raises(ExchangeFailed, match="neither a file nor a folder"):
        ConversationImport(tmp_path / "export.json")


def test_an_archive_that_unpacks_to_very_much_is_refused(tmp_path: Path) -> None:
    bomb = OWN + " " * 60_000_000 + "]}"
    with pytest.raises(ExchangeFailed):
        ConversationImport(zip_of(tmp_path, {"conversations.json": bomb}, compression=zipfile.ZIP_DEFLATED))


def test_an_archive_of_many_members_that_unpack_to_very_much_is_refused(tmp_path: Path) -> None:
    each = OWN + " " * 30_000_000 + "]}"
    members = {f"conversations-{number}.json": each for number in range(2)}
    path = zip_of(tmp_path, members, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ExchangeFailed, match="more than any export"):
        ConversationImport(path)


def test_a_picture_that_unpacks_to_very_much_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.exchange.import_conversations.MAX_PICTURE_BYTES", 1000)
    large = GREEN + b"\0" * 2000
    path = zip_of(tmp_path, {"conversations.json": OWN + "]}", f"pictures/{stored(large).digest}.png": large})
    with ConversationImport(path) as export, pytest.raises(ImageRefused):
        export.read_picture(stored(large))


def test_a_size_that_is_no_true_one_is_found_out(tmp_path: Path) -> None:
    data = bytearray(written(long_tree(5)))
    place = data.rfind(b"PK\x01\x02")
    struct.pack_into("<I", data, place + 24, 40)  # less than there is
    try:
        results, _ = read(saved(tmp_path, bytes(data)))
    except ExchangeFailed:
        return
    assert all(isinstance(result, Skipped) for result in results)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(ExchangeFailed, match="more than any export"):
        ConversationImport(zip_of(tmp_path, {f"{number}.json": "" for number in range(4)}))
    monkeypatch.setattr(archive, "MAX_DIRECTORY_BYTES", 10)
    with pytest.raises(ExchangeFailed, match="more than any export"):
        ConversationImport(zip_of(tmp_path, {"conversations.json": OWN + "]}"}))


def test_a_list_of_members_that_says_it_is_endless_is_not_read(tmp_path: Path) -> None:
    size = (1 << 40).to_bytes(8, "little")
    far = b"PK\x06\x06" + bytes(36) + size + bytes(8)
    near = b"PK\x05\x06" + bytes(8) + b"\xff" * 4 + bytes(6)
    for end in (near, far + b"PK\x06\x07" + bytes(16) + near):
        with pytest.raises(ExchangeFailed, match="more than any export"):
            ConversationImport(saved(tmp_path, b"PK\x03\x04" + bytes(26) + end))


def _packed_otherwise(tmp_path: Path) -> Path:
    return zip_of(tmp_path, {"conversations.json": OWN + "]}"}, compression=zipfile.ZIP_LZMA)


def _locked(tmp_path: Path) -> Path:
    data = bytearray(zip_of(tmp_path, {"conversations.json": OWN + "]}", "a.png": GREEN}).read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.find(mark) + place] |= 1
    return saved(tmp_path, bytes(data))


def _damaged_within(tmp_path: Path) -> Path:
    path = zip_of(tmp_path, {"conversations.json": OWN + "]}"}, compression=zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    place = data.find(b"conversations.json") + len("conversations.json")
    data[place : place + 8] = b"\xff" * 8
    return saved(tmp_path, bytes(data))


def _damaged_text(tmp_path: Path) -> Path:
    return saved(tmp_path, zip_of(tmp_path, {"conversations.json": OWN}).read_bytes().replace(b"{", b"x"))


def _damaged_beginning(tmp_path: Path) -> Path:
    return saved(tmp_path, b"????" + zip_of(tmp_path, {"conversations.json": OWN}).read_bytes()[4:])


def _other_things(tmp_path: Path) -> Path:
    return zip_of(tmp_path, {"holiday.json": "[1, 2]", "a.png": GREEN})


@pytest.mark.parametrize(
    ("make", "sentence", "remedy"),
    [
        (_locked, "is protected by a password", "Unpack it with its password"),
        (_packed_otherwise, "is packed in a way that cannot be read here", "Unpack it"),
        (_damaged_within, "is damaged and cannot be read", "again"),
        (_damaged_text, "is damaged and cannot be read", "again"),
        (_damaged_beginning, "is damaged and cannot be read", "again"),
        (_other_things, "holds no conversations", "Choose the archive"),
    ],
)
def test_why_an_archive_cannot_be_read_is_said(
    tmp_path: Path, make: Callable[[Path], Path], sentence: str, remedy: str
) -> None:
    with pytest.raises(ExchangeFailed, match=sentence) as caught:
        ConversationImport(make(tmp_path))
    assert remedy in str(caught.value.remedy)


def _twice(tree: ConversationTree) -> list[ConversationTree]:
    return [tree, tree]


def _same_head(tree: ConversationTree) -> list[ConversationTree]:
    return [tree, tree.model_copy(update={"title": "other"})]


@pytest.mark.parametrize("clash", [_twice, _same_head])
def test_of_conversations_with_one_id_the_first_counts(
    tmp_path: Path, clash: Callable[[ConversationTree], list[ConversationTree]]
) -> None:
    results, export = read(saved(tmp_path, written(*clash(full_tree()), long_tree(1))))
    assert [isinstance(result, Skipped) for result in results] == [False, True, False]
    assert (export.report.conversations, export.report.skipped) == (2, 1)


def test_what_is_no_picture_is_not_taken_for_one(tmp_path: Path) -> None:
    lie = b"<script>no picture</script>"
    digest = hashlib.sha256(lie).hexdigest()
    path = zip_of(
        tmp_path,
        {
            "conversations.json": OWN + "]}",
            f"pictures/{digest}.png": lie,
        },
    )
    source = StoredSource(digest=digest, media_type="image/png", size=len(lie), width=1, height=1)
    with ConversationImport(path) as export, pytest.raises(ImageRefused, match="not a picture, or not of the type"):
        export.read_picture(source)
