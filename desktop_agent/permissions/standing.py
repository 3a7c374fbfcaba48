"""What the person allowed for the rest of a conversation, and the verdicts that follow from it."""

from collections.abc import Iterable

from desktop_agent.permissions.allowances import Allowances
from desktop_agent.permissions.gate import Verdict, decide
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import ToolUse


class Standing:
    """Holds a conversation's allowances while it is open; closing it forgets them, so that a restart asks again."""

    def __init__(self, allowances: Allowances | None = None) -> None:
        self._allowances = allowances or Allowances()

    @property
    def allowances(self) -> Allowances:
        """As they are now."""
        return self._allowances

    def verdict(self, call: ToolUse, tool: AnyTool | None, known_names: Iterable[str]) -> Verdict:
        """Take a call through the gates."""
        return decide(call, tool, self._allowances, known_names)

    def allow(self, tool: AnyTool) -> None:
        """Let this very tool run unasked from now on."""
        self._allowances = self._allowances.allowing(tool.identity)
