"""What the person takes back: a rule everywhere, the trust in what a tool brought, the files since a message."""

import asyncio
import shutil
from pathlib import Path
from typing import Any, Self

import pytest

from desktop_agent.conversation.items import NoticeItem, ToolCallItem
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, CheckpointRestored, Envelope
from desktop_agent.types.errors import Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import SpecialistPreferences
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.desktop_agent.engine.restoring import restore, restore_since
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait
from tests.fakes.session import LIMIT, results_of

WRITES = Rule(effect=RuleEffect.ALLOW, tool="write_file", scope=RuleScope.ALWAYS)
READ_A_PAGE = Sentence("A page from the web was read.")


def write(id_: str, text: str, path: str = "note.txt") -> ToolUse:
    return ToolUse(id=id_, name="write_file", input={"path": path, "content": text})


class Office:
    """An engine over real files, whose only model is a scripted one."""

    def __init__(self, folder: Path, *turns: Turn) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.turns = turns
        self.events: list[Envelope] = []

    async def __aenter__(self) -> Self:
        self.work.mkdir(exist_ok=True)
        self.engine = await Engine.open(self.folder / "data", RunDefaults(model="m"))
        self.engine.connections._providers["e"] = ScriptedProvider(*self.turns)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.close()

    def new_session(self) -> Session:
        session = self.engine.new_session(endpoint_id="e", workspace=str(self.work))
        session.subscribe(on_event=self.events.append)
        return session

    def of(self, kind: type) -> list[Any]:
        return [envelope.event for envelope in self.events if isinstance(envelope.event, kind)]

    def text(self, name: str = "note.txt") -> str | None:
        path = self.work / name
        return path.read_text() if path.exists() else None


async def say(session: Session, text: str = "go") -> Message:
    message = Message.user(text)
    session.send(message)
    async with asyncio.timeout(LIMIT):
        await session.wait_idle()
    return message


async def card(session: Session) -> str:
    """Wait for an approval request and return its id."""
    async with asyncio.timeout(LIMIT):
        while not session.approvals.open_approvals:
            await asyncio.sleep(0.001)
    return session.approvals.open_approvals[0].approval_id


class TestRules:
    async def test_a_revoked_rule_holds_nowhere_any_more_and_calls_are_asked_about_again(self, tmp_path: Path) -> None:
        turns = (Turn(write("1", "one")), Turn(), Turn(write("2", "two")), Turn())
        async with Office(tmp_path, *turns) as office:
            one, two = office.new_session(), office.new_session()
            one.permission_policy.add(WRITES)
            await say(two)
            assert (office.text(), office.of(ApprovalRequested)) == ("one", [])
            await office.engine.revoke_rule(WRITES.id)
            assert (one.permission_policy.rules, two.permission_policy.rules, office.engine.rules) == ((), (), ())
            two.send(Message.user("again"))
            two.approvals.answer(await card(two), Deny())
            await two.wait_idle()
            assert results_of(two.history)["2"].outcome is Outcome.DENIED
            assert office.text() == "one"
        async with Office(tmp_path) as office:
            assert office.engine.rules == ()

    async def test_one_that_was_not_written_yet_does_not_come_back(self, tmp_path: Path) -> None:
        async with Office(tmp_path) as office:
            session = office.new_session()
            session.permission_policy.add(WRITES)
            await office.engine.revoke_rule(WRITES.id)
        async with Office(tmp_path) as office:
            assert office.engine.rules == ()

    async def test_a_call_that_a_rule_denied_may_be_asked_about_once_it_is_revoked(self, tmp_path: Path) -> None:
        denies = WRITES.model_copy(update={"effect": RuleEffect.DENY})
        async with Office(tmp_path, Turn(write("1", "one")), Turn(write("2", "two")), Turn()) as office:
            session = office.new_session()
            session.permission_policy.add(denies)
            session.send(Message.user("go"))
            async with asyncio.timeout(LIMIT):
                while "1" not in results_of(session.history):
                    await asyncio.sleep(0.001)
            await office.engine.revoke_rule(denies.id)
            session.approvals.answer(await card(session), AllowOnce())
            await session.wait_idle()
            outcomes = [result.outcome for result in results_of(session.history).values()]
            assert outcomes == [Outcome.DENIED, Outcome.SUCCEEDED]

    async def test_a_rule_that_nobody_knows_is_harmless(self, tmp_path: Path) -> None:
        async with Office(tmp_path) as office:
            office.new_session().permission_policy.add(WRITES)
            await office.engine.revoke_rule("nobody's")
            assert office.engine.rules == (WRITES,)

    async def test_a_disk_that_refuses_is_said_and_it_holds_as_before(self, tmp_path: Path) -> None:
        async with Office(tmp_path) as office:
            session = office.new_session()
            session.permission_policy.add(WRITES)
            await session._writer.flush()
            database = tmp_path / "data" / DATABASE_NAME
            away = database.rename(tmp_path / "away")
            with pytest.raises(StorageFailed) as refused:
                await office.engine.revoke_rule(WRITES.id)
            assert "still holds" in str(refused.value)
            assert "revoke the rule again" in str(refused.value.remedy)
            assert (session.permission_policy.rules, office.engine.rules) == ((WRITES,), (WRITES,))
            away.rename(database)
            await office.engine.revoke_rule(WRITES.id)
            assert (session.permission_policy.rules, office.engine.rules) == ((), ())
        async with Office(tmp_path) as office:
            assert office.engine.rules == ()


