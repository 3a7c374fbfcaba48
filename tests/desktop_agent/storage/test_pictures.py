import hashlib
import stat
from pathlib import Path

import pytest

from desktop_agent.storage.content_files import PictureFiles
from desktop_agent.types.errors import ImageRefused, StorageFailed

DATA = b"\x89PNG\r\n\x1a\n" + b"body"


async def test_put_and_get(tmp_path: Path) -> None:
    pictures = PictureFiles(tmp_path)
    source = await pictures.put(DATA, "image/png", 3, 4)
    digest = hashlib.sha256(DATA).hexdigest()
    assert (source.digest, source.size, source.width, source.height) == (digest, len(DATA), 3, 4)
    assert pictures.path_of(source) == tmp_path / "pictures" / digest[:2] / f"{digest}.png"
    assert await pictures.get(source) == DATA
    assert stat.S_IMODE(pictures.path_of(source).stat().st_mode) == 0o600
    assert await pictures.put(DATA, "image/png", 3, 4) == source
    assert names_in(pictures.path_of(source).parent) == [f"{digest}.png"]


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def damage(path: Path) -> None:
    path.write_bytes(DATA[:-1] + b"X")


def remove(path: Path) -> None:
    path.unlink()


async def test_missing_and_damaged_pictures_are_refused(tmp_path: Path) -> None:
    pictures = PictureFiles(tmp_path)
    source = await pictures.put(DATA, "image/png", 3, 4)
    damage(pictures.path_of(source))
    with pytest.raises(ImageRefused, match="damaged"):
        await pictures.get(source)
    await pictures.put(DATA, "image/png", 3, 4)  # the same picture again mends the file
    assert await pictures.get(source) == DATA
    remove(pictures.path_of(source))
    with pytest.raises(ImageRefused, match="missing"):
        await pictures.get(source)


async def test_a_picture_that_cannot_be_read_now_is_no_damaged_one(tmp_path: Path) -> None:
    pictures = PictureFiles(tmp_path)
    source = await pictures.put(DATA, "image/png", 3, 4)
    remove(pictures.path_of(source))
    pictures.path_of(source).mkdir()
    with pytest.raises(StorageFailed, match="cannot be read now"):
        await pictures.get(source)


async def test_a_folder_that_is_a_file_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "pictures").write_text("in the way")
    with pytest.raises(StorageFailed):
        await PictureFiles(tmp_path).put(DATA, "image/png", 1, 1)


async def test_a_data_folder_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match="gone"):
        await PictureFiles(tmp_path / "moved away").put(DATA, "image/png", 1, 1)
    assert not (tmp_path / "moved away").exists()


async def test_pictures_on_a_disk_that_is_not_mounted_are_not_called_missing(tmp_path: Path) -> None:
    pictures, disk = PictureFiles(tmp_path), tmp_path / "disk"
    source = await pictures.put(DATA, "image/png", 3, 4)
    (tmp_path / "pictures").rename(disk)
    (tmp_path / "pictures").symlink_to(tmp_path / "mounted")
    with pytest.raises(StorageFailed, match="leads to nothing"):
        await pictures.get(source)
    with pytest.raises(StorageFailed, match="leads to nothing"):
        await pictures.put(DATA, "image/png", 3, 4)
    with pytest.raises(FileNotFoundError):
        pictures.remove_old(source.digest, "image/png")
    disk.rename(tmp_path / "mounted")
    assert await pictures.get(source) == DATA
