"""Rules that are kept: with their conversation, and shared by all that are open."""

import gc
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine.permission_records import RuleBook
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.engine.session_permissions import SessionPolicyStore
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.permissions.gate import Allowed, Ask
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.engine_events import ApprovalRequested
from desktop_agent.types.messages import Message, now
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, Deny
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import DISK, Shaky, Stage, record, results_of, shaky_store


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path) as shaky:
        yield shaky


def rule(scope: RuleScope, **more: Any) -> Rule:
    return Rule(effect=RuleEffect.ALLOW, tool="act", scope=scope, **more)


class Open:
    """The permission policy of an open conversation."""

    def __init__(self, shaky: Shaky, book: RuleBook, **about: Any) -> None:
        self.journal_queue = JournalQueue(shaky, record(**about), is_new=True)  # type: ignore[arg-type]
        self.permission_policy = SessionPolicyStore(SessionWriter(self.journal_queue), book).policy

    async def allows(self) -> bool:
        return isinstance(await self.permission_policy.verdict(call("1", "act"), tool("act")), Allowed)


async def test_a_rule_for_one_conversation_holds_there_and_is_kept(shaky: Shaky) -> None:
    book = RuleBook()
    here, there = Open(shaky, book), Open(shaky, book)
    here.permission_policy.add(rule(RuleScope.CONVERSATION))
    assert (await here.allows(), await there.allows()) == (True, False)
    await here.journal_queue.close()
    (stored,) = await shaky.store.rules.all()
    assert stored.conversation_id == here.journal_queue.record.id
    assert await shaky.store.list_conversations() == ()  # nothing was said yet
    reopened = RuleBook(await shaky.store.rules.all())
    assert reopened.for_conversation(here.journal_queue.record.id) == (stored,)
    assert reopened.for_conversation(there.journal_queue.record.id) == ()
    await there.journal_queue.close()


async def test_a_rule_for_everywhere_holds_in_all_open_conversations_at_once(shaky: Shaky) -> None:
    book = RuleBook()
    here, there = Open(shaky, book), Open(shaky, book)
    changes: list[str] = []
    there.permission_policy._listeners.append(lambda: changes.append("changed"))
    always = rule(RuleScope.ALWAYS)
    here.permission_policy.add(always)
    assert (await here.allows(), await there.allows()) == (True, True)
    assert changes == ["changed"]
    assert there.permission_policy.revoke(always.id) == always
    assert (await here.allows(), await there.allows()) == (False, False)
    for conversation in (here, there):
        await conversation.journal_queue.close()
    assert await shaky.store.rules.all() == ()
    assert book.rules == ()


async def test_a_rule_for_a_workspace_follows_the_workspace(shaky: Shaky) -> None:
    book = RuleBook()
    here, there, elsewhere = (Open(shaky, book, workspace=workspace) for workspace in ("/w", "/w", "/v"))
    here.permission_policy.add(rule(RuleScope.WORKSPACE))
    assert [await conversation.allows() for conversation in (here, there, elsewhere)] == [True, True, False]
    elsewhere.permission_policy.set_workspace("/w")
    here.permission_policy.set_workspace(None)
    assert [await conversation.allows() for conversation in (here, there, elsewhere)] == [False, True, True]
    for conversation in (here, there, elsewhere):
        await conversation.journal_queue.close()


async def test_when_a_rule_was_used_last_is_kept(shaky: Shaky) -> None:
    book = RuleBook()
    here = Open(shaky, book)
    always = rule(RuleScope.ALWAYS)
    here.permission_policy.add(always)
    here.permission_policy.nested().mark_used(always.id)
    await here.journal_queue.close()
    (stored,) = await shaky.store.rules.all()
    assert stored.last_used_at is not None
    assert book.rules == (stored,)


async def test_rules_that_were_given_are_kept_nowhere(shaky: Shaky) -> None:
    journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
    preset = rule(RuleScope.ALWAYS)
    permission_policy = SessionPolicyStore(SessionWriter(journal_queue), RuleBook(), session_rules=(preset,)).policy
    assert isinstance(await permission_policy.verdict(call("1", "act"), tool("act")), Allowed)
    await journal_queue.close()
    assert await shaky.store.rules.all() == ()


