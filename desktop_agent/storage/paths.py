"""Where the program keeps its data."""

from pathlib import Path

from desktop_agent.storage.files import file_error, missing_error

APPLICATION = "desktop-agent"


def data_folder(override: Path | None = None) -> Path:
    """The data folder, absolute and existing: `override`, or the platform's own place.

    A folder that is made here is readable by its owner only (0700); one that exists already keeps its rights.
    Raises StorageFailed.
    """
    folder = (override or _default_folder()).expanduser().absolute()
    make_private_folder(folder)
    return folder


def _default_folder() -> Path:
    import platformdirs

    return platformdirs.user_data_path(APPLICATION, appauthor=False)


def make_private_folder(folder: Path, within: Path | None = None) -> None:
    """Create `folder` with mode 0700, and what is missing above it. Raises StorageFailed.

    `within` is not made: a data folder that was moved away while it was in use would find another one in its place when
    it is put back.
    """
    missing = [each for each in (folder, *folder.parents) if within is not None and within in each.parents]
    try:
        if within is None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not within.is_dir():
            raise missing_error(within)
        for each in reversed(missing):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise file_error(error, folder) from error
