"""The person's own prices, from the table on the screen to what an answer costs."""

from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import Price
from tests.fakes.model_server import endpoint, model_server


async def test_a_price_is_written_used_and_taken_back(tmp_path: Path) -> None:
    async with model_server("a", "b") as server:
        engine = await Engine.open(tmp_path)
        try:
            mine = ProviderPreferences(endpoints=(endpoint(server),))
            await engine.change_preferences(Preferences(providers=mine))
            assert engine.prices.models() == ()
            await engine.connections.models("mine")
            first, second = engine.prices.models()
            assert (first.server, first.model, first.price, first.is_own) == ("Mine", "a", Price(), False)
            await engine.prices.change(first.vendor, "a", Price(input=3))
            await engine.prices.change(first.vendor, "a", Price(output=15))
            first, second = engine.prices.models()
            assert (first.price, first.is_own) == (Price(input=3, output=15), True)
            assert (second.price, second.is_own) == (Price(), False)
            provider = await engine.connections.provider("mine")
            assert provider.model_info("a").price == Price(input=3, output=15)
            written = (tmp_path / "models.toml").read_text()
            assert f'[{first.vendor}."a"]' in written
            target = (tmp_path / "models.toml").rename(tmp_path / "dotfiles.toml")
            (tmp_path / "models.toml").symlink_to(target)
            await engine.prices.change(first.vendor, "a", None)
            assert ((tmp_path / "models.toml").is_symlink(), '"a"' in target.read_text()) == (True, False)
            first, _ = engine.prices.models()
            assert (first.price, first.is_own) == (Price(), False)
            known = engine.connections.known_model("mine", "a")
            assert known is not None
            assert known.price is None
        finally:
            await engine.close()


async def test_a_file_that_cannot_be_changed_stays_as_it_is(tmp_path: Path) -> None:
    own = '[openai]\n"a" = { price = { input = 1 } }\n'
    (tmp_path / "models.toml").write_text(own)
    engine = await Engine.open(tmp_path)
    try:
        with pytest.raises(StorageFailed, match="cannot be changed from here"):
            await engine.prices.change("openai", "a", Price(input=2))
        (tmp_path / "models.toml").write_bytes(b"\xff\xfe")
        with pytest.raises(StorageFailed, match="UTF-8"):
            await engine.prices.change("openai", "a", Price(input=2))
        assert (tmp_path / "models.toml").read_bytes() == b"\xff\xfe"
    finally:
        await engine.close()
