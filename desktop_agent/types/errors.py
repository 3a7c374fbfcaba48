"""Everything that can go wrong, in one tree.

    AgentError
    ├── WrongUse                    UnknownToolCall · DuplicateToolResult · StaleToolCall · TurnMismatch · NoModelChosen
    ├── ProviderError               what a model server said, or failed to say
    │   ├── ConnectionFailed · Truncated · UnreadableAnswer · TimedOut · RateLimited · Overloaded · ServerFailed
    │   ├── AuthenticationFailed · KeyRequired · PermissionRefused · QuotaExhausted · NotFound
    │   └── InvalidRequest · ContextLengthExceeded · TooLarge · Conflict · ToolUseFailed
    ├── CapabilityMissing           ImagesNotSupported · ToolCallingNotSupported · CachingNotSupported
    ├── OutputInvalid · ImageRefused    an answer of another type · a picture that cannot be used
    ├── ToolFailed                  OutsideWorkspace · ToolInputInvalid · SpecialistHasNoTools · ExtraMissing
    ├── StorageFailed               DiskFull · DatabaseDamaged · DatabaseReplaced · DatabaseTooNew
    │                               DatabaseBusy · LocksRefused · ConversationInUse · WrittenElsewhere
    └── SecretsUnavailable          KeyringMissing · KeyringLocked
Each has two sentence templates that a screen can translate: what happened, and what to do. `str()` is in English.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Self

from desktop_agent.types.sentence_places import fill_in


@dataclass(frozen=True, slots=True)
class Sentence:
    """A translatable template and the values that fill it; a value may be a sentence itself."""

    template: str
    values: Mapping[str, "str | Sentence"] = field(default_factory=dict[str, "str | Sentence"])

    def __str__(self) -> str:
        return fill_in(self.template, {name: str(value) for name, value in self.values.items()})

    def with_full_stop(self) -> "Sentence":
        """Return it with a full stop, where it has no end mark of its own: it may end in words from elsewhere."""
        has_end_mark = str(self).rstrip("”\"')»").endswith((".", "!", "?", "…", "\u3002", "\uff01", "\uff1f"))
        return self if has_end_mark else Sentence("{what}.", {"what": self})


def join_remedy(what: Sentence, remedy: Sentence) -> Sentence:
    """Join both into one line."""
    return Sentence("{what} {remedy}", {"what": what.with_full_stop(), "remedy": remedy})


class RemedyAction(StrEnum):
    """The button that an error offers beside its sentence."""

    NONE = "none"
    RETRY = "retry"
    OPEN_SETTINGS = "open_settings"
    CONTINUE = "continue"
    GO_ON = "go_on"
    CHOOSE_MODEL = "choose_model"


class AgentError(Exception):
    """The root. `kind` is a stable word for code and for `--jsonl`; `detail` is for "Copy details", never a secret."""

    kind: ClassVar[str] = "error"
    action: ClassVar[RemedyAction] = RemedyAction.NONE
    default_remedy: ClassVar[str] = "Copy the details and report what you did."

    def __init__(self, what: str | Sentence, remedy: str | Sentence | None = None, *, detail: str = "") -> None:
        self.sentence = what if isinstance(what, Sentence) else Sentence(what)
        remedy = self.default_remedy if remedy is None else remedy
        self.remedy = remedy if isinstance(remedy, Sentence) else Sentence(remedy)
        self.detail = detail
        super().__init__(str(self.sentence))

    @property
    def whole(self) -> Sentence:
        """What happened and what to do about it, in one line."""
        return join_remedy(self.sentence, self.remedy)


class WrongUse(AgentError):
    """The caller asked for something that makes no sense."""

    kind = "wrong_use"
    default_remedy = "Correct the call and try again."


class UnknownToolCall(WrongUse):
    """A result was given for an id that no call has."""

    kind = "unknown_tool_call"
    default_remedy = "Give the id of a call that was handed out."


class DuplicateToolResult(WrongUse):
    """A second result was given for one call."""

    kind = "duplicate_tool_result"
    default_remedy = "Give each result once."


class StaleToolCall(WrongUse):
    """A result was given for a call of an older turn: the conversation went on without it."""

    kind = "stale_tool_call"
    default_remedy = "Give results before the conversation goes on."


class TurnMismatch(WrongUse):
    """The agent is at another turn than the message was meant for."""

    kind = "turn_mismatch"
    default_remedy = "Read the new messages, and send yours again if it still fits."


class ProviderError(AgentError):
    """What a model server said, or failed to say.

    `message` is the server's own text, bounded in length; `cause` is that, or our sentence. `retry_after` is in
    seconds. `retryable`: asking again, unchanged, may help; decided from status and error type, never from the text.
    """

    kind = "server"
    action = RemedyAction.RETRY
    default_remedy = "Try again; if it happens again, look at the server's own log or status page."
    retry_by_default: ClassVar[bool] = False
    template: ClassVar[str] = "The model server reported: {message}"

    def __init__(
        self,
        message: str | Sentence,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
        request_id: str | None = None,
        detail: str = "",
        remedy: str | Sentence | None = None,
    ) -> None:
        self.message, self.cause = str(message), message
        self.status = status
        self.retry_after = retry_after
        self.retryable = self.retry_by_default if retryable is None else retryable
        self.request_id = request_id
        super().__init__(Sentence(self.template, {"message": message}).with_full_stop(), remedy, detail=detail)


class ConnectionFailed(ProviderError):
    """There is no connection, or it broke before anything was received."""

    kind = "connection"
    retry_by_default = True
    default_remedy = "Check that the server is running and the address is right, then try again."
    template = "The model server could not be reached: {message}"


class Truncated(ProviderError):
    """The stream ended without its end mark."""

    kind = "truncated"
    retry_by_default = True
    default_remedy = "The answer so far is kept. Try again for a complete answer."
    template = "The answer broke off before its end: {message}"


class UnreadableAnswer(ProviderError):
    """Something other than a model server answered (a login page, for example)."""

    kind = "unreadable"
    action = RemedyAction.OPEN_SETTINGS
    default_remedy = "Check the server's address: it should be the API's base URL, often ending in /v1."
    template = "The address answered, but not like a model server: {message}"


class TimedOut(ProviderError):
    """A time limit ran out: to connect, between bytes, or in total."""

    kind = "timeout"
    retry_by_default = True
    default_remedy = "Try again, or raise the time limit if this model is slow to start."
    template = "The model server took too long: {message}"

    @classmethod
    def after_sending(cls, message: Sentence) -> Self:
        """The server had the whole request when our limit ran out: it may bill it, so only the person asks again."""
        return cls(
            message,
            retryable=False,
            remedy="The request may be billed already, so it was not sent again by itself. Try again, or raise the "
            "time limit in the settings if this model is slow to start.",
        )

    @property
    def is_after_sending(self) -> bool:
        """Whether it was made by `after_sending`, not by a server's response or before the request was sent."""
        return self.status is None and not self.retryable


