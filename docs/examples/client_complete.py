"""The whole answer at once, with what it cost.

Prints:

    Hello! True
    True
"""

import asyncio

from desktop_agent import AgentOptions, Client


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        answer = await client.complete("Hello")
        print(answer.text, answer.is_complete)
        print(answer.usage is not None and answer.usage.output_tokens is not None)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
