"""Checks whether a JSON value fits a type of an SDK: TypedDicts, pydantic models and unions, at any depth.

Strict where the SDKs' own checks are not: unknown keys are found, lists are walked at once, a whole number is no
truth value, and of a union the branch is judged whose tags (`type`, `role`) fit.
"""

import base64
import binascii
import collections.abc
import os
import types
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from functools import partial
from typing import Annotated, Any, ForwardRef, Literal, NotRequired, Required, TypeVar, Union, get_args, get_origin

import typing_extensions
from pydantic import BaseModel
from typing_extensions import get_type_hints, is_typeddict

TAGS = ("type", "role", "object")
_LISTS = (list, collections.abc.Iterable, collections.abc.Sequence)
_ANYTHING = (Any, object)
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Finding:
    """One misfit. `path` is like messages[0].content; `found` is the value."""

    path: str
    kind: Literal["unknown", "missing", "value"]
    found: Any = None
    wanted: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "unknown":
                return f"{self.path}: not a field here"
            case "missing":
                return f"{self.path}: missing"
            case _:
                return f"{self.path}: {_short(self.found)} is not {self.wanted}"


@dataclass(frozen=True)
class Field:
    annotation: Any
    is_required: bool


def misfits(value: Any, annotation: Any, path: str = "") -> list[Finding]:
    """Return all misfits. Raise TypeError for a type that this module cannot read."""
    return _judge(annotation)(value, path)


def _once(read: Callable[[Any], _Read]) -> Callable[[Any], _Read]:
    """Cache by identity, as types are slow to hash; the cache keeps each type alive, so its id stays unique."""
    judges: dict[int, tuple[Any, _Read]] = {}

    def reading(annotation: Any) -> _Read:
        if id(annotation) not in judges:
            judges[id(annotation)] = (annotation, read(annotation))
        return judges[id(annotation)][1]

    return reading


@_once
def _judge(annotation: Any) -> Callable[[Any, str], list[Finding]]:
    """Return the function that finds the misfits of a value at a path."""
    annotation = _bare(annotation)
    if annotation in _ANYTHING:
        return lambda _value, _path: []
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return partial(_in_union, tuple(_flat(get_args(annotation))))
    if origin is Literal:
        return partial(_in_choice, annotation)
    if origin in _LISTS or annotation is list or _is_sequence(annotation):
        return partial(_in_list, annotation)
    if origin in (dict, collections.abc.Mapping) or annotation is dict:
        return partial(_in_mapping, annotation)
    fields = fields_of(annotation)
    if fields is not None:
        return partial(_in_object, fields, _named(annotation))
    return partial(_in_scalar, annotation)


@_once
def fields_of(annotation: Any) -> dict[str, Field] | None:
    """Return the fields of a class under their wire names; None for a type without fields."""
    if is_typeddict(annotation):
        hints = get_type_hints(annotation, include_extras=True)
        return {
            _wire_name(hint, name): Field(hint, _is_required(annotation, name, hint)) for name, hint in hints.items()
        }
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        annotation.model_rebuild()
        return {
            field.alias or name: Field(field.annotation, field.is_required())
            for name, field in annotation.model_fields.items()
        }
    return None


def _in_object(fields: dict[str, Field], name: str, value: Any, path: str) -> list[Finding]:
    if not isinstance(value, dict):
        return [Finding(path, "value", value, name)]
    findings = [
        Finding(_joined(path, key), "missing")
        for key, field in fields.items()
        if field.is_required and key not in value
    ]
    for key, item in value.items():
        if key in fields:
            findings += misfits(item, fields[key].annotation, _joined(path, key))
        else:
            findings.append(Finding(_joined(path, key), "unknown", item))
    return findings


def _in_choice(annotation: Any, value: Any, path: str) -> list[Finding]:
    fits = any(value == allowed and type(value) is type(allowed) for allowed in get_args(annotation))
    return [] if fits else [Finding(path, "value", value, _named(annotation))]


def _in_scalar(annotation: Any, value: Any, path: str) -> list[Finding]:
    return [] if _is_scalar(value, annotation) else [Finding(path, "value", value, _named(annotation))]


def _in_list(annotation: Any, value: Any, path: str) -> list[Finding]:
    if not isinstance(value, list):
        return [Finding(path, "value", value, _named(annotation))]
    inner = (get_args(annotation) or (Any,))[0]
    return [finding for index, item in enumerate(value) for finding in misfits(item, inner, f"{path}[{index}]")]


