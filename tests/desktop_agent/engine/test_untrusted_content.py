"""Content from outside: what it suspends, for how long, and that nobody forgets it."""

import asyncio
from pathlib import Path

from pydantic import BaseModel

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.engine.session import Session
from desktop_agent.tools.tool import ModelSchema, Tool, ToolRegistry
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, OutsideContentArrived
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Effect, ToolClass, UntrustedSource
from tests.desktop_agent.engine.test_taking_back import Office, card, say
from tests.fakes.scripted_provider import Turn, Wait


class Where(BaseModel):
    host: str


class Net:
    """Two tools that reach the network: one brings pages, the other sends."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def read(self, arguments: Where, _call: object) -> tuple[Text, ...]:
        return (Text(text=f"The page of {arguments.host}."),)

    async def send(self, arguments: Where, _call: object) -> tuple[Text, ...]:
        self.sent.append(arguments.host)
        return ()

    def registry(self, *_: object) -> ToolRegistry:
        network = frozenset({Effect.NETWORK})
        reading = Tool(
            name="read",
            description="",
            schema=ModelSchema(Where),
            run=self.read,
            tool_class=ToolClass.READ_ONLY,
            effects=network,
            brings=lambda arguments: UntrustedSource("web", arguments.host),
        )
        return ToolRegistry((reading, Tool("send", "", ModelSchema(Where), self.send, effects=network)))


def allow_rule(tool: str) -> Rule:
    return Rule(effect=RuleEffect.ALLOW, tool=tool, scope=RuleScope.ALWAYS)


def call(id_: str, tool: str, host: str) -> Turn:
    return Turn(ToolUse(id=id_, name=tool, input={"host": host}))


def start_session(office: Office, net: Net) -> Session:
    office.engine._tools_for = net.registry
    session = office.new_session()
    session.permission_policy.add(allow_rule("read"))
    session.permission_policy.add(allow_rule("send"))
    return session


async def allow_and_wait(session: Session) -> None:
    session.approvals.answer(await card(session), AllowOnce())
    await session.wait_idle()


class TestTaint:
    async def test_what_was_allowed_for_good_is_asked_about_once_a_page_was_read(self, tmp_path: Path) -> None:
        turns = (call("1", "send", "a"), call("2", "read", "b.example"), call("3", "send", "c"), Turn())
        net = Net()
        async with Office(tmp_path, *turns) as office:
            session = start_session(office, net)
            session.send(Message.user("go"))
            await card(session)

            assert net.sent == ["a"]
            (approval,) = office.of(ApprovalRequested)
            assert (approval.tool_use_id, "b.example" in approval.reason) == ("3", True)
            assert office.of(OutsideContentArrived) == [OutsideContentArrived("2", "web", "b.example")]
            notices = [str(item.sentence) for item in session.transcript if isinstance(item, NoticeItem)]
            assert any("b.example" in notice for notice in notices)
            await allow_and_wait(session)
            assert net.sent == ["a", "c"]

    async def test_what_arrives_while_the_model_writes_holds_for_the_call_it_is_writing(self, tmp_path: Path) -> None:
        wait, net = Wait(asyncio.Event(), asyncio.Event()), Net()
        async with Office(tmp_path, Turn(ContentDelta("Hm."), wait, *call("1", "send", "a").steps), Turn()) as office:
            session = start_session(office, net)
            session.send(Message.user("go"))
            assert wait.reached is not None
            await wait.reached.wait()
            session.permission_policy.mark_untrusted(UntrustedSource("web", "b.example"))
            wait.until.set()
            await card(session)
            assert net.sent == []
            # What made it doubtful is gone, so nobody needs to be asked.
            session.permission_policy.lift_suspension()
            await session.wait_idle()
            assert net.sent == ["a"]

    async def test_a_trusted_source_marks_no_more_and_another_one_does(self, tmp_path: Path) -> None:
        turns = (
            *(call("1", "read", "b.example"), call("2", "send", "c"), Turn()),
            *(call("3", "read", "b.example"), call("4", "send", "d"), Turn()),
            *(call("5", "read", "e.example"), call("6", "send", "f"), Turn()),
        )
        net = Net()
        async with Office(tmp_path, *turns) as office:
            session = start_session(office, net)
            session.send(Message.user("go"))
            await card(session)
            session.permission_policy.lift_suspension()
            await session.wait_idle()
            await say(session)
            assert (net.sent, len(office.of(ApprovalRequested))) == (["c", "d"], 1)

            session.send(Message.user("go"))
            # Known already, trusted or not: the call to e.example itself is let through by its rule.
            await allow_and_wait(session)
            assert net.sent == ["c", "d", "f"]
            assert [event.name for event in office.of(OutsideContentArrived)] == ["b.example", "e.example"]

    async def test_it_is_remembered_after_the_end_of_the_program(self, tmp_path: Path) -> None:
        net = Net()
        async with Office(tmp_path, call("1", "read", "b.example"), Turn()) as office:
            session = start_session(office, net)
            await say(session)
        async with Office(tmp_path, call("2", "send", "c"), Turn()) as office:
            office.engine._tools_for = net.registry
            reopened = await office.engine.session(session.record.id)
            assert reopened.permission_policy.untrusted_content.sources == (UntrustedSource("web", "b.example"),)
            reopened.send(Message.user("go"))
            await allow_and_wait(reopened)
            assert net.sent == ["c"]
            reopened.permission_policy.lift_suspension()
        async with Office(tmp_path) as office:
            trusted = (await office.engine.session(session.record.id)).permission_policy.untrusted_content
            assert (trusted.sources, trusted.trusted) == ((), (UntrustedSource("web", "b.example"),))
