import json
import stat
from pathlib import Path

import pytest

from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.vocabulary.endpoints import Endpoint
from desktop_agent.vocabulary.errors import StorageFailed
from desktop_agent.vocabulary.preferences import Appearance, Chat, Preferences, Providers


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_nothing_saved_is_all_defaults(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path / "new")
    assert await file.load() == Preferences()
    assert file.notices == ()
    assert not file.path.exists()


async def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    preferences = Preferences(
        appearance=Appearance(theme="dark", zoom=150),
        chat=Chat(system_prompt="a\0\ud800 漢字"),
        providers=Providers(endpoints=(Endpoint(id="x", title="X", base_url="http://x"),), model="m"),
    )
    file = PreferencesFile(tmp_path / "new" / "deeper")
    await file.save(preferences)
    again = PreferencesFile(tmp_path / "new" / "deeper")
    assert await again.load() == preferences
    assert again.notices == ()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert names_in(file.path.parent) == [file.path.name]


async def test_unknown_keys_survive_a_change(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    file.path.write_text('{"future": {"a": 1}, "appearance": {"zoom": 120, "glow": true}}')
    loaded = await file.load()
    assert file.notices == ()
    appearance = loaded.appearance.model_copy(update={"zoom": 130})
    await file.save(loaded.model_copy(update={"appearance": appearance}))
    saved = json.loads(file.path.read_text())
    assert saved["future"] == {"a": 1}
    assert (saved["appearance"]["zoom"], saved["appearance"]["glow"]) == (130, True)


@pytest.mark.parametrize("damaged", [b"{", b"", b"[1]", b"\xff\xfe\0", b"null", b"[" * 100_000])
async def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, damaged: bytes) -> None:
    file = PreferencesFile(tmp_path)
    file.path.write_bytes(damaged)
    assert await file.load() == Preferences()
    (notice,) = file.notices
    (aside,) = names_in(tmp_path)
    assert aside in str(notice)
    assert aside.startswith("preferences.json.damaged-")
    assert (tmp_path / aside).read_bytes() == damaged
    await file.load()
    assert file.notices == ()


async def test_one_bad_value_costs_only_itself(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    values = {"appearance": {"theme": "dark", "zoom": 9999}, "chat": "loud", "network": {"connect_timeout": 7}}
    file.path.write_text(json.dumps(values))
    loaded = await file.load()
    assert (loaded.appearance.theme, loaded.appearance.zoom) == ("dark", 100)
    assert loaded.chat == Chat()
    assert loaded.network.connect_timeout == 7
    said = " ".join(map(str, file.notices))
    assert len(file.notices) == 2
    assert "“Zoom”" in said


async def test_a_bad_server_costs_only_itself(tmp_path: Path) -> None:
    good = {"id": "a", "title": "A", "base_url": "http://a"}
    newer = {"id": "d", "title": "D", "base_url": "http://d", "colour": "red"}
    entries = [{"id": "", "dialect": "latin"}, good, {"title": "no id"}, 7, newer]
    file = PreferencesFile(tmp_path)
    file.path.write_text(json.dumps({"providers": {"endpoints": entries, "model": "m"}}))
    loaded = await file.load()
    assert [endpoint.id for endpoint in loaded.providers.endpoints] == ["a", "d"]
    assert loaded.providers.model == "m"
    assert "“Servers”" in str(file.notices[0])


async def test_a_file_that_cannot_be_read_is_a_typed_error(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    file.path.mkdir()
    with pytest.raises(StorageFailed):
        await file.load()
    with pytest.raises(StorageFailed):
        await file.save(Preferences())
    assert names_in(tmp_path) == ["preferences.json"]
