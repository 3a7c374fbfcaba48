"""One live connection to an MCP server: its own task enters and leaves the transport and client. Loaded late."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import mcp_types
from mcp.client.client import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import ToolsListChanged

from desktop_agent.mcp.diagnostics import ConnectionLost, ServerLog, first_error
from desktop_agent.mcp.elicitation_and_sampling import ServerRequestHandler, current_call
from desktop_agent.mcp.limits import OpenRequests
from desktop_agent.processes.program_version import program_version
from desktop_agent.types.errors import AgentError
from desktop_agent.types.mcp import ServerCall

_log = logging.getLogger(__name__)
Result = TypeVar("Result")

# Under this name the library's session logs what a server sent that is no message, secrets too.
_SESSION_LOGGER = "client"
_SESSION_FILE = ("mcp", "client", "session.py")
# Seconds that a cancelled call gets to notify the server.
_CANCEL_GRACE = 2.0


def _is_of_others(record: logging.LogRecord) -> bool:
    """Return whether something else logged this by the library's name, which is a common one."""
    return Path(record.pathname).parts[-len(_SESSION_FILE) :] != _SESSION_FILE


class ServerConnection:
    """Opened once, after the library is loaded, and closed once.

    Calls come from any task; a cancelled call is also cancelled at the server. `on_ended` is called when a live
    connection ends: with whether it ended by itself, and the error if it is known, which is in `failure` too.
    """

    def __init__(
        self,
        transport: Callable[[], AbstractAsyncContextManager[Any]],
        request_handler: ServerRequestHandler,
        log: ServerLog,
        on_tools_changed: Callable[[], None],
        on_catalog_changed: Callable[[], None],
        on_ended: Callable[[bool, AgentError | None], None],
    ) -> None:
        self._transport = transport
        self._request_handler = request_handler
        self._log = log
        self._on_tools_changed = on_tools_changed
        self._on_catalog_changed = on_catalog_changed
        self._on_ended = on_ended
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._was_closed = False
        self._task: asyncio.Task[None] | None = None
        # Oldest first.
        self._calls: dict[asyncio.Task[Any], ServerCall] = {}
        self.failure: AgentError | None = None

    @property
    def is_live(self) -> bool:
        return self._task is not None and not self._task.done() and self._ready.done() and not self._closing.is_set()

    @property
    def protocol(self) -> str:
        return self._ready.result().protocol_version if self.is_live else ""

    async def open(self, seconds: float) -> None:
        """Start the server and negotiate the protocol. Raises any failure; nothing is left running then."""
        self._task = asyncio.create_task(self._run(), name="mcp server")
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._ready)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the server and everything that waits for it. Idempotent."""
        self._was_closed = self._was_closed or not self._closing.is_set()
        self._closing.set()
        if self._task is None:
            return
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait([self._task])
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()

    async def ask(
        self, question: Callable[[Client], Coroutine[Any, Any, Result]], call: ServerCall | None = None
    ) -> Result:
        """Send a request to the server; `call` is the tool call that it belongs to.

        A cancelled call is cancelled at the server too; a server that does not accept even that is closed. Raises
        ConnectionLost, and what the library raises.
        """
        if not self.is_live:
            raise ConnectionLost
        call = call or ServerCall()
        task = asyncio.ensure_future(_run_request(call, question, self._ready.result()))
        self._calls[task] = call
        self._report_calls()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=_CANCEL_GRACE)
            if not task.done():
                self._was_closed = True
                self._closing.set()
            raise
        finally:
            del self._calls[task]
            self._report_calls()
        if task.cancelled():
            raise ConnectionLost
        return task.result()

    def _report_calls(self) -> None:
        self._request_handler.set_active_calls(tuple(self._calls.values()))

    async def _run(self) -> None:
        try:
            async with self._client() as client:
                listener = asyncio.create_task(self._listen(client))
                try:
                    self._ready.set_result(client)
                    await self._closing.wait()
                finally:
                    listener.cancel()
                    await asyncio.wait([listener])
                    await self._end_calls()
        except asyncio.CancelledError:
            self._fail(ConnectionLost())
        except Exception as error:  # noqa: BLE001 - whatever a server brings about is raised by `open` or kept in `failure`
            self._fail(error)
        finally:
            self._closing.set()
            if self._ready.exception() is None:
                self._on_ended(not self._was_closed, self.failure)

    async def _end_calls(self) -> None:
        calls = tuple(self._calls)
        for call in calls:
            call.cancel()
        if calls:
            await asyncio.wait(calls, timeout=_CANCEL_GRACE)

    def _fail(self, error: BaseException) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
            return
        cause = first_error(error)
        self.failure = cause if isinstance(cause, AgentError) else None
        _log.info("an MCP server is gone: %s", type(error).__name__)

    def _client(self) -> Client:
        logging.getLogger(_SESSION_LOGGER).addFilter(_is_of_others)
        handler = self._request_handler
        return Client(
            _watch_messages(self._transport, self._log, self._closing.set),
            mode="auto",
            cache=None,
            client_info=mcp_types.Implementation(
                name="desktop-agent", title="Desktop Agent", version=program_version()
            ),
            list_roots_callback=handler.roots,
            elicitation_callback=handler.answer_elicitation,
            sampling_callback=handler.sample if handler.can_sample else None,
            sampling_capabilities=mcp_types.SamplingCapability(tools=mcp_types.SamplingToolsCapability()),
            logging_callback=handler.on_log_message,
            log_level="info",
            message_handler=self._on_message,
        )

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            self._on_tools_changed()
        elif isinstance(message, mcp_types.PromptListChangedNotification | mcp_types.ResourceListChangedNotification):
            self._on_catalog_changed()
        elif isinstance(message, Exception):
            self._log.add(f"{type(message).__name__}: {message}", "error")

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes: servers of the newer protocol report them to subscribers only."""
        capabilities = client.server_capabilities
        tools, prompts, resources = (
            change is not None and bool(change.list_changed)
            for change in (capabilities.tools, capabilities.prompts, capabilities.resources)
        )
        if not tools and not prompts and not resources:
            return
        with contextlib.suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            async with client.listen(
                tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
            ) as changes:
                async for change in changes:
                    is_tools = isinstance(change, ToolsListChanged)
                    (self._on_tools_changed if is_tools else self._on_catalog_changed)()


