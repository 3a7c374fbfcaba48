"""The tools of one conversation of which some come and go."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.tool_calls import ToolClass, ToolSpec

if TYPE_CHECKING:
    from desktop_agent.tools.toolsets import ToolSelection


class DynamicToolRegistry(ToolRegistry):
    """Those that stay, and those that servers offer at the moment of asking."""

    def __init__(self, fixed: ToolRegistry, offered: Callable[[], tuple[AnyTool, ...]]) -> None:
        super().__init__()
        self._fixed = fixed
        self._offered = offered
        self._cached: tuple[tuple[AnyTool, ...], ToolRegistry] = ((), fixed)

    def __len__(self) -> int:
        return len(self._current)

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return self._current.names

    def with_tools(self, *tools: AnyTool) -> ToolRegistry:
        """These and more. Two of one name are WrongUse."""
        return DynamicToolRegistry(self._fixed.with_tools(*tools), self._offered) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """The tool of exactly this name, or None."""
        return self._current.get(name)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """What the model is told: about all, or about these. Raises WrongUse for a name that is none."""
        return self._current.specs(names)

    def class_of(self, name: str) -> ToolClass:
        """A tool's class; one that is not here counts as mutating."""
        return self._current.class_of(name)

    @property
    def _current(self) -> ToolRegistry:
        offered = self._offered()
        if self._cached[0] != offered:
            fresh = (each for each in offered if self._fixed.get(each.name) is None)
            self._cached = (offered, self._fixed.with_tools(*fresh))
        return self._cached[1]


def filter_tools(which: "ToolSelection", offered: tuple[AnyTool, ...]) -> tuple[AnyTool, ...]:
    """Of these the ones that belong to a set of tools."""
    if which == "all":
        return offered
    return tuple(each for each in offered if which == "read" and each.tool_class is ToolClass.READ_ONLY)
