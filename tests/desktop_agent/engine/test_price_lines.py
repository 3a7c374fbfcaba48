"""A price in the text of a table of models."""

import tomllib

import pytest

from desktop_agent.engine.price_overrides import set_price_in_text
from desktop_agent.types.providers import Price

OWN = """\
# mine
version = 1

[openai."gpt-9"]  # the large one
title = "Nine"
price = { input = 3, output = 15, long = { input = 6 } }

[stranger.plain]
images = true

# the end
[stranger."only-a-price"]
price = { input = 1 }
"""


def prices(text: str | None) -> dict[str, dict[str, object]]:
    assert text is not None
    return {
        f"{vendor}/{model}": entry.get("price")
        for vendor, models in tomllib.loads(text).items()
        if isinstance(models, dict)
        for model, entry in models.items()
    }


def test_a_first_price_makes_the_file() -> None:
    text = set_price_in_text("", "openrouter", 'maker/mo"del:free', Price(input=0.25, cache_read=0))
    assert text == 'version = 1\n\n[openrouter."maker/mo\\"del:free"]\nprice = { input = 0.25, cache_read = 0 }\n'


def test_a_first_price_goes_below_a_file_of_comments() -> None:
    entry = '\nversion = 1\n\n[a."b"]\nprice = { input = 1 }\n'
    assert set_price_in_text("# mine\n", "a", "b", Price(input=1)) == f"# mine{entry}"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_one_empty_line_is_above_a_new_entry(newline: str) -> None:
    text = set_price_in_text(OWN.replace("\n", newline), "a", "b", Price(input=1))
    assert text == (OWN + '\n[a."b"]\nprice = { input = 1 }\n').replace("\n", newline)


def test_one_number_changes_and_everything_else_stays() -> None:
    text = set_price_in_text(OWN, "openai", "gpt-9", Price(output=20.5))
    assert text == OWN.replace("output = 15", "output = 20.5")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_windows_line_ends_stay_and_other_separators_are_text(mark: str) -> None:
    own = mark + OWN.replace("# mine", "# mine\u2028and\x85yours").replace("\n", "\r\n")
    assert set_price_in_text(own, "openai", "gpt-9", Price(output=20.5)) == own.replace("output = 15", "output = 20.5")


def test_a_comment_behind_the_price_stays() -> None:
    own = OWN.replace("long = { input = 6 } }", "long = { input = 6 } } # by contract")
    text = set_price_in_text(own, "openai", "gpt-9", Price(output=20.5))
    assert text == own.replace("output = 15", "output = 20.5")


def test_a_price_joins_an_entry_that_had_none() -> None:
    text = set_price_in_text(OWN, "stranger", "plain", Price(input=2))
    assert prices(text)["stranger/plain"] == {"input": 2}
    assert text is not None
    assert text.replace("price = { input = 2 }\n", "") == OWN


def test_a_price_leaves_and_so_does_what_held_only_it() -> None:
    text = set_price_in_text(OWN, "stranger", "only-a-price", None)
    assert prices(text) == {"openai/gpt-9": prices(OWN)["openai/gpt-9"], "stranger/plain": None}
    assert "# the end" in str(text)
    text = set_price_in_text(OWN, "openai", "gpt-9", None)
    assert text == OWN.replace("price = { input = 3, output = 15, long = { input = 6 } }\n", "")


def test_nothing_to_do_changes_nothing() -> None:
    assert set_price_in_text(OWN, "openai", "gpt-9", Price(input=3)) == OWN
    assert set_price_in_text(OWN, "openai", "gpt-1", None) == OWN
    assert set_price_in_text("", "openai", "gpt-1", None) == ""


@pytest.mark.parametrize(
    "text",
    [
        "not toml at all",
        '[openai]\n"gpt-9" = { price = { input = 3 } }\n',
        '[openai."gpt-9".price]\ninput = 3\n',
        '[openai."gpt-9"]\nprice.input = 3\n',
        '[openai."gpt-9"]\nprice = { input = 3, output = inf }\n',
        'note = """\n[openai."gpt-9"]\nprice = 1\n"""\n[openai."gpt-9"]\nprice = { input = 3 }\n',
    ],
)
def test_what_lines_cannot_follow_is_refused(text: str) -> None:
    assert set_price_in_text(text, "openai", "gpt-9", Price(input=4)) is None


@pytest.mark.parametrize("strange", ["9" * 5000, "[" * 100_000])
def test_what_the_parser_itself_cannot_take_is_left_alone(strange: str) -> None:
    assert set_price_in_text(f"a = {strange}\n", "openai", "m", Price(input=1)) is None
