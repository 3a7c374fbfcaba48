"""Usage as CSV: what other programs read, and no formula."""

import csv
import io

import pytest

from desktop_agent.exchange.usage_export import plain_cell, usage_as_csv
from desktop_agent.types.spending import NANOS, UsageFigures, UsageReport, UsageRow


def read(report: UsageReport) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(usage_as_csv(report))))


def test_numbers_have_a_point_and_what_nobody_knows_is_empty() -> None:
    known = UsageFigures(2, 0, 1, 1_500, 1_000, 500, 400, cost_nanos=1_250_000 * 1000, saved_nanos=-NANOS // 100)
    rows = read(UsageReport("model", (UsageRow("m", known), UsageRow("x", UsageFigures(1, 1, 1)))))
    assert rows[0]["model"] == "m"
    assert (rows[0]["tokens"], rows[0]["cost_usd"], rows[0]["answers_without_cost"]) == ("1500", "1.250000", "1")
    assert rows[0]["cache_saved_usd"] == "-0.010000"
    assert (rows[1]["answers"], rows[1]["tokens"], rows[1]["cost_usd"]) == ("1", "", "")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "\r=1"])
def test_a_name_that_is_a_formula_is_a_text(name: str) -> None:
    (row,) = read(UsageReport("project", (UsageRow(name, UsageFigures(answers=1)),)))
    assert row["project"] == f"'{name}"


def test_other_names_stay_as_they_are() -> None:
    assert [plain_cell(name) for name in ("", "a=b", "/home/ada", 'a,"b"\nc')] == ["", "a=b", "/home/ada", 'a,"b"\nc']
    (row,) = read(UsageReport("project", (UsageRow('a,"b"\nc', UsageFigures(answers=1)),)))
    assert row["project"] == 'a,"b"\nc'
