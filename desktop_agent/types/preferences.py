"""Preferences, each declared once: form, file and documentation follow from this module."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from desktop_agent.types.frozen_model import (
    ChoiceNames,
    FolderField,
    FontFamilyField,
    KeysField,
    LanguagesField,
    NumberFormat,
    OneLine,
    OptionalNumber,
)
from desktop_agent.types.mcp import McpServer
from desktop_agent.types.permissions import BUILT_IN_MODES, Mode
from desktop_agent.types.policies import Specialist
from desktop_agent.types.providers import (
    Endpoint,
    LocalModel,
    PromptCaching,
    Reasoning,
    ReasoningDisabled,
    ReasoningEffort,
    Timeouts,
)

MAX_MODES = 50
LANGUAGE_NAMES = {"en": "English", "de": "Deutsch", "zh_CN": "简体中文"}
"""The languages of the window, each in its own words."""


class _Section(BaseModel):
    # A file of a newer version keeps working: unknown fields are kept and written back.
    model_config = ConfigDict(frozen=True, extra="allow")


class AppearancePreferences(_Section):
    """How the window looks."""

    language: Annotated[Literal["system", "en", "de", "zh_CN"], ChoiceNames(LANGUAGE_NAMES)] = Field(
        default="system",
        title="Language",
        description="Language of the window, from the next start on. Models answer in the language that you write in.",
    )
    theme: Literal["system", "light", "dark"] = Field(
        default="system", title="Theme", description="Light, dark, or whatever the system uses."
    )
    zoom: Annotated[int, NumberFormat("%")] = Field(
        default=100, ge=50, le=300, title="Zoom", description="Size of everything in the window, in percent."
    )
    font: Annotated[str, FontFamilyField()] = Field(
        default="",
        max_length=200,
        title="Font",
        description="Font of the text in conversations. Code has its own font.",
    )
    text_size: Annotated[float, NumberFormat("pt")] = Field(
        default=10.5,
        ge=6,
        le=36,
        title="Text size",
        description="Text size in conversations, in points at 100 % zoom.",
    )
    line_width: Literal["narrow", "medium", "wide", "full"] = Field(
        default="medium",
        title="Line width",
        description="How wide the lines of a conversation may get. Full takes the whole window.",
    )
    density: Literal["comfortable", "compact"] = Field(
        default="comfortable",
        title="Density",
        description="Space between the lines and messages of a conversation.",
    )
    menu_bar: bool = Field(
        default=False,
        title="Menu bar",
        description="Always shown. Otherwise Alt or F10 shows it; on a Mac it is at the top of the screen.",
    )


class ChatPreferences(_Section):
    """How writing and sending work."""

    enter_sends: bool = Field(
        default=True,
        title="Enter sends",
        description="Otherwise Ctrl+Enter sends and Enter makes a new line.",
    )
    notifications: bool = Field(
        default=True,
        title="Notifications",
        description="Shows a desktop notification when an answer is done or a call waits, while the window is not in "
        "front.",
    )
    close_to_tray: bool = Field(
        default=False,
        title="Close to the tray",
        description="Closing the window keeps the program running, with its icon in the tray. Quit ends it.",
    )
    start_with_computer: bool = Field(
        default=False,
        title="Start with the computer",
        description="Starts in the tray, or as a minimised window if there is no tray.",
    )
    quick_ask_keys: Annotated[str, KeysField()] = Field(
        default="",
        max_length=100,
        title="Keys for a quick question",
        description="Open its small window while another program is in front. Press the keys here; Backspace removes "
        "them.",
    )
    max_tool_iterations: int = Field(
        default=50,
        ge=1,
        le=1000,
        title="Tool rounds",
        description="How often the model may call tools before it must stop.",
    )
    titles: Literal["model", "local"] = Field(
        default="model",
        title="Titles of conversations",
        description="Model: a model writes the title after the first answer, at the cost of a small request. Local: "
        "the title is the first words.",
    )
    title_model: Annotated[str, OneLine()] = Field(
        default="",
        max_length=200,
        title="Model for titles",
        description="Name of the model. It is used if the conversation's server has it. If this is empty, the "
        "conversation's own model is used.",
    )
    system_prompt: str = Field(
        default="",
        title="Instructions",
        description="System prompt of every conversation that has none of its own.",
    )


class SpellingPreferences(_Section):
    """Whether and in which languages the spelling of messages is checked, and the person's own words."""

    check: bool = Field(
        default=True,
        title="Check spelling",
        description="Underlines misspelled words in your message. The context menu of a word offers corrections.",
    )
    languages: Annotated[tuple[str, ...], LanguagesField()] = Field(
        default=(),
        max_length=100,
        title="Languages of your messages",
        description="A word is right if it is right in one of these languages. If you choose none, the language of "
        "your system is used.",
    )
    words: str = Field(
        default="",
        max_length=200_000,
        title="Your own words",
        description="Words that you added to the dictionary, separated by spaces or line breaks.",
    )


