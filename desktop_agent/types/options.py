"""Options of one agent, validated when they are made, and their builder."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal, Self, TypedDict, Unpack, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, SecretStr, ValidationError, model_validator

from desktop_agent.types.dialects import API_KEY_VARIABLE, BASE_URL_VARIABLE, MODEL_VARIABLE, VENDOR_BASE_URLS, Dialect
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.permissions import BUILT_IN_MODES, DEFAULT_MODE, Mode, Rule
from desktop_agent.types.policies import Guard, Hooks, Limits, PromptPolicy, Specialist
from desktop_agent.types.providers import CLOUD_PROVIDERS, LOCAL_SERVERS, Endpoint, ProviderConfig
from desktop_agent.types.tool_calls import Decision, OfferedTool

# The argument is a permissions.approvals.Approval, which this floor does not know.
Approver = Literal["always", "never", "wait"] | Callable[[Any], Awaitable[Decision]]


class OptionValues(TypedDict, total=False):
    """Keyword arguments of AgentOptions: lists where it has tuples, a plain string as the key."""

    dialect: Dialect
    model: str
    base_url: str
    mirrors: list[str] | tuple[str, ...]
    api_key: str | SecretStr | None
    system_prompt: str | None
    tools: Sequence[OfferedTool]
    auto_execute_tools: bool
    max_tool_iterations: int | None
    config: ProviderConfig
    hooks: Hooks
    limits: Limits
    modes: Sequence[Mode]
    mode: str
    rules: Sequence[Rule]
    policies: Sequence[PromptPolicy]
    guards: Sequence[Guard]
    specialists: Sequence[Specialist]
    approver: Approver
    ask_user: bool
    mode_requests: bool
    provider: object


class AgentOptions(BaseModel):
    """Model, server, tools, and how the agent may behave.

    Made with keyword arguments, with `AgentOptions.preset` or with `.builder`; all raise WrongUse for values that do
    not fit. `base_url` and `model` fall back to DESKTOP_AGENT_BASE_URL and DESKTOP_AGENT_MODEL, and the address to that
    of the dialect's vendor. `api_key` falls back to DESKTOP_AGENT_API_KEY where an address or a dialect was named.
    `mirrors` are further addresses of the same service, which get the same key: they are asked when the first fails.

    `auto_execute_tools` True: the runtime runs the tools, and that is the consent for all of them; rules, modes and
    hooks still hold. False: the caller gets the calls and runs them. `approver` decides in place of a person: "always",
    "never", a function, or "wait" for whoever answers `Client.approvals`. `ask_user`: the agent may ask questions,
    which wait in `Client.questions`; `mode_requests`: it may ask for another mode, never a wider one; both only where
    the runtime runs the tools. `max_tool_iterations` overrides that of `limits`, and `system_prompt` that of
    `config`. `provider` is an object to ask instead of a server, for tests and scripts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, hide_input_in_errors=True)

    dialect: Dialect = "openai-chat"
    model: str = Field(default_factory=lambda: os.environ.get(MODEL_VARIABLE, ""), min_length=1)
    base_url: str = Field(default_factory=lambda: os.environ.get(BASE_URL_VARIABLE, ""))
    mirrors: tuple[str, ...] = ()
    api_key: SecretStr | None = None
    system_prompt: str | None = None
    tools: tuple[Any, ...] = ()
    auto_execute_tools: bool = False
    max_tool_iterations: int | None = Field(default=None, ge=1, le=1000)
    config: ProviderConfig = ProviderConfig()
    hooks: InstanceOf[Hooks] = Hooks()
    limits: Limits = Limits()
    modes: tuple[Mode, ...] = BUILT_IN_MODES
    mode: str = DEFAULT_MODE.name
    rules: tuple[Rule, ...] = ()
    policies: tuple[PromptPolicy, ...] = ()
    guards: tuple[InstanceOf[Guard], ...] = ()
    specialists: tuple[Specialist, ...] = ()
    approver: Approver = "never"
    ask_user: bool = False
    mode_requests: bool = False
    provider: Any = Field(default=None, repr=False)

    def __init__(self, **values: Unpack[OptionValues]) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _to_wrong_use(error) from None

    @classmethod
    def preset(cls, server: str, **values: Unpack[OptionValues]) -> "AgentOptions":
        """Return options for a known server by its id: ollama, lmstudio, llamacpp, vllm, or a cloud provider.

        `values` override those of the preset. Raises WrongUse.
        """
        known: OptionValues = {**_preset_values(server), **values}
        return cls(**known)

    def with_values(self, **values: Unpack[OptionValues]) -> "AgentOptions":
        """Return these options with other values. Raises WrongUse."""
        # Validated anew, not copied. Only values that were given: `key` depends on whether a dialect was named.
        known = cast("OptionValues", {name: getattr(self, name) for name in self.model_fields_set})
        return AgentOptions(**{**known, **values})

    @staticmethod
    def builder() -> "OptionsBuilder":
        """Return a builder that collects options step by step."""
        return OptionsBuilder()

    @property
    def address(self) -> str:
        """The address of the server."""
        return self.base_url or VENDOR_BASE_URLS[self.dialect]

    @property
    def key(self) -> SecretStr | None:
        """`api_key`, or else DESKTOP_AGENT_API_KEY: only for a server that the caller or the environment names."""
        if self.api_key is not None or not (self.base_url or "dialect" in self.model_fields_set):
            return self.api_key
        key = os.environ.get(API_KEY_VARIABLE)
        return SecretStr(key) if key else None

    @property
    def run_config(self) -> ProviderConfig:
        """`config` with `system_prompt`."""
        if self.system_prompt is None:
            return self.config
        return self.config.model_copy(update={"system_prompt": self.system_prompt})

    @property
    def run_limits(self) -> Limits:
        """`limits` with `max_tool_iterations`."""
        if self.max_tool_iterations is None:
            return self.limits
        return self.limits.model_copy(update={"tool_iterations": self.max_tool_iterations})

    def for_specialist(self, name: str) -> "AgentOptions":
        """Return options to talk with a specialist directly: never more than these. Raises WrongUse."""
        specialist = next((other for other in self.specialists if other.name == name), None)
        if specialist is None:
            raise WrongUse(f"There is no specialist “{name}”.", "Name one of the options' specialists.")
        changes: dict[str, Any] = {
            "model": specialist.model or self.model,
            "tools": tuple(tool for tool in self.tools if tool.name in specialist.tools),
            "specialists": tuple(other for other in self.specialists if other.name in specialist.specialists),
            "mode": self.mode if specialist.mode is None or self._is_wider(specialist.mode) else specialist.mode,
            "config": specialist.config,
            "system_prompt": specialist.system_prompt,
            "limits": _stricter_limits(self.run_limits, specialist.limits),
            "max_tool_iterations": None,
        }
        return self.model_copy(update=changes)

    def _is_wider(self, name: str) -> bool:
        by_name = {mode.name: mode for mode in self.modes}
        return by_name[name].is_wider_than(by_name[self.mode])

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        """Raises ValueError."""
        for address in (self.base_url, *self.mirrors):
            _check_address(address)
        if (self.ask_user or self.mode_requests) and not self.auto_execute_tools:
            raise ValueError("ask_user and mode_requests are tools of the runtime: they need auto_execute_tools=True.")
        for tool in self.tools:
            if not all(hasattr(tool, part) for part in ("name", "schema", "run")):
                name = getattr(tool, "__name__", type(tool).__name__)
                raise ValueError(f"“{name}” is not a tool: make it one with @tool.")
        _check_names("tools and specialists", [tool.name for tool in self.tools] + [s.name for s in self.specialists])
        _check_names("modes", [mode.name for mode in self.modes])
        _check_names("policies", [policy.id for policy in self.policies])
        _check_names("guards", [guard.name for guard in self.guards])
        names = {self.mode, *(specialist.mode for specialist in self.specialists if specialist.mode is not None)}
        if unknown := names - {mode.name for mode in self.modes}:
            raise ValueError(f"there is no mode “{min(unknown)}”.")
        return self


