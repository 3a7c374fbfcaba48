"""How schemas from Python's types are worded for a model."""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind


class UntitledSchema(GenerateJsonSchema):
    """Without the titles that only repeat the names of fields, and quiet about defaults that JSON cannot say."""

    # Declared as pydantic declares it, which reads it from the instance.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - named by pydantic
        """Never."""
        return False
