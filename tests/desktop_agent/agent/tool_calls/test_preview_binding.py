"""What the person was shown is what happens."""

import asyncio
import json
from dataclasses import replace

import pytest

from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import RunningCall, Tool
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.engine_events import ApprovalResolved, ToolStarted
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, AllowOnce, Decision, DiffPreview, Preview
from tests.fakes.tool_batch import Desk, Words, call, tool, until


class Page:
    """A file that a tool writes and other people change."""

    def __init__(self) -> None:
        self.text = "old"

    async def write(self, word: str, _call: RunningCall) -> str:
        self.text = word
        return "written"

    async def preview(self, arguments: Words) -> Preview:
        return DiffPreview("page.txt", self.text, arguments.word)


def desk_of(page: Page, *uses: tuple[str, str]) -> Desk:
    act = replace(tool("act", page.write), preview=page.preview)
    return Desk(*(call(id_, "act", word) for id_, word in uses), tools=[act])


async def outcome_after(decision: Decision, changed_to: str) -> tuple[Outcome, str]:
    page = Page()
    desk = desk_of(page, ("1", "new"))
    running = desk.start()
    await desk.asked()
    page.text = changed_to
    desk.decide(decision)
    await running
    return desk.outcomes[0], page.text


async def test_what_was_shown_is_done() -> None:
    assert await outcome_after(AllowOnce(), "old") == (Outcome.SUCCEEDED, "new")


async def test_a_file_that_changed_after_it_was_shown_is_left_alone() -> None:
    assert await outcome_after(AllowOnce(), "changed by the person") == (Outcome.FAILED, "changed by the person")


@pytest.mark.parametrize("decision", [AllowForConversation(), AllowOnce(edited_input={"word": "new"})])
async def test_who_allowed_more_than_what_was_shown_gets_it(decision: Decision) -> None:
    assert await outcome_after(decision, "changed") == (Outcome.SUCCEEDED, "new")


async def test_who_always_allows_it_gets_it_and_the_rule_was_proposed() -> None:
    page = Page()
    desk = desk_of(page, ("1", "new"))
    running = desk.start()
    await desk.asked()
    (approval,) = desk.approvals.open_approvals
    page.text = "changed"
    desk.decide(AllowAlways(rule_id=approval.proposals[-1].id))
    await running
    assert page.text == "new"
    assert approval.proposals[-1].id in {rule.id for rule in desk.permission_policy.rules}


async def test_edited_arguments_are_what_runs_and_both_are_told() -> None:
    page = Page()
    desk = desk_of(page, ("1", "asked"))
    running = desk.start()
    await desk.asked()
    desk.decide(AllowOnce(edited_input={"word": "edited"}))
    await running
    assert page.text == "edited"
    (resolved,) = desk.memory.of(ApprovalResolved)
    assert resolved.effective_input == desk.memory.of(ToolStarted)[0].input == {"word": "edited"}
    assert resolved.digest == desk.context.tools.get("act").digest({"word": "edited"})
    assert desk.uses[0].input == {"word": "asked"}


@pytest.mark.parametrize(("requested", "edited"), [(1, True), (1, 1.0), (False, 0)])
async def test_an_edit_to_what_only_python_takes_for_equal_is_told(requested: object, edited: object) -> None:
    async def run(_arguments: object, _call: RunningCall) -> tuple[Text, ...]:
        return (Text(text="done"),)

    act = Tool("act", "Acts.", JsonSchema({"type": "object"}), run)
    desk = Desk(ToolUse(id="1", name="act", input={"word": requested}), tools=[act])
    running = desk.start()
    await desk.asked()
    desk.decide(AllowOnce(edited_input={"word": edited}))
    await running
    (resolved,) = desk.memory.of(ApprovalResolved)
    assert json.dumps(resolved.effective_input) == json.dumps({"word": edited})
    assert "The person changed the arguments" in desk.words[0]


async def test_allowing_a_tool_for_the_conversation_allows_what_waits_beside_it() -> None:
    page = Page()
    desk = desk_of(page, ("1", "a"), ("2", "b"), ("3", "c"))
    running = desk.start()
    await desk.asked(3)
    desk.decide(AllowForConversation(), 1)
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED] * 3
    deciders = {event.tool_use_id: event.by for event in desk.memory.of(ApprovalResolved)}
    assert deciders == {"1": "rule", "2": "person", "3": "rule"}


async def test_a_preview_that_fails_or_hangs_does_not_hide_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_gate.TOOL_QUERY_TIMEOUT", 0.01)

    async def burst(_arguments: Words) -> Preview:
        raise SystemExit(3)

    async def hang(_arguments: Words) -> Preview:
        await asyncio.sleep(60)
        raise AssertionError

    previews = {"burst": burst, "hang": hang}
    tools = [replace(tool(name), preview=preview) for name, preview in previews.items()]
    desk = Desk(*(call(name, name) for name in previews), tools=tools)
    running = desk.start()
    await desk.asked(2)
    texts = [str(approval.preview.text) for approval in desk.approvals.open_approvals]
    assert all(text.startswith("The effect of this call cannot be shown") for text in texts)
    assert "SystemExit" in texts[0]
    desk.round.stop()
    await until(running.done)