async def _run_request(
    call: ServerCall, question: Callable[[Client], Coroutine[Any, Any, Result]], client: Client
) -> Result:
    current_call.set(call)
    return await question(client)


@asynccontextmanager
async def _watch_messages(
    transport: Callable[[], AbstractAsyncContextManager[Any]], log: ServerLog, on_end: Callable[[], None]
) -> AsyncGenerator[Any]:
    requests = OpenRequests()
    async with transport() as (incoming, outgoing):
        yield _IncomingMessages(incoming, requests, log, on_end), _OutgoingMessages(outgoing, requests)


class _MessageStream:
    def __init__(self, inner: Any, requests: OpenRequests) -> None:
        self._inner = inner
        self._requests = requests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.__aexit__(*error)


class _IncomingMessages(_MessageStream):
    """Waits while too many requests are open, and calls `on_end` when it ends: the library does not report that.

    It ends if the server reads none of the responses.
    """

    def __init__(self, inner: Any, requests: OpenRequests, log: ServerLog, on_end: Callable[[], None]) -> None:
        super().__init__(inner, requests)
        self._log = log
        self._on_end = on_end

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._next_admitted()
        except TimeoutError:
            count = len(self._requests)
            self._log.add(f"It asked {count} questions and took no answer; the connection was closed.", "error")
            self._on_end()
            raise StopAsyncIteration from None
        except BaseException:
            self._on_end()
            raise

    async def _next_admitted(self) -> Any:
        while True:
            item = await self._inner.__anext__()
            if isinstance(item, Exception) or await self._requests.admit(item.message):
                return item


class _OutgoingMessages(_MessageStream):
    """Marks requests as answered once the transport has accepted their response."""

    async def send(self, item: SessionMessage) -> None:
        await self._inner.send(item)
        self._requests.mark_answered(item.message)
