"""Whom a run works with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from desktop_agent.agent.conduct.guards import Guards
from desktop_agent.agent.conduct.mode_switch import ModeSwitch
from desktop_agent.agent.conduct.prompt_policies import PromptPolicies
from desktop_agent.agent.conduct.slots import ToolSlots
from desktop_agent.agent.conduct.steering import SteeringQueue
from desktop_agent.agent.pictures import PictureReader
from desktop_agent.agent.recorder import Recorder
from desktop_agent.agent.request import PreparedHistory
from desktop_agent.agent.retry import RetryPolicy
from desktop_agent.conversation.picture_fitting import PictureFitter
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.standing import PermissionPolicy
from desktop_agent.providers.provider import Provider
from desktop_agent.tools.file_keeper import Checkpointer
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.conduct.hooks import Hooks
from desktop_agent.vocabulary.conduct.specialists import Specialist


async def _no_wait() -> None:
    """Wait for nobody."""


@dataclass(frozen=True)
class RunContext:
    """Whom a run works with. What the person may change while it runs is an object of the session's own.

    `open_provider` takes the name of a model and answers who serves it just now; it raises AgentError where nobody does
    any more. `tools_ready` is awaited before the first turn. `files` keeps what calls are about to change;
    None keeps nothing. `prepared` remembers what was prepared of this conversation for earlier requests. `agent_path`
    names the specialists from the root down; the root agent's is empty.
    """

    open_provider: Callable[[str], Awaitable[Provider]]
    recorder: Recorder
    tools: ToolRegistry
    approvals: ApprovalBroker
    permission_policy: PermissionPolicy
    modes: ModeSwitch
    read_picture: PictureReader
    hooks: Hooks = field(default_factory=Hooks)
    queue: SteeringQueue = field(default_factory=SteeringQueue)
    policies: PromptPolicies = field(default_factory=PromptPolicies)
    guards: Guards = field(default_factory=Guards)
    specialists: tuple[Specialist, ...] = ()
    files: Checkpointer | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    fitter: PictureFitter = field(default_factory=PictureFitter)
    prepared_history: PreparedHistory = field(default_factory=PreparedHistory)
    agent_path: tuple[str, ...] = ()
    tools_ready: Callable[[], Awaitable[None]] = _no_wait
    slots: ToolSlots = field(default_factory=ToolSlots)
