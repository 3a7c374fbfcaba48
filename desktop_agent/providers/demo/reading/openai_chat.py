"""A request of Chat Completions. Strict about calls and their results; the rest is read as compatible servers do."""

from collections.abc import Iterator

from desktop_agent.providers.demo.question import Json, Question
from desktop_agent.providers.demo.reading.turns import Called, Returned, Turn, asked, checked_model
from desktop_agent.providers.demo.reading.values import (
    a_list,
    an_object,
    arguments_of,
    body_of,
    objects,
    picture_at,
    refused,
    text_of,
)


def read_chat(body: bytes) -> Question:
    """Read a request body. Raises Refusal."""
    wanted = body_of(body)
    checked_model(wanted.get("model"))
    messages = objects(wanted.get("messages"))
    _check_results(messages)
    return asked(
        list(_turns(messages)),
        stream=wanted.get("stream") is True,
        tools=list(_tool_names(wanted)),
        more={
            "wants_usage": an_object(wanted.get("stream_options")).get("include_usage") is True,
            "reasons": wanted.get("reasoning_effort") != "none",
        },
    )


def _turns(messages: list[Json]) -> Iterator[Turn]:
    for message in messages:
        text = text_of(message.get("content"), "text")
        match message.get("role"):
            case "user":
                parts = objects(message.get("content"))
                urls = [str(an_object(part.get("image_url")).get("url", "")) for part in parts if _is_picture(part)]
                yield Turn("user", text, pictures=[picture_at(url) for url in urls])
            case "assistant":
                yield Turn("assistant", text, calls=[_call(each) for each in objects(message.get("tool_calls"))])
            case "tool":
                yield Turn("results", results=[Returned(str(message.get("tool_call_id")), text)])
            case _:
                yield Turn("system", text)


def _call(call: Json) -> Called:
    function = an_object(call.get("function"))
    return Called(str(call.get("id")), str(function.get("name", "")), arguments_of(function.get("arguments")))


def _is_picture(part: Json) -> bool:
    return part.get("type") == "image_url"


def _check_results(messages: list[Json]) -> None:
    """Every call is answered right behind its message, and nothing else is."""
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if str(message.get("tool_call_id")) not in waiting:
                raise refused("A message of role 'tool' must answer a call of the message before it.")
            waiting.discard(str(message.get("tool_call_id")))
            continue
        if waiting:
            raise refused(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(waiting))}.")
        waiting = {str(call.get("id")) for call in objects(message.get("tool_calls"))}
    if waiting:
        raise refused(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(waiting))}.")


def _tool_names(wanted: Json) -> Iterator[str]:
    for tool in a_list(wanted.get("tools")):
        name = an_object(an_object(tool).get("function")).get("name")
        if isinstance(name, str):
            yield name
