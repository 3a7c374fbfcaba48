"""A request of Chat Completions. Strict about calls and their results; the rest is read as compatible servers do."""

from collections.abc import Iterator

from desktop_agent.providers.demo.question import Json, ReceivedRequest
from desktop_agent.providers.demo.reading.turns import (
    CallInHistory,
    HistoryTurn,
    ResultInHistory,
    build_request,
    require_model,
)
from desktop_agent.providers.demo.reading.values import (
    as_list,
    as_object,
    as_objects,
    bad_request,
    join_text,
    parse_arguments,
    parse_body,
    picture_from_url,
)


def read_chat_request(body: bytes) -> ReceivedRequest:
    """Read a request body. Raises Refusal."""
    wanted = parse_body(body)
    require_model(wanted.get("model"))
    messages = as_objects(wanted.get("messages"))
    _check_results(messages)
    return build_request(
        list(_turns(messages)),
        stream=wanted.get("stream") is True,
        tools=list(_tool_names(wanted)),
        more={
            "wants_usage": as_object(wanted.get("stream_options")).get("include_usage") is True,
            "reasons": wanted.get("reasoning_effort") != "none",
        },
    )


def _turns(messages: list[Json]) -> Iterator[HistoryTurn]:
    for message in messages:
        text = join_text(message.get("content"), "text")
        match message.get("role"):
            case "user":
                parts = as_objects(message.get("content"))
                urls = [str(as_object(part.get("image_url")).get("url", "")) for part in parts if _is_picture(part)]
                yield HistoryTurn("user", text, pictures=[picture_from_url(url) for url in urls])
            case "assistant":
                yield HistoryTurn(
                    "assistant", text, calls=[_call(each) for each in as_objects(message.get("tool_calls"))]
                )
            case "tool":
                yield HistoryTurn("results", results=[ResultInHistory(str(message.get("tool_call_id")), text)])
            case _:
                yield HistoryTurn("system", text)


def _call(call: Json) -> CallInHistory:
    function = as_object(call.get("function"))
    return CallInHistory(str(call.get("id")), str(function.get("name", "")), parse_arguments(function.get("arguments")))


def _is_picture(part: Json) -> bool:
    return part.get("type") == "image_url"


def _check_results(messages: list[Json]) -> None:
    """Every call is answered right behind its message, and nothing else is."""
    waiting: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if str(message.get("tool_call_id")) not in waiting:
                raise bad_request("A message of role 'tool' must answer a call of the message before it.")
            waiting.discard(str(message.get("tool_call_id")))
            continue
        if waiting:
            raise bad_request(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(waiting))}.")
        waiting = {str(call.get("id")) for call in as_objects(message.get("tool_calls"))}
    if waiting:
        raise bad_request(f"These tool_call_ids had no tool message behind them: {', '.join(sorted(waiting))}.")


def _tool_names(wanted: Json) -> Iterator[str]:
    for tool in as_list(wanted.get("tools")):
        name = as_object(as_object(tool).get("function")).get("name")
        if isinstance(name, str):
            yield name