class TestFiles:
    async def prepared_history(self, office: Office) -> tuple[Session, list[Message]]:
        """Three prompts; the work on each wrote a file."""
        session = office.new_session()
        session.permission_policy.add(WRITES)
        return session, [await say(session, text) for text in ("first", "second", "third")]

    TURNS = (
        Turn(write("1", "one")),
        Turn(),
        Turn(write("2", "two"), write("3", "new", "other.txt")),
        Turn(),
        Turn(write("4", "three")),
        Turn(),
    )

    async def test_all_since_a_message_is_put_back_also_after_the_program_was_started_again(
        self, tmp_path: Path
    ) -> None:
        async with Office(tmp_path, *self.TURNS) as office:
            session, (_, second, _) = await self.prepared_history(office)
            assert (office.text(), office.text("other.txt")) == ("three", "new")
        async with Office(tmp_path) as office:
            reopened = await office.engine.session(session.record.id)
            reopened.subscribe(on_event=office.events.append)
            assert reopened.checkpoints is not None
            restored = await restore_since(reopened.checkpoints, second.id)
            assert [result.restored for result in restored] == [("note.txt",), ("other.txt",), ("note.txt",)]
            assert (office.text(), office.text("other.txt")) == ("one", None)
            assert len(office.of(CheckpointRestored)) == 3
            # Twice is once.
            assert await restore_since(reopened.checkpoints, second.id) == ()
            assert office.text() == "one"

    async def test_what_the_person_wrote_since_is_left_alone_and_said(self, tmp_path: Path) -> None:
        async with Office(tmp_path, *self.TURNS) as office:
            session, (_, second, _) = await self.prepared_history(office)
            (office.work / "note.txt").write_text("mine")
            assert session.checkpoints is not None
            await restore_since(session.checkpoints, second.id)
            assert (office.text(), office.text("other.txt")) == ("mine", None)
            sentences = [str(item.sentence) for item in session.transcript if isinstance(item, NoticeItem)]
            assert "Not put back, because they were changed since: note.txt" in sentences
            await restore_since(session.checkpoints, second.id, ticked=True)
            assert office.text() == "one"

    async def test_a_folder_that_is_gone_is_said(self, tmp_path: Path) -> None:
        async with Office(tmp_path, *self.TURNS) as office:
            session, (first, *_) = await self.prepared_history(office)
            shutil.rmtree(office.work)
            assert session.checkpoints is not None
            restored = await restore_since(session.checkpoints, first.id)
            names = ["note.txt", "other.txt", "note.txt", "note.txt"]
            assert [result.failed for result in restored] == [(name,) for name in names]
            sentences = [str(item.sentence) for item in session.transcript if isinstance(item, NoticeItem)]
            # The same twice in a row is said once.
            assert sentences == [f"These files could not be put back: {name}" for name in names[:-1]]
            assert not office.work.exists()

    async def test_what_cannot_be_is_refused_with_a_remedy(self, tmp_path: Path) -> None:
        wait = Wait(asyncio.Event(), asyncio.Event())
        async with Office(tmp_path, *self.TURNS, Turn(wait)) as office:
            session, (first, *_) = await self.prepared_history(office)
            assert session.checkpoints is not None
            with pytest.raises(WrongUse, match="no such message") as unknown:
                await restore_since(session.checkpoints, "nobody's")
            assert str(unknown.value.remedy) == "Choose one that is shown."
            session.send(Message.user("more"))
            assert wait.reached is not None
            await wait.reached.wait()
            with pytest.raises(WrongUse, match="still working") as working:
                await restore_since(session.checkpoints, first.id)
            assert "press Stop" in str(working.value.remedy)
            wait.until.set()
            await session.wait_idle()
            assert (office.text(), office.text("other.txt")) == ("three", "new")


async def test_each_of_two_specialists_is_undone_at_its_own_call(tmp_path: Path) -> None:
    helper, other = (
        Specialist(name=name, description="Writes.", system_prompt="You write.", tools=("write_file",))
        for name in ("helper", "other")
    )
    asks = [ToolUse(id=f"ask {one.name}", name=one.name, input={"task": "Write."}) for one in (helper, other)]
    turns = (Turn(*asks), Turn(write("1", "a", "a.txt")), Turn(), Turn(write("1", "b", "b.txt")), Turn(), Turn())
    async with Office(tmp_path, *turns) as office:
        both = SpecialistPreferences(defined=(helper, other))
        await office.engine.change_preferences(office.engine.preferences.model_copy(update={"specialists": both}))
        session = office.new_session()
        session.modes.set_by_person("accept-edits")
        await say(session)
        id_ = session.record.id
        await session.close()
        session = await office.engine.session(id_)
        assert session.checkpoints is not None
        await session.checkpoints.publish_saved_calls()
        cards = {item.tool_use_id: item for item in session.transcript if isinstance(item, ToolCallItem)}
        first, second = (cards[ask.id].checkpoints for ask in asks)
        assert (len(first), len(second)) == (1, 1)
        await restore(session.checkpoints, *first)
        assert (office.text("a.txt"), office.text("b.txt")) == (None, "b")
