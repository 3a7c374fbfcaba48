"""Arguments by a JSON Schema that came from elsewhere, such as an MCP server."""

import copy
import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator
from referencing import Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY, specification_with

from desktop_agent.tools.schemas.bounded import ValidationBudgetExceeded, bounded_validator, first_errors, shorten
from desktop_agent.tools.schemas.patterns import PatternRejected, compile_pattern
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import Sentence, ToolInputInvalid, WrongUse

# In characters of JSON. It goes to the model with every request.
MAX_SCHEMA_LENGTH = 256_000
# Signs that begin another value; what the drafts say about schemas is gone through for each, ten thousand in a second.
MAX_VALUES = 20_000
MAX_PROBLEMS = 10
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class JsonSchema:
    """A JSON Schema of type object, of any draft (https://json-schema.org); without `$schema` 2020-12.

    Nothing is ever fetched for it. Patterns are those of Rust's regex: no look-around, no back references. `format`
    is told to the model and not checked. Raises WrongUse for a schema that cannot be checked against. `lasts` is asked
    meanwhile whether there is still time for it.
    """

    def __init__(self, schema: Mapping[str, Any], lasts: Callable[[], bool] = lambda: True) -> None:
        copied = _parse_schema(schema)
        # Drafts allow true and false as schemas: anything, and nothing.
        if not isinstance(copied, dict) or cast("JsonObject", copied).get("type") != "object":
            raise WrongUse("The arguments of a tool are an object: its schema says “type”: “object”.")
        self._schema = cast("JsonObject", copied)
        try:
            self._checker = _build_validator(self._schema, lasts)
            first_errors(self._checker, {}, MAX_PROBLEMS, lasts)
        except WrongUse:
            raise
        except RecursionError:
            raise _schema_error("it is nested too deep, or goes round in a circle") from None
        except ValidationBudgetExceeded:
            raise _schema_error("it takes too long to check anything against it") from None
        except Exception as error:  # noqa: BLE001 - nobody knows all that can be wrong with a schema from elsewhere
            raise _schema_error(f"it cannot be read ({type(error).__name__})") from None

    @property
    def size(self) -> int:
        """Characters of it as JSON."""
        return len(json.dumps(self._schema))

    @property
    def json_schema(self) -> JsonObject:
        """As it was given."""
        return copy.deepcopy(self._schema)

    def checked(self, arguments: JsonObject) -> JsonObject:
        """A copy of the arguments. Raises ToolInputInvalid with a sentence for each of the first ten problems."""
        try:
            problems = self._problems(arguments)
            if not problems:
                return copy.deepcopy(arguments)
        except ValidationBudgetExceeded:
            raise ToolInputInvalid("Checking these arguments against the tool's schema takes too long.") from None
        except RecursionError:
            raise ToolInputInvalid("The arguments are nested too deep to be checked.") from None
        except Exception as error:  # noqa: BLE001 - what a schema from elsewhere brings about is its tool's failure
            why = f"The arguments cannot be checked against the tool's schema ({type(error).__name__})."
            raise ToolInputInvalid(why) from None
        raise ToolInputInvalid("The arguments do not fit. " + "; ".join(problems))

    def _problems(self, arguments: JsonObject) -> list[str]:
        return [_describe_problem(error) for error in first_errors(self._checker, arguments, MAX_PROBLEMS)]


def _parse_schema(schema: Any) -> Any:
    try:
        text = json.dumps(dict(cast("JsonObject", schema)) if isinstance(schema, Mapping) else schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise _schema_error("it is not JSON") from None
    if len(text) > MAX_SCHEMA_LENGTH:
        raise _schema_error(f"it is larger than {MAX_SCHEMA_LENGTH:,} characters")
    if sum(text.count(sign) for sign in ",[{") > MAX_VALUES:
        raise _schema_error(f"it holds more than {MAX_VALUES:,} values")
    return json.loads(text)


def _build_validator(schema: JsonObject, lasts: Callable[[], bool]) -> Validator:
    """Raises WrongUse, and what the library raises."""
    draft = validators.validator_for(schema, default=Draft202012Validator)  # pyright: ignore[reportUnknownMemberType]
    # Each part that says it would be checked by another, unbounded, checker.
    rules = {name: rule for name, rule in schema.items() if name != "$schema"}
    # Not by check_schema, which wants patterns to be Python's.
    for error in draft(draft.META_SCHEMA, registry=EMPTY_REGISTRY).iter_errors(rules):
        raise _schema_error(f"{_location(error)}: {shorten(error.message)}")
    _check_all(rules, specification_with(str(draft.META_SCHEMA["$schema"]), default=DRAFT202012), lasts)
    return bounded_validator(rules, draft)


def _check_all(root: JsonObject, specification: Specification[Any], lasts: Callable[[], bool]) -> None:
    """Look at every schema in the schema, wherever a reference leads. Raises WrongUse."""
    resource = specification.create_resource(root)
    waiting = [(resource, EMPTY_REGISTRY.resolver_with_root(resource))]
    seen: set[int] = set()
    names = {"patternProperties": False, "unevaluatedProperties": False}
    while waiting:
        resource, resolver = waiting.pop()
        rules = cast("JsonObject", resource.contents)
        if not isinstance(resource.contents, dict) or id(rules) in seen:
            continue
        seen.add(id(rules))
        _check_rules(rules, lasts)
        names = {name: found or name in rules for name, found in names.items()}
        for reference in (rules[name] for name in _REFERENCES if isinstance(rules.get(name), str)):
            try:
                found = resolver.lookup(reference)
            except (Unresolvable, ValueError, AttributeError):
                raise _schema_error(f"“{shorten(reference)}” points out of it, or at nothing") from None
            waiting.append((specification.create_resource(found.contents), found.resolver))
        waiting.extend((inner, resolver.in_subresource(inner)) for inner in resource.subresources())
    # The library compares those names in Python's own engine, which may go back in them for ever.
    if all(names.values()):
        raise _schema_error("“unevaluatedProperties” together with “patternProperties” cannot be checked")


def _check_rules(rules: JsonObject, lasts: Callable[[], bool]) -> None:
    if not lasts():
        raise ValidationBudgetExceeded
    if isinstance(rules.get("$schema"), str):
        raise _schema_error("only its outermost part may say “$schema”")
    patterns = [*rules.get("patternProperties", ()), *([rules["pattern"]] if "pattern" in rules else [])]
    for pattern in patterns:
        if not lasts():
            raise ValidationBudgetExceeded
        try:
            compile_pattern(str(pattern))
        except PatternRejected:
            raise _schema_error(
                f"the pattern “{shorten(str(pattern))}” cannot be used",
                "Write it shorter, and without look-around and back references.",
            ) from None


def _schema_error(why: str, remedy: str | None = None) -> WrongUse:
    return WrongUse(Sentence("The schema of a tool's arguments cannot be used: {why}.", {"why": why}), remedy)


def _location(error: ValidationError) -> str:
    return shorten(".".join(str(part) for part in error.absolute_path)) or "arguments"


def _describe_problem(error: ValidationError) -> str:
    """In the form that pydantic's problems have elsewhere: where, and what."""
    inner = [f"{_location(each)}: {each.message}" for each in islice(error.context or (), 3)]
    return f"{_location(error)}: {error.message}" + (f" ({'; '.join(inner)})" if inner else "")
