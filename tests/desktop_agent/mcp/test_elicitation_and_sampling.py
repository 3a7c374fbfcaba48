"""Requests of a server are refused if they could not be shown to a person unchanged."""

import pytest
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ErrorData,
    ImageContent,
    SamplingMessage,
    TextContent,
)

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.elicitation_and_sampling import (
    MAX_MESSAGE_LENGTH,
    MAX_REFUSALS,
    MAX_SAMPLING_LENGTH,
    MAX_SAMPLING_MESSAGES,
    MAX_URL_LENGTH,
    ServerRequestHandler,
)
from desktop_agent.types.errors import Overloaded
from desktop_agent.types.mcp import ElicitationAnswer, SamplingAnswer, ServerCall, ServerRequestHandlers
from desktop_agent.types.provider_events import Usage

PICTURE = ImageContent(type="image", data="aGk=", mime_type="image/png")


def text(content):
    return TextContent(type="text", text=content)


def message(content):
    return SamplingMessage(role="user", content=content)


def sampling_params(*messages, **named):
    return CreateMessageRequestParams(messages=list(messages), max_tokens=10, **named)


class RecordingHandlers:
    """Answers every request, and records the requests and notices."""

    def __init__(self, answer=None):
        self.requests = []
        self.action = "accept"
        self.log = ServerLog()
        self.notices = []
        self._answer = answer or SamplingAnswer("forty-two", "m", is_truncated=True)

    async def sample(self, request, spent):
        self.requests.append(request)
        spent(Usage(cost=0.5))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def elicit(self, request):
        self.requests.append(request)
        return ElicitationAnswer(self.action, {})

    @property
    def request_handler(self):
        handler = ServerRequestHandler(
            lambda: "Server",
            lambda: ServerRequestHandlers(self.elicit, self.sample),
            None,
            self.log,
            self.notices.append,
        )
        handler.set_active_calls([ServerCall()])
        return handler


async def test_all_messages_reach_the_person_whole_and_a_cut_answer_says_so():
    handlers = RecordingHandlers()
    long = "x" * 50_000
    answer = await handlers.request_handler.sample(
        None, sampling_params(message([text("one"), text("two")]), message(text(long)))
    )
    assert [content for _, content in handlers.requests[0].messages] == ["one\ntwo", long]
    assert isinstance(answer, CreateMessageResult)
    assert answer.stop_reason == "maxTokens"


@pytest.mark.parametrize(
    "params",
    [
        sampling_params(message(text("x" * (MAX_SAMPLING_LENGTH + 1)))),
        sampling_params(message(text("x")), system_prompt="x" * MAX_SAMPLING_LENGTH),
        sampling_params(*[message(text("x"))] * (MAX_SAMPLING_MESSAGES + 1)),
        sampling_params(message([text("look"), PICTURE])),
    ],
    ids=["long", "long instructions", "many", "picture"],
)
async def test_what_nobody_could_read_as_it_is_is_refused_unasked(params):
    handlers = RecordingHandlers()
    assert isinstance(await handlers.request_handler.sample(None, params), ErrorData)
    assert handlers.requests == []


async def test_a_model_that_fails_is_told_without_its_reasons_which_stand_in_the_log():
    handlers = RecordingHandlers(Overloaded("the account of ada@example.org is busy"))
    answer = await handlers.request_handler.sample(None, sampling_params(message(text("x"))))
    assert isinstance(answer, ErrorData)
    assert "ada" not in answer.message
    assert "ada@example.org" in handlers.log.last_line
    (sentence,) = handlers.notices
    assert str(sentence).startswith("No model could answer the server “Server”: ")
    assert "the account of ada@example.org is busy" in str(sentence)
    assert str(sentence).endswith(Overloaded.default_remedy)


@pytest.mark.parametrize(("length", "action"), [(MAX_MESSAGE_LENGTH, "accept"), (MAX_MESSAGE_LENGTH + 1, "decline")])
async def test_words_of_a_form_are_shown_whole_or_not_at_all(length, action):
    handlers = RecordingHandlers()
    params = ElicitRequestFormParams(message="x" * length, requested_schema={"type": "object", "properties": {}})
    assert (await handlers.request_handler.answer_elicitation(None, params)).action == action
    assert [len(request.message) for request in handlers.requests] == ([length] if action == "accept" else [])


@pytest.mark.parametrize(("length", "action"), [(MAX_URL_LENGTH, "accept"), (MAX_URL_LENGTH + 1, "decline")])
async def test_an_address_that_cannot_be_shown_is_not_asked_about(length, action):
    handlers = RecordingHandlers()
    url = "https://a.example/".ljust(length, "x")
    params = ElicitRequestURLParams(message="m", url=url, elicitation_id="1")
    assert (await handlers.request_handler.answer_elicitation(None, params)).action == action
    assert len(handlers.requests) == (1 if action == "accept" else 0)


FORM = ElicitRequestFormParams(message="m", requested_schema={"type": "object", "properties": {}})


async def test_nothing_is_asked_while_nothing_was_asked_of_the_server():
    handlers = RecordingHandlers()
    answering = handlers.request_handler
    answering.set_active_calls(())
    assert (await answering.answer_elicitation(None, FORM)).action == "decline"
    assert isinstance(await answering.sample(None, sampling_params(message(text("x")))), ErrorData)
    assert handlers.requests == []
    answering.set_active_calls([ServerCall()])
    assert (await answering.answer_elicitation(None, FORM)).action == "accept"


async def test_whoever_asked_the_server_first_pays_for_the_model():
    handlers = RecordingHandlers()
    answering, paid = handlers.request_handler, []
    answering.set_active_calls([ServerCall(on_usage=paid.append)])
    await answering.sample(None, sampling_params(message(text("x"))))
    assert paid == [Usage(cost=0.5)]
    # A request outside of any call, such as one made while a resource is read.
    answering.set_active_calls([ServerCall()])
    await answering.sample(None, sampling_params(message(text("x"))))
    assert len(paid) == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_who_says_no_three_times_is_not_asked_again_in_that_call(action):
    handlers = RecordingHandlers()
    handlers.action = action
    answering = handlers.request_handler
    for _ in range(10):
        assert (await answering.answer_elicitation(None, FORM)).action in {action, "decline"}
    assert isinstance(await answering.sample(None, sampling_params(message(text("x")))), ErrorData)
    assert len(handlers.requests) == MAX_REFUSALS
    answering.set_active_calls(())
    answering.set_active_calls([ServerCall()])
    handlers.action = "accept"
    for _ in range(10):
        assert (await answering.answer_elicitation(None, FORM)).action == "accept"
