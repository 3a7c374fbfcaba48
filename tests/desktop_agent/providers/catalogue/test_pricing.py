"""Costs computed by hand from the usage of each dialect: input includes its cached part, output its reasoning."""

from datetime import date

import pytest

from desktop_agent.providers.catalogue.catalogue import Pricing
from desktop_agent.providers.catalogue.tables import load_shipped_table
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import Price


def price_of(vendor: str, model: str, day: date = date(2026, 11, 21)) -> Price:
    row = load_shipped_table().find(vendor, model, day)
    assert row is not None
    assert row.price is not None
    return row.price


def usage(prompt: int, answer: int, cache_read: int | None = None, cache_written: int | None = None) -> Usage:
    return Usage(
        input_tokens=prompt, output_tokens=answer, cache_read_tokens=cache_read, cache_write_tokens=cache_written
    )


@pytest.mark.parametrize(
    ("vendor", "model", "bill", "dollars"),
    [
        # 1,000 fresh at 5, 8,000 read at 0.5, 1,000 written at 6.25, 2,000 out at 25
        ("anthropic", "claude-opus-5", usage(10_000, 2_000, 8_000, 1_000), 0.005 + 0.004 + 0.00625 + 0.05),
        # 100,000 tokens are the last that cost 0.1; then everything costs 0.5 and 2.5
        ("anthropic", "claude-haiku-5-5", usage(100_000, 1_000), 0.01 + 0.0005),
        ("anthropic", "claude-haiku-5-5", usage(100_001, 1_000, 100_000), 0.000_000_5 + 0.005 + 0.0025),
        # 4,000 fresh at 2, 6,000 read at 0.1, 1,000 out at 10
        ("openai", "gpt-6.1-sol", usage(10_000, 1_000, 6_000), 0.008 + 0.0006 + 0.01),
        # 2,000 fresh at 1, 1,000 written at 1.25, 500 out at 5
        ("openai", "gpt-6.1-terra", usage(3_000, 500, 0, 1_000), 0.002 + 0.00125 + 0.0025),
        # beyond 272,000: 300,000 at 4, 1,000 at 15
        ("openai", "gpt-6-sol", usage(300_000, 1_000), 1.2 + 0.015),
        # before the change: 10,000 at 2, 10,000 read at 0.1, 1,000 out at 10
        ("gemini", "gemini-4-argon", usage(20_000, 1_000, 10_000), 0.02 + 0.001 + 0.01),
        ("gemini", "gemini-3.1-pro-preview", usage(200_001, 100), 0.800_004 + 0.0018),
        # 200,000 tokens are already a long prompt
        ("xai", "grok-4.7", usage(200_000, 1_000, 100_000), 0.4 + 0.1 + 0.012),
        ("xai", "grok-4.7", usage(199_999, 1_000, 100_000), 0.199_998 + 0.05 + 0.006),
        ("mistral", "mistral-large-2512", usage(1_000, 1_000, 500), 0.000_25 + 0.000_025 + 0.0015),
        ("groq", "openai/gpt-oss-120b", usage(1_000, 1_000), 0.000_15 + 0.0006),
    ],
)
def test_bills(vendor: str, model: str, bill: Usage, dollars: float) -> None:
    assert Pricing(price_of(vendor, model)).cost(bill) == pytest.approx(dollars, rel=1e-9)


def test_what_is_written_for_longer_costs_more() -> None:
    bill = usage(10_000, 0, 0, 10_000)
    price = price_of("anthropic", "claude-sonnet-5-5")
    assert Pricing(price).cost(bill) == pytest.approx(0.025)
    assert Pricing(price, long_lived=True).cost(bill) == pytest.approx(0.04)


def test_a_price_that_is_announced_holds_from_its_day() -> None:
    bill = usage(1_000_000, 0)
    assert Pricing(price_of("gemini", "gemini-3.8-flash", date(2026, 12, 31))).cost(bill) == pytest.approx(0.75)
    assert Pricing(price_of("gemini", "gemini-3.8-flash", date(2027, 1, 1))).cost(bill) == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("price", "bill"),
    [
        (Price(input=1, output=1), Usage(output_tokens=1)),
        (Price(input=1, output=1), Usage(input_tokens=1)),
        (Price(), usage(1, 0)),
        (Price(input=1), usage(1, 1)),
        (Price(output=1), usage(1, 1)),
        (Price(input=1, output=1), usage(2, 1, 1)),
        (Price(input=1, output=1), usage(2, 1, 0, 1)),
        (Price(input=1, output=1, beyond=10), usage(11, 1)),
        (Price(input=1, output=1, beyond=10, long=Price(input=1)), usage(11, 1)),
    ],
)
def test_what_is_not_known_is_not_invented(price: Price, bill: Usage) -> None:
    assert Pricing(price).cost(bill) is None


def test_long_writes_without_a_price_of_their_own_are_unknown() -> None:
    bill = usage(10, 1, 0, 10)
    assert Pricing(Price(input=1, output=1, cache_write=1), long_lived=True).cost(bill) is None


def test_unknown_shares_of_nothing_do_not_matter() -> None:
    assert Pricing(Price(input=1, output=1)).cost(usage(1_000_000, 0)) == 1
    assert Pricing(Price(output=1)).cost(usage(0, 1_000_000)) == 1
    assert Pricing(Price(input=1, output=1, cache_read=0)).cost(usage(1_000_000, 0, 1_000_000)) == 0


def test_a_cache_larger_than_the_prompt_is_not_paid_back() -> None:
    assert Pricing(Price(input=1, output=1, cache_read=1)).cost(usage(1_000_000, 0, 2_000_000)) == 2
