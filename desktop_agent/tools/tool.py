"""A tool: what the model is told, what it may touch, and the function that does the work."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from desktop_agent.vocabulary.blocks import JsonObject, ResultPart
from desktop_agent.vocabulary.errors import ToolInputInvalid
from desktop_agent.vocabulary.tool_calls import Effect, Preview, ToolClass, ToolSpec, call_digest

Input = TypeVar("Input", bound=BaseModel)
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Tool(Generic[Input]):
    """One tool. `timeout` is in seconds; `preview` shows the effect before it happens and changes nothing.

    `scope` is what the tool works on, for example its folder: the same tool elsewhere is another one to approvals.
    """

    name: str
    description: str
    input_model: type[Input]
    run: Callable[[Input, Progress], Awaitable[tuple[ResultPart, ...]]]
    tool_class: ToolClass = ToolClass.MUTATING
    effects: frozenset[Effect] = frozenset()
    preview: Callable[[Input], Awaitable[Preview | None]] | None = None
    timeout: float = 120.0
    scope: str = ""

    @property
    def identity(self) -> str:
        """What approvals and standing allowances know it by."""
        return f"{self.name} @ {self.scope}" if self.scope else self.name

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return ToolSpec(self.name, self.description, self.input_model.model_json_schema())

    def checked(self, arguments: JsonObject) -> Input:
        """The arguments as the tool's model. Raises ToolInputInvalid with one sentence per field."""
        try:
            return self.input_model.model_validate(arguments)
        except ValidationError as error:
            problems = [
                f"{'.'.join(str(part) for part in each['loc']) or 'arguments'}: {each['msg']}"
                for each in error.errors(include_input=False, include_url=False)
            ]
            raise ToolInputInvalid("The arguments do not fit. " + "; ".join(problems)) from None

    def digest(self, arguments: JsonObject) -> str:
        """What an approval of this call is bound to."""
        return call_digest(self.identity, arguments)


AnyTool = Tool[Any]
