"""The Responses API: checks requests as OpenAI does with `store: false`, and answers from a script."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from desktop_agent.providers.demo.chat_completions import (
    TimedFrame,
    as_object,
    as_objects,
    bad_request,
    join_text,
    parse_arguments,
    parse_body,
    picture_from_url,
    require_model,
)
from desktop_agent.providers.demo.http import RequestError
from desktop_agent.providers.demo.scripted_model import FAST_PACE, MODEL, Break, Call, Json, Say, Think, split_pieces
from tests.fakes import seals
from tests.fakes.seals import sign
from tests.fakes.strict_dialect import (
    CallInHistory,
    HistoryTurn,
    ResultInHistory,
    StrictRequest,
    StrictWriter,
    build_request,
    require_tool_names,
    sse_event,
)

_MAY_FOLLOW = ("message", "function_call", "reasoning")
_ROLES = ("user", "system", "developer", "assistant")
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def read_responses_request(body: bytes, *, counts: bool = False) -> StrictRequest:
    """Read a request body; `counts`: of a request to count tokens. Raises RequestError."""
    fields = parse_body(body)
    require_model(fields.get("model"))
    _check_fields(fields, counts=counts)
    input_value = fields.get("input")
    items = [{"role": "user", "content": input_value}] if isinstance(input_value, str) else as_objects(input_value)
    _check_order(items)
    reasoning = as_object(fields.get("reasoning"))
    system = [HistoryTurn("system", str(fields["instructions"]))] if fields.get("instructions") else []
    return build_request(
        system + list(_turns(items)) if items else [],
        stream=fields.get("stream") is True,
        tools=require_tool_names([tool.get("name") for tool in as_objects(fields.get("tools")) if _is_function(tool)]),
        more={
            "reasons": reasoning.get("effort") != "none",
            "shows_reasoning": reasoning.get("summary") is not None,
            "replayed": sum(_checked_reasoning(item) for item in items if item.get("type") == "reasoning"),
        },
    )


def _check_fields(fields: Json, *, counts: bool) -> None:
    for name in ("messages", "max_tokens", "stop", "top_k"):
        if name in fields:
            raise bad_request(f"Unknown parameter: '{name}'.", "unknown_parameter")
    if counts and "stream" in fields:
        raise bad_request("Unknown parameter: 'stream'.", "unknown_parameter")
    if fields.get("previous_response_id") is not None:
        raise bad_request("The previous response was not found: this demo keeps none.", "previous_response_not_found")
    effort = as_object(fields.get("reasoning")).get("effort")
    if effort is not None and effort not in _EFFORTS:
        raise bad_request(f"Invalid value: '{effort}' for reasoning.effort.", "invalid_value")
    for name in ("temperature", "top_p"):
        if fields.get(name) is not None and effort != "none":
            raise bad_request(
                f"Unsupported parameter: '{name}' is not supported while reasoning.", "unsupported_parameter"
            )
    if any("function" in tool for tool in as_objects(fields.get("tools"))):
        raise bad_request("Missing required parameter: 'tools[0].name'.", "missing_required_parameter")


def _check_order(items: list[Json]) -> None:
    """Check that reasoning precedes its item, each call has its output, and no item is given by its id alone."""
    known = {item.get("id") for item in items if item.get("type") == "reasoning"}
    for index, item in enumerate(items):
        kind, item_id = item.get("type", "message"), item.get("id")
        after = items[index + 1] if index + 1 < len(items) else {"type": "nothing"}
        if kind == "item_reference":
            raise RequestError(404, f"Item with id '{item_id}' not found. With `store` false items are not kept.")
        if kind == "reasoning" and after.get("type", "message") not in _MAY_FOLLOW:
            raise bad_request(f"Item '{item_id}' of type 'reasoning' came without the item that must follow it.")
        needed = reasoning_id_of(item_id)
        if needed is not None and needed not in known:
            raise bad_request(f"Item '{item_id}' of type '{kind}' came without its 'reasoning' item: '{needed}'.")
    calls = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    outputs = [item.get("call_id") for item in items if item.get("type") == "function_call_output"]
    for call_id in calls:
        if call_id not in outputs:
            raise bad_request(f"No tool output found for function call {call_id}.")
    for call_id in outputs:
        if call_id not in calls:
            raise bad_request(f"No tool call found for function call output with call_id {call_id}.")


def reasoning_id_of(item_id: object) -> str | None:
    """Return the id of the reasoning that led to an item: it is part of the item's id."""
    if isinstance(item_id, str) and item_id.startswith(("fc_r", "msg_r")):
        return "rs_" + item_id.partition("_r")[2].partition("_")[0]
    return None


def _checked_reasoning(item: Json) -> int:
    if not item.get("encrypted_content"):
        raise RequestError(404, f"Item with id '{item.get('id')}' not found. With `store` false items are not kept.")
    if seals.find_tampering(item["encrypted_content"], signed_content(item)) is not None:
        raise bad_request("The encrypted content could not be verified.", "invalid_encrypted_content")
    return 1


def signed_content(item: Json) -> list[object]:
    """Return what the encrypted content of a reasoning item signs."""
    return [item.get("id"), item.get("summary")]


def _turns(items: list[Json]) -> Iterator[HistoryTurn]:
    for item in items:
        match item.get("type", "message"):
            case "message":
                yield _message(item)
            case "function_call":
                arguments = parse_arguments(item.get("arguments"))
                yield HistoryTurn(
                    "assistant", calls=[CallInHistory(str(item.get("call_id")), str(item.get("name")), arguments)]
                )
            case "function_call_output":
                text = join_text(item.get("output"), "input_text")
                yield HistoryTurn("results", results=[ResultInHistory(str(item.get("call_id")), text)])
            case "reasoning":
                pass
            case kind:
                raise bad_request(f"Invalid value: '{kind}' for the type of an item.", "invalid_value")


