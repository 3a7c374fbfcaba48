"""Validate arguments against a JSON Schema from elsewhere, with bounds on what a hostile schema can cost."""

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.protocols import Validator
from referencing import Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY, specification_with

from desktop_agent.tools.linear_patterns import PatternRejected, compile_pattern
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence, ToolInputInvalid, WrongUse

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

# Rules checked in one validation, which takes half a second for so many; enough for ten thousand small objects.
MAX_STEPS = 50_000
# Characters compared with patterns in one check, times the size of the pattern: about a second at the worst.
MAX_MATCHING = 100_000_000
# Rules within rules: the libraries break when Python ends a deeper recursion within them.
MAX_LEVELS = 200
_MAX_MESSAGE_LENGTH = 200


class ValidationBudgetExceeded(Exception):
    """The validation was given up."""


@dataclass(slots=True)
class _Budget:
    steps: int = MAX_STEPS
    matching: int = MAX_MATCHING
    levels: int = 0
    lasts: Callable[[], bool] = lambda: True

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0 or not self.lasts():
            raise ValidationBudgetExceeded

    def spend_matching(self, amount: int) -> None:
        self.matching -= amount
        if self.matching < 0:
            raise ValidationBudgetExceeded


_budget: ContextVar[_Budget] = ContextVar("_budget")


def first_errors(
    checker: Validator, arguments: Any, most: int, lasts: Callable[[], bool] = lambda: True
) -> list[ValidationError]:
    """Return at most `most` errors. Raises ValidationBudgetExceeded, and whatever a hostile schema brings about.

    `lasts` is asked at each step whether to go on.
    """
    token = _budget.set(_Budget(lasts=lasts))
    try:
        return list(islice(checker.iter_errors(arguments), most))
    finally:
        _budget.reset(token)


@lru_cache(maxsize=8)
def _bounded_class(draft: type[Validator]) -> type[Validator]:
    """Return validators that never backtrack in a text, and count their steps."""
    keywords: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    known = cast("dict[str, Keyword]", draft.VALIDATORS)
    counted = {name: _with_budget(keywords.get(name, check)) for name, check in known.items()}
    return cast("type[Validator]", validators.extend(draft, counted))  # pyright: ignore[reportUnknownMemberType]