class OptionsBuilder:
    """Collects options and checks them all at `build`. A later value replaces an earlier one; tuples grow."""

    def __init__(self) -> None:
        self._values: OptionValues = {}

    def preset(self, server: str) -> Self:
        """Set a known server by its id. Raises WrongUse."""
        return self._with(**_preset_values(server))

    def server(self, base_url: str, api_key: str | SecretStr | None = None, dialect: Dialect | None = None) -> Self:
        """Set a server by its address, as the vendor's own client takes it; None leaves a value as it was."""
        if api_key is not None:
            self.api_key(api_key)
        if dialect is not None:
            self.dialect(dialect)
        return self.base_url(base_url)

    def api_key(self, key: str | SecretStr | None) -> Self:
        """Set the API key."""
        return self._with(api_key=key)

    def model(self, name: str, config: ProviderConfig | None = None) -> Self:
        """Set the model, and its configuration."""
        return self._with(model=name) if config is None else self._with(model=name, config=config)

    def dialect(self, dialect: Dialect) -> Self:
        """Set the dialect; without `base_url` its vendor is asked."""
        return self._with(dialect=dialect)

    def base_url(self, address: str) -> Self:
        """Set the server's address, as the vendor's own client takes it."""
        return self._with(base_url=address)

    def config(self, config: ProviderConfig) -> Self:
        """Set the whole configuration of requests."""
        return self._with(config=config)

    def temperature(self, value: float) -> Self:
        """Set the temperature, 0 to 2. Raises WrongUse."""
        return self._with_config(temperature=value)

    def top_p(self, value: float) -> Self:
        """Set the nucleus sampling threshold, 0 to 1. Raises WrongUse."""
        return self._with_config(top_p=value)

    def max_tokens(self, count: int) -> Self:
        """Set the longest answer, in tokens. Raises WrongUse."""
        return self._with_config(max_tokens=count)

    def timeout(self, seconds: float) -> Self:
        """Set the longest time for a whole answer, in seconds; see Timeouts for the others. Raises WrongUse."""
        timeouts = self._values.get("config", ProviderConfig()).timeouts
        return self._with_config(timeouts={**dict(timeouts), "total": seconds})

    def max_tool_iterations(self, count: int) -> Self:
        """Set how many rounds of calls a run may have."""
        return self._with(max_tool_iterations=count)

    def ask_user(self, yes: bool = True) -> Self:  # noqa: FBT001, FBT002 - reads as a sentence
        """Set whether the agent may ask questions."""
        return self._with(ask_user=yes)

    def mode_requests(self, yes: bool = True) -> Self:  # noqa: FBT001, FBT002 - reads as a sentence
        """Set whether the agent may ask for another mode."""
        return self._with(mode_requests=yes)

    def system_prompt(self, text: str) -> Self:
        """Set the instructions."""
        return self._with(system_prompt=text)

    def tool(self, tool: OfferedTool) -> Self:
        """Add a tool."""
        return self.tools(tool)

    def tools(self, *tools: OfferedTool) -> Self:
        """Add tools."""
        return self._with(tools=(*self._values.get("tools", ()), *tools))

    def auto_execute_tools(self, yes: bool = True) -> Self:  # noqa: FBT001, FBT002 - reads as a sentence
        """Set whether the runtime runs the tools."""
        return self._with(auto_execute_tools=yes)

    def hooks(self, hooks: Hooks) -> Self:
        """Set the hooks."""
        return self._with(hooks=hooks)

    def limits(self, limits: Limits) -> Self:
        """Set the limits of a run."""
        return self._with(limits=limits)

    def mode(self, name: str, *modes: Mode) -> Self:
        """Set the mode; `modes` are added to the built-in ones."""
        return self._with(mode=name, modes=(*self._values.get("modes", BUILT_IN_MODES), *modes))

    def rules(self, *rules: Rule) -> Self:
        """Add permission rules."""
        return self._with(rules=(*self._values.get("rules", ()), *rules))

    def policies(self, *policies: PromptPolicy) -> Self:
        """Add prompt policies."""
        return self._with(policies=(*self._values.get("policies", ()), *policies))

    def guards(self, *guards: Guard) -> Self:
        """Add guards."""
        return self._with(guards=(*self._values.get("guards", ()), *guards))

    def specialists(self, *specialists: Specialist) -> Self:
        """Add specialists."""
        return self._with(specialists=(*self._values.get("specialists", ()), *specialists))

    def approver(self, approver: Approver) -> Self:
        """Set who decides about calls."""
        return self._with(approver=approver)

    def provider(self, provider: object) -> Self:
        """Set an object to ask instead of a server."""
        return self._with(provider=provider)

    def build(self) -> AgentOptions:
        """Return the options. Raises WrongUse."""
        return AgentOptions(**self._values)

    def _with_config(self, **changes: Any) -> Self:
        config = self._values.get("config", ProviderConfig())
        try:
            return self._with(config=ProviderConfig.model_validate({**dict(config), **changes}))
        except ValidationError as error:
            raise _to_wrong_use(error) from None

    def _with(self, **values: Unpack[OptionValues]) -> Self:
        self._values.update(values)
        return self


