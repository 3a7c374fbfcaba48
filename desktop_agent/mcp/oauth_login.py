"""OAuth login in the browser: authorization with PKCE, and the loopback callback (RFC 8252). Loaded late."""

import asyncio
import hmac
import html
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import NoReturn
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, SecretStr, ValidationError

from desktop_agent.mcp.diagnostics import ServerLog, first_error
from desktop_agent.mcp.host_policy import HttpTarget, may_open_url
from desktop_agent.mcp.http import make_http_client
from desktop_agent.mcp.oauth_flow import (
    AuthChallenge,
    TokenMemory,
    TooManyRequests,
    make_oauth_provider,
    run_oauth_flow,
    send_bounded,
    to_json,
)
from desktop_agent.mcp.oauth_records import OAuthRecord, OAuthRecordStore, is_valid_token
from desktop_agent.processes.program_version import program_version
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.mcp import ENGLISH_PAGE_TEXTS, SignInPageTexts

CALLBACK_HOST = "127.0.0.1"
_CALLBACK_PATH = "/callback"
_MAX_REQUEST_BYTES = 16_384
_MAX_CONNECTIONS = 8
# Seconds that a browser has for its request.
_REQUEST_TIMEOUT = 10.0
_PAGE_TEMPLATE = (
    "<!doctype html><html lang='{language}'><meta charset=utf-8><title>Desktop Agent</title>"
    "<style>body{{font:16px system-ui;margin:20vh auto;max-width:26em;text-align:center}}"
    ":root{{color-scheme:light dark}}</style>"
    "<p>{text}</p></html>"
)


