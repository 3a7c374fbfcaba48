"""The catalogue: the person's table wins over the server's listing, and that over the shipped table."""

from datetime import date

import pytest

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.catalogue.tables import parse_table
from desktop_agent.types.providers import Capabilities, ModelInfo, Price


def day() -> date:
    return date(2026, 11, 21)


@pytest.fixture
async def catalogue() -> Catalogue:
    loaded = Catalogue(shipped=True, today=day)
    await loaded.warm_up()
    return loaded


async def own(text: str) -> Catalogue:
    loaded = Catalogue(parse_table(text), shipped=True, today=day)
    await loaded.warm_up()
    return loaded


def test_nothing_is_known_without_a_table_or_before_it_is_read() -> None:
    assert Catalogue().find("anthropic", "claude-opus-5") is None
    assert Catalogue(shipped=True).find("anthropic", "claude-opus-5") is None
    assert Catalogue().merged("anthropic", ModelInfo("x")) == ModelInfo("x")


def test_what_the_server_says_wins_over_the_shipped_table(catalogue: Catalogue) -> None:
    listed = ModelInfo("claude-opus-5", "Listed", Capabilities(context_window=7, images=False))
    merged = catalogue.merged("anthropic", listed)
    assert (merged.title, merged.capabilities.context_window, merged.capabilities.images) == ("Listed", 7, False)
    assert merged.capabilities.max_output_tokens == 128_000
    assert merged.price is not None
    assert merged.price.output == 25


async def test_what_the_person_says_wins_field_by_field() -> None:
    catalogue = await own(
        '[anthropic."claude-opus-5"]\nprice.input = 4.5\ncontext_window = 300_000\n'
        '[mine.local]\ntitle = "My own"\nprice = { input = 0, output = 0 }\n'
    )
    merged = catalogue.merged("anthropic", ModelInfo("claude-opus-5", None, Capabilities(context_window=7)))
    assert merged.capabilities.context_window == 300_000
    assert merged.title == "Claude Opus 5"
    assert merged.price == Price(input=4.5, output=25, cache_read=0.5, cache_write=6.25, cache_write_long=10)
    mine = catalogue.find("mine", "local")
    assert mine is not None
    assert mine.title == "My own"


async def test_a_changed_price_holds_after_the_vendors_own_change() -> None:
    catalogue = Catalogue(
        parse_table("[gemini.gemini-4-argon]\nprice.input = 1\n"), shipped=True, today=lambda: date(2027, 1, 1)
    )
    await catalogue.warm_up()
    row = catalogue.find("gemini", "gemini-4-argon")
    assert row is not None
    assert row.price is not None
    assert (row.price.input, row.price.output) == (1, 20)


async def test_a_changed_price_keeps_the_prices_of_long_prompts() -> None:
    catalogue = await own('[openai."gpt-6-sol"]\nprice.input = 1\nprice.long.output = 9\n')
    row = catalogue.find("openai", "gpt-6-sol")
    assert row is not None
    assert row.price is not None
    assert row.price.long is not None
    assert (row.price.input, row.price.beyond) == (1, 272_000)
    assert (row.price.long.input, row.price.long.output) == (4, 9)


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ("anthropic/claude-opus-4.5", "Claude Opus 4.5"),
        ("openai/gpt-5.6-sol", "GPT-5.6 Sol"),
        ("google/gemini-3.8-flash", "Gemini 3.8 Flash"),
        ("x-ai/grok-4.7", "Grok 4.7"),
        ("mistralai/mistral-large-2512", "Mistral Large 3"),
        ("nobody/claude-opus-4.5", None),
        ("claude-opus-4.5", None),
    ],
)
def test_gateways_name_the_maker(catalogue: Catalogue, model: str, title: str | None) -> None:
    row = catalogue.find("openrouter", model)
    assert (row.title if row else None) == title
    assert row is None or row.id == model


def test_what_a_gateway_changes(catalogue: Catalogue) -> None:
    through = catalogue.find("openrouter", "anthropic/claude-fable-5.2")
    free = catalogue.find("openrouter", "anthropic/claude-fable-5.2:free")
    proxied = catalogue.find("litellm", "anthropic/claude-fable-5-2")
    direct = catalogue.find("anthropic", "claude-fable-5-2")
    assert through is not None
    assert free is not None
    assert proxied is not None
    assert direct is not None
    assert (through.price, free.price, proxied.price) == (direct.price, None, None)
    assert direct.capabilities.binds_prefix is True
    assert through.capabilities.binds_prefix is None
    assert free.capabilities.context_window == proxied.capabilities.context_window == 1_000_000


def test_a_local_server_borrows_nothing(catalogue: Catalogue) -> None:
    for family in ("ollama", "lmstudio", "llamacpp", "vllm", "stranger"):
        assert catalogue.find(family, "openai/gpt-5.6-sol") is None
        assert catalogue.find(family, "gpt-5.6-sol") is None


def test_names_with_their_folder_and_googles_other_interface(catalogue: Catalogue) -> None:
    listed = catalogue.merged("gemini", ModelInfo("models/gemini-4-argon"))
    assert (listed.id, listed.title) == ("models/gemini-4-argon", "Gemini 4 Argon")
    assert catalogue.find("google-openai", "models/gemini-4-argon") is not None


def test_a_groq_model_with_a_makers_name_is_groqs_own(catalogue: Catalogue) -> None:
    row = catalogue.find("groq", "openai/gpt-oss-120b")
    assert row is not None
    assert row.title == "GPT-OSS 120B"
