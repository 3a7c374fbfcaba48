"""One call and one answer, tools included, in a program without asyncio.

Prints:

    It is 3.
"""

from desktop_agent import AgentOptions, run, tool


def main(server: AgentOptions) -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    print(run("What is 1 + 2?", server, tools=[add], auto_execute_tools=True).text)


if __name__ == "__main__":
    main(AgentOptions())
