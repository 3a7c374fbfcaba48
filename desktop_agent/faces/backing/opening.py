"""From options to a session of the engine that keeps nothing on the disk."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from desktop_agent.engine.session import Session
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.engine.unkept import in_memory_session
from desktop_agent.faces.backing.approving import ApprovalResponder
from desktop_agent.faces.backing.failures import FailureRecordingProvider
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.connect import make_provider
from desktop_agent.providers.failover import Failover
from desktop_agent.providers.provider import Provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.rules import Rule, RuleEffect, RuleScope
from desktop_agent.vocabulary.errors import AgentError, ImageRefused
from desktop_agent.vocabulary.images import StoredSource
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.options import AgentOptions
from desktop_agent.vocabulary.requests import ProviderConfig

PROGRAM_ORIGIN = "the program"


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """Who is asked, and what must be closed behind it: None where it was lent."""

    provider: Provider
    http: HttpClient | None = None

    async def aclose(self) -> None:
        """Close what is ours."""
        if self.http is not None:
            await self.provider.aclose()
            await self.http.aclose()


async def connect_provider(options: AgentOptions) -> ProviderConnection:
    """The provider of these options. Raises WrongUse for an address or a key that cannot be used."""
    if options.provider is not None:
        return ProviderConnection(options.provider)
    catalogue = Catalogue(shipped=True)
    await catalogue.warm_up()
    http = HttpClient()
    addresses = (options.address, *options.mirrors)
    made = tuple(make_provider(options.dialect, each, options.key, http, None, catalogue) for each in addresses)
    return ProviderConnection(made[0] if len(made) == 1 else Failover(made, addresses), http)


class OpenedSession:
    """A session and what it stands on."""

    def __init__(
        self,
        session: Session,
        connection: ProviderConnection,
        provider: FailureRecordingProvider,
        approving: ApprovalResponder,
    ) -> None:
        self.session = session
        self._connection = connection
        self._provider = provider
        self._approval_responder = approving

    @property
    def failure(self) -> AgentError | None:
        """What the last answer failed with."""
        return self._provider.failure

    def apply_options(self, options: AgentOptions) -> None:
        """Put into force what options install, once somebody listens."""
        self.session.modes.set_by_person(options.mode)
        for policy in options.policies:
            self.session.policies.install(
                policy.id, policy.text, scope=policy.scope, precedence=policy.precedence, trigger=policy.trigger
            )

    async def aclose(self) -> None:
        """Stop what runs and close everything. Idempotent."""
        await self.session.close()
        await self._approval_responder.aclose()
        await self._connection.aclose()


def open_session(
    options: AgentOptions,
    connection: ProviderConnection,
    history: Sequence[Message],
    *,
    modes: Callable[[], tuple[Mode, ...]],
    config: Callable[[], ProviderConfig],
) -> OpenedSession:
    """A session with these options behind this history. Raises WrongUse.

    `modes` are those that can be chosen, `config` says how a run asks; both are looked at when they are needed.
    """
    tools = ToolRegistry(options.tools)
    provider = FailureRecordingProvider(connection.provider)
    setup = replace(_session_setup(options, tools, provider, config), modes=modes)
    session = in_memory_session(setup, model=options.model, messages=history)
    approving = ApprovalResponder(session.approvals, options.approver)
    session.subscribe(on_event=approving.handle)
    return OpenedSession(session, connection, provider, approving)


def _session_setup(
    options: AgentOptions, tools: ToolRegistry, provider: Provider, config: Callable[[], ProviderConfig]
) -> SessionSetup:
    async def open_provider(_record: object, _model: str) -> Provider:
        return provider

    return SessionSetup(
        open_provider=open_provider,
        read_picture=_refuse_stored_image,
        tools_for=lambda _: tools,
        config_for=lambda _: config(),
        limits=lambda: options.run_limits,
        hooks=options.hooks,
        guards=options.guards,
        specialists=lambda: options.specialists,
        rules=(*options.rules, *_consent_rules(options)),
        questions=options.ask_user,
        mode_requests=options.mode_requests,
        execute_tools=options.auto_execute_tools,
    )


def _consent_rules(options: AgentOptions) -> tuple[Rule, ...]:
    """Who lets the runtime run these tools has allowed them; rules that ask or deny, modes and hooks go over it."""
    if not options.auto_execute_tools:
        return ()
    return tuple(
        Rule(effect=RuleEffect.ALLOW, tool=tool.identity, scope=RuleScope.ALWAYS, origin=PROGRAM_ORIGIN)
        for tool in options.tools
    )


async def _refuse_stored_image(_: StoredSource) -> bytes:
    raise ImageRefused("The picture is stored elsewhere.", "Put its bytes into the message: Message.user_with_file.")
