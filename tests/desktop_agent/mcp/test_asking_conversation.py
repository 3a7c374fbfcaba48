"""A server's request belongs to the conversation whose call it is working on."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

from desktop_agent.types.mcp import ElicitationAnswer, SamplingAnswer, ServerCall, ServerRequestHandlers
from desktop_agent.types.provider_events import Usage
from tests.fakes.mcp_client import own_server, program, until

RAW = Path(__file__).with_name("raw_server.py")
OLDER = [sys.executable, "-B", str(RAW), "asks"]
"""A server whose protocol version does not say for which call it makes a request."""


class Person:
    """Answers no request before `may_answer` is set."""

    def __init__(self):
        self.asked = []
        self.withdrawn = []
        self.may_answer = asyncio.Event()

    @property
    def handlers(self):
        return ServerRequestHandlers(self._elicit, self._sample)

    async def _elicit(self, request):
        await self._wait(request)
        return ElicitationAnswer("accept", {"word": "x"})

    async def _sample(self, request, spent):
        await self._wait(request)
        spent(Usage(cost=0.5))
        return SamplingAnswer("Blue.", "m")

    async def _wait(self, request):
        self.asked.append(request.conversation_id)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.withdrawn.append(request.conversation_id)
            raise


def calling(live, conversation_id, tool="t0", paid=None):
    return asyncio.create_task(live.call(tool, {}, server_call=ServerCall(conversation_id, paid)))


async def test_all_calls_of_one_conversation_are_asked_for_in_it(tmp_path):
    person = Person()
    async with program(OLDER, tmp_path, handlers=lambda: person.handlers) as live:
        calls = [calling(live, "one"), calling(live, "one")]
        await until(lambda: len(person.asked) == 2)
        assert person.asked == ["one", "one"]
        person.may_answer.set()
        await asyncio.gather(*calls)


async def test_of_two_conversations_at_one_server_neither_is_named_where_the_protocol_does_not(tmp_path):
    person = Person()
    async with program(OLDER, tmp_path, handlers=lambda: person.handlers) as live:
        first = calling(live, "one")
        await until(lambda: person.asked == ["one"])
        second = calling(live, "two")
        await until(lambda: person.asked == ["one", None])
        person.may_answer.set()
        await asyncio.gather(first, second)
        await calling(live, "two")
        await calling(live, None)
        assert person.asked[2:] == ["two", None]


async def test_each_of_two_conversations_is_named_where_the_protocol_says_so(tmp_path):
    person, paid = Person(), {"one": [], "two": []}
    async with program(own_server("samples"), tmp_path, handlers=lambda: person.handlers) as live:
        calls = [calling(live, id_, "colour", paid[id_].append) for id_ in ("one", "two")]
        await until(lambda: len(person.asked) == 2)
        assert set(person.asked) == {"one", "two"}
        person.may_answer.set()
        await asyncio.gather(*calls)
        assert paid == {"one": [Usage(cost=0.5)], "two": [Usage(cost=0.5)]}


async def test_a_question_ends_with_its_calls_though_others_go_on(tmp_path):
    person = Person()
    async with program(OLDER, tmp_path, handlers=lambda: person.handlers) as live:
        first = calling(live, "one")
        await until(lambda: person.asked == ["one"])
        second = calling(live, "two")
        await until(lambda: person.asked == ["one", None])
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        await until(lambda: person.withdrawn == ["one"])
        person.may_answer.set()
        await second
        assert person.withdrawn == ["one"]
