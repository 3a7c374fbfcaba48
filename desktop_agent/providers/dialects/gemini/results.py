"""Results of calls as functionResponse parts: always one for each call, in words where there is none."""

import re
from typing import Any

from desktop_agent.providers.dialects.gemini.media import image_part, is_inline
from desktop_agent.providers.dialects.results_of_calls import NO_RESULT
from desktop_agent.providers.transport.json_text import dumps
from desktop_agent.vocabulary.blocks import Image, Json, JsonObject, Outcome, Text, ToolResult, ToolUse

# Names that the API takes (ai.google.dev/api/caching, FunctionDeclaration).
TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")


def wire_name(name: str) -> str:
    """A call's name as the API takes it; another model may have called something that has none such."""
    if TOOL_NAME.fullmatch(name):
        return name
    return "_" + re.sub(r"[^A-Za-z0-9_.:-]", "_", name)[:127]


def response_parts(
    call: ToolUse, result: ToolResult | None, call_id: str | None, *, pictures_inside: bool
) -> list[JsonObject]:
    """The response to one call, and its pictures: inside of it where the model takes them there, else behind it.

    Raises ImageRefused, and WrongUse for a stored picture.
    """
    images = [part for part in result.content if isinstance(part, Image)] if result is not None else []
    inside = [image for image in images if pictures_inside and is_inline(image)]
    behind = [image for image in images if not (pictures_inside and is_inline(image))]
    name = wire_name(call.name)
    response: JsonObject = {"name": name, "response": _response_value(result, has_pictures_behind=bool(behind))}
    if call_id is not None:
        response = {"id": call_id, **response}
    if inside:
        response["parts"] = [image_part(image) for image in inside]
    parts: list[JsonObject] = [{"functionResponse": response}]
    if behind:
        parts += [{"text": f"Pictures from the result of {name}:"}, *map(image_part, behind)]
    return parts


def _response_value(result: ToolResult | None, *, has_pictures_behind: bool) -> JsonObject:
    if result is None:
        return {"error": NO_RESULT}
    said = [part for part in result.content if isinstance(part, (Text, Json))]
    value: Any
    if not result.is_error and len(said) == 1 and isinstance(said[0], Json) and not has_pictures_behind:
        value = said[0].value
    else:
        lines = [part.text if isinstance(part, Text) else dumps(part.value).decode() for part in said]
        if has_pictures_behind:
            lines.append("(The pictures follow.)")
        value = "\n".join(lines)
    if not result.is_error:
        return {"output": value}
    outcome = "" if result.outcome is Outcome.FAILED and value else f"[{result.outcome.value}] "
    return {"error": f"{outcome}{value}".rstrip()}