async def test_a_rule_that_the_disk_refuses_holds_and_is_written_later(shaky: Shaky) -> None:
    here = Open(shaky, RuleBook())
    shaky.refuse = DISK
    here.permission_policy.add(rule(RuleScope.CONVERSATION))
    await here.journal_queue.write_all()
    assert await here.allows()
    assert await shaky.store.rules.all() == ()
    shaky.refuse = None
    await here.journal_queue.close()
    assert len(await shaky.store.rules.all()) == 1


async def test_nobody_is_kept_by_the_book(shaky: Shaky) -> None:
    book = RuleBook()
    here = Open(shaky, book)
    await here.journal_queue.close()
    del here
    gc.collect()
    assert len(book._followers) == 0


async def test_what_is_allowed_for_a_conversation_outlasts_the_program(shaky: Shaky) -> None:
    book = RuleBook()
    stage = Stage(shaky, Turn(call("1", "act")), Turn(), tools=(tool("act"),), setup={"rule_book": book})
    stage.session.send(Message.user("p"))
    await stage.until(lambda: stage.session.approvals.open_approvals)
    stage.session.approvals.answer(stage.session.approvals.open_approvals[0].approval_id, AllowForConversation())
    await stage.idle()
    await stage.session.close()
    later = Stage(
        shaky,
        Turn(call("2", "act")),
        Turn(),
        tools=(tool("act"),),
        setup={"rule_book": RuleBook(await shaky.store.rules.all())},
    )
    later.session = await reopen_session(shaky.store, stage.session.record.id, later.session._runs._setup)
    later.session.subscribe(on_event=later.events.append)
    await later.say("again")
    assert later.of(ApprovalRequested) == []
    await later.session.close()


async def test_what_is_always_allowed_holds_for_calls_that_wait_elsewhere(shaky: Shaky) -> None:
    book = RuleBook()
    both = [
        Stage(shaky, Turn(call(id_, "act")), Turn(), tools=(tool("act"),), setup={"rule_book": book})
        for id_ in ("1", "2")
    ]
    for stage in both:
        stage.session.send(Message.user("p"))
        await stage.until(lambda stage=stage: stage.session.approvals.open_approvals)
    (approval,) = both[0].session.approvals.open_approvals
    whole = next(rule for rule in approval.proposals if rule.scope is RuleScope.ALWAYS and rule.pattern is None)
    both[0].session.approvals.answer(approval.approval_id, AllowAlways(rule_id=whole.id))
    for stage in both:
        await stage.idle()
        await stage.session.close()
    assert [rule.id for rule in await shaky.store.rules.all()] == [whole.id]


async def test_without_a_rule_a_person_is_asked(shaky: Shaky) -> None:
    here = Open(shaky, RuleBook([rule(RuleScope.CONVERSATION, conversation_id="another")]))
    assert isinstance(await here.permission_policy.verdict(call("1", "act"), tool("act")), Ask)
    await here.journal_queue.close()


async def test_a_folder_that_is_changed_while_a_run_works_holds_from_the_next_one_on(shaky: Shaky) -> None:
    there = rule(RuleScope.WORKSPACE, workspace="/there")
    stage = Stage(
        shaky,
        Turn(call("1", "act")),
        Turn(),
        Turn(call("2", "act")),
        Turn(),
        tools=(tool("act"),),
        workspace="/here",
        setup={"rules": (there,)},
    )
    session = stage.session
    session.send(Message.user("p"))
    await stage.until(lambda: session.approvals.open_approvals)
    session.change_record(workspace="/there")
    assert isinstance(await session.permission_policy.verdict(call("1", "act"), tool("act")), Ask)
    (approval,) = session.approvals.open_approvals
    assert {rule.workspace for rule in approval.proposals if rule.scope is RuleScope.WORKSPACE} == {"/here"}
    session.approvals.answer(approval.approval_id, Deny())
    await stage.idle()
    assert results_of(session.history)["1"].outcome is Outcome.DENIED
    await stage.say("again")
    assert results_of(session.history)["2"].outcome is Outcome.SUCCEEDED
    session.change_record(workspace=None)
    assert isinstance(await session.permission_policy.verdict(call("3", "act"), tool("act")), Ask)
    await session.close()


