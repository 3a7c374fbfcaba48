"""The schema that answers are bound to, as servers take it."""

import json
from typing import Any, cast, get_origin

from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import from_json, to_json

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.requests import JsonFormat, ProviderConfig

_SCHEMA_PROMPT = "Answer with JSON of this schema and nothing else, without a code fence:\n{schema}"

_WRAPPER_KEY = "answer"


class OutputType:
    """A type that an answer is to have: a model, a dataclass, a TypedDict, a list or a union of these, and the like.

    Servers bind answers to objects alone, so what is none is the `answer` of one. Raises WrongUse for a type that has
    no JSON Schema.
    """

    def __init__(self, output_type: Any) -> None:
        try:
            self._adapter = TypeAdapter[Any](output_type)
            schema: JsonObject = self._adapter.json_schema()
        except PydanticUserError as error:
            raise WrongUse(
                f"This cannot be the type of an answer. {str(error).splitlines()[0].rstrip('.')}.",
                "Give a pydantic model, a dataclass, a TypedDict, or a list or a union of these.",
            ) from error
        definitions: JsonObject = schema.pop("$defs", {})
        reference = schema.get("$ref")
        if isinstance(reference, str):
            schema = dict(definitions[reference.rpartition("/")[2]])  # of a type that contains itself
        self._is_wrapped = schema.get("type") != "object"
        if self._is_wrapped:
            schema = {"type": "object", "properties": {_WRAPPER_KEY: schema}}
        if definitions:
            schema["$defs"] = definitions
        is_strict = _close_objects(schema)
        is_named = isinstance(output_type, type) and get_origin(output_type) is None
        name = output_type.__name__ if is_named else ""
        self.name = "".join(letter for letter in name if letter.isascii() and letter.isalnum())[:64] or _WRAPPER_KEY
        self.format = JsonFormat(json_schema=schema, name=self.name, strict=is_strict)

    def parse(self, text: str) -> Any:
        """Return the value that the answer is. Raises ValidationError."""
        text = _strip_code_fence(text)
        if self._is_wrapped:
            try:
                value = from_json(text)
            except ValueError:
                pass  # said in full below
            else:
                if isinstance(value, dict) and cast("dict[str, Any]", value).keys() == {_WRAPPER_KEY}:
                    return self._adapter.validate_json(to_json(value[_WRAPPER_KEY]))
        return self._adapter.validate_json(text)


def _strip_code_fence(text: str) -> str:
    stripped = text.strip()
    if not (stripped.startswith("```") and stripped.endswith("```")):
        return stripped
    return stripped.strip("`").removeprefix("json").strip()


class OutputFormat:
    """What answers are bound to just now. `apply` makes the configuration of a run."""

    def __init__(self) -> None:
        self._format: JsonFormat | None = None
        self._uses_prompt = False

    def bind(self, output_type: OutputType | None) -> None:
        """Bind the next answers to this type; None frees them."""
        self._format = None if output_type is None else output_type.format
        self._uses_prompt = False

    def use_prompt(self) -> None:
        """The server cannot be bound: its model is told."""
        self._uses_prompt = True

    def apply(self, config: ProviderConfig) -> ProviderConfig:
        """The configuration with what holds."""
        if self._format is None:
            return config
        if not self._uses_prompt:
            return config.model_copy(update={"response_format": self._format})
        words = _SCHEMA_PROMPT.format(schema=json.dumps(self._format.json_schema))
        prompt = words if config.system_prompt is None else f"{config.system_prompt}\n\n{words}"
        return config.model_copy(update={"system_prompt": prompt})


def _close_objects(schema: Any) -> bool:
    """Close all objects in it, as strict servers want them, all fields there; False where one must stay open."""
    if isinstance(schema, list):
        # Each of them is closed, also behind one that cannot be.
        return min(map(_close_objects, cast("list[Any]", schema)), default=True)
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
    return min(map(_close_objects, node.values()), default=True) and is_closed