def _with_budget(check: Keyword) -> Keyword:
    def counting(checker: Any, rule: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        budget = _budget.get()
        # A long list of choices or names is gone through as a whole.
        budget.spend(1 + (len(cast("list[Any]", rule)) // 10 if isinstance(rule, dict | list) else 0))
        budget.levels += 1
        if budget.levels > MAX_LEVELS:
            raise RecursionError
        try:
            for error in check(checker, rule, value, schema) or ():
                # Messages quote the value, perhaps all of it.
                budget.spend(1 + len(error.message) // 100)
                error.message = shorten(error.message)
                yield error
        finally:
            budget.levels -= 1

    return counting


def shorten(text: str) -> str:
    """Shorten a value for a sentence."""
    if len(text) <= _MAX_MESSAGE_LENGTH:
        return text
    half = _MAX_MESSAGE_LENGTH // 2
    return f"{text[:half]}…{text[-half:]}"


def _matches_pattern(pattern: str, text: str) -> bool:
    try:
        compiled = compile_pattern(pattern)
    except PatternRejected:
        raise ValidationBudgetExceeded from None
    _budget.get().spend_matching(len(text) * compiled.size)
    return compiled.matches(text)


def _pattern(_checker: Any, rule: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _matches_pattern(rule, value):
        yield ValidationError(f"{shorten(value)!r} does not match {rule!r}")


def _pattern_properties(checker: Any, rule: dict[str, Any], value: Any, _schema: Any) -> Iterator[ValidationError]:
    for name, inner in _properties(value):
        for pattern, schema in rule.items():
            if _matches_pattern(pattern, name):
                yield from checker.descend(inner, schema, path=name, schema_path=pattern)


def _additional_properties(checker: Any, rule: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, inner in _properties(value):
        if name in known or any(_matches_pattern(pattern, name) for pattern in patterns):
            continue
        if rule is False:
            yield ValidationError(f"{shorten(name)!r} is not an argument here")
        else:
            yield from checker.descend(inner, rule, path=name)


def _properties(value: Any) -> Iterator[tuple[str, Any]]:
    for name, inner in cast("dict[str, Any]", value).items() if isinstance(value, dict) else ():
        _budget.get().spend(1)
        yield name, inner


def _unique_items(_checker: Any, rule: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """Compare items by their form as JSON, not each with each."""
    if rule is not True or not isinstance(value, list):
        return
    values = cast("list[Any]", value)
    forms = [json.dumps(_canonical_numbers(item), sort_keys=True) for item in values]
    _budget.get().spend(sum(map(len, forms)) // 100)
    if len(set(forms)) < len(forms):
        yield ValidationError("two of the items are the same")


def _canonical_numbers(value: Any) -> Any:
    """Make 1 and 1.0 equal, as in JSON Schema."""
    match value:
        case float() if math.isfinite(value) and value.is_integer():
            return int(value)
        case dict():
            return {name: _canonical_numbers(member) for name, member in cast("dict[str, Any]", value).items()}
        case list():
            return [_canonical_numbers(member) for member in cast("list[Any]", value)]
        case _:
            return value


# In characters of JSON. It goes to the model with every request.
MAX_SCHEMA_LENGTH = 256_000
# Characters that begin a value: for each the draft's rules about schemas are checked, ten thousand in a second.
MAX_VALUES = 20_000
MAX_PROBLEMS = 10
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class JsonSchema:
    """A JSON Schema of type object, of any draft (https://json-schema.org); without `$schema` 2020-12.

    Nothing is ever fetched for it. Patterns are those of Rust's regex: no look-around, no back references. `format` is
    shown to the model and not checked. Raises WrongUse for a schema that cannot be checked against. `lasts` is asked
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
        """Its length as JSON, in characters."""
        return len(json.dumps(self._schema))

    @property
    def json_schema(self) -> JsonObject:
        """The schema as it was given."""
        return copy.deepcopy(self._schema)

    def checked(self, arguments: JsonObject) -> JsonObject:
        """Copy the arguments. Raises ToolInputInvalid with a sentence for each of the first ten problems."""
        try:
            problems = [_describe_problem(error) for error in first_errors(self._checker, arguments, MAX_PROBLEMS)]
            if not problems:
                return copy.deepcopy(arguments)
        except ValidationBudgetExceeded:
            raise ToolInputInvalid("Checking these arguments against the tool's schema takes too long.") from None
        except RecursionError:
            raise ToolInputInvalid("The arguments are nested too deep to be checked.") from None
        except Exception as error:  # noqa: BLE001 - what a schema from elsewhere brings about is its tool's failure
            why = "The arguments cannot be checked against the tool's schema ({kind})."
            raise ToolInputInvalid(Sentence(why, {"kind": type(error).__name__})) from None
        raise ToolInputInvalid(Sentence("The arguments do not fit. {problems}", {"problems": "; ".join(problems)}))


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
    """Build a validator that fetches nothing. Raises WrongUse, and what the library raises."""
    draft = validators.validator_for(schema, default=Draft202012Validator)  # pyright: ignore[reportUnknownMemberType]
    # A part that says `$schema` would be checked by another validator, without bounds.
    rules = {name: rule for name, rule in schema.items() if name != "$schema"}
    # Not by check_schema, which wants patterns to be Python's.
    for error in draft(draft.META_SCHEMA, registry=EMPTY_REGISTRY).iter_errors(rules):
        raise _schema_error(f"{_location(error)}: {shorten(error.message)}")
    _check_all(rules, specification_with(str(draft.META_SCHEMA["$schema"]), default=DRAFT202012), lasts)
    return _bounded_class(draft)(rules, registry=EMPTY_REGISTRY)


def _check_all(root: JsonObject, specification: Specification[Any], lasts: Callable[[], bool]) -> None:
    """Check every schema in the schema, wherever a reference leads. Raises WrongUse."""
    resource = specification.create_resource(root)
    stack = [(resource, EMPTY_REGISTRY.resolver_with_root(resource))]
    seen: set[int] = set()
    names = {"patternProperties": False, "unevaluatedProperties": False}
    while stack:
        resource, resolver = stack.pop()
        rules = cast("JsonObject", resource.contents)
        if not isinstance(resource.contents, dict) or id(rules) in seen:
            continue
        seen.add(id(rules))
        _check_rules(rules, lasts)
        names = {name: is_used or name in rules for name, is_used in names.items()}
        for reference in (rules[name] for name in _REFERENCES if isinstance(rules.get(name), str)):
            try:
                resolved = resolver.lookup(reference)
            except (Unresolvable, ValueError, AttributeError):
                raise _schema_error(f"“{shorten(reference)}” points out of it, or at nothing") from None
            stack.append((specification.create_resource(resolved.contents), resolved.resolver))
        stack.extend((inner, resolver.in_subresource(inner)) for inner in resource.subresources())
    # The library matches those names with Python's own engine, which may backtrack for ever.
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
    """Describe a problem as pydantic does elsewhere: where, and what."""
    inner = [f"{_location(problem)}: {problem.message}" for problem in islice(error.context or (), 3)]
    return f"{_location(error)}: {error.message}" + (f" ({'; '.join(inner)})" if inner else "")