class ModelPreferences(_Section):
    """How models are asked."""

    reasoning: Literal["default", "off", "low", "medium", "high"] = Field(
        default="default",
        title="Reasoning of new conversations",
        description="How hard a model reasons before it answers. Default leaves it to the model.",
    )
    show_reasoning: bool = Field(
        default=True,
        title="Show summaries of reasoning",
        description="Asks for summaries if a server sends none by itself. Some servers then answer a little later.",
    )
    caching: bool = Field(
        default=True,
        title="Prompt caching",
        description="Servers may keep the conversation for a while, so that the next question costs less.",
    )
    cache_lifetime: Literal["short", "long"] = Field(
        default="short",
        title="Cache lifetime",
        description="Short is a few minutes. Long is about an hour; writing to the cache then costs more.",
    )

    @property
    def default_reasoning(self) -> Reasoning | None:
        match self.reasoning:
            case "default":
                return None
            case "off":
                return ReasoningDisabled()
            case level:
                return ReasoningEffort(level=level)

    @property
    def prompt_caching(self) -> PromptCaching:
        return PromptCaching(enabled=self.caching, lifetime=self.cache_lifetime)


class NetworkPreferences(_Section):
    """Time limits in seconds, private hosts that may be reached, and whether new versions are looked for."""

    connect_timeout: Annotated[float, NumberFormat("s")] = Field(
        default=10.0, gt=0, le=120, title="Connection", description="How long to wait for a connection."
    )
    headers_timeout: Annotated[float, NumberFormat("s", zero_text="Automatic")] = Field(
        default=0.0,
        ge=0,
        le=3600,
        title="Beginning of an answer",
        description=(
            "How long a server may take to begin its answer. Automatic (0) is 120 seconds, or 900 where the server is "
            "on this computer or in a private network, or the model reasons."
        ),
    )
    first_event_timeout: Annotated[float, NumberFormat("s", zero_text="Automatic")] = Field(
        default=0.0,
        ge=0,
        le=3600,
        title="First words",
        description=(
            "The longest silence between the beginning of an answer and its first words. Automatic (0) is 300 seconds, "
            "or 900 in the same cases."
        ),
    )
    idle_timeout: Annotated[float, NumberFormat("s")] = Field(
        default=300.0,
        gt=0,
        le=3600,
        title="Silence",
        description="The longest silence in an answer after its first words.",
    )
    private_hosts: str = Field(
        default="",
        max_length=2_000,
        title="Private hosts",
        description=(
            "Hosts on this computer or in a private network whose pages the model may ask for, and which commands "
            "may reach by a public name, separated by spaces. Others are refused."
        ),
    )
    check_for_updates: bool = Field(
        default=False,
        title="Check for new versions",
        description="Asks once a day whether there is a newer version, and says so. Nothing is downloaded.",
    )

    @property
    def timeouts(self) -> Timeouts:
        return Timeouts(
            connect=self.connect_timeout,
            headers=self.headers_timeout or None,
            first_event=self.first_event_timeout or None,
            idle=self.idle_timeout,
        )

    @property
    def private_host_names(self) -> frozenset[str]:
        return frozenset(self.private_hosts.replace(",", " ").split())


class ProviderPreferences(_Section):
    """Servers that the person added, and the model used last. Keys are in the keyring, never here."""

    endpoints: tuple[Endpoint, ...] = Field(
        default=(), title="Servers", description="Model servers that this program may use."
    )
    endpoint_id: str | None = Field(default=None, title="Server", description="The server in use.")
    model: str | None = Field(default=None, title="Model", description="The model in use.")


class LocalModelPreferences(_Section):
    """Model files that this program runs itself, with the llama.cpp server of this computer."""

    models: tuple[LocalModel, ...] = Field(
        default=(), max_length=500, title="Model files", description="Those that you have chosen to run."
    )
    idle_minutes: Annotated[int, NumberFormat("min", zero_text="Never")] = Field(
        default=15,
        ge=0,
        le=1440,
        title="Unload after",
        description="A model that is not used for this long is removed from memory. The next message loads it again.",
    )
    context_tokens: Annotated[int, NumberFormat("tokens")] = Field(
        default=16_384,
        ge=512,
        le=1_048_576,
        title="Context",
        description="How many tokens a model file can read at once. More needs more memory. The model's own limit "
        "applies too.",
    )


class McpPreferences(_Section):
    """MCP servers. Their secrets are in the keyring, never here."""

    servers: tuple[McpServer, ...] = Field(
        default=(), title="MCP servers", description="Programs and addresses that offer tools to the model."
    )

    @model_validator(mode="after")
    def _check_unique_ids(self) -> Self:
        ids = [server.id for server in self.servers]
        if len(set(ids)) < len(ids):
            raise ValueError("two MCP servers have the same id")
        return self


