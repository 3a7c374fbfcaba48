"""A known server by its name; what is given goes over what is known of it.

Prints:

    http://127.0.0.1:11434/v1 openai-chat
    There is no preset “olama”.
    Hello!
"""

import asyncio

from desktop_agent import AgentOptions, Client, WrongUse


async def main(server: AgentOptions) -> None:
    ollama = AgentOptions.preset("ollama", model="llama3.2")
    print(ollama.base_url, ollama.dialect)
    try:
        AgentOptions.preset("olama", model="llama3.2")
    except WrongUse as error:
        print(error)
    here = AgentOptions.preset("vllm", model=server.model, base_url=server.base_url, dialect=server.dialect)
    async with Client(here) as client:
        print((await client.complete("Hello")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
