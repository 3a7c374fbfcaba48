"""Questions of servers, until somebody answers."""

import asyncio

from desktop_agent.types.mcp import ElicitationAnswer, ElicitationRequest, SamplingAnswer, SamplingRequest
from tests.fakes.qt_loop import Heard
from ui.bridge.mcp.requests import McpRequests

FORM = ElicitationRequest("Notes", "Who?")
SAMPLING = SamplingRequest("Notes", (("user", "Sum it up."),), None, 10)


def test_questions_wait_in_order_and_each_gets_its_own_answer(in_loop):
    async def work():
        asking = McpRequests()
        people, changes = asking.consent_handlers, Heard(asking.changed)
        form = asyncio.create_task(people.elicit(FORM))
        request = asyncio.create_task(people.approve_sampling(SAMPLING))
        answer = asyncio.create_task(people.approve_answer(SAMPLING, SamplingAnswer("x", "m")))
        await asyncio.sleep(0)
        first, second, third = asking.waiting
        assert (first.request, second.answer, third.answer.text) == (FORM, None, "x")
        assert len(changes) == 3
        asking.approve(second.id, agreed=True)
        asking.answer(first.id, ElicitationAnswer("accept", {"name": "Ada"}))
        asking.approve(third.id, agreed=False)
        assert asking.waiting == ()
        assert (await form).content == {"name": "Ada"}
        assert await request is True
        assert await answer is False
        asking.approve(second.id, agreed=False)
        assert len(changes) == 6
        changes.leave()

    in_loop(work())


def test_a_question_that_is_taken_back_waits_no_more(in_loop):
    async def work():
        asking = McpRequests()
        form = asyncio.create_task(asking.consent_handlers.elicit(FORM))
        await asyncio.sleep(0)
        form.cancel()
        await asyncio.wait([form])
        assert asking.waiting == ()

    in_loop(work())


def test_with_nobody_looking_nothing_is_agreed_to(in_loop):
    async def work():
        asking = McpRequests()
        open_one = asyncio.create_task(asking.consent_handlers.approve_sampling(SAMPLING))
        await asyncio.sleep(0)
        asking.close()
        assert await open_one is False
        assert (await asking.consent_handlers.elicit(FORM)).action == "cancel"
        assert await asking.consent_handlers.approve_answer(SAMPLING, SamplingAnswer("x", "m")) is False
        assert asking.waiting == ()

    in_loop(work())
