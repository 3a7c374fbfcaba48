"""Tables of models: which row is used for which name, and the errors of a damaged table."""

import re
import tomllib
from dataclasses import fields
from datetime import date
from pathlib import Path

import pytest

from desktop_agent.providers.catalogue import tables
from desktop_agent.providers.catalogue.tables import ModelRow, ModelTable, load_shipped_table, parse_table
from desktop_agent.types.providers import Capabilities, Price

DAY = date(2026, 11, 21)


def title(table: ModelTable, model: str, vendor: str = "v") -> str | None:
    row = table.find(vendor, model, DAY)
    return None if row is None else row.title


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("big-5", "five"),
        ("BIG-5", "five"),
        ("big-5-20260101", "five"),
        ("big-5-2026-01-01", "five"),
        ("big-5-latest", "five"),
        ("big-5-mini", "mini"),
        ("big-5-mini-2026-01-01", "mini"),
        ("big-5-other", None),
        ("big-5.1", "one"),
        ("big-5-1", "one"),
        ("big-5-1-anything", "all of 5.1"),
        ("big", None),
        ("", None),
    ],
)
def test_the_longest_name_that_fits_holds(model: str, expected: str | None) -> None:
    table = parse_table(
        '[v."big-5"]\ntitle = "five"\n[v."big-5-mini"]\ntitle = "mini"\n'
        '[v."big-5.1*"]\ntitle = "all of 5.1"\n[v."big-5.1"]\ntitle = "one"\n'
    )
    assert title(table, model) == expected
    assert title(table, model, "w") is None


def test_prices_change_on_their_day() -> None:
    table = parse_table(
        "[v.m]\nprice = { input = 1 }\nlater = [{ from = 2027-01-01, price = { input = 3 } },"
        " { from = 2026-12-01, price = { input = 2 } }]\n"
    )

    def input_price(*day: int) -> float | None:
        row = table.find("v", "m", date(*day))
        assert row is not None
        assert row.price is not None
        return row.price.input

    assert [input_price(2026, 11, 30), input_price(2026, 12, 1), input_price(2027, 1, 1)] == [1, 2, 3]


def test_what_a_row_says_arrives() -> None:
    table = parse_table(
        '[v.m]\ncontext_window = 1000\nreasoning_modes = ["disabled", "budget"]\nbudget = [1, 9]\nefforts = ["low"]\n'
        "images = false\nretires = 2027-01-14\nprice = { input = 1, beyond = 10, long = { input = 2 } }\n"
    )
    row = table.find("v", "m", DAY)
    assert row is not None
    assert row.capabilities == Capabilities(
        context_window=1000,
        reasoning_modes=frozenset({"disabled", "budget"}),
        budget=(1, 9),
        efforts=("low",),
        images=False,
    )
    assert row.retires == date(2027, 1, 14)
    assert row.price is not None
    assert row.price.long is not None
    assert (row.price.beyond, row.price.long.input, row.price.output) == (10, 2, None)


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        ('version = 1\n\n[v."m"]\ntitle = "x"\nimages = "perhaps"\n', 'v."m".images', 5),
        ("[v.m]\nprice.input = -1\n", 'v."m".price.input', 2),
        ('[v.m.price]\ninput = "much"\n', 'v."m".price.input', 2),
        ("[v.m]\nprise = 3\n", 'v."m".prise', 2),
        ("[v.m]\ncapabilities = {}\n", 'v."m".capabilities', 2),
        ("[v.m]\ncontext_window = 0\n", 'v."m".context_window', 2),
        ("v = 3\n", "v", 1),
        ("[v]\nm = 3\n", 'v."m"', None),
    ],
)
def test_an_entry_that_cannot_be_used_is_named_and_the_others_stay(text: str, place: str, line: int | None) -> None:
    table = parse_table(text + '[other.m]\ntitle = "here"\n')
    assert [(error.place, error.line) for error in table.errors] == [(place, line)]
    assert title(table, "m", "other") == "here"
    assert title(table, "m") is None


def test_a_table_that_is_none() -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="line 2"):
        parse_table("[v.m]\ntitle = \n")


def test_the_shipped_table_is_whole() -> None:
    table = load_shipped_table()
    assert table.errors == ()
    assert set(table.rows) == {"anthropic", "openai", "gemini", "deepseek", "mistral", "groq", "xai"}
    assert sum(map(len, table.rows.values())) > 60
    for rows in table.rows.values():
        for name, row in rows.items():
            assert row.title, name
            if row.price is not None:
                assert row.price.input is not None, name
                assert row.price.output is not None, name
                assert (row.price.beyond is None) == (row.price.long is None), name
            can = row.capabilities
            if can.default_effort is not None:
                assert can.default_effort in (can.efforts or ()), name
            assert (can.budget is not None) == ("budget" in (can.reasoning_modes or ())), name


@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("anthropic", "claude-fable-5-2"),
        ("anthropic", "claude-mythos-5-1"),
        ("anthropic", "claude-haiku-4-5-20251001"),
        ("anthropic", "claude-sonnet-4-6"),
        ("openai", "gpt-6-astra"),
        ("openai", "gpt-6.1-terra"),
        ("openai", "gpt-5.6-luna"),
        ("openai", "gpt-5.4-2026-03-05"),
        ("gemini", "gemini-4-argon"),
        ("gemini", "gemini-3.1-pro-preview"),
        ("gemini", "gemini-2.5-flash-lite"),
        ("xai", "grok-4.7"),
        ("deepseek", "deepseek-flash"),
    ],
)
def test_models_of_today_are_known(vendor: str, model: str) -> None:
    row = load_shipped_table().find(vendor, model, DAY)
    assert row is not None
    assert row.capabilities.context_window is not None
    assert row.capabilities.tools is True


def test_the_page_about_tables_is_right() -> None:
    page = (Path(__file__).parents[4] / "docs" / "models.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        table = parse_table(example)
        assert table.rows
        assert table.errors == ()
    names = ModelRow.model_fields.keys() - {"capabilities"} | {field.name for field in fields(Capabilities)}
    assert [name for name in (*names, *Price.model_fields) if f"`{name}`" not in page] == []


def test_the_shipped_table_says_where_its_prices_come_from() -> None:
    text = Path(tables.__file__).with_name("shipped.toml").read_text(encoding="utf-8")
    headings = [section.split("\n\n")[0] for section in text.split("# -----")[1:]]
    assert len(headings) == 7
    for heading in headings:
        assert "rice" in heading
        assert "2025" in heading or "2026" in heading
