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

from desktop_agent.tools.schemas.bounded import TooMuchWork, checker_for, first_errors, shortened
from desktop_agent.tools.schemas.patterns import PatternUnreadable, compiled
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import Sentence, ToolInputInvalid, WrongUse

# In characters of JSON. It goes to the model with every request.
LARGEST = 256_000
# Signs that begin another value; what the drafts say about schemas is gone through for each, ten thousand in a second.
MOST_VALUES = 20_000
MOST_PROBLEMS = 10
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class JsonSchema:
    """A JSON Schema of type object, of any draft (https://json-schema.org); without `$schema` 2020-12.

    Nothing is ever fetched for it. Patterns are those of Rust's regex: no look-around, no back references. `format`
    is told to the model and not checked. Raises WrongUse for a schema that cannot be checked against. `lasts` is asked
    meanwhile whether there is still time for it.
    """

    def __init__(self, schema: Mapping[str, Any], lasts: Callable[[], bool] = lambda: True) -> None:
        copied = _copied(schema)
        # Drafts allow true and false as schemas: anything, and nothing.
        if not isinstance(copied, dict) or cast("JsonObject", copied).get("type") != "object":
            raise WrongUse("The arguments of a tool are an object: its schema says “type”: “object”.")
        self._schema = cast("JsonObject", copied)
        try:
            self._checker = _checker(self._schema, lasts)
            first_errors(self._checker, {}, MOST_PROBLEMS, lasts)
        except WrongUse:
            raise
        except RecursionError:
            raise _wrong("it is nested too deep, or goes round in a circle") from None
        except TooMuchWork:
            raise _wrong("it takes too long to check anything against it") from None
        except Exception as error:  # noqa: BLE001 - nobody knows all that can be wrong with a schema from elsewhere
            raise _wrong(f"it cannot be read ({type(error).__name__})") from None

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
        except TooMuchWork:
            raise ToolInputInvalid("Checking these arguments against the tool's schema takes too long.") from None
        except RecursionError:
            raise ToolInputInvalid("The arguments are nested too deep to be checked.") from None
        except Exception as error:  # noqa: BLE001 - what a schema from elsewhere brings about is its tool's failure
            why = f"The arguments cannot be checked against the tool's schema ({type(error).__name__})."
            raise ToolInputInvalid(why) from None
        raise ToolInputInvalid("The arguments do not fit. " + "; ".join(problems))

    def _problems(self, arguments: JsonObject) -> list[str]:
        return [_problem(error) for error in first_errors(self._checker, arguments, MOST_PROBLEMS)]


def _copied(schema: Any) -> Any:
    try:
        text = json.dumps(dict(cast("JsonObject", schema)) if isinstance(schema, Mapping) else schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise _wrong("it is not JSON") from None
    if len(text) > LARGEST:
        raise _wrong(f"it is larger than {LARGEST:,} characters")
    if sum(text.count(sign) for sign in ",[{") > MOST_VALUES:
        raise _wrong(f"it holds more than {MOST_VALUES:,} values")
    return json.loads(text)


def _checker(schema: JsonObject, lasts: Callable[[], bool]) -> Validator:
    """Raises WrongUse, and what the library raises."""
    draft = validators.validator_for(schema, default=Draft202012Validator)  # pyright: ignore[reportUnknownMemberType]
    # Each part that says it would be checked by another, unbounded, checker.
    rules = {name: rule for name, rule in schema.items() if name != "$schema"}
    # Not by check_schema, which wants patterns to be Python's.
    for error in draft(draft.META_SCHEMA, registry=EMPTY_REGISTRY).iter_errors(rules):
        raise _wrong(f"{_place(error)}: {shortened(error.message)}")
    _check_all(rules, specification_with(str(draft.META_SCHEMA["$schema"]), default=DRAFT202012), lasts)
    return checker_for(rules, draft)


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
                raise _wrong(f"“{shortened(reference)}” points out of it, or at nothing") from None
            waiting.append((specification.create_resource(found.contents), found.resolver))
        waiting.extend((inner, resolver.in_subresource(inner)) for inner in resource.subresources())
    # The library compares those names in Python's own engine, which may go back in them for ever.
    if all(names.values()):
        raise _wrong("“unevaluatedProperties” together with “patternProperties” cannot be checked")


def _check_rules(rules: JsonObject, lasts: Callable[[], bool]) -> None:
    if not lasts():
        raise TooMuchWork
    if isinstance(rules.get("$schema"), str):
        raise _wrong("only its outermost part may say “$schema”")
    patterns = [*rules.get("patternProperties", ()), *([rules["pattern"]] if "pattern" in rules else [])]
    for pattern in patterns:
        if not lasts():
            raise TooMuchWork
        try:
            compiled(str(pattern))
        except PatternUnreadable:
            raise _wrong(
                f"the pattern “{shortened(str(pattern))}” cannot be used",
                "Write it shorter, and without look-around and back references.",
            ) from None


def _wrong(why: str, remedy: str | None = None) -> WrongUse:
    return WrongUse(Sentence("The schema of a tool's arguments cannot be used: {why}.", {"why": why}), remedy)


def _place(error: ValidationError) -> str:
    return shortened(".".join(str(part) for part in error.absolute_path)) or "arguments"


def _problem(error: ValidationError) -> str:
    """In the form that pydantic's problems have elsewhere: where, and what."""
    inner = [f"{_place(each)}: {each.message}" for each in islice(error.context or (), 3)]
    return f"{_place(error)}: {error.message}" + (f" ({'; '.join(inner)})" if inner else "")
