"""Every preference, declared once: form, file and documentation follow from this page."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.endpoints import Endpoint


class _Section(BaseModel):
    # A file from a newer version keeps working: what this version does not know is kept and written back.
    model_config = ConfigDict(frozen=True, extra="allow")


class Appearance(_Section):
    """How it looks."""

    theme: Literal["system", "light", "dark"] = Field(
        default="system", title="Theme", description="Light, dark, or whatever the system uses."
    )
    zoom: int = Field(default=100, ge=50, le=300, title="Zoom", description="Size of text, in percent.")


class Chat(_Section):
    """How writing and sending work."""

    enter_sends: bool = Field(
        default=True,
        title="Enter sends",
        description="Otherwise Ctrl+Enter sends and Enter makes a new line.",
    )
    max_tool_iterations: int = Field(
        default=50,
        ge=1,
        le=1000,
        title="Tool rounds",
        description="How often the model may call tools before it must stop.",
    )
    system_prompt: str = Field(
        default="",
        title="Instructions",
        description="Sent above every conversation that has none of its own.",
    )


class Network(_Section):
    """Time limits, in seconds."""

    connect_timeout: float = Field(
        default=10.0, gt=0, le=120, title="Connect", description="How long to wait for a connection."
    )
    idle_timeout: float = Field(
        default=300.0, gt=0, le=3600, title="Silence", description="The longest silence in an answer."
    )


class Providers(_Section):
    """Servers the person added, and the model used last. Keys are in the keyring, never here."""

    endpoints: tuple[Endpoint, ...] = Field(
        default=(), title="Servers", description="Model servers that this program may use."
    )
    endpoint_id: str | None = Field(default=None, title="Server", description="The server in use.")
    model: str | None = Field(default=None, title="Model", description="The model in use.")


class Preferences(_Section):
    """All sections."""

    appearance: Appearance = Appearance()
    chat: Chat = Chat()
    network: Network = Network()
    providers: Providers = Providers()
