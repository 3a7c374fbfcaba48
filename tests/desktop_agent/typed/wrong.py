"""What a caller may not write: every checker finds each line that says so, and no other."""

from desktop_agent import (
    AgentOptions,
    Client,
    Hooks,
    PreToolUse,
    Provider,
    ProviderConfig,
    Specialist,
    TwoPhaseAgent,
    query,
    tool,
)


@tool
def double(number: int) -> int:
    """Double it."""
    return 2 * number


async def look(moment: PreToolUse) -> str:
    return moment.nmae  # error


def plain(number: int) -> int:
    return number


AgentOptions(model="m", tols=[double])  # error
AgentOptions(model="m", tools=[plain])  # error
AgentOptions(model="m", api_key=1)  # error
AgentOptions(model="m", approver="sometimes")  # error
AgentOptions.preset("ollama", modle="m")  # error
AgentOptions(model="m").with_values(sytem_prompt="x")  # error
AgentOptions.builder().tools(plain)  # error
Client(modle="m")  # error
Client(model="m", dialect="latin")  # error
TwoPhaseAgent(modle="m")  # error
query("hi", modle="m")  # error
Provider.create("m", base_ulr="x")  # error
ProviderConfig(stop_sequence=["x"])  # error
ProviderConfig(stop_sequences="x")  # error
Specialist(name="s", description="d", system_prompt="p", tools="double")  # error
Hooks().add_pre_tool_use(look)  # error
tool(nmae="x")  # error
Hooks(pre_tool_use=[look])  # error


async def call_it() -> None:
    await double("two")  # error
    await double(numbr=2)  # error
    await double()  # error
