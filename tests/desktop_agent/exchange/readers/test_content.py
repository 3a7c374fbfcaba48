"""Parts of foreign files become blocks, whatever their types are."""

from datetime import UTC, datetime

import pytest

from desktop_agent.exchange.foreign_values import list_in, object_in, parse_time, text_in
from desktop_agent.exchange.import_report import ImportReport, Omission
from desktop_agent.exchange.readers.content import short_title, tool_call, usage_of
from desktop_agent.exchange.readers.reader import Limits, Reading
from desktop_agent.types.blocks import Base64Source, Image, ToolUse
from desktop_agent.types.provider_events import Usage
from tests.desktop_agent.exchange.readers.foreign_homes import PIXEL


@pytest.mark.parametrize("value", [None, 1, "a", [], {"a": 1}, {"a": {"b": None}}, {"a": [{"b": "x"}]}])
def test_a_path_through_anything_gives_the_wanted_type(value: object) -> None:
    assert text_in(value, "a", "b") == ""
    assert object_in(value, "a", "b") == {}
    assert list_in(value, "a", "b") == []


TIME = datetime(2026, 5, 19, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-05-19T10:00:00.000Z", TIME),
        ("2026-05-19T12:00:00+02:00", TIME),
        ("2026-05-19 10:00:00", TIME),
        (TIME.timestamp(), TIME),
        (int(TIME.timestamp() * 1000), TIME),
        ("yesterday", None),
        ("", None),
        (True, None),
        (-1, None),
        (float("nan"), None),
        (1e300, None),
        (10**400, None),
        ([], None),
    ],
)
def test_times_are_read_in_every_usual_way(value: object, time: datetime | None) -> None:
    assert parse_time(value) == time


def test_a_title_is_short_and_on_one_line() -> None:
    assert short_title("  What\n does\tit do?  ") == "What does it do?"
    assert short_title("word " * 100_000) == "word " * 15 + "word…"


def test_a_picture_is_what_its_content_says() -> None:
    reading = Reading()
    expected = Image(source=Base64Source(media_type="image/png", data=PIXEL), name="a.png")
    assert reading.picture(PIXEL, "a.png") == (expected,)
    assert reading.picture_from_url(f"data:image/jpeg;base64,{PIXEL}", "a.png") == (expected,)
    assert reading.report.omissions == {}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://tracker.example/p.png",
        "file:///etc/passwd",
        "data:image/png,x",
        "data:image/png;base64,!!!!",
        "data:",
    ],
)
def test_a_picture_that_is_only_named_is_counted_and_not_kept(url: str) -> None:
    reading = Reading()
    assert reading.picture_from_url(url) == ()
    assert reading.report.count(Omission.PICTURE) == 1


def test_a_picture_has_a_limit() -> None:
    reading = Reading(Limits(picture=10))
    assert reading.picture(PIXEL) == ()
    assert reading.report.count(Omission.PICTURE) == 1


def test_a_known_call_is_renamed_and_what_is_not_known_stays() -> None:
    known = tool_call("opencode", "1", "edit", {"filePath": "a", "oldString": "x", "newString": "y", "other": 1})
    assert (known.name, known.input) == ("edit_file", {"path": "a", "old_text": "x", "new_text": "y", "other": 1})
    assert tool_call("opencode", "1", "mcp_x", {"a": 1}) == ToolUse(id="1", name="mcp_x", input={"a": 1})
    assert tool_call("nobody", "1", "edit", {"filePath": "a"}) == ToolUse(id="1", name="edit", input={"filePath": "a"})
    assert tool_call("codex", "1", "shell", "{").malformed == "{"
    assert tool_call("codex", "1", "shell", None).malformed == ""


def test_only_whole_numbers_are_usage() -> None:
    assert usage_of(input_tokens=3, output_tokens="4", total_tokens=-1) == Usage(input_tokens=3)
    assert usage_of(input_tokens=None, output_tokens=True) is None


def test_a_report_stays_small_and_speaks_in_sentences() -> None:
    report = ImportReport()
    for _ in range(3):
        report.omit(Omission.LONG_LINE)
    for number in range(10_000):
        report.omit(Omission.UNKNOWN, f"type {number} {'x' * 1000}")
    assert [str(sentence) for sentence, _ in report.notes][:2] == [
        "Entries that are too long.",
        f"Entries of an unknown kind (type 0 {'x' * 73}).",
    ]
    assert len(report.omissions) == 200
    assert sum(count for _, count in report.notes) == 10_003
    every = ImportReport()
    for omission in Omission:
        every.omit(omission)
    assert set(every.omissions.values()) == {1}
    assert len(every.omissions) == len(Omission)
