"""A root agent and its specialists, each with a scripted model of its own, in real runs."""

from typing import Any

from desktop_agent.tools.tool import Tool
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.policies import Specialist
from tests.fakes.agent_run import Desk, Memory, Words
from tests.fakes.scripted_provider import ScriptedProvider, Turn


def specialist(name: str = "researcher", **more: Any) -> Specialist:
    return Specialist(
        name=name, description=f"Calls {name}.", system_prompt=f"You are {name}.", **({"model": name} | more)
    )


def ask(id_: str, name: str = "researcher", task: str = "Look.", **more: str) -> ToolUse:
    return ToolUse(id=id_, name=name, input={"task": task, **more})


class Team(Desk):
    """The root's model plays `turns`; the model of each specialist plays the turns in `plays` under its name."""

    def __init__(
        self,
        *turns: Turn,
        specialists: tuple[Specialist, ...] = (),
        plays: dict[str, tuple[Turn, ...]],
        tools: tuple[Tool[Words], ...] = (),
        **more: Any,
    ) -> None:
        self.models = {name: ScriptedProvider(*script) for name, script in plays.items()}
        super().__init__(*turns, tools=tools, specialists=specialists or (specialist(),), **more)

    async def _open(self, model: str) -> ScriptedProvider:
        return self.models.get(model, self.provider)

    @property
    def sub(self) -> Memory:
        """The recorder of the only run below the root's."""
        (memory,) = self.memory.nested_ones
        return memory

    @property
    def answered(self) -> tuple[Outcome, str]:
        """The outcome and the text of the root's only call."""
        (result,) = self.memory.results
        return result.outcome, "".join(part.text for part in result.content)  # type: ignore[union-attr]

    def finish(self) -> None:
        """Check that every script was played to its end."""
        for provider in (self.provider, *self.models.values()):
            provider.assert_finished()
