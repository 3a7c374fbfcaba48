"""What the person was shown is what happens."""

from dataclasses import replace

import pytest

from desktop_agent.providers.scripted import Turn
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.tool_calls import AllowForConversation, AllowOnce, Decision, DiffPreview, Preview
from tests.desktop_agent.agent.desk import Desk, Words, call, tool


class Page:
    """A file that a tool writes and other people change."""

    def __init__(self) -> None:
        self.text = "old"

    async def write(self, word: str) -> str:
        self.text = word
        return "written"

    async def preview(self, given: Words) -> Preview:
        return DiffPreview("page.txt", self.text, given.word)


async def outcome_after(decision: Decision, changed_to: str) -> tuple[Outcome, str]:
    page = Page()
    desk = Desk(Turn(call("1", "act", "new")), Turn(), tools=(replace(tool("act", page.write), preview=page.preview),))
    running = desk.start()
    await desk.approvals_open()
    page.text = changed_to
    desk.decide(decision)
    await running
    return desk.memory.outcomes[0], page.text


async def test_what_was_shown_is_done() -> None:
    assert await outcome_after(AllowOnce(), "old") == (Outcome.SUCCEEDED, "new")


async def test_a_file_that_changed_after_it_was_shown_is_left_alone() -> None:
    assert await outcome_after(AllowOnce(), "changed by the person") == (Outcome.FAILED, "changed by the person")


@pytest.mark.parametrize("decision", [AllowForConversation(), AllowOnce(edited_input={"word": "new"})])
async def test_who_allowed_more_than_what_was_shown_gets_it(decision: Decision) -> None:
    assert await outcome_after(decision, "changed") == (Outcome.SUCCEEDED, "new")
