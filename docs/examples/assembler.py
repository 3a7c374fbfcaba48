"""Whole calls from pieces, as a server of your own may send them.

Prints:

    a add {'a': 1, 'b': 2} None
    b now {} None
    demo
"""

import asyncio

from desktop_agent import AgentOptions, ToolCallAssembler


async def main(server: AgentOptions) -> None:
    assembler = ToolCallAssembler()
    assembler.fragment(index=0, id="a", name="add", arguments='{"a": 1, ')
    assembler.fragment(index=1, id="b", name="now")
    assembler.fragment(index=0, arguments='"b": 2}')
    for call in assembler.finish():
        print(call.id, call.name, call.input, call.malformed)
    print(server.model)


if __name__ == "__main__":
    asyncio.run(main(AgentOptions()))
