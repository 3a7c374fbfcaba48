"""A long conversation: opened by its end, the rest is loaded when somebody needs it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from desktop_agent.conversation.history import COMPACTION_AUTHOR
from desktop_agent.conversation.items import Change, Item, Prepended, ToolCallItem
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.engine import history_loader
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.storage.records import BranchPart, MessagePlace
from desktop_agent.types.blocks import Summary, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import RunStarted, TurnStarted
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import Hooks, HookVerdict
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Shaky, Stage, envelope, shaky_store


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "data") as shaky:
        yield shaky


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.engine.session_opening.FIRST_PART", 4)
    monkeypatch.setattr("desktop_agent.engine.session_branches.FIRST_PART", 4)
    monkeypatch.setattr(history_loader.HistoryLoader.load, "__defaults__", (6,))


def talk(count: int, first: int = 0) -> Iterator[Message]:
    """Prompts, calls with their results, and answers; ids of calls repeat, as some servers' do."""
    for number in range(first, first + count):
        yield Message.user(f"p{number}").model_copy(update={"id": f"p{number}"})
        use = ToolUse(id=f"call-{number % 2}", name="look", input={})
        yield Message(id=f"c{number}", role=Role.ASSISTANT, blocks=(Text(text=f"c{number}"), use))
        yield Message.tool_results([ToolResult(tool_use_id=use.id, content=(Text(text=f"r{number}"),))]).model_copy(
            update={"id": f"r{number}"}
        )
        yield Message.assistant(f"a{number}").model_copy(update={"id": f"a{number}"})


def work(count: int) -> Iterator[Message]:
    """One prompt that an agent works on for long."""
    yield Message.user("work").model_copy(update={"id": "prompt"})
    for number in range(count):
        yield from list(talk(1, number))[1:3]
    yield Message.assistant("done").model_copy(update={"id": "done"})


def summary(first_kept: str) -> Message:
    block = Summary(text="what was said", first_kept_id=first_kept)
    return Message(id="summary", role=Role.SYSTEM, blocks=(block,), injected_by=COMPACTION_AUTHOR)


async def open_stored(stage: Stage, *messages: Message, whole: bool = False) -> Session:
    record = await stage.shaky.store.create_conversation(title="t", model="m")
    await stage.shaky.store.commit(record.id, *messages)
    return await reopen(stage, record.id, whole=whole)


async def reopen(stage: Stage, id_: str, *, whole: bool = False) -> Session:
    stage.session = await reopen_session(stage.shaky.store, id_, stage.session._runs._setup, whole=whole)
    return stage.session


def stage_for(shaky: Shaky, *answers: str, **setup: object) -> Stage:
    return Stage(shaky, *(Turn(ContentDelta(answer)) for answer in answers), setup={"store": shaky.store, **setup})


def shown(items: Sequence[Item] | Transcript) -> list[tuple[type[Item], str, str]]:
    """Return what a person sees of each item."""
    return [
        (
            type(item),
            item.message_id,
            str(item.result) if isinstance(item, ToolCallItem) else str(getattr(item, "text", "")),
        )
        for item in items
    ]


@pytest.mark.parametrize("messages", [list(talk(9)), list(work(20))])
async def test_it_is_opened_by_its_end_and_grows_at_its_beginning(shaky: Shaky, messages: list[Message]) -> None:
    session = await open_stored(stage_for(shaky), *messages)
    loader, transcript = session.history_loader, session.transcript
    last = transcript[len(transcript) - 1]
    changes: list[Change] = []
    session.subscribe(on_changes=changes.extend)
    while loader.unloaded_count:
        assert session.history == tuple(messages[loader.unloaded_count :])
        assert session.history[0].role is not Role.TOOL
        before = len(transcript)
        await loader.load()
        assert changes == [Prepended(len(transcript) - before)]
        changes.clear()
    assert session.history == tuple(messages)
    assert shown(transcript) == shown(Transcript(messages))
    assert len({item.id for item in transcript}) == len(transcript)
    assert transcript[len(transcript) - 1] is last


async def test_what_goes_on_below_finds_its_items_after_others_were_prepended(shaky: Shaky) -> None:
    stage = stage_for(shaky, "new")
    session = await open_stored(stage, *talk(5))
    changes: list[Change] = []
    await session.history_loader.load_all()
    session.subscribe(on_changes=changes.extend)
    session._writer.notify_changes(session.transcript._calls.finish(ToolResult(tool_use_id="call-0"), 1.0))
    places = [index for index, item in enumerate(session.transcript) if isinstance(item, ToolCallItem)]
    assert [getattr(change, "index", None) for change in changes] == [places[-1]]  # the newest call of this id
    await stage.say("more")
    assert shown(session.transcript)[-2:] == shown(Transcript(session.history))[-2:]


