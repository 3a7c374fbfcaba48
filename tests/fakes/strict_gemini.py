"""Gemini's generateContent: checks requests as the newest models do, and answers from a script."""

import re
from collections.abc import Iterator
from typing import cast

from desktop_agent.providers.demo.chat_completions import (
    TimedFrame,
    as_object,
    as_objects,
    bad_request,
    parse_body,
    picture_from_base64,
    picture_from_url,
)
from desktop_agent.providers.demo.http import RequestError
from desktop_agent.providers.demo.scripted_model import (
    FAST_PACE,
    MODEL,
    Break,
    Call,
    Json,
    ReceivedPicture,
    Say,
    Think,
    split_pieces,
)
from tests.fakes import seals
from tests.fakes.seals import sign
from tests.fakes.strict_dialect import (
    CallInHistory,
    HistoryTurn,
    ResultInHistory,
    StrictRequest,
    StrictWriter,
    build_request,
    error_body,
    sse_event,
)

_PROMPT = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model"}
_FIELDS = _PROMPT | {"safetySettings", "cachedContent", "serviceTier", "store", "continuationToken"}
_FUNCTION_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
# A placeholder for the signature of a call that another model made.
_FOREIGN_SIGNATURE = "skip_thought_signature_validator"
_UNDERSCORE = re.compile(r"_([a-z])")
# The names inside these fields are the caller's own, so they stay as they are.
_UNCHANGED_FIELDS = {"args", "response", "parametersJsonSchema", "responseJsonSchema", "parameters", "responseSchema"}
# The types of pictures that Gemini accepts.
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")


def read_gemini_request(body: bytes, *, stream: bool) -> StrictRequest:
    """Read a request body. Raises RequestError."""
    return _read(as_object(_camel(parse_body(body))), stream=stream)


def read_gemini_count_request(body: bytes) -> StrictRequest:
    """Read the body of a request to count tokens. Raises RequestError."""
    fields = as_object(_camel(parse_body(body)))
    if len(fields.keys() & {"contents", "generateContentRequest"}) != 1:
        raise bad_request("Exactly one of contents and generateContentRequest is needed.")
    if extra := fields.keys() - {"contents", "generateContentRequest"}:
        raise _unknown_field(min(extra))
    return _read(as_object(fields.get("generateContentRequest")) or fields, stream=False)


