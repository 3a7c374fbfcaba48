"""A question with options of its own, and only its words.

Prints:

    Hello!
"""

import asyncio

from desktop_agent import AgentOptions, collect_text, query


async def main(server: AgentOptions) -> None:
    words = await collect_text(query("Hello", server, system_prompt="Be brief.", max_tool_iterations=3))
    print(words)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
