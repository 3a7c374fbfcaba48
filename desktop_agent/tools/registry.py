"""The tools of one conversation, by name."""

from collections.abc import Iterable

from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.tool_calls import ToolClass, ToolSpec


class ToolRegistry:
    """Tools in the order they were given. Two of one name are WrongUse."""

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise WrongUse(Sentence("There are two tools named “{name}”.", {"name": tool.name}))
            self._tools[tool.name] = tool

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return tuple(self._tools)

    def with_tools(self, *tools: AnyTool) -> "ToolRegistry":
        """These and more. Two of one name are WrongUse."""
        return ToolRegistry((*self._tools.values(), *tools)) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """The tool of exactly this name, upper and lower case distinguished, or None."""
        return self._tools.get(name)

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """What the model is told: about all, or about these. Raises WrongUse for a name that is none."""
        return tuple(self._known(name).spec for name in (self._tools if names is None else names))

    def class_of(self, name: str) -> ToolClass:
        """A tool's class; one that is not here counts as mutating."""
        tool = self._tools.get(name)
        return tool.tool_class if tool else ToolClass.MUTATING

    def _known(self, name: str) -> AnyTool:
        tool = self._tools.get(name)
        if tool is None:
            raise WrongUse(Sentence("There is no tool named “{name}”.", {"name": name}))
        return tool