def _camel(value: object) -> object:
    """Return the value with all names in camel case: Google accepts both forms, and its own client mixes them."""
    if isinstance(value, list):
        return [_camel(entry) for entry in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    items = cast("Json", value).items()
    renamed = {_UNDERSCORE.sub(lambda match: match[1].upper(), name): entry for name, entry in items}
    return {name: entry if name in _UNCHANGED_FIELDS else _camel(entry) for name, entry in renamed.items()}


def _read(fields: Json, *, stream: bool) -> StrictRequest:
    _check_fields(fields)
    contents = as_objects(fields.get("contents"))
    if not contents:
        raise bad_request("GenerateContentRequest.contents: contents is not specified")
    _check_results(contents)
    turns = [turn for content in contents for turn in _turns(content)]
    prompts = [index for index, content in enumerate(contents) if _is_prompt(content)]
    replayed = _check_signatures(contents, prompts[-1] if prompts else 0)
    thinking = as_object(as_object(fields.get("generationConfig")).get("thinkingConfig"))
    system = "\n".join(str(part.get("text", "")) for part in _parts(fields.get("systemInstruction")))
    return build_request(
        [*([HistoryTurn("system", system)] if system else []), *turns],
        stream=stream,
        tools=list(_tool_names(fields)),
        more={"shows_reasoning": thinking.get("includeThoughts") is True, "replayed": replayed},
    )


def _unknown_field(name: str) -> Exception:
    return bad_request(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')


def _check_fields(fields: Json) -> None:
    if extra := fields.keys() - _FIELDS:
        raise _unknown_field(min(extra))
    config = as_object(fields.get("generationConfig"))
    thinking = as_object(config.get("thinkingConfig"))
    if "thinkingLevel" in thinking and "thinkingBudget" in thinking:
        raise bad_request("You can only set one of thinking budget and thinking level.")
    if "responseSchema" in config and "responseJsonSchema" in config:
        raise bad_request("Only one of response schema and response JSON schema may be set.")
    if fields.get("cachedContent") is not None:
        raise bad_request("CachedContent not found: this demo keeps none.")


def _parts(content: object) -> list[Json]:
    return as_objects(as_object(content).get("parts"))


def _calls(content: Json) -> list[Json]:
    return [as_object(part["functionCall"]) for part in _parts(content) if "functionCall" in part]


def _responses(content: Json) -> list[Json]:
    return [as_object(part["functionResponse"]) for part in _parts(content) if "functionResponse" in part]


def _is_prompt(content: Json) -> bool:
    return content.get("role", "user") == "user" and not _responses(content)


def _check_results(contents: list[Json]) -> None:
    """Check that each content answers the calls of the one before by name and id, has a known role, and has parts."""
    calls: list[Json] = []
    for content in contents:
        if content.get("role", "user") not in ("user", "model"):
            raise bad_request("Please use a valid role: user, model.")
        if not _parts(content):
            raise bad_request("GenerateContentRequest.contents.parts: must not be empty.")
        responses = _responses(content)
        if len(responses) != len(calls):
            raise bad_request("The number of function response parts must equal the number of function call parts.")
        for call, response in zip(calls, responses, strict=True):
            if call.get("name") != response.get("name") or call.get("id") != response.get("id"):
                raise bad_request("A function response does not answer the function call in its place.")
            if not isinstance(response.get("response"), dict):
                raise bad_request("function_response.response: must be an object.")
        calls = _calls(content)
    if calls:
        raise bad_request("A function call must be followed by its function response.")


def _check_signatures(contents: list[Json], last_prompt: int) -> int:
    """Count the signatures that came back. Before the last prompt one may be missing; none may be changed."""
    count = 0
    for index, content in enumerate(contents):
        parts = [part for part in _parts(content) if "functionCall" in part]
        for part_index, part in enumerate(parts):
            mark = part.get("thoughtSignature")
            if mark == _FOREIGN_SIGNATURE:
                continue
            if mark is None and part_index == 0 and index > last_prompt:
                name = as_object(part["functionCall"]).get("name")
                raise bad_request(f"Function call is missing a thought_signature in functionCall parts: {name}.")
            if mark is not None and seals.find_tampering(mark, part["functionCall"]) is not None:
                raise bad_request("Thought signature is not valid.")
            count += mark is not None
        for part in _parts(content):
            if "functionCall" not in part and part.get("thoughtSignature") is not None:
                if seals.find_tampering(part["thoughtSignature"], "") is not None:
                    raise bad_request("Thought signature is not valid.")
                count += 1
    return count


def _turns(content: Json) -> Iterator[HistoryTurn]:
    parts = _parts(content)
    text = "\n".join(str(part["text"]) for part in parts if part.get("text") and part.get("thought") is not True)
    if content.get("role") == "model":
        yield HistoryTurn("assistant", text, calls=[_call(call) for call in _calls(content)])
        return
    if responses := _responses(content):
        yield HistoryTurn("results", results=[ResultInHistory(_call_id(part), _result(part)) for part in responses])
    pictures = [part for part in parts if "inlineData" in part or "fileData" in part]
    if text or pictures:
        yield HistoryTurn("user", text, pictures=[_picture(part) for part in pictures])


def _call(call: Json) -> CallInHistory:
    return CallInHistory(_call_id(call), str(call.get("name")), as_object(call.get("args")))


def _call_id(call: Json) -> str:
    return str(call.get("id") or call.get("name"))


def _result(response: Json) -> str:
    content = as_object(response.get("response"))
    return str(content.get("output", content.get("error", content)))


def _picture(part: Json) -> ReceivedPicture:
    if "fileData" in part:
        return picture_from_url(str(as_object(part["fileData"]).get("fileUri", "")))
    blob = as_object(part["inlineData"])
    if blob.get("mimeType") not in _PICTURES:
        raise bad_request(f"Unsupported MIME type: {blob.get('mimeType')}")
    return picture_from_base64(str(blob.get("data", "")).translate(seals.EITHER_ALPHABET))


def _tool_names(fields: Json) -> Iterator[str]:
    for tool in as_objects(fields.get("tools")):
        for declared in as_objects(tool.get("functionDeclarations")):
            name = declared.get("name")
            if not isinstance(name, str) or not _FUNCTION_NAME.fullmatch(name):
                raise bad_request("GenerateContentRequest.tools.function_declarations.name: Invalid function name.")
            if "parameters" in declared and "parametersJsonSchema" in declared:
                raise bad_request("Only one of parameters and parameters_json_schema may be set.")
            yield name


class GeminiWriter(StrictWriter):
    """Writes answers. Lines end with CR LF, nothing marks the end of the stream, and a call comes in one piece."""

    dialect = "gemini"

    def frames(self) -> Iterator[TimedFrame]:
        """Yield chunks; the last one has the finish reason."""
        for chunk, pause in self._chunks():
            yield sse_event(chunk, pause, end="\r\n")

    def full_answer(self) -> Json:
        """Return one response with all parts."""
        self.require_unbroken()
        parts: list[Json] = []
        for step in self.script:
            match step:
                case Think():
                    parts += [{"text": step.text, "thought": True}] if self.question.shows_reasoning else []
                case Say():
                    parts.append({"text": step.text})
                case Call():
                    parts.append(self._call(step))
                case Break():
                    pass
        return self._chunk(parts + self._last_parts(), finish="STOP")

    def array(self) -> list[Json]:
        """Return the stream as one JSON array: the answer to a request without `alt=sse`."""
        return [chunk for chunk, _ in self._chunks()]

    def _chunks(self) -> Iterator[tuple[Json, float]]:
        for step in self.script:
            match step:
                case Break():
                    yield error_body(RequestError(500, step.message), "gemini"), FAST_PACE
                    return
                case Think():
                    for piece in split_pieces(step.text) if self.question.shows_reasoning else ():
                        yield self._chunk([{"text": piece, "thought": True}]), FAST_PACE
                case Say():
                    for piece in split_pieces(step.text):
                        yield self._chunk([{"text": piece}]), step.pace
                case Call():
                    yield self._chunk([self._call(step)]), FAST_PACE
        yield self._chunk(self._last_parts() or [{"text": ""}], finish="STOP"), 0.0

    def _call(self, step: Call) -> Json:
        call = {"id": step.id, "name": step.name, "args": step.arguments}
        signed = {"thoughtSignature": sign(call)} if step is self.calls[0] else {}
        return {"functionCall": call, **signed}

    def _last_parts(self) -> list[Json]:
        """Return a signed empty text for the end of an answer without calls."""
        return [] if self.calls else [{"text": "", "thoughtSignature": sign("")}]

    def _chunk(self, parts: list[Json], finish: str | None = None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        if finish is not None:
            candidate["finishReason"] = finish
        return {
            "candidates": [candidate],
            "usageMetadata": self._usage(),
            "modelVersion": MODEL,
            "responseId": self.id,
        }

    def _usage(self) -> Json:
        visible = self.written - self.thought
        return {
            "promptTokenCount": self.question.tokens,
            "candidatesTokenCount": visible,
            "thoughtsTokenCount": self.thought,
            "totalTokenCount": self.question.tokens + self.written,
        }
