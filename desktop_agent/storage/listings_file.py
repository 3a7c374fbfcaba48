"""The file of listings: which models each server had when last asked. JSON in the data folder, no secret in it."""

import asyncio
import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.storage.paths import make_private_folder
from desktop_agent.vocabulary.requests import ModelInfo

_log = logging.getLogger(__name__)

_LISTINGS_FILE = "listings.json"


@dataclass(frozen=True, slots=True)
class SavedListing:
    """One server's models. `source` tells one server from another that took its id over; `at` in UTC."""

    source: str
    at: AwareDatetime
    models: tuple[ModelInfo, ...]


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    listings: dict[str, SavedListing]


class ModelListingsFile:
    """Loads and saves. What it holds can be asked for again, so a damaged file is no loss and no notice."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _LISTINGS_FILE

    async def load(self) -> dict[str, SavedListing]:
        """The listings by endpoint; nothing from a file that is missing, damaged or of another version."""
        return await asyncio.to_thread(self._load)

    async def save(self, listings: dict[str, SavedListing]) -> None:
        """Write the file, wholly or not at all. Raises StorageFailed."""
        await asyncio.to_thread(self._save, listings)

    def _load(self) -> dict[str, SavedListing]:
        try:
            return _Content.model_validate_json(self.path.read_bytes()).listings
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError, RecursionError):
            _log.info("the saved listings cannot be read and are left aside")
            return {}

    def _save(self, listings: dict[str, SavedListing]) -> None:
        try:
            make_private_folder(self.path.parent, within=self.path.parent)
            write_atomically(self.path, _listings_json(_Content(listings=listings)))
        except OSError as error:
            raise file_error(error, self.path) from error


def _listings_json(content: _Content) -> bytes:
    try:
        return content.model_dump_json(exclude_none=True).encode()
    except PydanticSerializationError:
        # A lone half of a character in a name: no file can hold it, and the other names are still worth keeping.
        plain = content.model_dump(exclude_none=True)
        return json.dumps(plain, ensure_ascii=False, default=to_jsonable_python).encode(errors="replace")