def _to_wrong_use(error: ValidationError) -> WrongUse:
    first = error.errors(include_input=False, include_url=False)[0]
    path = ".".join(map(str, first["loc"]))
    if path == "model" and first["type"] == "string_too_short":
        return WrongUse("No model is named.", f"Name one with model=…, or in {MODEL_VARIABLE}.")
    if first["type"] == "extra_forbidden":
        # Late: few programs misspell one.
        from difflib import get_close_matches

        alike = get_close_matches(path, AgentOptions.model_fields, 1)
        return WrongUse(f"There is no option “{path[:60]}”.", f"Did you mean {alike[0]}?" if alike else None)
    reason = first["msg"].removeprefix("Value error, ")
    return WrongUse(f"{path}: {reason}" if path else reason)


def _preset_values(server: str) -> OptionValues:
    servers: tuple[Endpoint, ...] = (*LOCAL_SERVERS, *CLOUD_PROVIDERS)
    endpoint = next((candidate for candidate in servers if candidate.id == server), None)
    if endpoint is None:
        names = ", ".join(candidate.id for candidate in servers)
        raise WrongUse(f"There is no preset “{server[:60]}”.", f"Choose one of: {names}.")
    return {"dialect": endpoint.dialect, "base_url": endpoint.base_url}


def _check_address(address: str) -> None:
    if not address:
        return
    parts = urlsplit(address)
    if parts.username or parts.password:
        raise ValueError("base_url: no user names or passwords in the address; the key belongs in api_key.")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("base_url: this is not a web address such as http://127.0.0.1:8080/v1.")


def _check_names(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{kind}: “{name}” is there twice.")
        seen.add(name)


def _stricter_limits(first: Limits, second: Limits) -> Limits:
    """Return the smaller of each limit; None is no limit."""
    values: dict[str, Any] = {}
    for name in Limits.model_fields:
        known = [value for value in (getattr(first, name), getattr(second, name)) if value is not None]
        values[name] = min(known, default=None)
    return Limits.model_validate(values)
