"""Arguments that are nested deeply, in a conversation that is kept: it goes on, and again when it is reopened."""

from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import AnyTool, RunningCall, Tool
from desktop_agent.types.blocks import Json, Outcome, ToolUse
from desktop_agent.types.errors import ToolInputInvalid
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import HookEdit, Hooks, PreToolUse
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny, ToolClass
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Stage, check_invariants, results_of, shaky_store


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def echo(tool_class: ToolClass = ToolClass.READ_ONLY) -> AnyTool:
    async def run(arguments: Any, _call: RunningCall) -> tuple[Json, ...]:
        return (Json(value=arguments),)

    return Tool("echo", "", JsonSchema({"type": "object"}), run, tool_class)


class Open(Stage):
    """A conversation that can be closed and opened again."""

    async def goes_on(self) -> None:
        """Check that it continues, also when it was reopened, and that the stored history is the one in memory."""
        await self.say("and now?")
        assert self.session.history[-1].text == "here"
        check_invariants(self.session.history, self.events)
        in_memory = self.session.history
        await self.session.close()
        self.session = await reopen_session(self.shaky.store, self.session.record.id, self.session._runs._setup)
        assert self.session.history == in_memory
        await self.say("and then?")
        assert self.session.history[-1].text == "there"
        await self.session.close()


HERE, THERE = Turn(ContentDelta("here")), Turn(ContentDelta("there"))
CALL = ToolUse(id="c", name="echo", input={})


@pytest.mark.parametrize("levels", [190, 300, 5_000])
async def test_deep_arguments_of_a_model_do_not_end_the_conversation(tmp_path: Path, levels: int) -> None:
    use = CALL.model_copy(update={"input": nested(levels)})
    async with shaky_store(tmp_path) as shaky:
        stage = Open(shaky, Turn(use), *([Turn()] if levels < 200 else []), HERE, THERE, tools=(echo(),))
        await stage.say()
        failed = [result.outcome for result in results_of(stage.session.history).values()]
        # What is taken in is called, and what it gives back is nested too deep for a result.
        assert failed == ([Outcome.FAILED] if levels < 200 else [])
        await stage.goes_on()


@pytest.mark.parametrize("levels", [300, 5_000])
async def test_deep_arguments_of_a_hook_do_not_end_the_conversation(tmp_path: Path, levels: int) -> None:
    async def edit(_: PreToolUse) -> HookEdit:
        return HookEdit(input=nested(levels))

    async with shaky_store(tmp_path) as shaky:
        hooks = {"hooks": Hooks().add_pre_tool_use(edit)}
        stage = Open(shaky, Turn(CALL), Turn(), HERE, THERE, tools=(echo(),), setup=hooks)
        await stage.say()
        result = results_of(stage.session.history)["c"]
        assert result.outcome is Outcome.DENIED
        assert "nested too deep" in str(result.content)
        await stage.goes_on()


@pytest.mark.parametrize("levels", [300, 5_000])
async def test_deep_arguments_of_a_person_do_not_end_the_conversation(tmp_path: Path, levels: int) -> None:
    async with shaky_store(tmp_path) as shaky:
        stage = Open(shaky, Turn(CALL), Turn(), HERE, THERE, tools=(echo(ToolClass.MUTATING),))
        stage.session.send(Message.user("go"))
        await stage.until(lambda: stage.session.approvals.open_approvals)
        (approval,) = stage.session.approvals.open_approvals
        with pytest.raises(ToolInputInvalid, match="nested too deep"):
            stage.session.approvals.answer(approval.approval_id, AllowOnce(edited_input=nested(levels)))
        stage.session.approvals.answer(approval.approval_id, Deny())
        await stage.idle()
        assert results_of(stage.session.history)["c"].outcome is Outcome.DENIED
        await stage.goes_on()
