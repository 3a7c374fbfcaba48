"""Standing allowances of one conversation: the tools that may run unasked."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from desktop_agent.tools.tool import AnyTool


class Allowances(BaseModel):
    """Tool identities that the person allowed for this conversation. Frozen; JSON and back without loss."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    identities: frozenset[str] = frozenset()

    def covers(self, tool: AnyTool) -> bool:
        """Whether this very tool, working on the same thing, may run unasked."""
        return tool.identity in self.identities

    def allowing(self, identity: str) -> Self:
        """The same and one more."""
        return self.model_copy(update={"identities": self.identities | {identity}})

    def without(self, identity: str) -> Self:
        """The same and one less."""
        return self.model_copy(update={"identities": self.identities - {identity}})
