"""The tool with which an agent asks for another mode, never for a wider one."""

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.agent.conduct.mode_switch import ModeSwitch
from desktop_agent.tools.tool import ModelSchema, RunningCall, Tool
from desktop_agent.vocabulary.blocks import Text
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import ToolClass


class ChangeModeInput(BaseModel):
    """Which mode."""

    model_config = ConfigDict(extra="forbid")

    mode: str = Field(min_length=1, max_length=40, description="The name of the mode.")


def change_mode(switch: ModeSwitch) -> Tool[ChangeModeInput]:
    """Make the tool. It counts as read-only: it can only take authority away from the agent that calls it."""

    async def run(wanted: ChangeModeInput, call: RunningCall) -> tuple[Text, ...]:
        if call.agent_path:
            raise ToolFailed("Only the root agent can ask for another mode.", "Go on in the mode that holds.")
        switch.request_by_agent(wanted.mode)
        return (
            Text(
                text=f"The mode “{wanted.mode}” is announced to the person after this turn and holds one turn later, "
                "unless the person decides otherwise."
            ),
        )

    names = ", ".join(f"{mode.name} ({mode.title})" for mode in switch.modes)
    return Tool(
        name="change_mode",
        description=(
            "Ask for another mode. Only a mode that allows no more than the present one is granted; the person is told "
            f"first and may object. Modes: {names}."
        ),
        schema=ModelSchema(ChangeModeInput),
        run=run,
        tool_class=ToolClass.READ_ONLY,
    )
