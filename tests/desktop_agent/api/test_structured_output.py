"""Answers of a type, over the wire: every kind of type, every dialect, and a model that gets it wrong at first."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from desktop_agent.api.client import Client
from desktop_agent.api.responses import INJECTED_BY
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.errors import OutputInvalid, WrongUse
from desktop_agent.types.messages import Role
from desktop_agent.types.policies import Hooks, UserPromptSubmit
from desktop_agent.types.provider_events import Usage, UsageUpdate
from desktop_agent.types.providers import Dialect
from tests.fakes.demo_server import DIALECTS
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.library import Gate, acting, adder, call, says
from tests.fakes.scripted_provider import Turn
from tests.fakes.vendor_streams import ROOTS, said


class Town(BaseModel):
    name: str
    rivers: list[str] = []


@dataclass
class Lake:
    name: str
    depth: int


class Peak(TypedDict):
    name: str
    height: int


class Tree(BaseModel):
    word: str
    below: "list[Tree]" = []


BERN, LAKE = {"name": "Bern", "rivers": ["Aare"]}, {"name": "Thun", "depth": 217}
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "model": (Town, BERN, Town(**BERN)),
    "dataclass": (Lake, LAKE, Lake(**LAKE)),
    "typed dictionary": (Peak, {"name": "Eiger", "height": 3967}, {"name": "Eiger", "height": 3967}),
    "list": (list[Town], {"answer": [BERN]}, [Town(**BERN)]),
    "list without its object": (list[Town], [BERN], [Town(**BERN)]),
    "union": (Town | Lake, {"answer": LAKE}, Lake(**LAKE)),
    "number": (int, {"answer": 42}, 42),
    "contains itself": (
        Tree,
        {"word": "a", "below": [{"word": "b", "below": []}]},
        Tree(word="a", below=[Tree(word="b")]),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_becomes_the_type_that_was_asked_for(dialect: Dialect, kind: str) -> None:
    output_type, answer, expected = KINDS[kind]
    async with (
        # Half an answer first: it is asked for again.
        Loopback(Reply(said(dialect, ['{"name": '])), Reply(said(dialect, [json.dumps(answer)]))) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        assert (await client.complete("Well?", output_type=output_type)).output == expected
    first, second = (request.body.decode() for request in server.requests)
    field = (
        "name" if isinstance(answer, dict) and "name" in answer else "word" if kind == "contains itself" else "answer"
    )
    assert f'"{field}"' in first.replace('\\"', '"')
    assert "does not fit" in second


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_that_never_answers_in_json_is_an_error_and_the_client_goes_on(dialect: Dialect) -> None:
    async with (
        Loopback(Reply(said(dialect, ["Bern, of course."]))) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        with pytest.raises(OutputInvalid) as caught:
            await client.complete("Well?", output_type=list[Town], output_retries=1)
        assert caught.value.detail == "Bern, of course."
        assert len(server.requests) == 2
        assert (await client.complete("Well?")).text == "Bern, of course."


async def test_what_is_no_type_for_an_answer_is_told_before_anything_is_asked() -> None:
    async with Client(model="m", base_url="http://127.0.0.1:9/v1") as client:
        with pytest.raises(WrongUse, match="cannot be the type of an answer"):
            await client.complete("Well?", output_type=Client)
        assert client.history == ()


async def test_no_hook_is_asked_about_a_question_that_nobody_wrote() -> None:
    judged: list[str] = []

    async def look(moment: UserPromptSubmit) -> None:
        judged.append(moment.prompt.text)

    async with (
        Loopback(Reply(said("openai-chat", ["no"])), Reply(said("openai-chat", [json.dumps(BERN)]))) as server,
        Client(
            model="m",
            base_url=f"{server.root}/{ROOTS['openai-chat']}",
            hooks=Hooks().add_user_prompt_submit(look),
        ) as client,
    ):
        assert (await client.complete("Well?", output_type=Town)).output == Town(**BERN)
        prompts = [message.injected_by for message in client.history if message.role is Role.USER]
    assert judged == ["Well?"]
    assert prompts == [None, INJECTED_BY]


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_server_that_refuses_the_schema_is_asked_in_words(dialect: Dialect, status: int) -> None:
    words = b'{"error": {"message": "This cannot be had."}}'
    refusal = Reply(words, status, {"content-type": "application/json"}, "length")
    async with (
        Loopback(refusal, Reply(said(dialect, [json.dumps(BERN)]))) as server,
        Client(model="m", dialect=dialect, base_url=f"{server.root}/{ROOTS[dialect]}") as client,
    ):
        assert (await client.complete("Well?", output_type=Town)).output == Town(**BERN)
    assert len(server.requests) == 2


async def test_an_answer_that_was_stopped_says_so_and_not_that_it_does_not_fit() -> None:
    gate = Gate()
    options, _ = acting(Turn(says('{"name": '), gate.step, says('"Bern"}')))
    async with Client(options) as client:
        task = asyncio.create_task(client.complete("Well?", output_type=Town))
        await gate.until_arrived()
        client.interrupt()
        with pytest.raises(OutputInvalid, match="was stopped before there was an answer"):
            await task
        assert client.ended is RunEnd.CANCELLED


async def test_an_answer_that_a_limit_ended_says_so() -> None:
    options, _ = acting(Turn(call()), Turn(call()), tools=(adder(),), auto_execute_tools=True, max_tool_iterations=1)
    async with Client(options) as client:
        with pytest.raises(OutputInvalid, match="A limit ended the run"):
            await client.complete("Well?", output_type=Town)
        assert client.ended is RunEnd.LIMIT


async def test_the_usage_is_that_of_all_answers_until_one_fits() -> None:
    answers = ("no", "{}", '{"name": "Bern"}')
    turns = [Turn(says(text), UsageUpdate(Usage(input_tokens=10**place))) for place, text in enumerate(answers)]
    options, provider = acting(*turns)
    async with Client(options) as client:
        response = await client.complete("Well?", output_type=Town, output_retries=2)
    provider.assert_finished()
    assert (response.output.name, response.usage) == ("Bern", Usage(input_tokens=111))


async def test_calls_that_wait_for_results_are_said_and_then_there_is_an_answer() -> None:
    options, _ = acting(Turn(call("1")), Turn(says(json.dumps(BERN))), tools=(adder(),), auto_execute_tools=False)
    async with Client(options) as client:
        with pytest.raises(OutputInvalid, match="wait for their results"):
            await client.complete("Well?", output_type=Town)
        assert client.ended is RunEnd.AWAITING_RESULTS
        client.add_tool_result("1", "5")
        assert (await client.complete(output_type=Town)).output == Town(**BERN)
