"""What each tool of a server was when it was last seen, so that one that changes meanwhile is noticed.

A JSON file in the data folder with digests alone. What it holds can be seen again, so a damaged file is left aside.
"""

import asyncio
import logging
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from desktop_agent.storage.files import file_error, write_atomically
from desktop_agent.storage.paths import make_private_folder

_log = logging.getLogger(__name__)
_FILE_NAME = "mcp_tools.json"
MAX_NAMES = 1_000
"""Of each server: one could invent others without end."""


class _Content(BaseModel):
    model_config = ConfigDict(frozen=True)

    version: Literal[2] = 2
    servers: dict[str, dict[str, str]]


class ToolDigestStore:
    """Digests by server and name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / _FILE_NAME
        self._servers: dict[str, dict[str, str]] | None = None
        self._lock = asyncio.Lock()

    async def exchange(self, server_id: str, now: dict[str, str]) -> dict[str, str]:
        """What was seen before, and remember this. Raises StorageFailed; it is remembered for this run all the same."""
        async with self._lock:
            if self._servers is None:
                self._servers = await asyncio.to_thread(self._load)
            before = self._servers.get(server_id, {})
            if before != now:
                # Tools that are gone for a while stay known: they could come back as others.
                kept = {name: digest for name, digest in before.items() if name not in now}
                # The newest stand last, and stay.
                self._servers[server_id] = dict([*kept.items(), *now.items()][-MAX_NAMES:])
                await asyncio.to_thread(self._save, self._servers)
            return before

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            return _Content.model_validate_json(self.path.read_bytes()).servers
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError, RecursionError):
            _log.info("the tools that were seen cannot be read and are left aside")
            return {}

    def _save(self, servers: dict[str, dict[str, str]]) -> None:
        try:
            make_private_folder(self.path.parent, within=self.path.parent)
            write_atomically(self.path, _Content(servers=servers).model_dump_json().encode("utf-8", "replace"))
        except OSError as error:
            raise file_error(error, self.path) from error