class AuthenticationFailed(ProviderError):
    """The key is wrong or revoked."""

    kind = "auth"
    action = RemedyAction.OPEN_SETTINGS
    default_remedy = "Check the API key for this provider."
    template = "The API key was not accepted: {message}"


class KeyRequired(AuthenticationFailed):
    """The server wants a key, and none was sent."""

    default_remedy = "Enter an API key for this server."
    template = "The server wants an API key: {message}"


class PermissionRefused(ProviderError):
    """The key is valid but may not do this."""

    kind = "permission"
    action = RemedyAction.OPEN_SETTINGS
    default_remedy = "Choose another model, or ask the account's owner for access."


class QuotaExhausted(ProviderError):
    """Credit or quota is used up; waiting does not help."""

    kind = "quota"
    action = RemedyAction.OPEN_SETTINGS
    default_remedy = "Add credit at the provider, or choose another provider."


class RateLimited(ProviderError):
    """Too many requests for now; waiting helps."""

    kind = "rate_limit"
    retry_by_default = True
    default_remedy = "Wait a moment and try again."


class Overloaded(ProviderError):
    """The server is busy or still loading the model."""

    kind = "overloaded"
    retry_by_default = True
    default_remedy = "Wait a moment and try again."


class ServerFailed(ProviderError):
    """The server reports a failure of its own."""

    retry_by_default = True


