"""Listings come back as they were; whatever else is in the file is as good as nothing."""

import stat
import sys
from datetime import date
from pathlib import Path

import pytest

from desktop_agent.engine.model_listings import Listing, ModelListingsFile
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import now
from desktop_agent.types.providers import Capabilities, ModelInfo, Price

FULL = ModelInfo(
    "a",
    "The A",
    Capabilities(
        images=True,
        context_window=5,
        reasoning_modes=frozenset({"disabled", "budget"}),
        efforts=("low", "high"),
        budget=(1, 2),
    ),
    Price(input=1, beyond=3, long=Price(input=2)),
    date(2027, 1, 1),
)


async def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    file = ModelListingsFile(tmp_path)
    assert await file.load() == {}
    saved = {"one": Listing("s", now(), (FULL, ModelInfo("b"))), "none": Listing("t", now(), ())}
    await file.save(saved)
    assert await ModelListingsFile(tmp_path).load() == saved
    if sys.platform != "win32":
        assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


async def test_a_name_that_no_file_can_hold_costs_no_other(tmp_path: Path) -> None:
    file = ModelListingsFile(tmp_path)
    good = Listing("t", now(), (FULL,))
    await file.save({"strange": Listing("s", now(), (ModelInfo("\ud800"), ModelInfo("b"))), "good": good})
    loaded = await file.load()
    assert loaded["good"] == good
    assert [model.id for model in loaded["strange"].models] == ["?", "b"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": 2, "listings": {}}',
        b'{"version": 1, "listings": {"a": {"source": "s", "at": "yesterday", "models": []}}}',
        b'{"version": 1, "listings": {"a": {"source": "s", "at": "2026-01-01T00:00:00Z", "models": [{"id": 3}]}}}',
        b'{"version": 1, "listings": {"a": {"source": "s", "at": "2026-01-01T00:00:00", "models": []}}}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
async def test_a_damaged_file_is_nothing(tmp_path: Path, content: bytes) -> None:
    file = ModelListingsFile(tmp_path)
    file.path.write_bytes(content)
    assert await file.load() == {}
    await file.save({})
    assert await file.load() == {}


async def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(StorageFailed):
        await ModelListingsFile(tmp_path / "taken").save({})
    (tmp_path / "listings.json").mkdir()
    assert await ModelListingsFile(tmp_path).load() == {}
