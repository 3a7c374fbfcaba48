"""What a person is shown of a call before they decide: what it would do, and which rules they may make of it."""

import logging
from typing import Any

from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.agent.calls.fence import Fault, TaskSupervisor
from desktop_agent.permissions.previews import copy_preview
from desktop_agent.permissions.standing import PermissionPolicy
from desktop_agent.tools.answers import plain_text
from desktop_agent.tools.foreign_code import deep_copy
from desktop_agent.tools.in_thread import run_by_size
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import Preview, TextPreview

_log = logging.getLogger(__name__)

# A tool gets this long to say what a call is about or what it would do, in seconds.
TOOL_QUERY_TIMEOUT = 10.0


def copy_arguments(arguments: JsonObject) -> JsonObject:
    """For code that may change them. What is nested too deep to be copied is refused before it is looked at."""
    try:
        return deep_copy(arguments)
    except RecursionError:
        return arguments


async def validated_arguments(call: ToolExecution, tool: AnyTool) -> Any:
    """The arguments as the tool wants them; whatever it does to them, the call's own stay as they are."""
    return await run_by_size(lambda: tool.checked(copy_arguments(call.input)), call.input)


async def arguments_with_digest(call: ToolExecution, tool: AnyTool) -> tuple[str, Any]:
    """The arguments for the tool to run with, and the digest of just these, which nobody else can change any more."""

    def made() -> tuple[str, Any]:
        own = copy_arguments(call.input)
        return tool.digest(own), tool.checked(own)

    return await run_by_size(made, call.input)


async def copy_call(use: ToolUse) -> ToolUse:
    """The call with arguments that may be changed."""
    return await run_by_size(lambda: use.model_copy(update={"input": copy_arguments(use.input)}), use.input)


async def build_preview(call: ToolExecution, tool: AnyTool, fence: TaskSupervisor) -> Preview | None:
    """What the call would do; a preview that cannot be made says why instead of hiding the call."""
    make = tool.preview
    if make is None:
        return None

    async def look() -> Preview | None:
        try:
            return copy_preview(await make(await validated_arguments(call, tool)))
        except ToolFailed as error:
            return TextPreview(plain_text(str(error)))

    made = await fence.run(look, TOOL_QUERY_TIMEOUT)
    if not isinstance(made, Fault):
        return made
    _log.error("the preview of tool %s failed: %s", tool.name, made.trace)
    return TextPreview(f"What it would do cannot be shown ({made.kind}).")


async def propose_rules(
    call: ToolExecution, tool: AnyTool, fence: TaskSupervisor, permission_policy: PermissionPolicy
) -> tuple[Rule, ...]:
    """Rules that the person may make of this call; none where they cannot be told."""
    copy = await copy_call(call.effective_use)
    rules = await fence.run(lambda: permission_policy.proposals(copy, tool, digest=call.digest), TOOL_QUERY_TIMEOUT)
    if not isinstance(rules, Fault):
        return rules
    _log.warning("no rules can be proposed for a call of tool %s: %s", tool.name, rules.trace)
    return ()
