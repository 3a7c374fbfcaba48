"""What an MCP server says beside its answers."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class McpLogLine:
    """One line, when it came, and how grave the server says it is; what comes from the error stream says nothing."""

    at: datetime
    level: str
    text: str
