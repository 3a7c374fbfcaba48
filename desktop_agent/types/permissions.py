"""Permission rules, permission modes, and the audit log of decided calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from desktop_agent.types.blocks import JsonObject, Outcome
from desktop_agent.types.frozen_model import EMPTY, FrozenModel, ListOrTuple, TupleOf
from desktop_agent.types.messages import new_id, now

WORKSPACE_ROOT = "."


class RuleEffect(StrEnum):
    """What a rule says about a call that it matches. Where several match, deny wins over ask, and ask over allow."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


class RuleScope(StrEnum):
    """Where a rule holds. A decision about one call only is no rule."""

    CONVERSATION = "conversation"
    WORKSPACE = "workspace"
    ALWAYS = "always"


class PathPattern(FrozenModel):
    """Files at or below `prefix`, an absolute path with forward slashes, compared part by part."""

    type: Literal["path"] = "path"
    prefix: str = Field(min_length=1)


class HostPattern(FrozenModel):
    """A host by name, in lower case; `*.example.org` is every host below example.org, and not itself."""

    type: Literal["host"] = "host"
    host: str = Field(min_length=1)


class CommandPattern(FrozenModel):
    """One command of a shell line by its first words. `exact`: those words and no more.

    The commands of a chained line are matched one by one; a rule that allows must allow each. It allows them where they
    run in `folder`, relative to the workspace, or where that is None in any folder of it: the same words may start
    another program elsewhere. A rule that denies or asks does so in every folder.
    """

    type: Literal["command"] = "command"
    words: ListOrTuple[str] = Field(min_length=1)
    exact: bool = False
    folder: str | None = Field(default=WORKSPACE_ROOT, min_length=1)


class CommandsPattern(FrozenModel):
    """Several commands by their first words, each as with a CommandPattern of its own.

    The list is the one that was shown: a bundle that grows in a later version changes no existing rule. `title`
    describes the commands for people, and matches nothing.
    """

    type: Literal["commands"] = "commands"
    title: str = Field(min_length=1)
    beginnings: tuple[Annotated[tuple[str, ...], Field(min_length=1)], ...] = Field(min_length=1)
    folder: str | None = Field(default=WORKSPACE_ROOT, min_length=1)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            title: str,
            beginnings: Sequence[list[str] | tuple[str, ...]],
            folder: str | None = WORKSPACE_ROOT,
        ) -> None: ...


class ArgumentsPattern(FrozenModel):
    """Exactly these arguments, by the digest of the call. `words` are the beginning of them, for people alone."""

    type: Literal["arguments"] = "arguments"
    digest: str
    words: str = ""


Pattern = Annotated[
    PathPattern | HostPattern | CommandPattern | CommandsPattern | ArgumentsPattern, Field(discriminator="type")
]


class Rule(FrozenModel):
    """One standing rule. `tool` is a tool's identity (see Tool.identity), its bare name, or `*` for every tool.

    The rule holds as well for the tools in `also`, named in the same way. Without a `pattern` it matches any arguments.
    `conversation_id` and `workspace` say which one, for those scopes. `origin` is who made it, in words for people:
    "you", "a mode", "the program". `answers` are the ids of rules that asked: a person who allows more than one call in
    answer to them has answered them for the others too, and they do not ask where this rule allows. Content from
    outside is trusted where a rule that `trusts` allowed the call that brought it.
    """

    id: str = Field(default_factory=new_id)
    effect: RuleEffect
    tool: str = Field(min_length=1)
    also: ListOrTuple[Annotated[str, Field(min_length=1)]] = EMPTY
    pattern: Pattern | None = None
    scope: RuleScope = RuleScope.CONVERSATION
    conversation_id: str | None = None
    workspace: str | None = None
    answers: TupleOf[str] = EMPTY
    trusts: bool = False
    origin: str = "you"
    created_at: datetime = Field(default_factory=now)
    expires_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def tools(self) -> tuple[str, ...]:
        """All tools that it is about."""
        return (self.tool, *self.also)

    def holds_at(self, moment: datetime) -> bool:
        """Return whether it has not expired at that moment."""
        return self.expires_at is None or moment < self.expires_at


