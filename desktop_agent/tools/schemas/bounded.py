"""Checking by jsonschema, with all that a hostile schema could make it do kept within bounds."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from jsonschema import ValidationError, validators
from jsonschema.protocols import Validator
from referencing.jsonschema import EMPTY_REGISTRY

from desktop_agent.tools.schemas.patterns import PatternRejected, compile_pattern

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]

# Rules looked at in one check, which takes half a second for so many; ten thousand small objects need no more.
MAX_STEPS = 50_000
# Characters compared with patterns in one check, times the size of the pattern: about a second at the worst.
MAX_MATCHING = 100_000_000
# Rules within rules: the libraries do not stand it when Python ends a deeper recursion in the midst of them.
MAX_LEVELS = 200
_MAX_MESSAGE_LENGTH = 200


class ValidationBudgetExceeded(Exception):
    """The check was given up."""


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


_budget: ContextVar[_Budget] = ContextVar("_meter")


def first_errors(
    checker: Validator, arguments: Any, most: int, lasts: Callable[[], bool] = lambda: True
) -> list[ValidationError]:
    """What is wrong, as far as `most`. Raises ValidationBudgetExceeded, and whatever a hostile schema brings about.

    `lasts` is asked at each step whether it may go on.
    """
    token = _budget.set(_Budget(lasts=lasts))
    try:
        return list(islice(checker.iter_errors(arguments), most))
    finally:
        _budget.reset(token)


def bounded_validator(schema: Mapping[str, Any], draft: type[Validator]) -> Validator:
    """One that fetches nothing, never goes back in a text, and counts its steps."""
    return _bounded_class(draft)(schema, registry=EMPTY_REGISTRY)


@lru_cache(maxsize=8)
def _bounded_class(draft: type[Validator]) -> type[Validator]:
    own: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    known = cast("dict[str, Keyword]", draft.VALIDATORS)
    counted = {name: _with_budget(own.get(name, check)) for name, check in known.items()}
    return cast("type[Validator]", validators.extend(draft, counted))  # pyright: ignore[reportUnknownMemberType]


def _with_budget(check: Keyword) -> Keyword:
    def counting(checker: Any, rule: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
        meter = _budget.get()
        # A long list of choices or names is gone through as a whole.
        meter.spend(1 + (len(cast("list[Any]", rule)) // 10 if isinstance(rule, dict | list) else 0))
        meter.levels += 1
        if meter.levels > MAX_LEVELS:
            raise RecursionError
        try:
            for error in check(checker, rule, value, schema) or ():
                # Messages quote what they are about, which may be all of it.
                meter.spend(1 + len(error.message) // 100)
                error.message = shorten(error.message)
                yield error
        finally:
            meter.levels -= 1

    return counting


def shorten(text: str) -> str:
    """Short enough for a sentence."""
    if len(text) <= _MAX_MESSAGE_LENGTH:
        return text
    half = _MAX_MESSAGE_LENGTH // 2
    return f"{text[:half]}…{text[-half:]}"


def _pattern_found(pattern: str, text: str) -> bool:
    try:
        readable = compile_pattern(pattern)
    except PatternRejected:
        raise ValidationBudgetExceeded from None
    _budget.get().spend_matching(len(text) * readable.size)
    return readable.matches(text)


def _pattern(_checker: Any, rule: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _pattern_found(rule, value):
        yield ValidationError(f"{shorten(value)!r} does not match {rule!r}")


def _pattern_properties(checker: Any, rule: dict[str, Any], value: Any, _schema: Any) -> Iterator[ValidationError]:
    for name, inner in _properties(value):
        for pattern, schema in rule.items():
            if _pattern_found(pattern, name):
                yield from checker.descend(inner, schema, path=name, schema_path=pattern)


def _additional_properties(checker: Any, rule: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, inner in _properties(value):
        if name in known or any(_pattern_found(pattern, name) for pattern in patterns):
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
    """By their form as JSON, not each with each."""
    if rule is not True or not isinstance(value, list):
        return
    values = cast("list[Any]", value)
    forms = [_canonical_json(each) for each in values]
    _budget.get().spend(sum(map(len, forms)) // 100)
    if len(set(forms)) < len(forms):
        yield ValidationError("two of the items are the same")


def _canonical_json(value: Any) -> str:
    return json.dumps(_canonical_numbers(value), sort_keys=True)


def _canonical_numbers(value: Any) -> Any:
    """1 and 1.0 are the same number to JSON Schema."""
    match value:
        case float() if math.isfinite(value) and value.is_integer():
            return int(value)
        case dict():
            return {name: _canonical_numbers(each) for name, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_canonical_numbers(each) for each in cast("list[Any]", value)]
        case _:
            return value