def _message(item: Json) -> HistoryTurn:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        raise bad_request(f"Invalid value: '{role}' for the role of a message.", "invalid_value")
    allowed = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image", "input_file")
    for part in as_objects(content):
        if part.get("type") not in allowed:
            raise bad_request(f"Invalid value: '{part.get('type')}'. A {role} message takes: {', '.join(allowed)}.")
        if part.get("type") == "input_image" and not isinstance(part.get("image_url"), str):
            raise bad_request("The image_url of an input_image must be a string.", "invalid_type")
    if role == "assistant":
        return HistoryTurn("assistant", join_text(content, "output_text"))
    pictures = [
        picture_from_url(part["image_url"]) for part in as_objects(content) if part.get("type") == "input_image"
    ]
    return HistoryTurn("user" if role == "user" else "system", join_text(content, "input_text"), pictures=pictures)


def _is_function(tool: Json) -> bool:
    return tool.get("type") == "function"


@dataclass
class ResponsesWriter(StrictWriter):
    """Writes answers. The id of an item contains that of its reasoning, so that a later request must have both."""

    dialect = "openai-responses"

    _number: int = -1

    def frames(self) -> Iterator[TimedFrame]:
        """Yield everything from response.created to response.completed."""
        yield self._event("response.created", response=self._response("in_progress", []))
        yield self._event("response.in_progress", response=self._response("in_progress", []))
        done: list[Json] = []
        for step, item in self._items():
            if isinstance(step, Break):
                error = {"type": "server_error", "code": "demo_error", "message": step.message, "param": None}
                yield self._event("error", FAST_PACE, error=error)
                return
            place: Json = {"output_index": len(done)}
            yield self._event("response.output_item.added", **place, item=_empty_item(item))
            yield from self._deltas(step, item, {**place, "item_id": item["id"]})
            yield self._event("response.output_item.done", **place, item=item)
            done.append(item)
        yield self._event("response.completed", response=self._response("completed", done))

    def full_answer(self) -> Json:
        """Return a response."""
        self.require_unbroken()
        return self._response("completed", [item for _, item in self._items()])

    def _items(self) -> Iterator[tuple[Think | Say | Call | Break, Json]]:
        thought = ""
        for index, step in enumerate(self.script):
            if isinstance(step, Think):
                thought = f"_r{self.id}{index}"
            yield step, self._item(step, f"{thought}_{self.id}{index}")

    def _item(self, step: Think | Say | Call | Break, mark: str) -> Json:
        match step:
            case Think():
                shown = [{"type": "summary_text", "text": step.text}] if self.question.shows_reasoning else []
                item: Json = {"id": "rs_" + mark.split("_")[1][1:], "type": "reasoning", "summary": shown}
                return {**item, "encrypted_content": sign(signed_content(item))}
            case Say():
                phase = "commentary" if self.calls else "final_answer"
                content: list[Json] = [{"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}]
                head: Json = {"id": "msg" + mark, "type": "message", "role": "assistant", "status": "completed"}
                return {**head, "phase": phase, "content": content}
            case Call():
                called = {"call_id": step.id, "name": step.name, "arguments": step.arguments_json}
                return {"id": "fc" + mark, "type": "function_call", "status": "completed", **called}
            case Break():
                return {}

    def _deltas(self, step: Think | Say | Call, item: Json, place: Json) -> Iterator[TimedFrame]:
        match step:
            case Think():
                if item["summary"]:
                    yield from self._summary(step.text, {**place, "summary_index": 0})
            case Say():
                yield from self._text(step, item["content"][0], {**place, "content_index": 0})
            case Call():
                for piece in split_pieces(step.arguments_json):
                    yield self._event("response.function_call_arguments.delta", FAST_PACE, **place, delta=piece)
                yield self._event("response.function_call_arguments.done", **place, arguments=step.arguments_json)

    def _summary(self, text: str, place: Json) -> Iterator[TimedFrame]:
        part = {"type": "summary_text", "text": ""}
        yield self._event("response.reasoning_summary_part.added", **place, part=part)
        for piece in split_pieces(text):
            yield self._event("response.reasoning_summary_text.delta", FAST_PACE, **place, delta=piece)
        yield self._event("response.reasoning_summary_text.done", **place, text=text)
        yield self._event("response.reasoning_summary_part.done", **place, part={**part, "text": text})

    def _text(self, step: Say, part: Json, place: Json) -> Iterator[TimedFrame]:
        yield self._event("response.content_part.added", **place, part={**part, "text": ""})
        for piece in split_pieces(step.text):
            yield self._event("response.output_text.delta", step.pace, **place, delta=piece, logprobs=[])
        yield self._event("response.output_text.done", **place, text=step.text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=part)

    def _response(self, status: str, output: list[Json]) -> Json:
        return {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": MODEL,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": self._usage() if status == "completed" else None,
        }

    def _usage(self) -> Json:
        return {
            "input_tokens": self.question.tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": self.written,
            "output_tokens_details": {"reasoning_tokens": self.thought},
            "total_tokens": self.question.tokens + self.written,
        }

    def _event(self, kind: str, pause: float = 0.0, **fields: Any) -> TimedFrame:
        self._number += 1
        return sse_event({"type": kind, "sequence_number": self._number, **fields}, pause, named=True)


def _empty_item(item: Json) -> Json:
    empty: Json = {"summary": [], "content": [], "arguments": "", "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}
