"""A guard that lets an agent not end before it said what is wanted.

Prints:

    twice 1
    Hello again! completed
"""

import asyncio

from desktop_agent import AgentOptions, Client, ContinuationInjected, Guard, GuardContinue, GuardMoment, GuardPass


async def main(server: AgentOptions) -> None:
    async def check(moment: GuardMoment) -> GuardContinue | GuardPass:
        return GuardContinue("Hello again") if moment.iteration == 0 else GuardPass()

    async with Client(server, guards=[Guard("twice", check, max_iterations=3)]) as client:
        async for event in client.stream("Hello"):
            if isinstance(event, ContinuationInjected):
                print(event.guard_name, event.iteration)
        print(client.history[-1].text, client.ended)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
