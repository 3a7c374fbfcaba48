"""Tool calls: classes and effects, previews, decisions about approvals, and the digest of a call."""

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Protocol, cast

from pydantic import Field

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.frozen_model import FrozenModel
from desktop_agent.types.lookalikes import Lookalike


class ToolClass(StrEnum):
    """Whether a call may change anything. Unknown tools count as mutating."""

    READ_ONLY = "read_only"
    MUTATING = "mutating"


class Effect(StrEnum):
    """What a call touches."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    DELEGATE = "delegate"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told about a tool. `input_schema` is a JSON Schema of type object."""

    name: str
    description: str
    input_schema: dict[str, Any]


class OfferedTool(Protocol):
    """What options take as a tool: a Tool, which is defined on a floor above this one."""

    @property
    def name(self) -> str:
        """The name for the model."""
        ...

    @property
    def identity(self) -> str:
        """The name for approvals and rules."""
        ...

    @property
    def spec(self) -> ToolSpec:
        """The description for the model."""
        ...


@dataclass(frozen=True, slots=True)
class TextPreview:
    """The effect of a call in words; a Sentence is shown in the person's language."""

    text: Sentence | str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class DiffPreview:
    """A file before and after. `before` is None for a new file, `after` for a deleted one."""

    path: str
    before: str | None
    after: str | None
    type: Literal["diff"] = "diff"


class Risk(StrEnum):
    """What a command may do that a person should look at twice."""

    DELETES = "deletes"
    WRITES = "writes"
    NETWORK = "network"
    PRIVILEGES = "privileges"
    RUNS_CODE = "runs_code"
    UNCLEAR = "unclear"
    LOOKALIKE = "lookalike"


@dataclass(frozen=True, slots=True)
class CommandPart:
    """One command of a shell line, as it is written there, and its risks.

    `depth` 1 is a command that another one starts: of `sudo rm x`, `rm x`. `lookalikes` are characters in it that pass
    for others, one of a word at most.
    """

    text: str
    risks: tuple[Risk, ...] = ()
    depth: int = 0
    lookalikes: tuple[Lookalike, ...] = ()


@dataclass(frozen=True, slots=True)
class CommandPreview:
    """A shell line and the folder that it runs in.

    `confinement` describes in a sentence how it is sandboxed, or that it is not. `parts` are its commands one by one,
    filled in by the program and not by the tool, except for PowerShell; not `understood`: it may run more than these.
    `hosts` are those that it must reach; not `only_hosts`: nothing keeps it from others. `problem` is what the shell
    finds wrong with the line.
    """

    line: str
    folder: str
    confinement: Sentence | str
    parts: tuple[CommandPart, ...] = ()
    understood: bool = False
    hosts: tuple[str, ...] = ()
    only_hosts: bool = True
    language: Literal["bash", "powershell"] = "bash"
    problem: str = ""
    type: Literal["command"] = "command"


@dataclass(frozen=True, slots=True)
class NetworkPreview:
    """A request that leaves this machine: its host, and a note."""

    method: str
    url: str
    host: str
    note: Sentence | str = ""
    type: Literal["network"] = "network"


@dataclass(frozen=True, slots=True)
class PicturePreview:
    """A picture that the call is about. `data` is PNG, JPEG, GIF or WebP."""

    name: str
    data: bytes
    note: Sentence | str = ""
    type: Literal["picture"] = "picture"


Preview = TextPreview | DiffPreview | CommandPreview | NetworkPreview | PicturePreview


@dataclass(frozen=True, slots=True)
class UntrustedSource:
    """The source of content that was written outside: a site, an MCP server, a file from elsewhere.

    `name` is what the person reads. `id` identifies the source where the name does not: a title may change, and two
    servers may have the same.
    """

    kind: Literal["web", "mcp", "file"]
    name: str
    id: str = ""

    def is_same(self, other: "UntrustedSource") -> bool:
        """Return whether this is the other one, whatever their names are now; without an id the name decides."""
        return self.kind == other.kind and (self.id == other.id if self.id else self.name == other.name)


IMPORTED_CONVERSATION = UntrustedSource("file", "an imported conversation", "import")
_COMMAND_NAME = "a command that may reach {hosts}"


def command_source(hosts: str, command_id: str) -> UntrustedSource:
    """Return the source of what a command with these hosts brings in."""
    return UntrustedSource("web", _COMMAND_NAME.format(hosts=hosts), command_id)


