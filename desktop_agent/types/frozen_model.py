"""The base of all immutable models that are validated and saved as JSON."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """A model that cannot be changed, and that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