class InvalidRequest(ProviderError):
    """The server refuses this request as it is."""

    kind = "invalid_request"
    action = RemedyAction.NONE
    default_remedy = "Change the message, the model or its settings. The server's message says what it does not accept."


class ContextLengthExceeded(ProviderError):
    """The conversation is longer than the model can read."""

    kind = "context_length"
    action = RemedyAction.NONE
    default_remedy = "Start a new conversation, or choose a model with a larger context."


class TooLarge(ProviderError):
    """The request body is larger than the server takes."""

    kind = "too_large"
    action = RemedyAction.NONE
    default_remedy = "Remove attachments or send smaller ones."


class NotFound(ProviderError):
    """No such model, or no such address on this server."""

    kind = "not_found"
    action = RemedyAction.OPEN_SETTINGS
    default_remedy = "Choose another model, or check the server's address."


class Conflict(ProviderError):
    """The server saw a conflicting request."""

    kind = "conflict"
    retry_by_default = True


class ToolUseFailed(ProviderError):
    """The model wrote a call that its own server could not read (Groq: tool_use_failed)."""

    kind = "tool_use_failed"
    default_remedy = "Try again; models often get the call right the second time."


class OutputInvalid(AgentError):
    """The answer does not fit the type that was asked for, even after being told so. `detail` is the answer."""

    kind = "output_invalid"
    default_remedy = "Ask for less at once, or choose a model that can be bound to a schema."


class CapabilityMissing(AgentError):
    """The provider or model cannot do what was asked; known before any request."""

    kind = "capability"
    action = RemedyAction.CHOOSE_MODEL
    default_remedy = "Choose another model."


class ImagesNotSupported(CapabilityMissing):
    """This model does not read pictures."""

    default_remedy = "Choose a model that reads pictures, or remove them."


class ToolCallingNotSupported(CapabilityMissing):
    """This model does not call tools."""

    default_remedy = "Choose a model that calls tools, or turn tools off."


class CachingNotSupported(CapabilityMissing):
    """This provider has no prompt cache that can be controlled."""

    default_remedy = "Turn prompt caching off for this provider."


class ImageRefused(AgentError, ValueError):
    """A picture that cannot be used. A ValueError, because pydantic turns one that a validator raises into its own."""

    kind = "image"
    default_remedy = "Use a PNG, JPEG, GIF or WebP picture."

    @classmethod
    def unreadable(cls, name: str = "") -> Self:
        """The bytes do not decode."""
        sentence = _image_sentence(name, "is damaged and cannot be read.")
        return cls(sentence, "Open it in an image viewer, save it again and attach the copy.")

    @classmethod
    def not_read(cls, path: str, error: OSError) -> Self:
        """The file cannot be read."""
        values = {"path": path, "why": error.strerror or type(error).__name__}
        return cls(Sentence("“{path}” cannot be read: {why}.", values), "Check that it exists and can be read.")

    @classmethod
    def unsupported(cls, name: str = "") -> Self:
        """Not one of the four formats."""
        return cls(_image_sentence(name, "is not a PNG, JPEG, GIF or WebP image."))

    @classmethod
    def not_a_web_address(cls, url: str) -> Self:
        """Only http and https addresses can be sent."""
        sentence = Sentence("“{url}” is not a web address.", {"url": url[:200]})
        return cls(sentence, "Use an http or https address, or attach the file itself.")

    @classmethod
    def too_large(cls, name: str, limit: str | Sentence) -> Self:
        """Over a limit: "20 MB", or a sentence where it is in words that are translated."""
        sentence = _image_sentence(name, "is larger than {limit}.", limit=limit)
        return cls(sentence, "Make it smaller and attach it again.")