@dataclass(frozen=True, slots=True)
class PathSubject:
    """A file or folder that a call touches: absolute, links followed, forward slashes."""

    path: str


@dataclass(frozen=True, slots=True)
class HostSubject:
    """A host that a call talks to."""

    host: str


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """A whole shell line that a call runs, and its folder: relative to the workspace, None where that is not known.

    `changes_folder`: the first command of the line changes to that folder, and does nothing else. `is_sandboxed`: it
    would run in a sandbox that holds, and without the network.
    """

    line: str
    folder: str | None = WORKSPACE_ROOT
    changes_folder: bool = False
    is_sandboxed: bool = False


Subject = PathSubject | HostSubject | CommandSubject


# From the least to the most that may run unasked.
Breadth = Literal["deny", "ask", "accept_edits"]
BREADTHS: tuple[Breadth, ...] = ("deny", "ask", "accept_edits")


class Mode(FrozenModel):
    """A permission mode. `mutating` is what becomes of calls that change something and that no rule decides.

    deny: they are denied. ask: a person decides. accept_edits: calls that only read and write files run unasked, the
    others are asked about. `addendum` is added to the instructions while the mode holds.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")
    title: str = Field(min_length=1)
    mutating: Breadth = "ask"
    addendum: str = ""
    rules: TupleOf[Rule] = EMPTY

    def is_wider_than(self, other: "Mode") -> bool:
        """Return whether more may run unasked, as far as that is known: rules that allow count as wider."""
        # Rules are not compared by id: of two versions of one rule, one may name more commands or tools.
        return (
            BREADTHS.index(self.mutating) > BREADTHS.index(other.mutating)
            or any(rule.effect == "allow" and rule not in other.rules for rule in self.rules)
            or any(rule.effect != "allow" and rule not in self.rules for rule in other.rules)
        )


DEFAULT_MODE = Mode(name="default", title="Default")
PLAN_MODE = Mode(
    name="plan",
    title="Plan",
    mutating="deny",
    addendum=(
        "You are in plan mode. Look, read and think; do not change anything: calls that change something are denied. "
        "When you know what should be done, say it as a plan, and let the person decide."
    ),
)
ACCEPT_EDITS_MODE = Mode(name="accept-edits", title="Accept edits", mutating="accept_edits")
BUILT_IN_MODES: tuple[Mode, ...] = (DEFAULT_MODE, PLAN_MODE, ACCEPT_EDITS_MODE)


def fallback_mode(removed: Mode) -> Mode:
    """Return the mode that replaces a removed one: nothing runs unasked that the removed mode or the default forbids.

    It is the widest built-in mode of which that is true; mostly the default. Where the removed mode denied or asked
    more than any of these, it stays itself, without the rules that allow.
    """
    fitting = [
        mode for mode in BUILT_IN_MODES if not mode.is_wider_than(removed) and not mode.is_wider_than(DEFAULT_MODE)
    ]
    if fitting:
        return max(fitting, key=lambda mode: BREADTHS.index(mode.mutating))
    breadth = min(removed.mutating, DEFAULT_MODE.mutating, key=BREADTHS.index)
    rules = tuple(rule for rule in removed.rules if rule.effect is not RuleEffect.ALLOW)
    return removed.model_copy(update={"mutating": breadth, "rules": rules})


AuditState = Literal["allowed", "denied", "stopped", "waiting"]
DecisionSource = Literal["", "person", "rule", "mode", "default", "program"]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One call in the audit log. `at` is when it was made, `decided_at` when it was decided.

    `input` is what ran, or would have run. `decision` is the person's decision, where one decided. `reason` is why it
    was asked about, `message` what the person said to the model. `by` program: it was refused before anybody was asked,
    or Stop came first. `outcome` None: it has not ended, or is not known.
    """

    conversation_id: str
    conversation_title: str
    at: datetime
    tool: str
    input: JsonObject
    agent_path: tuple[str, ...] = ()
    state: AuditState = "waiting"
    by: DecisionSource = ""
    decision: str = ""
    decided_at: datetime | None = None
    was_edited: bool = False
    reason: str = ""
    message: str = ""
    rule_id: str | None = None
    outcome: Outcome | None = None