class CallbackListener:
    """Waits for one callback with the right state; all other requests are refused and change nothing."""

    def __init__(self, page_texts: SignInPageTexts = ENGLISH_PAGE_TEXTS) -> None:
        self.address = ""
        """The redirect URI."""
        self.state: str | None = None
        """The state of the callback that is accepted; None accepts none."""
        self._texts = page_texts
        self._answer: asyncio.Future[AuthorizationCodeResult | str] = asyncio.get_running_loop().create_future()
        self._open: list[asyncio.StreamWriter] = []

    async def answer(self) -> AuthorizationCodeResult:
        """Return the first callback that was accepted. Raises SignInFailed for a refusal."""
        answer = await asyncio.shield(self._answer)
        if isinstance(answer, str):
            word = answer if _ERROR_CODE.fullmatch(answer) else "error"
            raise SignInFailed(Sentence("The sign-in was refused ({word}).", {"word": word}), _REMEDY)
        return answer

    @asynccontextmanager
    async def listen(self, port: int) -> AsyncGenerator[None]:
        """Listen at this port, or at another if it is in use; 0 is any free one. Raises OSError."""
        try:
            server = await self._bind(port)
        except OSError:
            server = await self._bind(0)
        self.address = f"http://{CALLBACK_HOST}:{server.sockets[0].getsockname()[1]}{_CALLBACK_PATH}"
        try:
            await server.start_serving()
            yield
        finally:
            self._answer.cancel()
            for writer in self._open:
                # Pages that are being sent are sent completely.
                if not writer.is_closing() and not writer.transport.get_write_buffer_size():
                    writer.close()
            server.close()
            await server.wait_closed()

    async def _bind(self, port: int) -> asyncio.Server:
        # Serving starts separately: asyncio waits there, and a server whose start is cancelled would never be closed.
        return await asyncio.start_server(
            self._serve, CALLBACK_HOST, port, limit=_MAX_REQUEST_BYTES, start_serving=False
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        if len(self._open) > _MAX_CONNECTIONS:
            # Idle connections must not keep the browser out.
            self._open.pop(0).transport.abort()
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._respond(head.decode("latin-1")))
                await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass
        finally:
            if writer in self._open:
                self._open.remove(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _respond(self, head: str) -> bytes:
        request_line, _, rest = head.partition("\r\n")
        words = request_line.split(" ")
        headers = [line.partition(":") for line in rest.lower().split("\r\n")]
        hosts = [value.strip() for name, _, value in headers if name == "host"]
        own_host = urlsplit(self.address).netloc
        # A web page whose host name resolves to this machine (DNS rebinding) sends that host.
        is_own = hosts in ([own_host], [own_host.replace(CALLBACK_HOST, "localhost")])
        if len(words) != 3 or words[0] != "GET" or not is_own:
            return self._page(400, self._texts.invalid_response)
        try:
            parts = urlsplit(words[1])
            fields = {name: values[0] for name, values in parse_qs(parts.query, max_num_fields=20).items()}
        except ValueError:
            return self._page(404, self._texts.not_found)
        state, error = fields.get("state", ""), fields.get("error", "")
        if parts.path != _CALLBACK_PATH:
            return self._page(404, self._texts.not_found)
        if self.state is None or not hmac.compare_digest(state.encode(), self.state.encode()):
            return self._page(400, self._texts.invalid_response)
        if self._answer.done():
            return self._page(400, self._texts.finished)
        result = AuthorizationCodeResult(code=fields.get("code", ""), state=state, iss=fields.get("iss"))
        self._answer.set_result(error or result)
        return self._page(200, self._texts.refused if error else self._texts.done)

    def _page(self, status: int, text: str) -> bytes:
        body = _PAGE_TEMPLATE.format(text=html.escape(text), language=html.escape(self._texts.language)).encode()
        head = (
            f"HTTP/1.1 {status} {'OK' if status == 200 else 'Refused'}\r\nContent-Type: text/html; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
            "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n"
        )
        return head.encode("latin-1") + body


SIGN_IN_TIMEOUT = 300.0
"""Seconds that the person has to sign in."""
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_ERROR_FIELD = re.compile(r'"error"\s*:\s*"([a-z_]{1,40})"')
_REMEDY = "Sign in again."
_REGISTER_REMEDY = (
    "Ask the operator of the server for a client id, and enter it with Edit; or ask for a key, and add it as a header."
)


class SignInFailed(ToolFailed):
    """The person is not signed in, or is signed in as before."""

    kind = "not_signed_in"


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """How this program identifies itself: by the address of a page that describes it (`document`, CIMD), by a
    `client_id` that was registered beforehand, or by a new registration each time.
    """

    document: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None


class OAuthLogin:
    """One sign-in. `challenge` is that of the refusal for which the person signs in."""

    def __init__(
        self,
        target: HttpTarget,
        store: OAuthRecordStore,
        challenge: AuthChallenge | None = None,
        identity: ClientIdentity = ClientIdentity(),
        page_texts: SignInPageTexts = ENGLISH_PAGE_TEXTS,
    ) -> None:
        self._target = target
        self._store = store
        self._challenge = challenge
        self._identity = identity
        self._texts = page_texts

    async def run(self, open_page: Callable[[str], None], seconds: float = SIGN_IN_TIMEOUT) -> None:
        """Sign in and save the tokens. Raises SignInFailed, SecretsUnavailable; nothing is saved then."""
        # Before the person is asked for anything: the keyring may be locked.
        record_before = await self._store.load(self._target.url)
        listener = CallbackListener(self._texts)
        try:
            async with asyncio.timeout(seconds), listener.listen(_callback_port(record_before)):
                record = await self._sign_in(record_before, listener, open_page)
        except TimeoutError:
            raise SignInFailed(Sentence("The sign-in took too long."), _REMEDY) from None
        except OSError:
            raise SignInFailed(Sentence("No address of this computer is free for the answer."), _REMEDY) from None
        try:
            await self._store.save(record)
        except ValueError:
            raise SignInFailed(Sentence("The server sent something too large to be a token."), _REMEDY) from None

    async def _sign_in(
        self, record_before: OAuthRecord | None, listener: CallbackListener, open_page: Callable[[str], None]
    ) -> OAuthRecord:
        memory = _known_tokens(record_before, listener.address, self._challenge)
        if self._identity.client_id:
            memory.client = _registered_client(self._identity, listener.address)
        old_tokens = memory.tokens

        async def open_in_browser(url: str) -> None:
            if not may_open_url(url, self._target.private_hosts):
                sentence = Sentence("The sign-in page has an address that is not allowed.")
                raise SignInFailed(
                    sentence, "Ask the operator of the server: the address must begin with https:// and be public."
                )
            _require_pkce(provider)
            self._choose_client_auth(provider)
            (listener.state,) = parse_qs(urlsplit(url).query).get("state", [""])[-1:]
            open_page(url)

        provider = make_oauth_provider(
            self._target.url, memory, listener.address, open_in_browser, listener.answer, self._identity.document
        )
        try:
            async with await make_http_client(self._target, ServerLog()) as client:
                request = _initialize_request(self._target.url)
                await run_oauth_flow(provider, client, request, await self._refusal(client, request))
        except (AgentError, asyncio.CancelledError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - a server may bring about anything, and it may hold what came
            _raise_sign_in_error(first_error(error))
        tokens, metadata = memory.tokens, provider.context.oauth_metadata
        if tokens is None or tokens is old_tokens or memory.client is None or not is_valid_token(tokens.access_token):
            raise SignInFailed(Sentence("The server gave no token."), _REMEDY)
        described = to_json(metadata) if metadata is not None else None
        record = OAuthRecord(url=self._target.url, tokens={}, client=to_json(memory.client), metadata=described)
        return record.with_tokens(to_json(tokens))

    async def _refusal(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        challenge = self._challenge or AuthChallenge(HTTPStatus.UNAUTHORIZED, "")
        if not challenge.header:
            response = await send_bounded(client, request, whole=False)
            # A server may let anybody connect: the person wants to sign in anyway.
            if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return response
        headers = {"www-authenticate": challenge.header} if challenge.header else {}
        return httpx2.Response(challenge.status, headers=headers, content=b"", request=request)

    def _choose_client_auth(self, provider: OAuthClientProvider) -> None:
        """Only now it is known how a client with an earlier registration can authenticate."""
        metadata, client = provider.context.oauth_metadata, provider.context.client_info
        if metadata is None or client is None or not self._identity.client_secret:
            return
        methods = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
        if "client_secret_basic" not in methods and "client_secret_post" in methods:
            client.token_endpoint_auth_method = "client_secret_post"  # noqa: S105 - the name of a method


def _require_pkce(provider: OAuthClientProvider) -> None:
    """Without PKCE anybody who sees the browser's callback could use it (RFC 7636)."""
    metadata = provider.context.oauth_metadata
    methods = metadata.code_challenge_methods_supported if metadata is not None else None
    if methods is not None and "S256" not in methods:
        sentence = Sentence("The sign-in server does not support protected sign-ins (PKCE, S256).")
        raise SignInFailed(sentence, "Ask the operator of the server.")


def _known_tokens(record: OAuthRecord | None, address: str, challenge: AuthChallenge | None) -> TokenMemory:
    """The known client, if the redirect URI is the same; and the tokens, if the server requires more scopes."""
    memory = TokenMemory()
    if record is None:
        return memory
    try:
        client = OAuthClientInformationFull.model_validate(record.client)
        if address in [str(uri) for uri in client.redirect_uris or ()]:
            memory.client = client
        if challenge is not None and challenge.is_step_up:
            memory.tokens = OAuthToken.model_validate(record.tokens)
    except ValidationError:
        return TokenMemory()
    return memory


def _registered_client(identity: ClientIdentity, address: str) -> OAuthClientInformationFull:
    secret = identity.client_secret
    return OAuthClientInformationFull(
        client_id=identity.client_id or "",
        client_secret=secret.get_secret_value() if secret is not None else None,
        redirect_uris=[AnyUrl(address)],
        # The default where the server names no method (RFC 8414, section 2).
        token_endpoint_auth_method="client_secret_basic" if secret is not None else "none",
    )


def _callback_port(record: OAuthRecord | None) -> int:
    """The port of the last sign-in: the client is registered with that redirect URI."""
    try:
        addresses: list[str] = record.client.get("redirect_uris", []) if record else []
        return urlsplit(addresses[0]).port or 0
    except (ValueError, IndexError, TypeError, AttributeError):
        return 0


def _initialize_request(url: str) -> httpx2.Request:
    client_info = {"name": "desktop-agent", "version": program_version()}
    params = {"protocolVersion": LATEST_PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client_info}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LATEST_PROTOCOL_VERSION}
    return httpx2.Request(
        "POST", url, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    )


def _raise_sign_in_error(error: BaseException) -> NoReturn:
    """Never with the message of the error: it may contain tokens."""
    if isinstance(error, AgentError):
        raise error
    code = _ERROR_FIELD.search(str(error)) if isinstance(error, OAuthTokenError | OAuthRegistrationError) else None
    values = {"why": code.group(1) if code else type(error).__name__}
    if isinstance(error, OAuthRegistrationError):
        template = "The server accepts only registered programs ({why})."
        raise SignInFailed(Sentence(template, values), _REGISTER_REMEDY) from None
    if isinstance(error, OAuthTokenError):
        raise SignInFailed(Sentence("The server gave no token ({why}).", values), _REMEDY) from None
    if isinstance(error, OAuthFlowError | ValidationError | TooManyRequests):
        template = "The server's information about signing in is contradictory ({why})."
        raise SignInFailed(Sentence(template, values), "Ask the operator of the server.") from None
    template = "The server for signing in could not be reached ({why})."
    raise SignInFailed(Sentence(template, values), "Check the connection, then sign in again.") from None
