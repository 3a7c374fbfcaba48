import asyncio
import json
import stat
import threading
from pathlib import Path

import pytest

from desktop_agent.storage import preferences_file
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.preferences import AppearancePreferences, ChatPreferences, Preferences, ProviderPreferences
from desktop_agent.types.providers import Endpoint


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_nothing_saved_is_all_defaults(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    assert await file.load() == Preferences()
    assert file.notices == ()
    assert not file.path.exists()


async def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    preferences = Preferences(
        appearance=AppearancePreferences(theme="dark", zoom=150),
        chat=ChatPreferences(system_prompt="a\0\ud800 漢字"),
        providers=ProviderPreferences(endpoints=(Endpoint(id="x", title="X", base_url="http://x"),), model="m"),
    )
    file = PreferencesFile(tmp_path)
    await file.save(preferences)
    again = PreferencesFile(tmp_path)
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
    assert loaded.chat == ChatPreferences()
    assert loaded.network.connect_timeout == 7
    notices = " ".join(map(str, file.notices))
    assert len(file.notices) == 2
    assert "“Zoom”" in notices


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


ONLY_GIT = {"type": "command", "words": ["git"], "only_in": "src"}
LISTS = {"type": "command", "words": ["ls"]}


def rule(effect: str, **more: object) -> dict[str, object]:
    return {"id": effect, "effect": effect, "tool": "run_command", "scope": "always", "pattern": None, **more}


def mode(name: str, *rules: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": name, "title": name.title(), "rules": list(rules), **more}


async def modes_of(folder: Path, *modes: dict[str, object]) -> tuple[dict[str, list[str]], PreferencesFile]:
    file = PreferencesFile(folder)
    file.path.write_text(json.dumps({"modes": {"defined": list(modes)}}))
    return {defined.name: [rule.id for rule in defined.rules] for defined in (await file.load()).modes.defined}, file


@pytest.mark.parametrize("narrowed", [{"only_in": "src"}, {"pattern": ONLY_GIT}])
async def test_a_rule_that_allows_is_never_wider_than_it_was_written(tmp_path: Path, narrowed: dict) -> None:
    rules = (rule("allow", id="fine", pattern=LISTS), rule("allow", **narrowed), rule("deny"))
    loaded, file = await modes_of(tmp_path, mode("mine", *rules))
    assert loaded == {"mine": ["fine", "deny"]}
    assert "left out" in str(*file.notices)


@pytest.mark.parametrize("effect", ["deny", "ask"])
@pytest.mark.parametrize("narrowed", [{"only_in": "src"}, {"pattern": ONLY_GIT}])
async def test_a_rule_that_denies_or_asks_becomes_wider_without_what_is_not_understood(
    tmp_path: Path, effect: str, narrowed: dict
) -> None:
    loaded, file = await modes_of(tmp_path, mode("mine", rule(effect, **narrowed)))
    assert loaded == {"mine": [effect]}
    assert "That part applies" in str(*file.notices)


async def test_what_goes_takes_nothing_of_its_neighbours_along(tmp_path: Path) -> None:
    first = mode("first", rule("allow", only_in="src"), suspended=True)
    second = mode("second", rule("deny"), rule("ask", id="other", only_in="src"), rule("allow", only_in="src"))
    loaded, file = await modes_of(tmp_path, first, second)
    assert loaded == {"second": ["deny", "other"]}
    assert len(file.notices) == 2


async def test_what_says_what_may_happen_is_left_out_where_it_is_not_understood(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    connection = {"type": "http", "url": "https://x.example/mcp"}
    servers = [
        {"id": "a", "title": "A", "connection": connection, "trusted": True, "trusted_only_for": ["look"]},
        {"id": "b", "title": "B", "connection": {**connection, "pinned_key": "x"}, "trusted": True},
        {"id": "c", "title": "C", "connection": connection},
    ]
    digger = {"name": "digger", "description": "Digs.", "system_prompt": "Dig."}
    specialists = [{**digger, "never": ["run_command"]}, {**digger, "name": "other"}]
    file.path.write_text(json.dumps({"mcp": {"servers": servers}, "specialists": {"defined": specialists}}))
    loaded = await file.load()
    assert [item.id for item in loaded.mcp.servers] == ["c"]
    assert [item.name for item in loaded.specialists.defined] == ["other"]
    assert len(file.notices) == 2


async def test_of_two_of_one_name_the_first_stays_and_of_too_many_the_first_ones(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    connection = {"type": "http", "url": "https://x.example/mcp"}
    servers = [{"id": item, "title": title, "connection": connection} for item, title in (("a", "A"), ("a", "B"))]
    digger = {"name": "digger", "description": "Digs.", "system_prompt": "Dig."}
    specialists = [digger, {**digger, "name": "other"}, {**digger, "description": "Digs deeper."}]
    modes = [mode("plan"), mode("mine"), mode("mine", mutating="deny"), *(mode(f"m{number}") for number in range(60))]
    stored = {
        "mcp": {"servers": servers},
        "specialists": {"defined": specialists},
        "modes": {"defined": modes},
        "providers": {"model": "m"},
    }
    file.path.write_text(json.dumps(stored))
    loaded = await file.load()
    assert [item.title for item in loaded.mcp.servers] == ["A"]
    assert [item.description for item in loaded.specialists.defined] == ["Digs."] * 2
    assert [item.name for item in loaded.modes.defined] == ["mine", *(f"m{number}" for number in range(47))]
    assert (loaded.modes.defined[0].mutating, loaded.providers.model) == ("ask", "m")
    assert len(file.notices) == 3


async def test_what_was_left_out_is_kept_beside_when_the_file_is_written_over(tmp_path: Path) -> None:
    file = PreferencesFile(tmp_path)
    text = json.dumps({"modes": {"defined": [mode("mine", newer=True)]}})
    file.path.write_text(text)
    loaded = await file.load()
    assert names_in(tmp_path) == ["preferences.json"]
    await file.save(loaded)
    await file.save(loaded)
    (aside,) = set(names_in(tmp_path)) - {"preferences.json"}
    assert (tmp_path / aside).read_text() == text
    assert (await file.load(), file.notices) == (loaded, ())
    await file.save(loaded)
    assert len(names_in(tmp_path)) == 2


async def test_what_was_saved_last_is_in_the_file_although_an_earlier_save_takes_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_held, may_go_on, write = threading.Event(), threading.Event(), preferences_file.write_atomically
    first, last = Preferences(), Preferences(chat=ChatPreferences(enter_sends=False))

    def write_slowly(path: Path, data: bytes) -> None:
        if not is_held.is_set():
            is_held.set()
            may_go_on.wait()
        write(path, data)

    monkeypatch.setattr(preferences_file, "write_atomically", write_slowly)
    file = PreferencesFile(tmp_path)
    slow = asyncio.ensure_future(file.save(first))
    await asyncio.to_thread(is_held.wait)
    fast = asyncio.ensure_future(file.save(last))
    await asyncio.wait({fast}, timeout=0.2)
    may_go_on.set()
    await asyncio.gather(slow, fast)
    assert file.load_now() == last


async def test_a_link_to_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "data").mkdir()
    target, link = tmp_path / "dotfiles" / "preferences.json", tmp_path / "data" / "preferences.json"
    link.symlink_to(target)
    for language in ("de", "zh_CN"):
        preferences = Preferences.model_validate({"appearance": {"language": language}})
        await PreferencesFile(link.parent).save(preferences)
        assert link.is_symlink()
        assert PreferencesFile(target.parent).load_now() == preferences
    assert sorted(path.name for path in target.parent.iterdir()) == ["preferences.json"]
