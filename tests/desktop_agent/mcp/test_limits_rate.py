"""A server that sends without end is slowed down."""

import asyncio

import pytest
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from desktop_agent.mcp.limits import OpenRequests, ReadPacer


def asks(identity):
    return JSONRPCRequest(jsonrpc="2.0", id=identity, method="roots/list")


def cancels(identity):
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": identity})


def answers(identity):
    return JSONRPCResponse(jsonrpc="2.0", id=identity, result={})


async def test_others_get_their_turn_while_much_comes():
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count_turns())
    pace = ReadPacer()
    for _ in range(200):
        pace.begin()
        await pace.pause_if_busy()
    task.cancel()
    assert turns > 3


async def test_too_many_wait_for_an_answer_to_be_taken():
    questions = OpenRequests(2)
    assert await questions.admit(asks(1))
    assert await questions.admit(asks("1"))
    third = asyncio.create_task(questions.admit(asks(3)))
    await asyncio.sleep(0.01)
    assert not third.done()
    questions.mark_answered(asks(1))
    assert len(questions) == 2
    questions.mark_answered(answers(1))
    assert await third
    assert len(questions) == 2


async def test_who_takes_no_answer_is_given_up():
    questions = OpenRequests(1, timeout=0.01)
    assert await questions.admit(asks(1))
    with pytest.raises(TimeoutError):
        await questions.admit(asks(2))
    assert await questions.admit(answers(7))


async def test_an_id_that_is_open_is_not_taken_twice():
    questions = OpenRequests()
    assert await questions.admit(asks(1))
    assert not await questions.admit(asks(1))
    questions.mark_answered(JSONRPCError(jsonrpc="2.0", id=1, error={"code": 1, "message": "no"}))
    assert await questions.admit(asks(1))


async def test_what_it_no_longer_waits_for_is_not_counted():
    questions = OpenRequests()
    assert await questions.admit(asks(1))
    assert await questions.admit(cancels(1))
    assert len(questions) == 0
    assert await questions.admit(cancels([1]))