class ModePreferences(_Section):
    """The person's own modes, each with a name of its own."""

    defined: tuple[Mode, ...] = Field(
        default=(),
        max_length=MAX_MODES,
        title="Modes",
        description="What the agent may do without asking, besides the modes that are always there.",
    )

    @property
    def all(self) -> tuple[Mode, ...]:
        """All modes, the built-in ones first."""
        return (*BUILT_IN_MODES, *self.defined)

    @model_validator(mode="after")
    def _check_unique_names(self) -> Self:
        names = [mode.name for mode in self.all]
        if len(set(names)) < len(names):
            raise ValueError("two modes have the same name")
        return self


class SpecialistPreferences(_Section):
    """Agents that the agent may call like tools, each with a name of its own."""

    defined: tuple[Specialist, ...] = Field(
        default=(), title="Specialists", description="Agents with instructions, tools and a budget of their own."
    )

    @model_validator(mode="after")
    def _check_unique_names(self) -> Self:
        names = [specialist.name for specialist in self.defined]
        if len(set(names)) < len(names):
            raise ValueError("two specialists have the same name")
        return self


class StoragePreferences(_Section):
    """How often conversations are backed up by the program itself."""

    backups: Literal["off", "daily", "weekly"] = Field(
        default="weekly",
        title="Automatic backups",
        description="Written when the program is idle, if there are new messages. Each picture is stored only once.",
    )
    keep_backups: int = Field(
        default=4,
        ge=1,
        le=100,
        title="Automatic backups to keep",
        description="Older automatic backups are deleted. Backups that you made yourself stay.",
    )
    backup_folder: Annotated[str, FolderField()] = Field(
        default="",
        max_length=4096,
        title="Folder for backups",
        description="Backups on another disk survive if this disk fails. If this is empty, they are in the folder "
        "“backups” in the data folder.",
    )


class UsagePreferences(_Section):
    """Budgets for all conversations together. None is no budget."""

    cost_per_day: Annotated[float | None, OptionalNumber("5", empty_text="No budget")] = Field(
        default=None,
        gt=0,
        le=1_000_000,
        title="Dollars for a day",
        description="US dollars. At 80 % you are warned; at 100 % no model is asked any more.",
    )
    cost_per_month: Annotated[float | None, OptionalNumber("50", empty_text="No budget")] = Field(
        default=None,
        gt=0,
        le=1_000_000,
        title="Dollars for a month",
        description="US dollars from the first of the month on.",
    )
    tokens_per_day: Annotated[int | None, OptionalNumber("2000000", empty_text="No budget")] = Field(
        default=None,
        ge=1,
        le=1_000_000_000_000,
        title="Tokens for a day",
        description="Input and output together. This budget also works for models without a price.",
    )
    tokens_per_month: Annotated[int | None, OptionalNumber("30000000", empty_text="No budget")] = Field(
        default=None,
        ge=1,
        le=1_000_000_000_000,
        title="Tokens for a month",
        description="From the first of the month on.",
    )

    @property
    def has_budget(self) -> bool:
        """Whether there is any budget."""
        budgets = (self.cost_per_day, self.cost_per_month, self.tokens_per_day, self.tokens_per_month)
        return any(budget is not None for budget in budgets)


class HistoryPreferences(_Section):
    """Conversations that other assistants left on this computer. Programs are the words of their readers."""

    shown: tuple[str, ...] = Field(
        default=(),
        title="Programs",
        description="Their conversations are shown below your own, and found by the search.",
    )
    offered: tuple[str, ...] = Field(default=(), title="Offered", description="Programs that were offered once.")
    offers: bool = Field(
        default=True, title="Offer programs", description="Asks once when conversations of another program are found."
    )


class ShortcutPreferences(_Section):
    """Keys of the window's actions, where they are not those that the actions come with."""

    keys: dict[str, str] = Field(
        default_factory=dict[str, str],
        title="Keyboard shortcuts",
        description="Keys by the name of the action; empty for no keys.",
    )


class Preferences(_Section):
    """All sections."""

    appearance: AppearancePreferences = AppearancePreferences()
    chat: ChatPreferences = ChatPreferences()
    spelling: SpellingPreferences = SpellingPreferences()
    models: ModelPreferences = ModelPreferences()
    network: NetworkPreferences = NetworkPreferences()
    providers: ProviderPreferences = ProviderPreferences()
    local: LocalModelPreferences = LocalModelPreferences()
    modes: ModePreferences = ModePreferences()
    specialists: SpecialistPreferences = SpecialistPreferences()
    mcp: McpPreferences = McpPreferences()
    shortcuts: ShortcutPreferences = ShortcutPreferences()
    storage: StoragePreferences = StoragePreferences()
    usage: UsagePreferences = UsagePreferences()
    histories: HistoryPreferences = HistoryPreferences()

    def with_changes(self, section: str, **changes: object) -> Self:
        """Return a copy with changes in one section. What a newer version of the program wrote into the file stays."""
        return self.model_copy(update={section: getattr(self, section).model_copy(update=changes)})
