"""One question without an event loop of one's own: `run("…", model=…)`."""

import asyncio
from types import UnionType
from typing import Any, Unpack, overload

from desktop_agent.faces.client import Client, to_options
from desktop_agent.faces.collecting import Output, Response, StructuredResponse
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.options import AgentOptions, OptionValues


@overload
def run(
    prompt: str | Message,
    options: AgentOptions | None = None,
    *,
    output_type: type[Output],
    **values: Unpack[OptionValues],
) -> StructuredResponse[Output]: ...
@overload
def run(
    prompt: str | Message,
    options: AgentOptions | None = None,
    *,
    output_type: UnionType,
    **values: Unpack[OptionValues],
) -> StructuredResponse[Any]: ...
@overload
def run(prompt: str | Message, options: AgentOptions | None = None, **values: Unpack[OptionValues]) -> Response: ...
def run(
    prompt: str | Message,
    options: AgentOptions | None = None,
    *,
    output_type: Any = None,
    **values: Unpack[OptionValues],
) -> Response:
    """Ask, and wait for the whole answer, tools of the runtime included. For programs without asyncio.

    `values` are options, and go over those that are given. With `output_type` (see Client.complete) the answer is in
    `output`. Ctrl+C stops the run. Raises what broke the answer off, and WrongUse where an event loop runs already.
    """
    chosen = to_options(options, values)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_complete(prompt, chosen, output_type))
    raise WrongUse("An event loop runs here already.", "Use `async with Client(…)` and await complete().")


async def _complete(prompt: str | Message, options: AgentOptions, output_type: Any) -> Response:
    async with Client(options) as client:
        if output_type is None:
            return await client.complete(prompt)
        return await client.complete(prompt, output_type=output_type)
