"""Open a session of the engine from options, in memory alone, with the caller's approver. Loaded late."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from desktop_agent.agent.run import STOP_GRACE
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_opening import in_memory_session
from desktop_agent.permissions.approvals import ApprovalBroker
from desktop_agent.processes.foreign_code import Fault, call_foreign
from desktop_agent.processes.worker_threads import runs_to_its_end
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.provider import Failover, Provider, make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import StoredSource
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, Envelope
from desktop_agent.types.errors import AgentError, ImageRefused
from desktop_agent.types.messages import Message
from desktop_agent.types.options import AgentOptions, Approver
from desktop_agent.types.permissions import Mode, Rule, RuleEffect, RuleScope
from desktop_agent.types.providers import ProviderConfig
from desktop_agent.types.tool_calls import AllowOnce

_log = logging.getLogger(__name__)


class ApprovalResponder:
    """Asks the caller's approver about each approval, also those of specialists. An approver that raises denies."""

    def __init__(self, approvals: ApprovalBroker, approver: Approver) -> None:
        self._approvals = approvals
        self._approver = approver
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def handle(self, envelope: Envelope) -> None:
        """Take one event. With the approver "wait" somebody else answers approvals."""
        event = envelope.event
        if self._approver == "wait":
            return
        if isinstance(event, ApprovalRequested):
            task = asyncio.get_running_loop().create_task(self._decide(event.approval_id))
            self._tasks[event.approval_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(event.approval_id, None))
        elif isinstance(event, ApprovalResolved) and event.approval_id in self._tasks:
            # Decided without the approver: by Stop, or by a rule.
            self._tasks[event.approval_id].cancel()

    async def aclose(self) -> None:
        """Cancel the approvers that still run; one that ignores it is abandoned."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_GRACE)

    async def _decide(self, approval_id: str) -> None:
        approver = self._approver
        approval = next(
            (candidate for candidate in self._approvals.open_approvals if candidate.approval_id == approval_id), None
        )
        if approval is None:
            return  # decided meanwhile
        if approver == "always":
            self._approvals.answer(approval_id, AllowOnce())
            return
        if isinstance(approver, str):
            self._deny(approval_id, "nobody is there to approve it.")
            return
        decision = await call_foreign(lambda: approver(approval))
        if isinstance(decision, Fault):
            _log.error("the approver failed: %s", decision.trace)
            self._deny(approval_id, f"the approver failed ({decision.kind}).")
            return
        try:
            self._approvals.answer(approval_id, decision)
        except AgentError as error:
            self._deny(approval_id, f"the approver's decision could not be taken: {error}")
        except Exception as error:  # noqa: BLE001 - whatever an approver of the caller's returned
            self._deny(approval_id, f"the approver's decision could not be taken ({type(error).__name__}).")

    def _deny(self, approval_id: str, why: str) -> None:
        """Deny a call of which no person decided: the model is not told that one did."""
        self._approvals.resolve_by_rule(approval_id, allow=False, why=f"This call was denied: {why}")


PROGRAM_ORIGIN = "the program"


@dataclass(frozen=True, slots=True)
class ProviderConnection:
    """A provider, and the HTTP client to close with it; None for a provider of the caller's."""

    provider: Provider
    http: HttpClient | None = None

    @runs_to_its_end
    async def aclose(self) -> None:
        """Close the provider, unless it is the caller's."""
        if self.http is not None:
            await self.provider.aclose()
            await self.http.aclose()


async def connect_provider(options: AgentOptions) -> ProviderConnection:
    """Return the provider of these options. Raises WrongUse for an address or a key that cannot be used."""
    if options.provider is not None:
        return ProviderConnection(options.provider)
    catalogue = Catalogue(shipped=True)
    await catalogue.warm_up()
    http = HttpClient()
    addresses = (options.address, *options.mirrors)
    providers = tuple(make_provider(options.dialect, address, options.key, http, catalogue) for address in addresses)
    return ProviderConnection(providers[0] if len(providers) == 1 else Failover(providers, addresses), http)


class OpenedSession:
    """A session with its provider and approver."""

    def __init__(
        self,
        session: Session,
        connection: ProviderConnection,
        approval_responder: ApprovalResponder,
    ) -> None:
        self.session = session
        self._connection = connection
        self._approval_responder = approval_responder

    def apply_options(self, options: AgentOptions) -> None:
        """Apply the mode and the policies of the options, once listeners are there."""
        self.session.modes.set_by_person(options.mode)
        for policy in options.policies:
            self.session.policies.install(policy)

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
    """Return a session with these options and this history. Raises WrongUse.

    `modes` returns the modes that can be chosen, `config` how a run asks; both are called when they are needed.
    """
    tools, provider = ToolRegistry(options.tools), connection.provider

    async def open_provider(_record: object, _model: str) -> Provider:
        return provider

    setup = SessionSetup(
        open_provider=open_provider,
        read_picture=_refuse_stored_image,
        tools_for=lambda _: tools,
        config_for=lambda _: config(),
        limits=lambda: options.run_limits,
        hooks=options.hooks,
        modes=modes,
        guards=options.guards,
        specialists=lambda: options.specialists,
        rules=(*options.rules, *_consent_rules(options)),
        questions=options.ask_user,
        mode_requests=options.mode_requests,
        execute_tools=options.auto_execute_tools,
    )
    session = in_memory_session(setup, model=options.model, messages=history)
    responder = ApprovalResponder(session.approvals, options.approver)
    session.subscribe(on_event=responder.handle, pieces=False)
    return OpenedSession(session, connection, responder)


def _consent_rules(options: AgentOptions) -> tuple[Rule, ...]:
    """Allow the tools that the caller lets the runtime run; rules that ask or deny, modes and hooks override this."""
    if not options.auto_execute_tools:
        return ()
    return tuple(
        Rule(effect=RuleEffect.ALLOW, tool=tool.identity, scope=RuleScope.ALWAYS, origin=PROGRAM_ORIGIN)
        for tool in options.tools
    )


async def _refuse_stored_image(_: StoredSource) -> bytes:
    raise ImageRefused(
        "The picture is stored elsewhere.", "Read the conversation with History.messages(), which has the bytes."
    )
