"""What models used counts for the data folder, whoever asked; and a budget that is used up stops."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.engine.spending import local_day
from desktop_agent.storage.store import Store
from desktop_agent.storage.usage import UsageRows
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, RunFinished
from desktop_agent.types.errors import RemedyAction, StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Specialist
from desktop_agent.types.preferences import Preferences, ProviderPreferences, SpecialistPreferences, UsagePreferences
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, Endpoint, ModelInfo, Price
from desktop_agent.types.spending import MAX_COST, NANOS, BudgetReached, UsageReport
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait

SCRIPTED = Endpoint(id="scripted", title="Scripted", base_url="http://127.0.0.1:9/v1", kind="custom")
MODELS = (ModelInfo("m", None, Capabilities(tools=True), Price(input=10, output=20, cache_read=1)), ModelInfo("free"))


def turn(*steps: object, cost: float | None = 1.0, tokens: int = 100) -> Turn:
    used = Usage(input_tokens=tokens, output_tokens=0, cache_read_tokens=tokens // 2, total_tokens=tokens, cost=cost)
    return Turn(*(steps or (ContentDelta("Hi"),)), UsageUpdate(used))


@asynccontextmanager
async def engine_with(folder: Path, *turns: Turn, **budgets: float) -> AsyncGenerator[Engine]:
    engine = await Engine.open(folder, RunDefaults())
    try:
        engine.connections._providers["scripted"] = ScriptedProvider(*turns, models=MODELS)
        providers = ProviderPreferences(endpoints=(SCRIPTED,), endpoint_id="scripted", model="m")
        await engine.change_preferences(Preferences(providers=providers, usage=UsagePreferences(**budgets)))
        yield engine
    finally:
        await engine.close()


async def ask(session: Session, text: str = "Go") -> list[object]:
    events: list[object] = []
    session.subscribe(on_event=lambda envelope: events.append(envelope.event), pieces=False)
    session.send(Message.user(text))
    await session.wait_idle()
    return events


def errors(events: list[object]) -> list[ErrorOccurred]:
    return [event for event in events if isinstance(event, ErrorOccurred)]


async def by_model(engine: Engine) -> UsageReport:
    return await engine.spending.report("model")


async def test_an_answer_counts_with_its_day_model_and_folder_of_work(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn()) as engine:
        await ask(engine.new_session(workspace=str(tmp_path)))
        for grouping, key in (("day", local_day().isoformat()), ("model", "m"), ("project", str(tmp_path))):
            (row,) = (await engine.spending.report(grouping)).rows
            assert (row.key, row.figures.answers, row.figures.cost) == (key, 1, 1.0)
            assert row.figures.saved_nanos == 50 * 9 * NANOS // 1_000_000


async def test_one_that_is_never_stored_counts_without_its_folder(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn()) as engine:
        await ask(engine.new_session(workspace=str(tmp_path), in_memory=True))
        (row,) = (await engine.spending.report("project")).rows
        assert (row.key, row.figures.answers) == ("", 1)


async def test_the_demo_is_free(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", tokens_per_day=1) as engine:
        events = await ask(await engine.new_demo_session(), "Hello")
        assert not errors(events)
        assert not (await by_model(engine)).rows


async def test_the_work_of_a_specialist_counts_for_its_own_model(tmp_path: Path) -> None:
    helper = Specialist(name="helper", description="Helps.", system_prompt="Help.", model="free")
    call = ToolUse(id="1", name="helper", input={"task": "Look", "context": ""})
    async with engine_with(tmp_path / "data", turn(call), turn(cost=None), turn()) as engine:
        specialists = SpecialistPreferences(defined=(helper,))
        await engine.change_preferences(engine.preferences.model_copy(update={"specialists": specialists}))
        assert not errors(await ask(engine.new_session()))
        rows = {row.key: row.figures for row in (await by_model(engine)).rows}
        assert (rows["m"].answers, rows["m"].cost) == (2, 2.0)
        assert (rows["free"].answers, rows["free"].cost) == (1, None)


async def test_at_a_budget_no_turn_starts_and_the_prompt_waits_for_an_answer(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn(), turn(), cost_per_day=1) as engine:
        session = engine.new_session()
        assert not errors(await ask(session))
        events = await ask(session, "More")
        (error,) = errors(events)
        assert (error.kind, error.action) == ("budget", RemedyAction.GO_ON)
        assert events[-1] == RunFinished(RunEnd.FAILED)
        assert session.history[-1].text == "More"
        session.continue_run(over_budget=True)
        await session.wait_idle()
        assert session.history[-1].text == "Hi"
        assert len(errors(await ask(session, "And more"))) == 1


async def test_a_run_ends_at_the_next_turn_and_its_calls_have_their_results(tmp_path: Path) -> None:
    call = ToolUse(id="1", name="update_todos", input={"todos": []})
    async with engine_with(tmp_path / "data", turn(call, tokens=300), turn(), tokens_per_month=300) as engine:
        session = engine.new_session()
        (error,) = errors(await ask(session))
        assert error.kind == "budget"
        assert [message.role.value for message in session.history] == ["user", "assistant", "tool"]


async def test_a_budget_of_money_cannot_hold_for_a_model_without_a_price_one_of_tokens_can(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn(cost=None), turn(cost=None), cost_per_day=1) as engine:
        session = engine.new_session()
        for _ in range(2):
            assert not errors(await ask(session))
        (state,) = await engine.spending.budgets()
        assert (state.used, state.lacks_prices) == (0.0, True)
        budgets = UsagePreferences(tokens_per_day=200)
        await engine.change_preferences(engine.preferences.model_copy(update={"usage": budgets}))
        with pytest.raises(BudgetReached):
            await engine.spending.check("scripted")


@pytest.mark.parametrize("cost", [1e12, 1e300, float("inf")])
async def test_a_cost_beyond_reason_loses_no_answer_and_holds_the_budget(tmp_path: Path, cost: float) -> None:
    async with engine_with(tmp_path / "data", turn(cost=cost), turn(), cost_per_month=1_000_000) as engine:
        session = engine.new_session()
        assert not errors(await ask(session))
        assert session.history[-1].text == "Hi"
        (row,) = (await by_model(engine)).rows
        assert row.figures.cost == MAX_COST
        (error,) = errors(await ask(session, "More"))
        assert error.kind == "budget"


async def test_what_a_cache_beyond_reason_saved_is_stored(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn(tokens=10**15)) as engine:
        assert not errors(await ask(engine.new_session()))
        (row,) = (await by_model(engine)).rows
        assert row.figures.saved_nanos == MAX_COST * NANOS


async def test_two_processes_on_one_folder_count_together(tmp_path: Path) -> None:
    async with (
        engine_with(tmp_path / "data", turn(cost=0.6), cost_per_month=1) as one,
        engine_with(tmp_path / "data", turn(cost=0.6), turn(), cost_per_month=1) as other,
    ):
        await ask(one.new_session())
        session = other.new_session()
        assert not errors(await ask(session))
        assert len(errors(await ask(session, "More"))) == 1
        assert [state.used for state in await one.spending.budgets()] == [1.2]


async def test_summaries_and_titles_ask_nobody_either(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn(), cost_per_day=1) as engine:
        session = engine.new_session()
        events = await ask(session)
        session.compact()
        await session.wait_idle()
        assert [error.kind for error in errors(events)] == ["budget"]


async def test_what_the_disk_refuses_counts_all_the_same_and_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_with(tmp_path / "data", turn(), cost_per_day=1) as engine:
        with monkeypatch.context() as broken:

            async def refuse(*_: object) -> None:
                raise StorageFailed("The disk is full.")

            broken.setattr(UsageRows, "add", refuse)
            await ask(engine.new_session())
            (state,) = await engine.spending.budgets()
            assert state.is_reached
        assert (await by_model(engine)).total.cost == 1.0
        (state,) = await engine.spending.budgets()
        assert state.used == 1.0


async def test_an_answer_that_was_stopped_counts_with_what_is_known_of_it(tmp_path: Path) -> None:
    reached, never = asyncio.Event(), asyncio.Event()
    broken_off = Turn(ContentDelta("Half"), Wait(never, reached))
    async with engine_with(tmp_path / "data", broken_off) as engine:
        session = engine.new_session()
        session.send(Message.user("Go"))
        await reached.wait()
        session.interrupt()
        await session.wait_idle()
        (row,) = (await by_model(engine)).rows
        assert (row.figures.answers, row.figures.cost, row.figures.known_tokens) == (1, None, None)


async def test_listeners_hear_of_what_was_counted_when_it_is_stored(tmp_path: Path) -> None:
    async with engine_with(tmp_path / "data", turn()) as engine:
        counted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        engine.spending.on_change(lambda: counted.set_result(None))
        await ask(engine.new_session())
        await counted
        store = await Store.open(tmp_path / "data")
        try:
            assert (await store.usage.report("model")).total.answers == 1
        finally:
            await store.close()
