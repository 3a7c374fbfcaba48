"""An answer of a JSON Schema, read into a model.

Prints:

    name='Paris' river='Seine'
"""

import asyncio

from pydantic import BaseModel

from desktop_agent import AgentOptions, Client, JsonFormat, ProviderConfig


async def main(server: AgentOptions) -> None:
    class City(BaseModel):
        name: str
        river: str

    config = ProviderConfig(response_format=JsonFormat(json_schema=City.model_json_schema(), name="city"))
    async with Client(server, config=config) as client:
        answer = await client.complete("Paris as JSON")
        print(City.model_validate_json(answer.text))


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
