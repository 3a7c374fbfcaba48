"""What arguments a tool takes: as JSON Schema, in shorthand, or from the signature of its function."""

from desktop_agent.tools.schemas.json_schema import JsonSchema
from desktop_agent.tools.schemas.shorthand import shorthand
from desktop_agent.tools.schemas.signature import from_signature

__all__ = ["JsonSchema", "from_signature", "shorthand"]
