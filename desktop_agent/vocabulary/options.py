"""Options of one agent, checked when they are made."""

import os
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from desktop_agent.vocabulary.endpoints import Dialect
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.requests import ProviderConfig

BASE_URL_VARIABLE = "DESKTOP_AGENT_BASE_URL"
MODEL_VARIABLE = "DESKTOP_AGENT_MODEL"


def _from_environment(name: str) -> str:
    return os.environ.get(name, "")


class AgentOptions(BaseModel):
    """Model, server, tools and limits.

    Made with keyword arguments, or with `AgentOptions.checked`, which raises WrongUse with a sentence instead of
    pydantic's report. `base_url` and `model` fall back to DESKTOP_AGENT_BASE_URL and DESKTOP_AGENT_MODEL.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    dialect: Dialect = "openai-chat"
    model: str = Field(default_factory=lambda: _from_environment(MODEL_VARIABLE), min_length=1)
    base_url: str = Field(default_factory=lambda: _from_environment(BASE_URL_VARIABLE))
    api_key: SecretStr | None = None
    tools: tuple[Any, ...] = ()
    auto_execute_tools: bool = False
    max_tool_iterations: int = Field(default=50, ge=1, le=1000)
    hooks: Any = None
    config: ProviderConfig = ProviderConfig()

    @classmethod
    def checked(cls, **values: Any) -> "AgentOptions":
        """The same, raising WrongUse."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise WrongUse(f"{where}: {first['msg']}") from None
