"""What a person is shown of a call before they decide: what it would do, and which rules they may make of it."""

import logging
from typing import Any

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.fence import Fault, Fence
from desktop_agent.permissions.previews import shown
from desktop_agent.permissions.standing import Standing
from desktop_agent.tools.answers import plain
from desktop_agent.tools.foreign_code import copied
from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import Preview, TextPreview

_log = logging.getLogger(__name__)

# A tool gets this long to say what a call is about or what it would do, in seconds.
LOOKING = 10.0


def own_copy(arguments: JsonObject) -> JsonObject:
    """For code that may change them. What is nested too deep to be copied is refused before it is looked at."""
    try:
        return copied(arguments)
    except RecursionError:
        return arguments


async def checked_copy(call: Call, tool: AnyTool) -> Any:
    """The arguments as the tool wants them; whatever it does to them, the call's own stay as they are."""
    return await by_size(lambda: tool.checked(own_copy(call.input)), call.input)


async def own_arguments(call: Call, tool: AnyTool) -> tuple[str, Any]:
    """The arguments for the tool to run with, and the digest of just these, which nobody else can change any more."""

    def made() -> tuple[str, Any]:
        own = own_copy(call.input)
        return tool.digest(own), tool.checked(own)

    return await by_size(made, call.input)


async def copied_call(use: ToolUse) -> ToolUse:
    """The call with arguments that may be changed."""
    return await by_size(lambda: use.model_copy(update={"input": own_copy(use.input)}), use.input)


async def preview_of(call: Call, tool: AnyTool, fence: Fence) -> Preview | None:
    """What the call would do; a preview that cannot be made says why instead of hiding the call."""
    make = tool.preview
    if make is None:
        return None

    async def look() -> Preview | None:
        try:
            return shown(await make(await checked_copy(call, tool)))
        except ToolFailed as error:
            return TextPreview(plain(str(error)))

    made = await fence.value(look, LOOKING)
    if not isinstance(made, Fault):
        return made
    _log.error("the preview of tool %s failed: %s", tool.name, made.trace)
    return TextPreview(f"What it would do cannot be shown ({made.kind}).")


async def proposals_for(call: Call, tool: AnyTool, fence: Fence, standing: Standing) -> tuple[Rule, ...]:
    """Rules that the person may make of this call; none where they cannot be told."""
    copy = await copied_call(call.effective_use)
    rules = await fence.value(lambda: standing.proposals(copy, tool, digest=call.digest), LOOKING)
    if not isinstance(rules, Fault):
        return rules
    _log.warning("no rules can be proposed for a call of tool %s: %s", tool.name, rules.trace)
    return ()
