import pytest

from desktop_agent.providers.dialects.server_families import FAMILIES, quirks_for_listing, quirks_for_url

STRANGER = FAMILIES["stranger"]


@pytest.mark.parametrize(
    ("url", "family"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://api.openai.com.evil.example/v1", "stranger"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.deepseek.com", "deepseek"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://api.mistral.ai/v1", "mistral"),
        ("https://api.x.ai/v1", "xai"),
        ("https://me.openai.azure.com/openai/v1", "azure"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "google-openai"),
        ("http://127.0.0.1:11434/v1", "ollama"),
        ("http://gpu-box:11434/v1", "ollama"),
        ("http://localhost:1234/v1", "lmstudio"),
        ("http://127.0.0.1:8080/v1", "llamacpp"),
        ("http://[::1]:8000/v1", "vllm"),
        ("http://localhost:4000", "litellm"),
        ("http://gpu-box:8000/v1", "stranger"),
        ("https://models.example/v1", "stranger"),
    ],
)
def test_families_by_address(url: str, family: str) -> None:
    assert quirks_for_url(url).family == family


def test_a_listing_corrects_a_guess_but_no_vendor() -> None:
    entries = [{"id": "a", "owned_by": "vllm"}, {"id": "b", "owned_by": 7}, {}]
    assert quirks_for_listing(entries, STRANGER).family == "vllm"
    assert quirks_for_listing(entries, FAMILIES["llamacpp"]).family == "vllm"
    assert quirks_for_listing(entries, FAMILIES["openai"]).family == "openai"
    assert quirks_for_listing([*entries, {"owned_by": "library"}], STRANGER).family == "stranger"