@pytest.mark.parametrize("place", [20, 36])
async def test_the_model_reads_the_same_as_if_all_were_in_memory(shaky: Shaky, place: int) -> None:
    messages = list(talk(9))
    messages.insert(place, summary("p4"))
    requests = []
    for whole in (True, False):
        stage = stage_for(shaky, "new")
        session = await open_stored(stage, *messages, whole=whole)
        await stage.say("go")
        requests.append([(message.role, message.text) for message in stage.provider.requests[0].messages])
    assert requests[0] == requests[1]
    assert 0 < session.history_loader.unloaded_count <= messages.index(next(m for m in messages if m.id == "p4"))


async def test_the_prompt_of_summarised_work_is_read_too(shaky: Shaky) -> None:
    messages = [*talk(3), *list(work(20))[:-1], summary("c15"), Message.assistant("done")]
    requests = []
    for whole in (True, False):
        stage = stage_for(shaky, "new")
        await open_stored(stage, *messages, whole=whole)
        await stage.say("go")
        requests.append([(message.role, message.text) for message in stage.provider.requests[0].messages])
    assert requests[0] == requests[1]
    assert (Role.USER, "work") in requests[0]


async def test_where_nothing_was_summarised_all_is_read_in_large_parts(
    shaky: Shaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_loader, "_LARGE_PART", 12)
    stage = stage_for(shaky, "new")
    await open_stored(stage, *talk(10))
    parts: list[int] = []
    load_above = shaky.store.branch_parts.load_above

    async def load(id_: str, place: MessagePlace, at_least: int | None) -> BranchPart:
        part = await load_above(id_, place, at_least)
        parts.append(len(part.messages))
        return part

    monkeypatch.setattr(shaky.store.branch_parts, "load_above", load)
    await stage.say("go")
    assert parts == [12, 12, 12]
    assert len(stage.provider.requests[0].messages) == 41


INSTRUCTION = Message(id="i", role=Role.SYSTEM, blocks=(Text(text="Be brief."),))


@pytest.mark.parametrize("messages", [[*talk(9)], [INSTRUCTION, *talk(9), summary("p7")], [*talk(9), summary("gone")]])
async def test_all_is_loaded_where_the_model_reads_all_or_instructions(shaky: Shaky, messages: list[Message]) -> None:
    stage = stage_for(shaky, "new")
    session = await open_stored(stage, *messages)
    assert session.history_loader.unloaded_count
    await stage.say("go")
    assert session.history_loader.unloaded_count == 0
    assert session.history[: len(messages)] == tuple(messages)


async def test_hooks_see_all_of_it(shaky: Shaky) -> None:
    lengths: list[int] = []

    async def judge(moment: object) -> HookVerdict | None:
        lengths.append(len(moment.history))  # type: ignore[attr-defined]
        return None

    stage = stage_for(shaky, "new", hooks=Hooks(user_prompt_submit=(judge,)))
    await open_stored(stage, *talk(9), summary("p7"))
    await stage.say("go")
    assert lengths == [37]


async def test_a_prompt_that_is_edited_where_the_part_begins_stays_on_its_branch(shaky: Shaky) -> None:
    stage = stage_for(shaky, "other")
    messages = [*talk(9)]
    session = await open_stored(stage, *messages, summary("p8"))
    await session.history_loader.load(2)
    first = session.history[0]
    assert session.history_loader.unloaded_count
    while first.role is not Role.USER:
        await session.history_loader.load(1)
        first = session.history[0]
    above = session.history_loader.unloaded_count
    session.branches.edit_prompt(first.id, Message.user("edited"))
    await stage.idle()
    edited = session.history[-2:]
    assert [message.text for message in edited] == ["edited", "other"]
    for opened_session in (session, await reopen(stage, session.record.id, whole=True)):
        await opened_session.history_loader.load_all()
        assert opened_session.history == (*messages[:above], *edited)
        assert opened_session.branches.versions[edited[0].id].ids == (first.id, edited[0].id)
        assert shown(opened_session.transcript) == shown(Transcript(opened_session.history))


