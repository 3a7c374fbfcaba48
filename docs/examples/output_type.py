"""An answer of a type: bound to its schema, validated, and asked for again where it does not fit.

Prints:

    City(name='Paris', river='Seine')
"""

import asyncio
from dataclasses import dataclass

from desktop_agent import AgentOptions, Client


@dataclass
class City:
    name: str
    river: str


async def main(server: AgentOptions) -> None:
    async with Client(server) as client:
        answer = await client.complete("Paris as JSON", output_type=City)
        print(answer.output)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