def source_words(name: str) -> Sentence | str:
    """Return the name of an untrusted source, as a translatable sentence where the program chose its words."""
    prefix = _COMMAND_NAME.partition("{")[0]
    if name.startswith(prefix):
        return Sentence(_COMMAND_NAME, {"hosts": name.removeprefix(prefix)})
    return Sentence("an imported conversation") if name == IMPORTED_CONVERSATION.name else name


def source_in_sentence(kind: str, name: str) -> Sentence | str:
    """Return the name of an untrusted source for a sentence, in which the title of a server is quoted."""
    return Sentence("“{server}”", {"server": name}) if kind == "mcp" else source_words(name)


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Changes of a call to files of the workspace, by relative paths; a folder ends in a slash.

    Each list may have only the first ones; `count` is how many there were in all. `is_cut`: not everything was
    compared. `lines` are how many lines were added and removed, where that is known.
    """

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    count: int = 0
    is_cut: bool = False
    lines: tuple[int, int] | None = None


class AllowOnce(FrozenModel):
    """Run exactly this call; with `edited_input`, run it with these arguments instead."""

    type: Literal["allow_once"] = "allow_once"
    edited_input: JsonObject | None = None


class AllowForConversation(FrozenModel):
    """Run it, and let this tool run unasked until the conversation is closed for good.

    Rules that asked about it do not ask about calls like it any more; a hook that asks does so each time.
    """

    type: Literal["allow_for_conversation"] = "allow_for_conversation"
    edited_input: JsonObject | None = None


class AllowAlways(FrozenModel):
    """Run it, and let what the rule says run unasked from now on. The rule was shown before.

    A conversation in memory keeps the rule while it is open; `Client.rules` has it for the next one.
    """

    type: Literal["allow_always"] = "allow_always"
    rule_id: str
    edited_input: JsonObject | None = None


class Deny(FrozenModel):
    """Do not run it; the model is told, with the message if there is one, and goes on."""

    type: Literal["deny"] = "deny"
    message: str = ""


class DenyAndStop(FrozenModel):
    """Do not run it, and end the run."""

    type: Literal["deny_and_stop"] = "deny_and_stop"
    message: str = ""


Decision = Annotated[
    AllowOnce | AllowForConversation | AllowAlways | Deny | DenyAndStop,
    Field(discriminator="type"),
]


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether both are equal as JSON: for Python 1, 1.0 and True are equal."""
    pairs: list[tuple[Any, Any]] = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if type(one) is not type(other):
            return False
        if isinstance(one, dict):
            if one.keys() != other.keys():
                return False
            pairs.extend((value, other[name]) for name, value in cast("JsonObject", one).items())
        elif isinstance(one, list):
            if len(cast("list[Any]", one)) != len(other):
                return False
            pairs.extend(zip(cast("list[Any]", one), other, strict=True))
        elif one != other:
            return False
    return True


def call_digest(tool_identity: str, arguments: JsonObject) -> str:
    """Return the SHA-256 of tool identity and normalised arguments: an approval is bound to it."""
    text = json.dumps([tool_identity, arguments], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


DENIED_BY_PERSON = "The person denied this call."
DENIED_SAYING = "The person denied this call and said: "
EDITED_BY_PERSON = "The person changed the arguments of this call before it ran."
"""How results begin that tell the model what the person did. The person is told it as to themselves."""

_TITLES = {
    "ask_user": Sentence("Ask you"),
    "calculate": Sentence("Calculate"),
    "change_mode": Sentence("Change the mode"),
    "delete_file": Sentence("Delete a file"),
    "edit_file": Sentence("Edit a file"),
    "fetch_page": Sentence("Read a web page"),
    "find_files": Sentence("Find files"),
    "list_files": Sentence("List files"),
    "move_file": Sentence("Move a file"),
    "read_file": Sentence("Read a file"),
    "run_command": Sentence("Run a command"),
    "search_files": Sentence("Search in files"),
    "update_todos": Sentence("Update the to-do list"),
    "view_image": Sentence("Look at a picture"),
    "write_file": Sentence("Write a file"),
}
_SERVER_TOOL = re.compile(r"(?:mcp__)?([a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*)__([a-zA-Z0-9_-]+)")


def tool_title(name: str) -> Sentence | str:
    """Return what a tool of our own does, or the words in the name of an MCP server's tool; any other name as it is."""
    if name in _TITLES:
        return _TITLES[name]
    match = _SERVER_TOOL.fullmatch(name)
    words = " ".join(re.split("[_-]+", match[2].strip("_-"))) if match else ""
    if match is None or not words:
        return name
    return Sentence("{tool} ({server})", {"tool": words[0].upper() + words[1:], "server": match[1]})
