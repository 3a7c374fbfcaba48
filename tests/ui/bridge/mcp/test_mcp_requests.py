"""Questions of servers, until somebody answers."""

import asyncio

from desktop_agent.types.mcp import ElicitationAnswer, ElicitationRequest, SamplingAnswer, SamplingRequest
from tests.fakes.qt_loop import Heard
from ui.bridge.mcp.requests import McpRequests

FORM = ElicitationRequest("Notes", "Who?")
SAMPLING = SamplingRequest("Notes", (("user", "Sum it up."),), None, 10)


def test_questions_wait_in_order_and_each_gets_its_own_answer(in_loop):
    async def work():
        requests = McpRequests()
        handlers, changes = requests.consent_handlers, Heard(requests.changed)
        form = asyncio.create_task(handlers.elicit(FORM))
        request = asyncio.create_task(handlers.approve_sampling(SAMPLING))
        answer = asyncio.create_task(handlers.approve_answer(SAMPLING, SamplingAnswer("x", "m")))
        await asyncio.sleep(0)
        first, second, third = requests.waiting
        assert (first.request, second.answer, third.answer.text) == (FORM, None, "x")
        assert len(changes) == 3
        requests.answer(second.id, True)
        requests.answer(first.id, ElicitationAnswer("accept", {"name": "Ada"}))
        requests.answer(third.id, False)
        assert requests.waiting == ()
        assert (await form).content == {"name": "Ada"}
        assert await request is True
        assert await answer is False
        requests.answer(second.id, False)
        assert len(changes) == 6
        changes.leave()

    in_loop(work())


def test_a_question_that_is_taken_back_waits_no_more(in_loop):
    async def work():
        requests = McpRequests()
        form = asyncio.create_task(requests.consent_handlers.elicit(FORM))
        await asyncio.sleep(0)
        form.cancel()
        await asyncio.wait([form])
        assert requests.waiting == ()

    in_loop(work())


def test_with_nobody_looking_nothing_is_agreed_to(in_loop):
    async def work():
        requests = McpRequests()
        task = asyncio.create_task(requests.consent_handlers.approve_sampling(SAMPLING))
        await asyncio.sleep(0)
        requests.close()
        assert await task is False
        assert (await requests.consent_handlers.elicit(FORM)).action == "cancel"
        assert await requests.consent_handlers.approve_answer(SAMPLING, SamplingAnswer("x", "m")) is False
        assert requests.waiting == ()

    in_loop(work())
