"""The tool with which a model keeps a list of what is to be done, for itself and for the person who watches."""

from collections import Counter
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.tool_calls import ToolClass

MAX_ITEMS = 50
_CHECKBOXES = {"open": "[ ]", "started": "[~]", "done": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=300, description="What is to be done, in a few words.")
    state: Literal["open", "started", "done"] = "open"


class UpdateTodosInput(BaseModel):
    """The whole list."""

    model_config = ConfigDict(extra="forbid")

    items: list[TodoItem] = Field(max_length=MAX_ITEMS, description="All of the list, in order; it replaces the old.")


def update_todos() -> Tool[UpdateTodosInput]:
    """Make the tool. It keeps nothing: the list is in the conversation."""

    async def run(params: UpdateTodosInput, _call: RunningCall) -> tuple[Text, ...]:
        return (Text(text=format_checklist(params.items)),)

    return Tool(
        name="update_todos",
        description=(
            "Keep a list of what is to be done in longer work. Each call gives the whole list anew; the person sees it."
        ),
        schema=ModelSchema(UpdateTodosInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
    )


def format_checklist(items: list[TodoItem]) -> str:
    """The list as a list in Markdown, and how far it is."""
    if not items:
        return "The list is empty."
    states = Counter(item.state for item in items)
    # A line end would begin another item.
    lines = [f"- {_CHECKBOXES[item.state]} {' '.join(item.text.split())}" for item in items]
    return "\n".join([f"{states['done']} of {len(items)} done.", "", *lines])