@pytest.mark.parametrize(
    ("about", "allows"),
    [
        ({"scope": RuleScope.WORKSPACE, "workspace": "/here"}, True),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/there"}, False),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/here/below"}, False),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/"}, False),
        ({"scope": RuleScope.WORKSPACE}, False),
        ({"scope": RuleScope.CONVERSATION, "conversation_id": "this"}, True),
        ({"scope": RuleScope.CONVERSATION, "conversation_id": "another"}, False),
        ({"scope": RuleScope.CONVERSATION}, False),
        ({"scope": RuleScope.ALWAYS, "workspace": "/there", "conversation_id": "another"}, True),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/here", "expires_at": now() + timedelta(days=1)}, True),
        ({"scope": RuleScope.WORKSPACE, "workspace": "/here", "expires_at": now() - timedelta(seconds=1)}, False),
        ({"scope": RuleScope.ALWAYS, "expires_at": now() - timedelta(seconds=1)}, False),
    ],
)
async def test_a_stored_rule_holds_only_where_and_as_long_as_it_says(
    shaky: Shaky, about: dict[str, Any], allows: bool
) -> None:
    """Also for the agents that this one starts, and after it came here from the disk."""
    await shaky.store.rules.save(rule(**about))
    here = Open(shaky, RuleBook(await shaky.store.rules.all()), id="this", workspace="/here")
    assert await here.allows() is allows
    nested = here.permission_policy.nested(rules=[Rule(effect=RuleEffect.ALLOW, tool="*", scope=RuleScope.ALWAYS)])
    assert isinstance(await nested.verdict(call("1", "act"), tool("act")), Allowed) is allows
    await here.journal_queue.close()


async def test_a_rule_that_is_laid_down_elsewhere_for_elsewhere_is_learned_and_does_not_hold_here(
    shaky: Shaky,
) -> None:
    book = RuleBook()
    here, there = (Open(shaky, book, workspace=workspace) for workspace in ("/here", "/there"))
    there.permission_policy.add(rule(RuleScope.WORKSPACE))
    # Also one that names a folder which is not its own.
    there.permission_policy.add(rule(RuleScope.WORKSPACE, workspace="/elsewhere"))
    assert (await here.allows(), await there.allows()) == (False, True)
    here.permission_policy.add(rule(RuleScope.WORKSPACE, workspace="/elsewhere"))
    assert not await here.allows()
    here.permission_policy.set_workspace("/there")
    assert await here.allows()
    for conversation in (here, there):
        await conversation.journal_queue.close()


async def test_a_rule_that_forbids_in_another_workspace_forbids_nothing_here(shaky: Shaky) -> None:
    deny = Rule(effect=RuleEffect.DENY, tool="act", scope=RuleScope.WORKSPACE, workspace="/there")
    here = Open(shaky, RuleBook([deny, rule(RuleScope.ALWAYS)]), workspace="/here")
    assert await here.allows()
    here.permission_policy.set_workspace("/there")
    assert not await here.allows()
    await here.journal_queue.close()


async def test_a_rule_is_kept_whatever_who_hears_of_it_adds_or_revokes_meanwhile(shaky: Shaky) -> None:
    one, two, never = (rule(RuleScope.ALWAYS, id=id_) for id_ in ("one", "two", "never"))
    here = Open(shaky, RuleBook())

    def meddle() -> None:
        known = {rule.id for rule in here.permission_policy.rules}
        if "one" in known and "two" not in known:
            here.permission_policy.add(two)
        if "never" in known:
            here.permission_policy.revoke("never")

    here.permission_policy._listeners.append(meddle)
    here.permission_policy.add(one)
    here.permission_policy.add(never)
    await here.journal_queue.close()
    assert {rule.id for rule in await shaky.store.rules.all()} == {"one", "two"}
