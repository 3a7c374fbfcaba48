"""What a server has.

Prints:

    ['demo']
"""

import asyncio

from desktop_agent import AgentOptions, Provider


async def main(server: AgentOptions) -> None:
    async with await Provider.create(server.model, dialect=server.dialect, base_url=server.base_url) as provider:
        models = await provider.list_models()
        print([model.id for model in models])


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
