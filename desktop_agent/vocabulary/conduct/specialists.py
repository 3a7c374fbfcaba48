"""Specialists: agents that another agent may call like a tool."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.conduct.limits import Limits
from desktop_agent.vocabulary.requests import ProviderConfig


class Specialist(BaseModel):
    """One specialist. It is a tool with this name, and a sub-run of the same engine when it is called.

    `model` None: its parent's. `tools` are names among its parent's tools; a tool its parent lacks cannot be had.
    `specialists` are names of those that it may call itself. `share` is how much of what is left of its parent's
    tokens and cost it may use; `limits` are its own besides.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$")
    description: str = Field(min_length=1)
    system_prompt: str = Field(min_length=1)
    model: str | None = None
    tools: tuple[str, ...] = ()
    specialists: tuple[str, ...] = ()
    mode: str | None = None
    config: ProviderConfig = ProviderConfig()
    share: float = Field(default=0.5, gt=0, le=1)
    limits: Limits = Limits()

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913
            self,
            *,
            name: str,
            description: str,
            system_prompt: str,
            model: str | None = None,
            tools: list[str] | tuple[str, ...] = (),
            specialists: list[str] | tuple[str, ...] = (),
            mode: str | None = None,
            config: ProviderConfig = ...,
            share: float = 0.5,
            limits: Limits = ...,
        ) -> None: ...
