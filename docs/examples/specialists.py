"""An agent that another one calls like a tool; its events carry the run that called it.

Prints:

    It is It is 3.
    ['accountant']
"""

import asyncio

from desktop_agent import AgentOptions, Client, Envelope, Limits, RunStarted, Specialist, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        return a + b

    accountant = Specialist(
        name="accountant",
        description="Works out numbers.",
        system_prompt="You are an accountant.",
        tools=["add"],
        limits=Limits(turns=5),
    )
    agents: list[str] = []

    def listen(envelope: Envelope) -> None:
        if envelope.parent_run_id and isinstance(envelope.event, RunStarted):
            agents.append(envelope.event.agent)

    options = server.with_values(tools=[add], specialists=[accountant], auto_execute_tools=True)
    async with Client(options, listener=listen) as client:
        print((await client.complete("Ask the accountant: What is 1 + 2?")).text)
        print(agents)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