async def test_versions_are_known_for_what_is_loaded_and_any_can_be_shown(shaky: Shaky) -> None:
    stage = stage_for(shaky, "x", "y")
    session = await open_stored(stage, *talk(9), whole=True)
    before = session.history
    session.branches.edit_prompt("p2", Message.user("second way"))
    await stage.idle()
    await session.branches.show("p8")
    assert session.history == before
    session.branches.edit_prompt("p7", Message.user("third way"))
    await stage.idle()
    await session.branches.show("p8")
    await session.close()
    versions = session.branches.versions
    reopened = await reopen(stage, session.record.id)
    known: set[int] = set()
    while reopened.history_loader.unloaded_count:
        assert reopened.branches.versions == {
            id_: place for id_, place in versions.items() if id_ in {message.id for message in reopened.history}
        }
        known.add(len(reopened.branches.versions))
        await reopened.history_loader.load(1)
    assert known | {len(reopened.branches.versions)} == {0, 1, 2}
    third = await reopen(stage, session.record.id)
    await third.branches.show(versions["p2"].ids[1])
    assert [message.text for message in third.history[-2:]] == ["second way", "x"]
    assert len(third.history) == 10
    assert third.history_loader.unloaded_count == 0


async def two_long_branches(stage: Stage) -> tuple[str, list[Message], list[Message]]:
    """Return the id of a stored conversation, and its branches, of which the second is in view."""
    shared, first, second = list(talk(2)), list(talk(10, 2)), list(talk(9, 20))
    record = await stage.shaky.store.create_conversation(title="t", model="m")
    await stage.shaky.store.commit(record.id, *shared, *first)
    await stage.shaky.store.update_conversation(record.id, head_message_id=shared[-1].id)
    await stage.shaky.store.commit(record.id, *second)
    return record.id, [*shared, *first], [*shared, *second]


async def test_another_branch_is_loaded_by_its_end(shaky: Shaky) -> None:
    stage = stage_for(shaky)
    id_, first, second = await two_long_branches(stage)
    session = await reopen(stage, id_)
    await session.branches.show("a10", whole=False)
    assert first[: session.history_loader.unloaded_count] + list(session.history) == first
    assert session.history_loader.unloaded_count > 30
    assert shown(session.transcript) == shown(Transcript(session.history))
    assert not session.branches.versions
    await session.branches.show("p23", whole=False)
    assert session.history[0].id == "p23"
    assert second[: session.history_loader.unloaded_count] + list(session.history) == second
    while session.history_loader.unloaded_count:
        await session.history_loader.load()
    assert list(session.history) == second
    assert session.branches.versions["p20"].ids == ("p2", "p20")
    assert shown(session.transcript) == shown(Transcript(session.history))
    await session.branches.show("p2", whole=False)
    assert list(session.history) == first
    await session.flush()
    assert await stage.stored() == tuple(first)


async def test_another_branch_meets_what_is_in_memory(shaky: Shaky) -> None:
    stage = stage_for(shaky)
    id_, first, second = await two_long_branches(stage)
    session = await reopen(stage, id_)
    assert await session.history_loader.load_until("p1")
    above = session.history_loader.unloaded_count
    assert above
    await session.branches.show("p2", whole=False)
    assert list(session.history) == first[above:]
    session = await reopen(stage, id_)
    # From its part on, the branch that is asked for has all that is in memory.
    await session.branches.show("p2", whole=False)
    await session.branches.show("p1", whole=False)
    assert list(session.history) == second[second.index(session.history[0]) :]
    assert session.history[0].id == "p1"


async def test_the_branch_that_was_seen_last_comes_back_where_it_was_left_in_part(shaky: Shaky) -> None:
    stage = stage_for(shaky, "new")
    id_, first, second = await two_long_branches(stage)
    session = await reopen(stage, id_)
    await session.branches.show("p10", whole=False)
    session.branches.edit_prompt("p10", Message.user("newer"))
    await stage.idle()
    await session.branches.show("a11", whole=False)
    await session.branches.show("a28", whole=False)
    assert session.history[-1].id == "a28"
    assert not {"p5", "a11"} & {message.id for message in session.history}
    await session.branches.show("p5", whole=False)
    assert list(session.history) == first[first.index(session.history[0]) :]
    await session.branches.show("p25", whole=False)
    assert session.history[-1] == second[-1]


async def test_a_long_branch_comes_into_view_where_nothing_was(shaky: Shaky) -> None:
    stage = stage_for(shaky)
    messages = list(talk(10))
    session = await open_stored(stage, *messages, whole=True)
    session.edit_history(())
    await session.flush()
    session = await reopen(stage, session.record.id)
    assert session.history == ()
    assert session.branches.continuations == ("p0",)
    await session.branches.show("p0", whole=False)
    assert session.history == tuple(messages)
    session.edit_history(())
    await session.flush()
    session = await reopen(stage, session.record.id)
    await session.branches.show("a9", whole=False)
    assert session.history_loader.unloaded_count
    assert messages[: session.history_loader.unloaded_count] + list(session.history) == messages


