"""A server of tools for the pictures: it reads and writes tickets, and talks about it. Run as a program."""

import sys
import time
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp_types import ToolAnnotations
from pydantic import Field

server = MCPServer("tickets", version="1.4.2")
READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False)


@server.tool(annotations=READS)
def search_tickets(
    query: Annotated[str, Field(description='Words, "phrases", `label:` and `author:`, joined by and.')],
    state: Annotated[Literal["open", "closed", "all"], Field(description="Which of them are looked at.")] = "open",
    labels: list[str] | None = None,
    most: int = 50,
) -> str:
    """Search the tickets of all projects that you can see.

    Returns at most 50 tickets, newest first, each with its number, title, state and whoever works on it. The query
    takes words, "phrases", `label:` and `author:`; several are joined by and.
    """
    return f"{query} {state} {labels} {most}"


@server.tool(annotations=READS)
def read_ticket(number: int) -> str:
    """Read one ticket with all its comments and attachments."""
    return str(number)


@server.tool(annotations=WRITES)
def write_comment(number: int, text: str) -> str:
    """Write a comment under a ticket. Everybody who follows it gets a mail."""
    return f"{number} {text}"


@server.tool(annotations=WRITES)
def close_ticket(number: int, reason: str = "done") -> str:
    """Close a ticket, as done or as not planned."""
    return f"{number} {reason}"


@server.tool()
def export_project(project: str) -> str:
    """Export a project as a ZIP file and say where it lies."""
    return project


if "refuses" in sys.argv:
    sys.stderr.write("error: TICKETS_TOKEN is not accepted (401)\n")
    sys.exit(1)
if "silent" in sys.argv:
    time.sleep(3600)
sys.stderr.write("tickets 1.4.2 listens on stdio\n")
sys.stderr.write("cache: /home/ada/.cache/tickets (2 projects, 418 tickets)\n")
for number in range(6):
    sys.stderr.write(
        f"GET https://tickets.example.com/api/v3/projects/{number + 1}/labels?per_page=100 200 in 0.{number}4 s\n"
    )
sys.stderr.write("retry in 2 s: 429 Too Many Requests\n")
sys.stderr.flush()
server.run("stdio")
