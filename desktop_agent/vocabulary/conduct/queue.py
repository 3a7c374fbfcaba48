"""Messages that wait while the agent works."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from desktop_agent.vocabulary.messages import Message

When = Literal["soon", "idle"]


class QueuedMessage(BaseModel):
    """One message. soon: after the tool results of the turn that runs. idle: when the run has ended."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    message: Message
    when: When = "soon"

    @property
    def id(self) -> str:
        """The message's."""
        return self.message.id