async def test_the_ids_of_a_branch_that_is_left_are_those_it_has_alone(shaky: Shaky) -> None:
    id_, first, second = await two_long_branches(stage_for(shaky))
    ids = await shaky.store.branch_parts.ids_apart(id_, first[-1].id, second[-1].id)
    assert ids == {message.id for message in first[8:]}


async def test_an_answer_whose_prompt_is_not_loaded_is_asked_for_anew_once_it_is(shaky: Shaky) -> None:
    stage = stage_for(shaky, "again")
    session = await open_stored(stage, *talk(2), *work(20))
    with pytest.raises(WrongUse, match="not in memory"):
        session.branches.regenerate("done")
    await session.history_loader.load_turn("done")
    session.branches.regenerate("done")
    await stage.idle()
    assert [message.text for message in session.history[-2:]] == ["work", "again"]
    await session.close()
    assert [message.text for message in (await shaky.store.load(session.record.id)).messages[-3:]] == [
        "a1",
        "work",
        "again",
    ]


async def test_a_message_is_found_far_above(shaky: Shaky) -> None:
    session = await open_stored(stage_for(shaky), *talk(9))
    assert await session.history_loader.load_until("c3")
    assert 0 < session.history_loader.unloaded_count <= 13
    above = session.history_loader.unloaded_count
    assert not await session.history_loader.load_until("nowhere")
    assert session.history_loader.unloaded_count == above


async def test_what_broke_off_is_recovered_by_its_end(shaky: Shaky) -> None:
    stage = stage_for(shaky)
    record = await shaky.store.create_conversation(title="t", model="m")
    await shaky.store.commit(record.id, *talk(9), Message.user("go"))
    begun = [
        envelope(1, RunStarted("p"), turn_id=None),
        envelope(2, TurnStarted("turn", "answer", "m")),
        envelope(3, ContentDelta("half")),
    ]
    await shaky.store.append_journal(record.id, begun)
    session = await reopen(stage, record.id)
    assert session.history_loader.unloaded_count == 33
    assert [message.text for message in session.history[-2:]] == ["go", "half"]
    await session.history_loader.load_all()
    assert session.history == (await shaky.store.load(record.id)).messages
    assert len(session.history) == 38


async def test_what_two_load_at_once_is_taken_in_once(shaky: Shaky) -> None:
    session = await open_stored(stage_for(shaky), *talk(9))
    await asyncio.gather(*(session.history_loader.load() for _ in range(3)))
    await session.history_loader.load_all()
    assert [message.id for message in session.history] == [message.id for message in talk(9)]


async def test_a_deletion_and_its_plan_have_all_of_the_branch(shaky: Shaky) -> None:
    stage = stage_for(shaky)
    session = await open_stored(stage, *talk(5))
    plan = await session.branches.plan_deletion("a1")
    assert (plan.head, plan.following) == ("p1", 6)
    session = await reopen(stage, session.record.id)
    assert session.history_loader.unloaded_count
    assert (await session.branches.load_tree()).deletion("a1") == plan
    await session.branches.delete("a1")
    assert session.history_loader.unloaded_count == 0
    assert [message.id for message in session.history] == ["p0", "c0", "r0", "a0", "p1"]
    assert shown(session.transcript)[:-1] == shown(Transcript(session.history))
    assert await stage.stored() == session.history


async def test_the_head_is_known_where_the_first_messages_in_memory_are_left(shaky: Shaky) -> None:
    stage = stage_for(shaky, "new")
    session = await open_stored(stage, *talk(3))
    above = session._writer.above
    assert above is not None
    first = session.history[0]
    session.branches.edit_prompt(first.id, Message.user("again"))
    assert session._writer.head == above.id
    await session.wait_idle()
    assert session.record.title == "t"
    tree = await session.branches.load_tree()
    assert tree.head == session.history[-1].id
    await session.history_loader.load_all()
    assert [message.text for message in session.history][-3:] == ["a1", "again", "new"]


async def test_no_title_is_asked_for_while_the_first_prompt_is_not_in_memory(shaky: Shaky) -> None:
    requests: list[object] = []
    stage = stage_for(shaky, "one", "two", title_model=requests.append)
    session = await open_stored(stage, *talk(5), summary("p4"))
    await stage.say("more")
    assert session.history_loader.unloaded_count
    assert not requests
    await session.history_loader.load_all()
    await stage.say("and more")
    assert requests
