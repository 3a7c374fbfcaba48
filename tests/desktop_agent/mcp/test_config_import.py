"""The import of server configurations that were written for other programs."""

import json

import pytest

from desktop_agent.mcp.config_import import import_servers, is_likely_secret
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.mcp import HttpConnection, StdioConnection

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ"


def text(**servers: object) -> str:
    return json.dumps({"mcpServers": servers})


def test_programs_and_addresses_come_over_and_secrets_go_to_the_keyring():
    config = text(
        GitHub={"command": "npx", "args": ["-y", "server"], "env": {"GITHUB_TOKEN": TOKEN, "LEVEL": "debug"}},
        Web={"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer abc"}},
        Off={"command": "x", "disabled": True},
    )
    imported = import_servers(config)
    github, web, off = imported.servers
    assert github.connection == StdioConnection(
        command="npx", args=("-y", "server"), env={"LEVEL": "debug"}, secret_env=("GITHUB_TOKEN",)
    )
    assert (github.id, github.title, github.trusted) == ("github", "GitHub", False)
    assert web.connection == HttpConnection(url="https://example.com/mcp", headers=("Authorization",))
    assert not off.on
    assert {name: value.get_secret_value() for name, value in imported.secrets.items()} == {
        "mcp/github/GITHUB_TOKEN": TOKEN,
        "mcp/web/Authorization": "Bearer abc",
    }
    stored = "".join(server.model_dump_json() for server in imported.servers) + repr(imported)
    assert TOKEN not in stored
    assert "Bearer" not in stored


def test_ids_stay_apart():
    imported = import_servers(
        text(**{"My Server!": {"command": "x"}, "my server": {"command": "y"}, "日本": {"command": "z"}})
    )
    assert [server.id for server in imported.servers] == ["my-server", "my-server-2", "server"]
    assert import_servers(text(a={"command": "x"}), {"a"}).servers[0].id == "a-2"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("GITHUB_TOKEN", "x", True),
        ("OPENAI_API_KEY", "", True),
        ("DATABASE_URL", "postgres://a", True),
        ("X", TOKEN, True),
        ("X", "sk-abc", True),
        ("PLACE", "https://me:secret@example.com", True),
        ("LEVEL", "debug", False),
        ("MEMORY_FILE_PATH", "/home/me/a/rather/long/path/memory.jsonl", False),
    ],
)
def test_what_looks_like_a_secret(name, value, expected):
    assert is_likely_secret(name, value) is expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("{", "not valid JSON: line 1"),
        ("[]", "no “mcpServers”"),
        ('{"mcpServers": {}}', "no “mcpServers”"),
        ('{"command": "x"}', "has no name"),
        (text(a=1), "“a” cannot be taken over: it is not an object"),
        (text(a={}), "neither a command nor an address"),
        (text(a={"command": "x", "url": "https://e"}), "both a command and an address"),
        (text(a={"command": 3}), "not the name of a program"),
        (text(a={"command": "x", "args": "y"}), "not a list of texts"),
        (text(a={"command": "x", "env": ["A"]}), "not an object of names"),
        (text(a={"command": "x", "args": ["--api-key", TOKEN]}), "“--api-key” holds a secret"),
        (text(a={"command": "x", "args": [f"--token={TOKEN}"]}), "“--token” holds a secret"),
        (text(a={"url": "ftp://e"}), "not a web address"),
        (text(a={"url": f"https://me:{TOKEN}@e/mcp"}), "holds a name or a password"),
        (text(a={"url": "https://e", "headers": {"A\nB": "x"}}), "headers cannot be sent"),
        (text(a={"type": "sse", "url": "https://e"}), "old way of connecting"),
        (text(**{str(n): {"command": "x"} for n in range(60)}), "too many"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_wrong_input_is_answered_with_a_sentence(config, expected):
    with pytest.raises(WrongUse) as caught:
        import_servers(config)
    assert expected in str(caught.value)
    assert str(caught.value.remedy)
    assert TOKEN not in f"{caught.value} {caught.value.remedy} {caught.value.__cause__}"
