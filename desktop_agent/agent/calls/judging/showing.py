"""What a person is shown of a call before they decide: what it would do, and which rules they may make of it."""

import logging
from copy import deepcopy
from typing import Any, cast

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.fence import Fault, Fence
from desktop_agent.permissions.standing import Standing
from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import DiffPreview, Preview, TextPreview

_log = logging.getLogger(__name__)

# A tool gets this long to say what a call is about or what it would do, in seconds.
LOOKING = 10.0


def copied(arguments: JsonObject) -> JsonObject:
    """For code that may change them. What is nested too deep to be copied is refused before it is looked at."""
    try:
        return _copied(arguments)
    except RecursionError:
        return arguments


def _copied(value: Any) -> Any:
    # Several times faster than deepcopy on what JSON is made of.
    if type(value) is dict:
        return {key: _copied(each) for key, each in cast("dict[Any, Any]", value).items()}
    if type(value) is list:
        return [_copied(each) for each in cast("list[Any]", value)]
    return deepcopy(value)


async def checked_copy(call: Call, tool: AnyTool) -> Any:
    """The arguments as the tool wants them; whatever it does to them, the call's own stay as they are."""
    return await by_size(lambda: tool.checked(copied(call.input)), call.input)


async def own_arguments(call: Call, tool: AnyTool) -> tuple[str, Any]:
    """The arguments for the tool to run with, and the digest of just these, which nobody else can change any more."""

    def made() -> tuple[str, Any]:
        own = copied(call.input)
        return tool.digest(own), tool.checked(own)

    return await by_size(made, call.input)


async def copied_call(use: ToolUse) -> ToolUse:
    """The call with arguments that may be changed."""
    return await by_size(lambda: use.model_copy(update={"input": copied(use.input)}), use.input)


async def preview_of(call: Call, tool: AnyTool, fence: Fence) -> Preview | None:
    """What the call would do; a preview that cannot be made says why instead of hiding the call."""
    make = tool.preview
    if make is None:
        return None

    async def look() -> object:
        return await make(await checked_copy(call, tool))

    made = await fence.value(look, LOOKING)
    if made is None or isinstance(made, TextPreview | DiffPreview):
        return made
    if isinstance(made, Fault):
        if isinstance(made.error, ToolFailed):
            return TextPreview(str(made.error))
        _log.error("the preview of tool %s failed: %s", tool.name, made.trace)
        return TextPreview(f"What it would do cannot be shown ({type(made.error).__name__}).")
    return TextPreview(f"What it would do cannot be shown ({type(made).__name__}).")


async def proposals_for(call: Call, tool: AnyTool, fence: Fence, standing: Standing) -> tuple[Rule, ...]:
    """Rules that the person may make of this call; none where they cannot be told."""
    copy = await copied_call(call.effective_use)
    rules = await fence.value(lambda: standing.proposals(copy, tool, digest=call.digest), LOOKING)
    if not isinstance(rules, Fault):
        return rules
    _log.warning("no rules can be proposed for a call of tool %s: %s", tool.name, rules.trace)
    return ()
