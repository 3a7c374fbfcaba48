"""One question without a conversation: `async for block in query("…", options)`."""

from collections.abc import AsyncIterator
from typing import Self, Unpack

from desktop_agent.faces.backing.conversing import ConversationRunner, to_prompt
from desktop_agent.faces.backing.leaving import close_soon
from desktop_agent.faces.backing.reading import BlockReader
from desktop_agent.faces.client import to_options
from desktop_agent.vocabulary.blocks import Block
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.options import AgentOptions, OptionValues


class BlockStream(AsyncIterator[Block]):
    """Asks at the first step; closes everything behind the last block, or as soon as nobody reads on.

    Who leaves the loop early and keeps the stream closes it: `async with query(…) as blocks`, or `aclose`.
    """

    def __init__(self, prompt: Message, options: AgentOptions) -> None:
        self._prompt = prompt
        self._conversation = ConversationRunner(options)
        self._reader = BlockReader(self._conversation)
        self._is_over = False

    async def __anext__(self) -> Block:
        if self._is_over:
            raise StopAsyncIteration
        try:
            if self._conversation.run is None:
                await self._reader.ask(self._prompt)
            block = await self._reader.next()
        except BaseException:
            await self.aclose()
            raise
        if block is None:
            await self.aclose()
            raise StopAsyncIteration
        return block

    async def aclose(self) -> None:
        """Stop, and close the connection. Idempotent."""
        self._is_over = True
        await self._conversation.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        close_soon(self._conversation)


def query(prompt: str | Message, options: AgentOptions | None = None, **values: Unpack[OptionValues]) -> BlockStream:
    """The blocks of the answer, each as soon as it is finished; with tools that run here, their results too.

    `values` are options, and go over those that are given. An error is raised by the step that meets it, what came
    before it has been given by then. Leaving the loop ends the run and closes the connection; `aclose` does so and
    waits. Raises WrongUse for options that do not fit together.
    """
    return BlockStream(to_prompt(prompt), to_options(options, values))
