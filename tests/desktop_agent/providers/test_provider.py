import subprocess
import sys

import pytest
from pydantic import SecretStr

from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat
from desktop_agent.providers.dialects.server_families import api_root, join_url, url_outside_v1
from desktop_agent.providers.provider import catalogue_vendor, make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.providers import CLOUD_PROVIDERS, LOCAL_SERVERS
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.recordings import ask
from tests.frame.patience import PATIENCE


def test_every_preset_is_understood() -> None:
    http = HttpClient()
    for endpoint in (*LOCAL_SERVERS, *CLOUD_PROVIDERS):
        provider = make_provider(endpoint.dialect, endpoint.base_url, SecretStr("k"), http)
        assert provider.dialect == endpoint.dialect
        assert catalogue_vendor(endpoint.dialect, endpoint.base_url) == endpoint.id
        if endpoint.dialect == "openai-chat":
            assert isinstance(provider, OpenAIChat)
            assert provider._quirks.family == endpoint.id


def test_presets_can_be_told_apart_and_keep_keys_safe() -> None:
    presets = (*LOCAL_SERVERS, *CLOUD_PROVIDERS)
    assert len({preset.id for preset in presets}) == len({preset.title for preset in presets}) == len(presets)
    for endpoint in LOCAL_SERVERS:
        assert endpoint.base_url.startswith("http://127.0.0.1:")
        assert not endpoint.needs_key
    for endpoint in CLOUD_PROVIDERS:
        assert endpoint.base_url.startswith("https://")
        assert endpoint.needs_key
        assert (endpoint.key_page or "").startswith("https://")


@pytest.mark.parametrize(
    ("dialect", "url", "vendor"),
    [
        ("anthropic", "http://127.0.0.1:1", "anthropic"),
        ("gemini", "https://generativelanguage.googleapis.com", "gemini"),
        ("openai-responses", "https://api.openai.com/v1", "openai"),
        ("openai-responses", "https://api.x.ai/v1", "xai"),
        ("openai-responses", "http://127.0.0.1:1234/v1", "lmstudio"),
        ("openai-chat", "https://openrouter.ai/api/v1", "openrouter"),
        ("openai-chat", "https://somewhere.example/v1", "stranger"),
        ("openai-chat", "http://x:99999/v1", ""),
    ],
)
def test_whose_prices_hold(dialect: str, url: str, vendor: str) -> None:
    assert catalogue_vendor(dialect, url) == vendor


def test_unknown_dialects() -> None:
    with pytest.raises(WrongUse, match="morse") as caught:
        make_provider("morse", "http://127.0.0.1:1/v1", None, HttpClient())
    assert "openai-chat" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "  ",
        "localhost:11434/v1",
        "ftp://x/v1",
        "http://",
        "http:///v1",
        "http://a b/v1",
        "http://x:99999/v1",
        "http://[::1/v1",
        "http://user:pw@x/v1",
        "http://x/\nv1",
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(WrongUse) as caught:
        make_provider("openai-chat", url, None, HttpClient())
    assert str(caught.value).endswith(".")
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("", "/chat/completions"),
        ("/api/v1", "/api/v1/chat/completions"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/models", "/v1/chat/completions"),
        ("/v1#x", "/v1/chat/completions"),
    ],
)
async def test_addresses_are_joined_as_the_sdk_does(base: str, expected: str) -> None:
    http = HttpClient()
    async with Loopback(Reply(sse(chunk({"content": "x"}, "stop")))) as server:
        await ask(make_provider("openai-chat", server.root + base, None, http))
        assert server.requests[0].path == expected
    await http.aclose()


def test_a_bare_host_of_a_known_server_is_completed() -> None:
    assert api_root("http://localhost:11434", "/v1") == "http://localhost:11434/v1"
    assert api_root("http://localhost:11434/x/", "/v1") == "http://localhost:11434/x"
    assert join_url("http://h/v1", "v1/models") == "http://h/v1/models"
    assert url_outside_v1("http://h/p/v1?q=1", "api/show") == "http://h/p/api/show?q=1"


LOADED = """
import sys
from desktop_agent.providers.provider import load_dialects
rooms = "desktop_agent.providers.dialects."
before = rooms + "gemini" in sys.modules
load_dialects(["gemini", "gemini"])
print(before, rooms + "gemini" in sys.modules, rooms + "anthropic" in sys.modules)
"""


def test_dialects_in_use_are_imported_and_no_others():
    process = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert process.stdout == "False True False\n"
