"""In a program without asyncio: one call, one answer.

Prints:

    Hello!
    Hello again!
"""

import asyncio

from desktop_agent import AgentOptions, Client


def ask(options: AgentOptions, prompt: str) -> str:
    async def answer() -> str:
        async with Client(options) as client:
            return (await client.complete(prompt)).text

    return asyncio.run(answer())


def main(server: AgentOptions) -> None:
    print(ask(server, "Hello"))
    print(ask(server, "Hello again"))


if __name__ == "__main__":
    main(AgentOptions())
