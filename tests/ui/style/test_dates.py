"""One way of writing dates, in the list of conversations and wherever a moment is named."""

from datetime import datetime, timedelta

import pytest
from PySide6.QtCore import QLocale

from ui.style.text_display import date_in_group, exact_date, relative_date

NOON = datetime(2026, 5, 20, 12, 0).astimezone()


@pytest.fixture(autouse=True)
def plain_locale():
    before = QLocale()
    QLocale.setDefault(QLocale.c())
    yield
    QLocale.setDefault(before)


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(minutes=5), "11:55"),
        (timedelta(days=1), "Yesterday"),
        (timedelta(days=3), "Sun"),
        (timedelta(days=30), "20 Apr"),
        (timedelta(days=400), "15 Apr 2025"),
        (timedelta(minutes=-5), "12:05"),
    ],
)
def test_how_long_ago(ago, words):
    assert relative_date(NOON - ago, NOON).removesuffix(":00") == words


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(minutes=5), "20 May 11:55"),
        (timedelta(days=3), "17 May 12:00"),
        (timedelta(days=400), "15 Apr 2025 12:00"),
        (timedelta(days=-300), "16 Mar 2027 12:00"),
    ],
)
def test_a_moment_is_named_with_its_day_and_its_time(ago, words):
    # The C locale writes seconds.
    assert exact_date(NOON - ago, NOON).replace(":00:00", ":00").replace(":55:00", ":55") == words


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(minutes=5), "11:55"),
        (timedelta(days=1, minutes=5), "11:55"),
        (timedelta(days=3), "Sun"),
        (timedelta(days=30), "20 Apr"),
        (timedelta(days=400), "15 Apr"),
    ],
)
def test_under_a_heading_a_date_says_what_that_leaves_open(ago, words):
    assert date_in_group(NOON - ago, NOON).removesuffix(":00") == words


@pytest.mark.parametrize(
    ("locale", "words"),
    [
        ("en_US", ("Apr 20", "Apr 15, 2025", "May 20 2:05 PM")),
        ("en_GB", ("20 Apr", "15 Apr 2025", "20 May 14:05")),
    ],
)
def test_a_date_is_written_as_in_the_region_of_its_times(locale, words):
    QLocale.setDefault(QLocale(locale))
    later = NOON + timedelta(hours=2, minutes=5)
    written = [relative_date(NOON - timedelta(days=days), NOON) for days in (30, 400)]
    said = exact_date(later, NOON).replace("\u202f", " ")
    assert (*written, said) == words