def _in_mapping(annotation: Any, value: Any, path: str) -> list[Finding]:
    if not isinstance(value, dict):
        return [Finding(path, "value", value, _named(annotation))]
    _, inner = get_args(annotation) or (str, Any)
    return [finding for key, item in value.items() for finding in misfits(item, inner, _joined(path, key))]


def _in_union(branches: tuple[Any, ...], value: Any, path: str) -> list[Finding]:
    """Return the findings of the likely branch: of those whose tags fit, the one with the fewest."""
    if isinstance(value, dict):
        fitting = [
            candidate
            for candidate in branches
            if fields_of(candidate) is not None and not _wrong_tags(value, candidate)
        ]
        branches = tuple(fitting) or branches
        if not fitting and (tag := _tag_nobody_has(value, branches)):
            return [Finding(_joined(path, tag), "value", value[tag], "any of the kinds that may stand here")]
    tried = [misfits(value, branch, path) for branch in branches]
    best = min(tried, key=lambda candidate: (any(finding.path == path for finding in candidate), len(candidate)))
    if len(best) == 1 and best[0].path == path:
        return [Finding(path, "value", value, " or ".join(_named(branch) for branch in branches)[:200])]
    return best


def _flat(branches: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for branch in map(_bare, branches):
        if get_origin(branch) in (Union, types.UnionType):
            flat += _flat(get_args(branch))
        else:
            flat.append(branch)
    return flat


def _wrong_tags(value: dict[str, Any], annotation: Any) -> list[str]:
    return [tag for tag, choice in _choices(annotation) if tag in value and misfits(value[tag], choice)]


@_once
def _choices(annotation: Any) -> list[tuple[str, Any]]:
    """Return the tags of a class that have fixed values, with their types."""
    fields = fields_of(annotation) or {}
    return [(tag, fields[tag].annotation) for tag in TAGS if tag in fields and _is_choice(fields[tag].annotation)]


def _tag_nobody_has(value: dict[str, Any], branches: tuple[Any, ...]) -> str | None:
    """Return the tag whose value no branch has."""
    wrong = [_wrong_tags(value, branch) for branch in branches if fields_of(branch) is not None]
    return next((tag for tag in TAGS if wrong and all(tag in branch for branch in wrong)), None)


def _is_choice(annotation: Any) -> bool:
    annotation = _bare(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        return all(branch is type(None) or _is_choice(branch) for branch in get_args(annotation))
    return get_origin(annotation) is Literal


def _bare(annotation: Any) -> Any:
    """Remove the parts of an annotation that do not restrict the value."""
    while True:
        if isinstance(annotation, typing_extensions.TypeAliasType):
            annotation = annotation.__value__
        elif get_origin(annotation) in (Annotated, Required, NotRequired):
            annotation = get_args(annotation)[0]
        elif annotation is None:
            return type(None)
        else:
            return annotation


def _is_scalar(value: Any, annotation: Any) -> bool:
    if annotation is bool or annotation is type(None):
        return type(value) is annotation
    if annotation is int or annotation is float:
        return type(value) is int or (annotation is float and type(value) is float)
    if annotation in (str, datetime, date):
        return isinstance(value, str)
    if annotation is bytes:
        return isinstance(value, str) and _is_base64(value)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return value in [member.value for member in annotation]
    if _is_no_json(annotation):
        return False
    raise TypeError(f"a judge is missing for {annotation!r}")


def _is_no_json(annotation: Any) -> bool:
    """Open files, pictures and functions: SDKs accept them from a caller, but no body can contain them."""
    origin = get_origin(annotation) or annotation
    if isinstance(annotation, ForwardRef) or not isinstance(origin, type):
        return False
    return issubclass(origin, (os.PathLike, collections.abc.Callable)) or origin.__module__.startswith(
        ("io", "typing", "PIL", "pathlib")
    )


def _is_sequence(annotation: Any) -> bool:
    """The SDKs' type of a list of strings that excludes a plain string."""
    return getattr(get_origin(annotation), "__name__", "") == "SequenceNotStr"


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_required(owner: Any, name: str, hint: Any) -> bool:
    if get_origin(hint) in (Required, NotRequired):
        return get_origin(hint) is Required
    return name in owner.__required_keys__


def _wire_name(hint: Any, name: str) -> str:
    """Return the alias of the field if the SDK has one."""
    if get_origin(hint) in (Required, NotRequired):
        hint = get_args(hint)[0]
    marks = hint.__metadata__ if get_origin(hint) is Annotated else ()
    return next((mark.alias for mark in marks if getattr(mark, "alias", None)), name)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _named(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(map(repr, get_args(annotation)))
    return getattr(annotation, "__name__", None) or str(annotation)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
