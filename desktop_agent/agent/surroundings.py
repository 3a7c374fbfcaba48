"""Whom a run works with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from desktop_agent.agent.pictures import ReadPicture
from desktop_agent.agent.recorder import Recorder
from desktop_agent.agent.retry import RetryPolicy
from desktop_agent.conversation.picture_fitting import PictureFitter
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.permissions.standing import Standing
from desktop_agent.providers.provider import Provider
from desktop_agent.tools.registry import ToolRegistry


@dataclass(frozen=True)
class Surroundings:
    """Whom a run works with."""

    open_provider: Callable[[], Awaitable[Provider]]
    recorder: Recorder
    tools: ToolRegistry
    approvals: ApprovalBroker
    standing: Standing
    read_picture: ReadPicture
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    fitter: PictureFitter = field(default_factory=PictureFitter)
