"""Every decision about a call can be looked up, also those that nobody was asked about."""

import json
from pathlib import Path

import pytest

from desktop_agent.engine import permission_records
from desktop_agent.engine.permission_records import AuditLog, to_json_lines
from desktop_agent.engine.session import Session
from desktop_agent.permissions.gate import Allowed, Ask, Denied
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import AllowOnce, Decision, Deny, DenyAndStop
from tests.desktop_agent.engine.test_taking_back import WRITES, Office, card, write
from tests.fakes.scripted_provider import Turn

READ = Turn(ToolUse(id="r", name="read_file", input={"path": "a.txt"}))


async def send_and_decide(session: Session, decision: Decision) -> None:
    session.send(Message.user("go"))
    session.approvals.answer(await card(session), decision)
    await session.wait_idle()


async def log(office: Office) -> AuditLog:
    read = office.engine.permission_inspector.audit_log()
    while not read.is_complete:
        await read.load_more()
    return read


class TestAudit:
    @pytest.mark.parametrize(
        ("decision", "state", "word", "outcome"),
        [
            (AllowOnce(), "allowed", "allow_once", Outcome.SUCCEEDED),
            (Deny(message="not there"), "denied", "deny", Outcome.DENIED),
            (DenyAndStop(), "denied", "deny_and_stop", Outcome.DENIED),
        ],
    )
    async def test_what_a_person_decided(
        self, tmp_path: Path, decision: Decision, state: str, word: str, outcome: Outcome
    ) -> None:
        async with Office(tmp_path, Turn(write("1", "one")), Turn()) as office:
            session = office.new_session()
            await send_and_decide(session, decision)
            (entry,) = (await log(office)).entries

        assert (entry.tool, entry.state, entry.by, entry.decision) == ("write_file", state, "person", word)
        assert entry.outcome is outcome
        assert entry.input == {"path": "note.txt", "content": "one"}
        assert entry.conversation_id == session.record.id
        assert entry.conversation_title == "go"
        assert entry.message == getattr(decision, "message", "")

    async def test_edited_arguments_are_those_that_ran(self, tmp_path: Path) -> None:
        edited = {"path": "note.txt", "content": "better"}
        async with Office(tmp_path, Turn(write("1", "one")), Turn()) as office:
            await send_and_decide(office.new_session(), AllowOnce(edited_input=edited))
            (entry,) = (await log(office)).entries

        assert (entry.input, entry.was_edited) == (edited, True)

    async def test_what_a_rule_the_default_or_nobody_allowed(self, tmp_path: Path) -> None:
        denies = Rule(effect=RuleEffect.DENY, tool="write_file", scope=RuleScope.ALWAYS)
        turns = (READ, Turn(write("1", "one")), Turn(), Turn(write("2", "two")), Turn())
        async with Office(tmp_path, *turns) as office:
            session = office.new_session()
            (office.work / "a.txt").write_text("a")
            session.permission_policy.add(WRITES)
            session.send(Message.user("go"))
            await session.wait_idle()
            session.permission_policy.revoke(WRITES.id)
            session.permission_policy.add(denies)
            session.send(Message.user("again"))
            await session.wait_idle()
            newest_first = (await log(office)).entries

        rows = [(entry.tool, entry.state, entry.by, entry.rule_id) for entry in newest_first]
        assert rows == [
            ("write_file", "denied", "program", None),
            ("write_file", "allowed", "rule", WRITES.id),
            ("read_file", "allowed", "default", None),
        ]

    async def test_pages_hold_together_what_belongs_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        turns = [turn for number in range(4) for turn in (Turn(write(f"{number}", f"{number}")), Turn())]
        async with Office(tmp_path, *turns) as office:
            session = office.new_session()
            for _ in range(4):
                await send_and_decide(session, AllowOnce())
            whole = (await log(office)).entries
            monkeypatch.setattr(permission_records, "PAGE_SIZE", 3)
            paged = await log(office)

        assert len(whole) == 4
        assert paged.entries == whole

    async def test_deleted_conversations_are_left_out_and_results_are_not_read(self, tmp_path: Path) -> None:
        async with Office(tmp_path, READ, Turn()) as office:
            session = office.new_session()
            (office.work / "a.txt").write_text("secret words")
            session.send(Message.user("go"))
            await session.wait_idle()
            everything = repr(rows := await office.engine.store.load_call_entries(None, limit=500))
            lines = list(to_json_lines((await log(office)).entries))
            await office.engine.delete_conversation(session.record.id)
            remaining = (await log(office)).entries

        assert rows[0][0].title == "go"
        assert "secret words" not in everything
        assert json.loads(lines[0])["tool"] == "read_file"
        assert remaining == ()


class TestDryRun:
    async def test_it_says_what_would_become_of_a_call_and_makes_none(self, tmp_path: Path) -> None:
        async with Office(tmp_path) as office:
            session = office.new_session()
            oversight, id_ = office.engine.permission_inspector, session.record.id
            arguments = {"path": "note.txt", "content": "x"}

            assert "write_file" in await oversight.tool_names(id_)
            assert isinstance(await oversight.verdict_for(id_, "write_file", arguments), Ask)
            session.permission_policy.add(WRITES)
            allowed = await oversight.verdict_for(id_, "write_file", arguments)
            assert isinstance(allowed, Allowed)
            assert (allowed.by, allowed.rule_id) == ("rule", WRITES.id)
            assert isinstance(await oversight.verdict_for(id_, "write_file", {"path": 1}), Denied)
            assert isinstance(await oversight.verdict_for(id_, "nothing", {}), Denied)
            assert office.text() is None
            assert office.events == []
