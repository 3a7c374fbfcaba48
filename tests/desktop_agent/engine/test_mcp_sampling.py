"""What a model answers for a server: seen by a person before it is asked, and before its answer goes out."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.mcp_servers import MAX_TOKENS, SamplingHandler, SamplingTarget
from desktop_agent.engine.spending import local_day
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.errors import Overloaded, ToolUseFailed, WrongUse
from desktop_agent.types.mcp import ConsentHandlers, SamplingAnswer, SamplingRequest
from desktop_agent.types.messages import Role
from desktop_agent.types.preferences import Preferences, ProviderPreferences, UsagePreferences
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import Endpoint, ModelInfo, Price, ToolChoice
from desktop_agent.types.spending import BudgetReached, UsageFigures, UsageKey
from desktop_agent.types.tool_calls import ToolSpec
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait

SCRIPTED = Endpoint(id="scripted", title="Scripted", base_url="http://127.0.0.1:9/v1")
ASKED = SamplingRequest("Server", (("user", "Name a colour."), ("assistant", "Which kind?")), "Be short.", 50)
BLUE = Turn(ContentDelta("Blue."), UsageUpdate(Usage(input_tokens=9, output_tokens=2, cost=0.25)))


class Person:
    """Agrees as told, and remembers what was shown."""

    def __init__(self, *, to_ask: bool = True, to_send: bool = True) -> None:
        self.requests: list[SamplingRequest] = []
        self.answers: list[SamplingAnswer] = []
        self.spent: list[Usage] = []
        self._to_ask, self._to_send = to_ask, to_send

    @property
    def people(self) -> ConsentHandlers:
        return ConsentHandlers(approve_sampling=self._ask, approve_answer=self._send)

    async def _ask(self, request: SamplingRequest) -> bool:
        self.requests.append(request)
        return self._to_ask

    async def _send(self, request: SamplingRequest, answer: SamplingAnswer) -> bool:
        assert request == self.requests[-1]
        self.answers.append(answer)
        return self._to_send


@asynccontextmanager
async def sampling(folder, person, *turns, model="m"):
    engine = await Engine.open(folder, RunDefaults())
    try:
        provider = ScriptedProvider(*turns, models=(ModelInfo("m", "Model M", price=Price(input=1, output=2)),))
        engine.connections._providers["scripted"] = provider
        providers = ProviderPreferences(endpoints=(SCRIPTED,), endpoint_id="scripted", model=model)
        await engine.change_preferences(Preferences(providers=providers))
        engine.consent_handlers = person.people
        handler = SamplingHandler(
            lambda: engine.consent_handlers,
            lambda _: SamplingTarget("scripted", model),
            engine.connections,
            engine.spending,
        )
        yield handler, provider
        provider.assert_finished()
    finally:
        await engine.close()


async def test_the_person_sees_who_would_answer_and_then_what_it_said(tmp_path):
    person = Person()
    async with sampling(tmp_path, person, BLUE) as (samples, provider):
        answer = await samples.sample(ASKED, person.spent.append)
        assert answer == SamplingAnswer("Blue.", "m", provider_usage := answer.usage)
        assert provider_usage.cost == 0.25
        assert person.spent == [provider_usage]
        assert person.answers == [answer]
        model = person.requests[0].answering_model
        assert (model.endpoint, model.model, model.title, model.price) == (
            "Scripted",
            "m",
            "Model M",
            Price(input=1, output=2),
        )
        (request,) = provider.requests
        assert request.text_only
        assert [(message.role, message.text) for message in request.messages] == [
            (Role.USER, "Name a colour."),
            (Role.ASSISTANT, "Which kind?"),
        ]
        assert request.config.system_prompt == "Be short."
        assert request.config.max_tokens == 50
        assert request.tools == ()


async def test_no_model_is_asked_what_the_person_denied(tmp_path):
    person = Person(to_ask=False)
    async with sampling(tmp_path, person) as (samples, provider):
        assert await samples.sample(ASKED, person.spent.append) is None
        assert provider.requests == []
        assert person.answers == []


async def test_an_answer_that_the_person_keeps_goes_nowhere(tmp_path):
    person = Person(to_send=False)
    async with sampling(tmp_path, person, BLUE) as (samples, _):
        assert await samples.sample(ASKED, person.spent.append) is None
        assert [answer.text for answer in person.answers] == ["Blue."]
        assert [usage.cost for usage in person.spent] == [0.25]


async def test_tokens_are_bounded_and_a_cut_is_told(tmp_path):
    person = Person()
    cut = Turn(ContentDelta("Bl"), MessageDelta(StopReason.MAX_TOKENS), Done())
    async with sampling(tmp_path, person, cut) as (samples, provider):
        greedy = SamplingRequest("Server", (("user", "Go on."),), None, 10_000_000)
        answer = await samples.sample(greedy, person.spent.append)
        assert answer.is_truncated
        assert person.requests[0].max_tokens == provider.requests[0].config.max_tokens == MAX_TOKENS


async def test_without_a_model_the_person_is_told_so_and_nothing_is_asked(tmp_path):
    person = Person()
    async with sampling(tmp_path, person, model=None) as (samples, _):
        with pytest.raises(WrongUse):
            await samples.sample(ASKED, person.spent.append)
        assert person.requests[0].answering_model is None


async def test_what_the_models_server_says_against_it_is_raised(tmp_path):
    person = Person()
    async with sampling(tmp_path, person, Turn(Overloaded("busy"))) as (samples, _):
        with pytest.raises(Overloaded):
            await samples.sample(ASKED, person.spent.append)
        assert person.answers == []


async def test_what_an_answer_used_that_broke_off_is_told_too(tmp_path):
    person = Person()
    broken = Turn(ContentDelta("Bl"), UsageUpdate(Usage(cost=0.125)), Overloaded("busy"))
    async with sampling(tmp_path, person, broken) as (samples, _):
        with pytest.raises(Overloaded):
            await samples.sample(ASKED, person.spent.append)
        assert person.spent == [Usage(cost=0.125)]


LOOK = ToolSpec("look", "Looks at a thing.", {"type": "object", "properties": {"of": {"type": "string"}}})


async def test_a_model_may_ask_for_tools_of_the_server(tmp_path):
    person = Person()
    calls = (ToolUse(id="b", name="look", input={"of": "sky"}), ToolUse(id="c", name="look", input={}))
    before = (
        ("user", "Name a colour."),
        ("assistant", "Let me look."),
        ("assistant", ToolUse(id="a", name="look")),
        ("assistant", ToolUse(id="a2", name="look")),
        ("user", ToolResult(tool_use_id="a", content=(Text(text="It is dark."),))),
        ("user", ToolResult(tool_use_id="a2", outcome=Outcome.FAILED)),
        ("user", "Well?"),
    )
    sampling_request = replace(ASKED, messages=before, tools=(LOOK,), tool_choice="required")
    async with sampling(tmp_path, person, Turn(ContentDelta("Once more."), *calls)) as (samples, provider):
        answer = await samples.sample(sampling_request, person.spent.append)
        assert (answer.text, answer.calls) == ("Once more.", calls)
        assert person.answers == [answer]
        (request,) = provider.requests
        assert request.tools == (ToolSpec("look", LOOK.description, LOOK.input_schema),)
        assert request.tool_choice == ToolChoice("required")
        assert [(message.role, len(message.blocks)) for message in request.messages] == [
            (Role.USER, 1),
            (Role.ASSISTANT, 3),
            (Role.TOOL, 2),
            (Role.USER, 1),
        ]
        assert request.messages[2].blocks == (before[4][1], before[5][1])


@pytest.mark.parametrize(
    "call",
    [ToolUse(id="b", name="wreck", input={}), ToolUse(id="b", name="look", malformed='{"of')],
    ids=["no tool of the server", "malformed"],
)
async def test_a_call_that_nobody_could_read_goes_nowhere(tmp_path, call):
    person = Person()
    async with sampling(tmp_path, person, Turn(call)) as (samples, _):
        with pytest.raises(ToolUseFailed):
            await samples.sample(replace(ASKED, tools=(LOOK,)), person.spent.append)
        assert person.answers == []


async def test_a_cancel_ends_the_model_too(tmp_path):
    person = Person()
    reached = asyncio.Event()
    async with sampling(tmp_path, person, Turn(Wait(asyncio.Event(), reached))) as (samples, provider):
        asking = asyncio.create_task(samples.sample(ASKED, person.spent.append))
        await reached.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert provider.closed_early == 1
        assert person.answers == []


async def test_nothing_is_offered_to_servers_where_nobody_can_agree(tmp_path):
    person = Person()
    async with sampling(tmp_path, person) as (samples, _):
        assert samples.handlers().sample is not None
        half = SamplingHandler(
            lambda: ConsentHandlers(approve_sampling=person._ask),
            samples._find_target,
            samples._connections,
            samples._spending,
        )
        assert half.handlers().sample is None
        assert await half.sample(ASKED, person.spent.append) is None


async def test_a_budget_holds_before_the_person_is_asked_and_where_it_is_used_up_while_they_are(tmp_path):
    person = Person()
    async with sampling(tmp_path, person) as (samples, _):
        spending = samples._spending
        spending._preferences = lambda: UsagePreferences(tokens_per_day=10)

        async def agree_late(request):
            await spending._rows.add({UsageKey(local_day(), "m", ""): UsageFigures(answers=1, tokens=10)})
            return await person._ask(request)

        people = replace(person.people, approve_sampling=agree_late)
        samples._consent = lambda: people
        for _ in range(2):
            with pytest.raises(BudgetReached):
                await samples.sample(ASKED, person.spent.append)
            assert len(person.requests) == 1


async def test_what_it_costs_counts_for_the_budgets(tmp_path):
    person = Person(to_send=True)
    async with sampling(tmp_path, person, BLUE) as (samples, _):
        await samples.sample(ASKED, person.spent.append)
        assert (await samples._spending.report("model")).total.cost == 0.25
