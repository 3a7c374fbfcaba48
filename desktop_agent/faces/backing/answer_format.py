"""The schema that answers are bound to, as servers take it."""

import json
from typing import Any, cast

from pydantic import BaseModel

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.requests import JsonFormat, ProviderConfig

_IN_WORDS = "Answer with JSON of this schema and nothing else, without a code fence:\n{schema}"


class AnswerFormat:
    """What answers are bound to just now. `apply` makes the configuration of a run."""

    def __init__(self) -> None:
        self._format: JsonFormat | None = None
        self._in_words = False

    def bind(self, output_type: type[BaseModel] | None) -> None:
        """Bind the next answers to this type; None frees them."""
        self._format = None if output_type is None else _format_of(output_type)
        self._in_words = False

    def say_in_words(self) -> None:
        """The server cannot be bound: its model is told."""
        self._in_words = True

    def apply(self, config: ProviderConfig) -> ProviderConfig:
        """The configuration with what holds."""
        if self._format is None:
            return config
        if not self._in_words:
            return config.model_copy(update={"response_format": self._format})
        words = _IN_WORDS.format(schema=json.dumps(self._format.json_schema))
        prompt = words if config.system_prompt is None else f"{config.system_prompt}\n\n{words}"
        return config.model_copy(update={"system_prompt": prompt})


def _format_of(output_type: type[BaseModel]) -> JsonFormat:
    """Servers that are strict want closed objects whose fields are all there."""
    schema: JsonObject = output_type.model_json_schema()
    is_closed = _close(schema)
    name = "".join(letter for letter in output_type.__name__ if letter.isascii() and letter.isalnum())[:64]
    return JsonFormat(json_schema=schema, name=name or "answer", strict=is_closed)


def _close(schema: Any) -> bool:
    """Close all objects in it; False where one must stay open."""
    if isinstance(schema, list):
        # Each of them is closed, also behind one that cannot be.
        return min(map(_close, cast("list[Any]", schema)), default=True)
    if not isinstance(schema, dict):
        return True
    node = cast("dict[str, Any]", schema)
    is_closed = True
    if isinstance(properties := node.get("properties"), dict):
        node["additionalProperties"] = False
        node["required"] = list(cast("dict[str, Any]", properties))
        for field in cast("dict[str, Any]", properties).values():
            if isinstance(field, dict):
                cast("dict[str, Any]", field).pop("default", None)
    elif node.get("type") == "object":
        is_closed = False
    return min(map(_close, node.values()), default=True) and is_closed
