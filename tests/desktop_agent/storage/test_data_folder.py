import asyncio
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from desktop_agent.storage.content_files import BlobFiles
from desktop_agent.storage.files import data_folder, file_error, free_name
from desktop_agent.storage.locks.conversation_locks import ConversationLocks
from desktop_agent.storage.locks.open_files import Presence
from desktop_agent.storage.preferences_file import Preferences, PreferencesFile
from desktop_agent.types.errors import StorageFailed


def test_the_platforms_folder_is_made_private(own_home: Path) -> None:
    folder = data_folder()
    assert folder == own_home / "data" / "desktop-agent"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_an_override_is_used_and_its_rights_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert data_folder(Path("a/b")) == tmp_path / "a" / "b"
    tmp_path.chmod(0o755)
    assert data_folder(tmp_path) == tmp_path
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_file_in_the_way_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    for folder in (tmp_path / "x", tmp_path / "x" / "y" / "z"):
        with pytest.raises(StorageFailed) as failed:
            data_folder(folder)
        assert str(failed.value) == f"“{tmp_path / 'x'}” is a file, where a folder is needed."


def test_of_two_files_the_one_in_the_way_is_named(tmp_path: Path) -> None:
    page, pictures = tmp_path / "page.md", tmp_path / "pictures"
    page.touch()
    pictures.touch()
    with pytest.raises(FileExistsError) as failed:
        pictures.mkdir(exist_ok=True)
    assert str(file_error(failed.value, page)) == f"“{pictures}” is a file, where a folder is needed."


def test_a_name_to_set_aside_is_always_free(tmp_path: Path) -> None:
    names: set[Path] = set()
    for _ in range(3):
        aside = free_name(tmp_path / "a.json", "damaged")
        aside.touch()
        names.add(aside)
    assert len(names) == 3


async def test_what_lies_in_a_data_folder_never_makes_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    makers = (
        lambda: BlobFiles(folder).put(b"x"),
        lambda: ConversationLocks(folder, "library").check(),
        lambda: ConversationLocks(folder, "library").lock("c1").is_free(),
        lambda: PreferencesFile(folder).save(Preferences()),
        lambda: asyncio.to_thread(Presence, folder, "library"),
    )
    for make in makers:
        with suppress(StorageFailed):
            await make()
        assert not folder.exists()
    folder.mkdir()
    for make in makers:
        await make()
    folders = [path for path in folder.rglob("*") if path.is_dir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    assert len(folders) > 3
