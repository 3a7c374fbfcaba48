"""What specialists do folds under the call that asked them; summaries and guards are told in place."""

from datetime import UTC, datetime

import pytest

from desktop_agent.conversation.items import CallState, Change, NoticeItem, ToolCallItem, Updated
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import COMPACTED
from desktop_agent.types.blocks import Outcome, Summary, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ContextCompacted,
    ContinuationInjected,
    Envelope,
    ErrorOccurred,
    Event,
    LimitReached,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, StopReason
from desktop_agent.types.provider_events import MessageDelta as End
from desktop_agent.types.tool_calls import ToolClass

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Runs:
    """A transcript with one call of a specialist, and events of any run."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self("root", TurnStarted("t", "m1", "model"), ToolUse(id="1", name="researcher"), End(StopReason.TOOL_USE))
        self("root", ToolUse(id="2", name="writer"), ToolStarted("1", {}), ToolStarted("2", {}))

    def __call__(self, run: str, *events: Event, above: str | None = None) -> list[Change]:
        envelopes = (Envelope(1, run, above, "t", NOW, event) for event in events)
        return [change for envelope in envelopes for change in self.transcript.apply(envelope)]

    def begin(self, run: str = "sub", call: str = "1", above: str = "root", agent: str = "researcher") -> list[Change]:
        return self(run, RunStarted("p", agent=agent, call_id=call), above=above)

    def sub(self, *events: Event, run: str = "sub", above: str = "root") -> list[Change]:
        return self(run, *events, above=above)

    def item(self, call: str = "1") -> ToolCallItem:
        (call_item,) = [item for item in self.transcript if isinstance(item, ToolCallItem) and item.tool_use_id == call]
        return call_item

    def lines(self, call: str = "1") -> list[str]:
        return [str(step) for step in self.item(call).steps]


@pytest.fixture
def runs() -> Runs:
    runs = Runs()
    assert runs.begin() == [Updated(0, "state")]
    return runs


def pending(id_: str, name: str, **arguments: str) -> ToolCallPending:
    return ToolCallPending(id_, name, arguments, ToolClass.READ_ONLY)


def finished(id_: str, outcome: Outcome) -> ToolFinished:
    return ToolFinished(id_, ToolResult(tool_use_id=id_, outcome=outcome))


def test_what_a_specialist_says_and_does_adds_no_item(runs: Runs) -> None:
    before = len(runs.transcript)
    runs.sub(TurnStarted("t2", "m2", "model"), ContentDelta("Let me look."), ToolUse(id="9", name="read"))
    runs.sub(ErrorOccurred("k", "m", Sentence("It broke."), Sentence("Try.")), LimitReached("turns"))
    runs.sub(RunFinished(RunEnd.FAILED))
    assert len(runs.transcript) == before
    runs("root", ContentDelta("So."))
    assert runs.transcript[before].message_id == "m1"  # type: ignore[union-attr]


def test_each_step_is_a_line_under_its_call(runs: Runs) -> None:
    assert runs.item().delegated
    assert not runs.item("2").delegated
    assert runs.sub(pending("9", "read", path="a.txt")) == [Updated(0, "text")]
    runs.sub(finished("9", Outcome.SUCCEEDED), pending("10", "write", text="two\nlines"))
    runs.sub(finished("10", Outcome.TIMED_OUT), LimitReached("tokens"), RunFinished(RunEnd.LIMIT))
    assert runs.lines() == [
        "read · path: a.txt",
        "write · text: two lines",
        "write: Timed out",
        "A limit was reached: tokens.",
        "Ended at a limit",
    ]
    assert not str(runs.item().output)


def test_a_step_is_said_in_sentences_that_a_screen_translates(runs: Runs) -> None:
    runs.begin("deep", "9", above="sub", agent="checker")
    runs.sub(pending("9", "list_files", path="jobs"), pending("10", "mcp__files__read_all"))
    runs.sub(finished("10", Outcome.FAILED), run="sub")
    why = Sentence("The model server reported: {message}", {"message": "boom"})
    runs.sub(RetryScheduled(2.0, str(why), 1, why), LimitReached.of(Sentence("turns")))
    runs.sub(pending("5", "read_file"), RunFinished(RunEnd.COMPLETED), run="deep", above="sub")
    assert runs.lines() == [
        "List files · path: jobs",
        "Read all (files)",
        "Read all (files): Failed",
        "The model server reported: boom. Trying again in 2 s.",
        "A limit was reached: turns.",
        "checker / Read a file",
        "checker / Done",
    ]
    listed, _, failed, retry, limit, read, _ = runs.item().steps
    assert listed.values["tool"] == Sentence("List files")
    assert failed.values["outcome"] == Sentence("Failed")
    assert retry.values["what"] == why.with_full_stop()
    assert limit.values["which"] == Sentence("turns")
    assert read.values["step"] == Sentence("{tool}", {"tool": Sentence("Read a file")})


def test_long_arguments_of_a_step_are_cut(runs: Runs) -> None:
    runs.sub(pending("9", "write_file", path="a" * 100, content="b" * 9_000), pending("10", "read_file", path="c\n d"))
    long, short = runs.lines()
    assert long.startswith("Write a file · path: aaa")
    assert len(long) < 200
    assert short == "Read a file · path: c d"


@pytest.mark.parametrize("end", RunEnd)
def test_every_end_is_said_in_words(runs: Runs, end: RunEnd) -> None:
    runs.sub(RunFinished(end))
    (line,) = runs.lines()
    assert line[0].isupper()


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.SUCCEEDED])
def test_every_outcome_but_success_is_said_in_words(runs: Runs, outcome: Outcome) -> None:
    runs.sub(pending("9", "read"), finished("9", outcome))
    assert runs.lines()[1].startswith("read: ")
    assert runs.lines()[1][len("read: ")].isupper()


def test_specialists_that_work_together_keep_their_lines_apart(runs: Runs) -> None:
    runs.begin("other", "2", agent="writer")
    runs.sub(pending("9", "read"))
    runs.sub(pending("9", "list"), run="other")
    assert (runs.lines("1"), runs.lines("2")) == (["read"], ["list"])


def test_a_specialist_of_a_specialist_folds_under_the_same_call(runs: Runs) -> None:
    runs.begin("deep", "9", above="sub", agent="checker")
    runs.sub(pending("5", "read"), RunFinished(RunEnd.COMPLETED), run="deep", above="sub")
    runs.sub(pending("6", "list"))
    assert runs.lines() == ["checker / read", "checker / Done", "list"]


def test_ids_that_a_specialists_model_repeats_do_not_touch_the_calls_above(runs: Runs) -> None:
    runs.sub(ToolProgress("1", "inner"), finished("2", Outcome.SUCCEEDED))
    assert runs.item("2").state is CallState.RUNNING
    assert not runs.lines()


def test_an_approval_below_is_shown_on_the_call_and_the_next_after_it(runs: Runs) -> None:
    runs.begin("deep", "9", above="sub", agent="checker")
    runs.sub(ApprovalRequested("a1", "9", "d"))
    runs.sub(ApprovalRequested("a2", "5", "d"), run="deep", above="sub")
    assert (runs.item().state, runs.item().approval_id) == (CallState.WAITING, "a1")
    runs.sub(ApprovalResolved("a1", "9", "allow_once", "person"))
    assert (runs.item().state, runs.item().approval_id) == (CallState.WAITING, "a2")
    runs.sub(ApprovalResolved("a2", "5", "deny", "person"), run="deep", above="sub")
    assert (runs.item().state, runs.item().approval_id) == (CallState.RUNNING, None)


def test_a_run_that_ends_waits_for_nobody(runs: Runs) -> None:
    runs.sub(ApprovalRequested("a1", "9", "d"), RunFinished(RunEnd.CANCELLED))
    assert (runs.item().state, runs.item().approval_id) == (CallState.RUNNING, None)


def test_a_call_that_has_its_result_stays_as_it_is(runs: Runs) -> None:
    result = ToolResult(tool_use_id="1", content=(Text(text="Found."),), outcome=Outcome.CANCELLED)
    runs("root", ToolFinished("1", result))
    assert runs.sub(pending("9", "late"), ApprovalRequested("a1", "9", "d"), RunFinished(RunEnd.CANCELLED)) == []
    assert (runs.item().state, runs.lines()) == (CallState.ENDED, [])


def test_a_run_that_nobody_called_shows_nothing(runs: Runs) -> None:
    assert runs.begin("lost", "77") == []
    assert runs.sub(pending("9", "read"), run="lost") == []
    assert runs.sub(pending("9", "read"), run="never begun") == []


def test_a_summary_is_a_notice_that_opens_live_and_again() -> None:
    live = Transcript()
    live.apply(Envelope(1, "r", None, None, NOW, ContextCompacted("m", "In short.")))
    block = Summary(text="In short.", first_kept_id="m")
    stored = Transcript([Message.system("Be brief."), Message(role=Role.SYSTEM, blocks=(block,))])
    for transcript in (live, stored):
        (notice,) = transcript
        assert isinstance(notice, NoticeItem)
        assert (notice.sentence, notice.folded) == (COMPACTED, ("In short.",))


def test_a_prompt_of_a_guard_is_not_what_the_person_said_live_and_again() -> None:
    live = Transcript()
    live.apply(Envelope(1, "r", None, None, NOW, ContinuationInjected("tests pass", 1)))
    stored = Transcript([Message.user("Go on.").model_copy(update={"injected_by": "tests pass"})])
    assert list(live) == list(stored)
    assert isinstance(live[0], NoticeItem)
    assert "tests pass" in str(live[0].sentence)
