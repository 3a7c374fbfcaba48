"""The tools of one conversation, by name."""

from collections.abc import Container, Iterable

from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.tool_calls import ToolClass, ToolSpec


class ToolRegistry:
    """Tools in the order they were given. Two of one name are WrongUse."""

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            _require_unused_name(tool, self._tools)
            self._tools[tool.name] = tool

    def __len__(self) -> int:
        return len(self.names)

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
        return tuple(self._require(name).spec for name in (self.names if names is None else names))

    def class_of(self, name: str) -> ToolClass:
        """A tool's class; one that is not here counts as mutating."""
        tool = self.get(name)
        return tool.tool_class if tool else ToolClass.MUTATING

    def _require(self, name: str) -> AnyTool:
        tool = self.get(name)
        if tool is None:
            raise WrongUse(Sentence("There is no tool named “{name}”.", {"name": name}))
        return tool


class ToolSubset(ToolRegistry):
    """Of the tools of another registry those of certain names, as they are at the moment of asking; and some more."""

    def __init__(self, whole: ToolRegistry, names: Iterable[str], more: Iterable[AnyTool] = ()) -> None:
        super().__init__(more)
        self._whole = whole
        self._subset_names = tuple(names)

    @property
    def names(self) -> tuple[str, ...]:
        """All names."""
        return (*(name for name in self._subset_names if self._whole.get(name) is not None), *self._tools)

    def with_tools(self, *tools: AnyTool) -> ToolRegistry:
        """These and more. Two of one name are WrongUse."""
        for tool in tools:
            _require_unused_name(tool, self._subset_names)
        return ToolSubset(self._whole, self._subset_names, (*self._tools.values(), *tools)) if tools else self

    def get(self, name: str) -> AnyTool | None:
        """The tool of exactly this name, or None."""
        return self._whole.get(name) if name in self._subset_names else self._tools.get(name)


def _require_unused_name(tool: AnyTool, names: Container[str]) -> None:
    if tool.name in names:
        raise WrongUse(Sentence("There are two tools named “{name}”.", {"name": tool.name}))
