"""A hook that writes a prompt anew before it is asked.

Prints:

    Hello!
    Hello
"""

import asyncio

from desktop_agent import AgentOptions, Client, HookEdit, Hooks, Message, UserPromptSubmit


async def main(server: AgentOptions) -> None:
    async def politely(moment: UserPromptSubmit) -> HookEdit:
        return HookEdit(prompt=Message.user(moment.prompt.text.replace("Oi", "Hello")))

    async with Client(server, hooks=Hooks().add_user_prompt_submit(politely)) as client:
        print((await client.complete("Oi")).text)
        print(client.history[0].text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
