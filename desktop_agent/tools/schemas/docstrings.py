"""What a docstring says about a function and about each of its parameters."""

import inspect
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, cast

_SECTION = re.compile(
    r"(args|arguments|parameters|params|returns?|raises|yields?|examples?|notes?|warnings?|attributes|see also|todo):$",
    re.IGNORECASE,
)
_ARGUMENTS = {"args:", "arguments:", "parameters:", "params:"}
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


def unwrap_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, which a partial one hides, with its hints and its text."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    return function


def parse_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description, which is all before the first section, and a text for each parameter under `Args:`."""
    lines = (inspect.getdoc(unwrap_partial(function)) or "").splitlines()
    starts = [index for index, line in enumerate(lines) if _SECTION.fullmatch(line.rstrip())]
    description = "\n".join(lines[: starts[0]] if starts else lines).strip()
    parameters: dict[str, str] = {}
    for start, end in pairwise([*starts, len(lines)]):
        if lines[start].strip().lower() in _ARGUMENTS:
            parameters |= _parameters(lines[start + 1 : end])
    return description, parameters


def _parameters(lines: list[str]) -> dict[str, str]:
    """By the indentation of the first one: what is further in goes on with the text before."""
    found: dict[str, str] = {}
    depth, name = -1, ""
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        depth = indent if depth < 0 and text else depth
        begun = _PARAMETER.fullmatch(text) if indent == depth else None
        if begun:
            name = begun[1]
            found[name] = begun[2]
        elif name and text:
            found[name] = f"{found[name]} {text}".strip()
    return found
