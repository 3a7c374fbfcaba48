"""Messages that wait while the agent works: added, changed, put in another order, taken back.

Prints:

    the agent is at another turn
    ['Hello again', 'Hello']
    ['What is 1 + 2?', 'Hello again', 'Hello']
"""

import asyncio

from desktop_agent import AgentOptions, Client, Role, TurnMismatch, tool


async def main(server: AgentOptions, seconds: float = 0.0) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(seconds)
        queue = client.queue
        try:
            queue.add("Too late", expected_turn="an older one")
        except TurnMismatch:
            print("the agent is at another turn")
        first = queue.add("Helo", expected_turn=client.turn_id)
        second = queue.add("Hello again")
        third = queue.add("Never mind")
        queue.edit(first, "Hello")
        queue.move(second, 0)
        queue.withdraw(third)
        print([entry.message.text for entry in queue.list()])
        return a + b

    async with Client(server, tools=[add], auto_execute_tools=True) as client:
        await client.complete("What is 1 + 2?")
        print([message.text for message in client.history if message.role is Role.USER])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
