"""A hook that sees every prompt, and refuses one.

Prints:

    WrongUse The message was not sent: It looks like a password.
    Hello!
"""

import asyncio

from desktop_agent import AgentError, AgentOptions, Client, HookDeny, Hooks, UserPromptSubmit


async def main(server: AgentOptions) -> None:
    async def no_secrets(moment: UserPromptSubmit) -> HookDeny | None:
        return HookDeny("It looks like a password.") if "hunter2" in moment.prompt.text else None

    async with Client(server, hooks=Hooks().add_user_prompt_submit(no_secrets)) as client:
        try:
            await client.complete("My password is hunter2")
        except AgentError as error:
            print(type(error).__name__, error)
        print((await client.complete("Hello")).text)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
