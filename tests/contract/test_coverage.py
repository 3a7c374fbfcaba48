"""Every promise has its tests, and the page that lists them is current."""

from tests.contract import coverage


def test_every_row_has_a_test() -> None:
    assert [row for row, tests in coverage.tests_by_row().items() if not tests] == []


def test_the_page_is_current() -> None:
    current = coverage.page()
    assert coverage.PAGE.read_text(encoding="utf-8") == current, "run: python -m tests.contract.coverage"
