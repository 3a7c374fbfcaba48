"""The server that shows everything a server can do, in a window; the model plays a script."""

from PySide6.QtWidgets import QDialog, QPushButton

from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.mcp import McpServer, StdioConnection
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.preferences import McpPreferences
from tests.desktop_agent.mcp.reference_servers import node_server
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn

TITLE = "Everything"


def calls(tool, **arguments):
    """Return a turn in which the model calls a tool of the server."""
    return Turn(ToolUse(id="c1", name=f"every__{tool}", input=arguments))


async def turn_on(screen):
    """Set it up; its tools run unasked."""
    command, *args = node_server("everything", "stdio")
    server = McpServer(id="every", title=TITLE, connection=StdioConnection(command=command, args=tuple(args)))
    await screen.engine.change_preferences(
        screen.engine.preferences.model_copy(update={"mcp": McpPreferences(servers=(server,))})
    )
    session = screen.engine._sessions[screen.conversation.id]
    for tool in ("trigger-elicitation-request", "trigger-sampling-request"):
        session.permission_policy.add(
            Rule(effect=RuleEffect.ALLOW, tool=f"every__{tool}", scope=RuleScope.CONVERSATION)
        )
    await screen.idle()


async def dialog(screen):
    """Wait for the dialog with a question that can be answered, and return it."""

    def settled():
        request_dialog = screen.find(QDialog, "An MCP server asks")
        return (
            request_dialog if request_dialog is not None and not request_dialog.current.bar.is_input_delayed else None
        )

    return await until(settled)


def command(inside, name):
    """Return the button with this name of the question on the screen."""
    buttons = [button for button in inside.current.findChildren(QPushButton) if button.accessibleName() == name]
    return next(button for button in buttons if button.isVisible())


async def result(screen):
    """Return the result of the tool's call, once the run has ended."""
    session = screen.engine._sessions[screen.conversation.id]
    await until(lambda: not screen.conversation.working)
    await session.wait_idle()
    (block,) = (block for message in session.history for block in message.blocks if isinstance(block, ToolResult))
    return "".join(getattr(part, "text", "") for part in block.content)
