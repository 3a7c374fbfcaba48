"""What the sessions of one engine, or of one library client, are made with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from desktop_agent.agent.pictures import PictureReader
from desktop_agent.engine.rule_book import RuleBook
from desktop_agent.permissions.standing import ALL_NAMES, ToolNamePolicy
from desktop_agent.providers.provider import Provider
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.tools.file_keeper import Checkpointer
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.conduct.guards import Guard
from desktop_agent.vocabulary.conduct.hooks import Hooks
from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.conduct.modes import BUILT_IN_MODES, Mode
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.conduct.specialists import Specialist
from desktop_agent.vocabulary.requests import ProviderConfig


async def _no_wait_for_tools(_: ConversationRecord) -> None:
    """Wait for nobody."""


@dataclass(frozen=True)
class SessionSetup:
    """What sessions are made with. Functions are called afresh for each run, so changes hold from the next prompt on;
    `modes` are asked for whenever one is looked for, so changes hold at once, see `ModeSwitch.follow`.

    `open_provider` also takes the name of a model: a specialist may have its own; `require_endpoint` raises WrongUse
    where it is certain to. A run begins with `tools_ready`. `rules` hold while a session is
    open and are kept nowhere; `book` has those that are kept. `names` says which tools may be named at all.
    `own_folders` are the program's own, where no call writes. `files`
    saves what calls change; None saves nothing. `questions`: the agent may ask the person something, so somebody must
    be there to answer. `mode_requests`: it may ask for another mode. `execute_tools` False: the caller runs the calls.
    """

    open_provider: Callable[[ConversationRecord, str], Awaitable[Provider]]
    read_picture: PictureReader
    tools_for: Callable[[ConversationRecord], ToolRegistry]
    config_for: Callable[[ConversationRecord], ProviderConfig]
    require_endpoint: Callable[[ConversationRecord], None] = lambda _: None
    tools_ready: Callable[[ConversationRecord], Awaitable[None]] = _no_wait_for_tools
    limits: Callable[[], Limits] = Limits
    file_keeper_for: Callable[[ConversationRecord], Checkpointer | None] | None = None
    store: Store | None = None
    hooks: Hooks = field(default_factory=Hooks)
    modes: Callable[[], tuple[Mode, ...]] = lambda: BUILT_IN_MODES
    guards: tuple[Guard, ...] = ()
    specialists: Callable[[], tuple[Specialist, ...]] = tuple
    rules: tuple[Rule, ...] = ()
    rule_book: RuleBook = field(default_factory=RuleBook)
    names: ToolNamePolicy = ALL_NAMES
    own_folders: tuple[str, ...] = ()
    questions: bool = False
    mode_requests: bool = False
    execute_tools: bool = True
    compact_at: float | None = 0.8