def _image_sentence(name: str, rest: str, **values: str | Sentence) -> Sentence:
    if name:
        return Sentence("The picture “{name}” " + rest, {"name": name[:200], **values})
    return Sentence("The picture " + rest, values)


class ToolFailed(AgentError):
    """A tool could not do its work; the sentence goes to the model and to the person."""

    kind = "tool"
    default_remedy = "Look at the call's arguments."


class ToolInputInvalid(ToolFailed):
    """The arguments do not fit the tool's schema."""

    kind = "tool_input"


class OutsideWorkspace(ToolFailed):
    """The path leads out of the chosen folder."""

    kind = "outside_workspace"
    default_remedy = "Use a path inside the workspace folder."


class SpecialistHasNoTools(ToolFailed):
    """A specialist that was given no tools asked for one."""

    kind = "specialist_has_no_tools"
    default_remedy = "Do that part yourself, or give the specialist everything that it needs in its context."


class ExtraMissing(ToolFailed):
    """An optional part of the installation is missing."""

    kind = "extra_missing"

    @classmethod
    def of(cls, what: str, extra: str) -> Self:
        """`what` begins the sentence: "The window"; `extra` is its name in the project's metadata."""
        remedy = Sentence("Run pip install 'desktop-agent[{extra}]'.", {"extra": extra})
        return cls(Sentence("{what} needs parts that are not installed.", {"what": what}), remedy)


class StorageFailed(AgentError):
    """The disk or the database failed."""

    kind = "storage"
    default_remedy = "Check the disk and the folder's permissions; the conversation stays open in memory."


class DiskFull(StorageFailed):
    """The disk is full."""

    kind = "disk_full"
    action = RemedyAction.RETRY
    default_remedy = "Free some space and try again. Nothing that was saved is lost, and what is open stays open."


class DatabaseDamaged(StorageFailed):
    """The database cannot be read as it is."""

    kind = "database_damaged"
    default_remedy = "It was set aside under another name, and what could be read was carried over."


class DatabaseReplaced(StorageFailed):
    """Another file has the database's name."""

    kind = "database_replaced"
    default_remedy = "The program works with the new file from now on."


class DatabaseTooNew(StorageFailed):
    """A newer version of this program wrote the database."""

    kind = "database_too_new"
    default_remedy = "Install the newest version, or start with another data folder."


class DatabaseBusy(StorageFailed):
    """Another process holds the database."""

    kind = "database_busy"
    action = RemedyAction.RETRY
    default_remedy = "Close the other window of this program and try again."


class LocksRefused(StorageFailed):
    """The file system has no locks, so nothing keeps two processes from writing the same conversation."""

    kind = "locks_refused"
    default_remedy = "Choose a data folder on a disk of this computer: desktop-agent --data-dir FOLDER."

    @classmethod
    def of(cls, folder: str, detail: str) -> Self:
        """For the folder in which nothing can be locked."""
        text = "The file system of “{folder}” has no locks, so two programs could write the same conversation at once."
        return cls(Sentence(text, {"folder": folder}), detail=detail)


class ConversationInUse(StorageFailed):
    """Another process is the one writer of this conversation; the sentence says which."""

    kind = "conversation_in_use"
    action = RemedyAction.RETRY
    default_remedy = "Wait until it has ended, then try again."


class WrittenElsewhere(StorageFailed):
    """Another process wrote the conversation that this one was about to write: this one writes nothing more."""

    kind = "written_elsewhere"
    default_remedy = "Open the conversation again; it is then as it is on the disk."


class SecretsUnavailable(AgentError):
    """The operating system's keyring cannot be used."""

    kind = "secrets"
    action = RemedyAction.OPEN_SETTINGS
    default_remedy = "The key can be kept in memory until the program is closed."


class KeyringMissing(SecretsUnavailable):
    """There is no keyring service."""

    kind = "keyring_missing"


class KeyringLocked(SecretsUnavailable):
    """The keyring is locked, or waits for an answer that nobody gives."""

    kind = "keyring_locked"
    default_remedy = "Unlock the keyring and try again, or keep the key in memory until the program is closed."
