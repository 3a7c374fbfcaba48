"""A guard that ends a run, and says why.

Prints:

    enough That is enough.
    aborted
"""

import asyncio

from desktop_agent import AgentOptions, Client, Guard, GuardAbort, GuardAborted, GuardMoment


async def main(server: AgentOptions) -> None:
    async def check(moment: GuardMoment) -> GuardAbort:
        return GuardAbort("That is enough.")

    async with Client(server, guards=[Guard("enough", check, max_iterations=1)]) as client:
        async for event in client.stream("Hello"):
            if isinstance(event, GuardAborted):
                print(event.guard_name, event.reason)
        print(client.ended)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
