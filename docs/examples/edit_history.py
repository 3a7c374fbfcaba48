"""Go on from a history that was edited.

Prints:

    ['Hello', 'Good day!']
    Hello again!
"""

import asyncio

from desktop_agent import AgentOptions, Client, Message


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        await client.complete("Hello")
        await client.edit_history(lambda history: history[:1])
        await client.edit_history([*client.history, Message.assistant("Good day!")])
        print([message.text for message in client.history])
        print((await client.complete("Hello again")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
