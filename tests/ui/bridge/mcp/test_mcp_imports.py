"""What other programs know is looked at, and taken over when the person says so."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from desktop_agent.types.errors import WrongUse
from tests.fakes.qt_loop import Bridge, Heard
from ui.bridge.mcp.imports import MAX_CONFIG_BYTES, McpImports, find_config_files, preview_of, strip_comments

GOOD = {"command": "npx", "args": ["-y", "files"], "env": {"API_TOKEN": "s3cret-value", "LOG": "warn"}}
OLD = {"type": "sse", "url": "https://old.example/sse"}


def text(**servers):
    return json.dumps({"mcpServers": servers})


def test_one_that_cannot_be_taken_does_not_keep_the_others_away():
    preview = preview_of(text(old=OLD, files=GOOD, broken=7), ())
    assert [entry.server.title for entry in preview.found] == ["files"]
    assert len(preview.refused) == 2
    assert "old" in str(preview.refused[0])
    assert "broken" in str(preview.refused[1])
    assert [*preview.imported.secrets] == ["mcp/files/API_TOKEN"]


def test_ids_are_new_each():
    preview = preview_of(text(**{"files": GOOD, "Files!": GOOD, "old": OLD}), {"files"})
    assert [entry.server.id for entry in preview.found] == ["files-2", "files-3"]


def test_what_the_other_program_would_fill_in_is_left_to_the_person():
    entry = {"command": "x", "args": ["${workspaceFolder}"], "env": {"TOKEN": "${input:token}", "KEY": "abc"}}
    (found,) = preview_of(text(files=entry), ()).found
    assert (found.placeholders, found.unresolved) == (("TOKEN",), ("${workspaceFolder}",))
    assert found.server.secret_names == ("TOKEN", "KEY")
    assert [*preview_of(text(files=entry), ()).imported.secrets] == ["mcp/files/KEY"]


def test_only_what_is_wanted_is_taken_with_its_own_secrets():
    preview = preview_of(text(one=GOOD, two=GOOD), ())
    chosen = preview.only({"two"})
    assert [server.id for server in chosen.servers] == ["two"]
    assert [*chosen.secrets] == ["mcp/two/API_TOKEN"]


@pytest.mark.parametrize("wrong", ["", "{", "[]", "7", "{}", '{"mcpServers": {}}', '{"command": "x"}'])
def test_a_text_that_is_no_list_of_servers_is_refused(wrong):
    with pytest.raises(WrongUse):
        preview_of(wrong, ())


def test_comments_and_commas_of_editors_are_read():
    config = '{ // of Code\n "servers": {"a": {"url": "https://a.example//x", /* two\nlines */ "headers": {},},}, }'
    assert json.loads(strip_comments(config)) == {
        "servers": {"a": {"url": "https://a.example//x", "headers": {}}},
    }
    assert strip_comments(config).count("\n") == config.count("\n")
    assert [entry.server.id for entry in preview_of(config, ()).found] == ["a"]


@pytest.mark.parametrize("plain", ['"//"', r'"\\"', r'"a\"//b"', '"/* */ ,}"'])
def test_texts_stay_as_they_are(plain):
    assert strip_comments(plain) == plain


@asynccontextmanager
async def open_imports(folder):
    bridge = await Bridge.open(folder, connected=False)
    imports = McpImports(bridge.engine, bridge.tasks)
    try:
        yield bridge, imports
        assert bridge.errors == []
    finally:
        await bridge.close()
        # Here and not by the garbage collector, which may run in another thread.
        for item in (imports, bridge.library, bridge.servers, bridge.settings, bridge.clock):
            item.deleteLater()
        await asyncio.sleep(0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_only_files_that_exist_are_offered(home):
    assert find_config_files() == ()
    code = home / "config" / "Code" / "User" / "mcp.json"
    cursor = home / ".cursor" / "mcp.json"
    for config_file in (code, cursor):
        config_file.parent.mkdir(parents=True)
        config_file.write_text("{}")
    (home / "config" / "Claude" / "claude_desktop_config.json").mkdir(parents=True)
    assert [(config_file.program, config_file.path) for config_file in find_config_files()] == [
        ("Visual Studio Code", code),
        ("Cursor", cursor),
    ]


def test_files_are_found_and_read(in_loop, home):
    async def work():
        async with open_imports(home / "data") as (_, imports):
            files, texts = Heard(imports.files_found), Heard(imports.file_read)
            imports.find_files()
            ((only,),) = [await files.next()]
            imports.read(only.path)
            assert await texts.next() == text(files=GOOD)

    cursor = home / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    cursor.write_text("\ufeff" + text(files=GOOD))
    in_loop(work())


@pytest.mark.parametrize("name", ["missing.json", "folder", "large.json"])
def test_a_file_that_cannot_be_taken_is_refused_in_words(in_loop, home, name):
    async def work():
        async with open_imports(home / "data") as (_, imports):
            refused, texts = Heard(imports.refused), Heard(imports.file_read)
            texts._signal.connect(imports.preview)
            imports.read(home / name)
            assert name in str(await refused.next()) or "too long" in str(refused[-1])

    (home / "folder").mkdir()
    (home / "large.json").write_text("x" * (MAX_CONFIG_BYTES + 10))
    in_loop(work())


def test_nothing_is_there_before_it_is_taken(in_loop, home, kept):
    async def work():
        async with open_imports(home / "data") as (bridge, imports):
            previews, imports_done, refused = Heard(imports.previewed), Heard(imports.imported), Heard(imports.refused)
            imports.preview(text(one=GOOD, two=GOOD))
            (preview,) = previews
            assert (bridge.engine.preferences.mcp.servers, kept) == ((), {})
            imports.import_servers(preview, {"one"})
            await imports_done.next()
            assert [server.id for server in bridge.engine.preferences.mcp.servers] == ["one"]
            assert kept == {"mcp/one/API_TOKEN": "s3cret-value"}
            imports.import_servers(preview, {"one"})
            await refused.next()
            assert len(bridge.engine.preferences.mcp.servers) == 1

    in_loop(work())


def test_without_a_keyring_nothing_is_taken(in_loop, home):
    async def work():
        async with open_imports(home / "data") as (bridge, imports):
            refused = Heard(imports.refused)
            imports.import_servers(preview_of(text(one=GOOD), ()), {"one"})
            assert "keyring" in str(await refused.next())
            assert bridge.engine.preferences.mcp.servers == ()

    in_loop(work())
