import asyncio
from collections.abc import Callable

import pytest

from desktop_agent.permissions.approvals import AnswerStatus, ApprovalBroker
from desktop_agent.permissions.gate import Allowed, still_allowed
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.errors import ToolInputInvalid, WrongUse
from desktop_agent.vocabulary.tool_calls import AllowForConversation, AllowOnce, Deny, DenyAndStop, TextPreview

MakeTool = Callable[..., AnyTool]


@pytest.fixture
def tool(make_tool: MakeTool) -> AnyTool:
    return make_tool()


def use(id_: str = "c1", path: str = "a") -> ToolUse:
    return ToolUse(id=id_, name="touch", input={"path": path})


async def test_a_decision_reaches_who_waits(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    preview = TextPreview("what would happen")
    approval = broker.open(use(), tool, preview, agent_path=("writer",))
    assert (approval.preview, approval.agent_path, approval.digest) == (
        preview,
        ("writer",),
        tool.digest({"path": "a"}),
    )
    waiting = asyncio.ensure_future(approval.resolution())
    await asyncio.sleep(0)
    assert not waiting.done()
    report = broker.answer(approval.approval_id, AllowOnce())
    assert report.accepted
    resolution = await waiting
    assert resolution == report.stands
    assert resolution.verdict == Allowed(approval.digest, "person")
    assert broker.open_approvals == ()


async def test_the_first_decision_counts_and_a_second_is_told_so(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval = broker.open(use(), tool)
    broker.answer(approval.approval_id, Deny(message="no"))
    for later in (AllowOnce(), AllowForConversation(), AllowOnce(edited_input={"bad": 1}), DenyAndStop()):
        report = broker.answer(approval.approval_id, later)
        assert (report.accepted, report.status) == (False, AnswerStatus.ALREADY_DECIDED)
        assert report.stands is not None
        assert report.stands.decision == Deny(message="no")
    resolution = await approval.resolution()
    assert (resolution.decision, resolution.verdict) == (Deny(message="no"), None)


async def test_an_edit_is_checked_and_bound_to_its_own_digest(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval = broker.open(use(), tool)
    with pytest.raises(ToolInputInvalid):
        broker.answer(approval.approval_id, AllowOnce(edited_input={"path": 3}))
    assert broker.open_approvals == (approval,)
    broker.answer(approval.approval_id, AllowForConversation(edited_input={"path": "b"}))
    resolution = await approval.resolution()
    assert (resolution.edited, resolution.input) == (True, {"path": "b"})
    assert resolution.verdict is not None
    assert still_allowed(resolution.verdict, tool, {"path": "b"})
    assert not still_allowed(resolution.verdict, tool, {"path": "a"})


async def test_approvals_stand_in_call_order_and_are_answered_in_any(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    first, second, third = (broker.open(use(f"c{n}", f"f{n}"), tool) for n in range(3))
    broker.answer(second.approval_id, AllowOnce())
    assert broker.open_approvals == (first, third)
    assert (await second.resolution()).input == {"path": "f1"}


async def test_stop_takes_back_all_that_wait(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    decided, first, second = (broker.open(use(f"c{n}"), tool) for n in range(3))
    broker.answer(decided.approval_id, AllowOnce())
    assert broker.withdraw_all() == (first, second)
    assert broker.withdraw_all() == ()
    resolution = await first.resolution()
    assert (resolution.by, resolution.decision, resolution.verdict) == ("stop", None, None)
    assert (await decided.resolution()).allows
    assert broker.answer(first.approval_id, AllowOnce()).status is AnswerStatus.WITHDRAWN


async def test_cancelling_the_wait_leaves_the_question_open(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval = broker.open(use(), tool)
    waiting = asyncio.ensure_future(approval.resolution())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert broker.answer(approval.approval_id, AllowOnce()).accepted
    assert (await approval.resolution()).allows


async def test_an_unknown_id_is_reported(tool: AnyTool) -> None:
    report = ApprovalBroker().answer("nothing", AllowOnce())
    assert (report.status, report.stands) == (AnswerStatus.UNKNOWN, None)


async def test_an_id_from_before_a_restart_can_be_asked_again_but_not_twice(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    assert broker.open(use(), tool, approval_id="kept").approval_id == "kept"
    with pytest.raises(WrongUse):
        broker.open(use(), tool, approval_id="kept")
    broker.withdraw_all()
    with pytest.raises(WrongUse):
        broker.open(use(), tool, approval_id="kept")
