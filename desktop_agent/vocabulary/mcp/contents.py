"""What MCP servers offer beside tools: resources to read, and prompts that are ready."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something that can be read. `size` is in bytes; None: the server does not say."""

    uri: str
    name: str
    title: str
    description: str
    media_type: str
    size: int | None


@dataclass(frozen=True, slots=True)
class McpResourceTemplate:
    """An address with gaps to fill in (RFC 6570)."""

    uri_template: str
    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    """A text that a prompt is filled with."""

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that the server has ready."""

    name: str
    title: str
    description: str
    arguments: tuple[McpPromptArgument, ...]


@dataclass(frozen=True, slots=True)
class McpServerCatalog:
    """All of one server."""

    server_id: str
    title: str
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResourceTemplate, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
