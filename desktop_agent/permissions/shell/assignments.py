"""Assignments before a command (`CI=1 npm test`) that do not make it do something else."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from desktop_agent.permissions.shell.nodes import listed, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_ASSIGNED = re.compile(r"(?P<name>\w+)=(?P<quote>[\"']?)(?P<value>[\w.:@+=,-]*)(?P=quote)")
_FOLDER = re.compile(r"(?P<name>\w+)=(?P<quote>[\"']?)(?P<value>(?:\./)?\w[\w-]*(?:/\w[\w-]*)*/?|\.)(?P=quote)")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")


@cache
def _names() -> dict[str, frozenset[str]]:
    text = files(__package__ or __name__).joinpath("harmless_variables.toml").read_text(encoding="utf-8")
    return {name: listed(value) for name, value in tomllib.loads(text).items()}


def harmless_names() -> frozenset[str]:
    """Variables of which some or all values are harmless."""
    return _names()["names"] | _names()["module_folders"]


def is_harmless_assignment(node: "Node", source: bytes) -> bool:
    """Whether this assignment leaves every command what it is. It stands before one, or by itself."""
    if node.type != "variable_assignment":
        return False
    text = text_of(node, source)
    plain = _ASSIGNED.fullmatch(text)
    if plain is not None and plain["name"] in _names()["names"]:
        return True
    folder = _FOLDER.fullmatch(text)
    return folder is not None and folder["name"] in _names()["module_folders"] and _is_before_module(node, source)


def _is_before_module(node: "Node", source: bytes) -> bool:
    command = node.parent
    if command is None or command.type != "command":
        return False
    words = [text_of(each, source) for each in command.named_children if each.type != "variable_assignment"]
    return len(words) > 1 and _PYTHON.fullmatch(words[0]) is not None and words[1] == "-m"
