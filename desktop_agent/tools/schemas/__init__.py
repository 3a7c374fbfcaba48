"""What arguments a tool takes: as JSON Schema, in shorthand, or from the signature of its function."""

from desktop_agent.tools.schemas.json_schema import JsonSchema
from desktop_agent.tools.schemas.shorthand import schema_from_shorthand
from desktop_agent.tools.schemas.signature import schema_from_signature

__all__ = ["JsonSchema", "schema_from_shorthand", "schema_from_signature"]
