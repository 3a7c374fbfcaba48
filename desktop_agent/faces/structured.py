"""Answers of a type: the model is bound to a schema where its server can do that, and told what does not fit."""

from typing import Any

from pydantic import ValidationError

from desktop_agent.faces.backing.answer_format import OutputType
from desktop_agent.faces.backing.conversing import ConversationRunner, to_prompt
from desktop_agent.faces.backing.streaming import EventStream
from desktop_agent.faces.collecting import Response, StructuredResponse, collect_response
from desktop_agent.vocabulary.engine_events import RunEnd
from desktop_agent.vocabulary.errors import CapabilityMissing, InvalidRequest, OutputInvalid
from desktop_agent.vocabulary.messages import Message

_RETRY_PROMPT = "The answer does not fit. {problems} Answer again, with the whole JSON and nothing else."
INJECTED_BY = "output_type"
MAX_PROBLEMS = 5
_UNFINISHED_REASONS = {
    RunEnd.CANCELLED: ("The run was stopped before there was an answer.", "Ask again when you want one."),
    RunEnd.ABORTED: ("The run was ended before there was an answer.", "Ask again."),
    RunEnd.LIMIT: ("A limit ended the run before there was an answer.", "Go on without a prompt, or raise the limit."),
    RunEnd.AWAITING_RESULTS: (
        "Calls wait for their results before there is an answer.",
        "Give them with add_tool_result(), and go on without a prompt.",
    ),
}
_SCHEMA_REFUSED_STATUSES = (400, 422)


async def complete_structured(
    conversation: ConversationRunner, prompt: str | Message, output_type: Any, retries: int, keep: object
) -> StructuredResponse[Any]:
    """Ask until an answer fits. Raises WrongUse for what is no type, OutputInvalid, and what breaks an answer off.

    Where the run ended before there was an answer, OutputInvalid says how.
    """
    output = OutputType(output_type)
    conversation.output_format.bind(output)
    try:
        response = await _ask_with_fallback(conversation, to_prompt(prompt) if prompt else None, keep)
        for left in range(retries, -1, -1):
            problems = ""
            try:
                return _parse_response(response, output)
            except ValidationError as error:
                problems = _describe_problems(error)
            if not left or response.end is not RunEnd.COMPLETED:
                break
            again = Message.user(_RETRY_PROMPT.format(problems=problems)).model_copy(
                update={"injected_by": INJECTED_BY}
            )
            response = await _ask(conversation, again, keep)
        if response.end is not None and response.end in _UNFINISHED_REASONS:
            sentence, remedy = _UNFINISHED_REASONS[response.end]
            raise OutputInvalid(sentence, remedy, detail=response.text)
        raise OutputInvalid(
            f"The answer does not fit the type that was asked for ({output.name}).", detail=response.text
        )
    finally:
        conversation.output_format.bind(None)


async def _ask_with_fallback(conversation: ConversationRunner, prompt: Message | None, keep: object) -> Response:
    try:
        return await _ask(conversation, prompt, keep)
    except (CapabilityMissing, InvalidRequest) as error:
        if isinstance(error, InvalidRequest) and error.status not in _SCHEMA_REFUSED_STATUSES:
            raise
    # The prompt is in the history: only the way of binding the answer changes. Few servers say that it is the schema
    # that they refuse.
    conversation.output_format.use_prompt()
    return await _ask(conversation, None, keep)


async def _ask(conversation: ConversationRunner, prompt: Message | None, keep: object) -> Response:
    response = await collect_response(EventStream(conversation, prompt, keep=keep))
    if response.error is not None and conversation.run is not None and conversation.run.error is not None:
        raise conversation.run.error
    return response


def _parse_response(response: Response, output_type: OutputType) -> StructuredResponse[Any]:
    """Raises ValidationError."""
    output = output_type.parse(response.text)
    return StructuredResponse(
        response.blocks, response.usage, response.stop_reason, response.end, response.error, output=output
    )


def _describe_problems(error: ValidationError) -> str:
    problems = error.errors(include_input=False, include_url=False)[:MAX_PROBLEMS]
    return " ".join(f"{'.'.join(map(str, each['loc'])) or 'answer'}: {each['msg']}." for each in problems)
