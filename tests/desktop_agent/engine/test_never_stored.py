"""A conversation of the engine that is never stored, unless the person wants it after all."""

import asyncio
import base64
from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import store_session
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text
from desktop_agent.types.errors import StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import ArgumentsPattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.provider_events import ContentDelta
from tests.desktop_agent.engine.test_engine import all_bytes, opened
from tests.desktop_agent.storage.test_conversation_trees import PIXEL
from tests.fakes.scripted_provider import Turn, Wait

MARK = "quaxolotl"


async def answered_session(engine: Engine) -> Session:
    session = engine.new_session(in_memory=True)
    session.send(Message.user(f"{MARK} one"))
    await session.wait_idle()
    return session


async def test_nothing_of_it_is_written(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path / "data", Turn(ContentDelta(f"{MARK} two")))
    session = await answered_session(engine)
    assert session.is_in_memory
    assert await engine.session(session.record.id) is session
    await session.flush()
    await engine.write_all()
    assert engine.unsaved == ()
    assert await engine.store.list_conversations() == ()
    await engine.close()
    assert MARK.encode() not in all_bytes(tmp_path)


async def test_rules_for_others_are_stored_and_its_own_end_with_it(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path / "data", Turn(ContentDelta("Hi")))
    session = await answered_session(engine)
    for scope in RuleScope.ALWAYS, RuleScope.CONVERSATION:
        rule = Rule(effect=RuleEffect.ALLOW, tool=scope, scope=scope, conversation_id=session.record.id)
        session.permission_policy.add(rule)
    assert {rule.tool for rule in engine.rules} == {RuleScope.ALWAYS, RuleScope.CONVERSATION}
    await session.close()
    assert {rule.tool for rule in engine.rules} == {RuleScope.ALWAYS}
    assert [rule.tool for rule in (await engine.store.rules.load()).rules] == [RuleScope.ALWAYS]
    await engine.close()


async def test_a_rule_for_others_does_not_repeat_arguments_of_its_call(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path / "data", Turn(ContentDelta("Hi")))
    session = await answered_session(engine)
    pattern = ArgumentsPattern(digest="d", words=MARK)
    rule = Rule(effect=RuleEffect.ALLOW, tool="act", pattern=pattern, scope=RuleScope.ALWAYS)
    session.permission_policy.add(rule)
    session.permission_policy.mark_used(rule.id)
    await session.close()
    (stored,) = (await engine.store.rules.load()).rules
    assert (stored.id, stored.pattern) == (rule.id, ArgumentsPattern(digest="d"))
    assert [shared.pattern for shared in engine.rules] == [stored.pattern]
    await engine.close()
    assert MARK.encode() not in all_bytes(tmp_path)


async def test_it_is_stored_after_all_with_all_its_branches(tmp_path: Path) -> None:
    engine, _ = await opened(tmp_path / "data", *(Turn(ContentDelta(word)) for word in ("Hi", "Ho", "Hu")))
    session = await answered_session(engine)
    first = session.history
    picture = Image(source=Base64Source(media_type="image/png", data=PIXEL), name="pixel")
    session.branches.edit_prompt(first[0].id, Message.user_with_blocks([Text(text="other"), picture]))
    await session.wait_idle()
    session.change_record(title="Mine", title_is_automatic=False)
    session.modes.set_by_person("accept-edits")
    await store_session(engine.store, session)
    stored = await engine.session(session.record.id)
    assert session.is_closed
    assert not stored.is_in_memory
    assert [message.text for message in stored.history] == ["other", "Ho"]
    assert (stored.record.title, stored.record.endpoint_id, stored.record.model) == ("Mine", "scripted", "m")
    assert stored.record.state.mode == "accept-edits"
    assert stored.record.state.outside == ()
    source = next(block.source for block in stored.history[0].blocks if isinstance(block, Image))
    assert isinstance(source, StoredSource)
    assert await engine.pictures.get(source) == base64.b64decode(PIXEL)
    await stored.branches.show(first[1].id)
    assert stored.history == first
    stored.send(Message.user("go on"))
    await stored.wait_idle()
    assert stored.history[-1].text == "Hu"
    await engine.close()


async def test_one_that_works_or_cannot_be_stored_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = Wait(asyncio.Event())
    engine, _ = await opened(tmp_path / "data", Turn(ContentDelta("Hi")), Turn(wait))
    session = await answered_session(engine)

    async def refuse(*_: object, **__: object) -> bool:
        raise StorageFailed("No room.")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "import_tree", refuse)
        with pytest.raises(StorageFailed):
            await store_session(engine.store, session)
    assert not session.is_closed
    session.send(Message.user("more"))
    with pytest.raises(WrongUse, match="still working"):
        await store_session(engine.store, session)
    await engine.close()
