"""What Stop is aimed at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopTool:
    """One running or waiting call: it ends as cancelled, the model is told and goes on."""

    tool_use_id: str


@dataclass(frozen=True, slots=True)
class StopTurn:
    """This run. Messages that wait are sent next."""


@dataclass(frozen=True, slots=True)
class StopSession:
    """This run, and whatever waits: queued messages are handed back."""


Interrupt = StopTool | StopTurn | StopSession
