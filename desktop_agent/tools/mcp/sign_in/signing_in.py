"""The person signs in: the page of the server opens in the browser, and tokens come back."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, SecretStr, ValidationError

from desktop_agent.tools.mcp.faults import first_error
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.flow import (
    BrowserRedirect,
    MemoryTokenStorage,
    TooManyRequests,
    make_oauth_provider,
    make_record,
    run_oauth_flow,
    send_bounded,
)
from desktop_agent.tools.mcp.sign_in.listener import CallbackListener, listen_for_callback
from desktop_agent.tools.mcp.sign_in.record import OAuthRecord, OAuthRecordStore, expiry_time, is_valid_token
from desktop_agent.tools.mcp.sign_in.renewing import AuthChallenge
from desktop_agent.tools.mcp.web.hosts import may_open_url
from desktop_agent.tools.mcp.web.streams import HttpTarget, make_http_client
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.sign_in_words import ENGLISH_PAGE_TEXTS, SignInPageTexts

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

SIGN_IN_TIMEOUT = 300.0
"""Seconds that a person has."""
_ERROR_CODE = re.compile(r"[a-z_]{1,40}")
_ERROR_FIELD = re.compile(r'"error"\s*:\s*"([a-z_]{1,40})"')
_REMEDY = "Sign in again."
_REGISTER_REMEDY = "Ask who runs it for a client id, and enter it with Edit; or for a key, and give that as a header."


class SignInFailed(ToolFailed):
    """The person is signed in no more than before."""

    kind = "not_signed_in"


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Who this program is there. `document` is the address of a page that says so (CIMD), `client_id` a name that was
    agreed on beforehand; without either it makes itself known each time.
    """

    document: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None


class OAuthLogin:
    """One sign-in. `challenge` is what the server said when it refused."""

    def __init__(
        self,
        target: HttpTarget,
        store: OAuthRecordStore,
        challenge: AuthChallenge | None = None,
        identity: ClientIdentity = ClientIdentity(),
        words: SignInPageTexts = ENGLISH_PAGE_TEXTS,
    ) -> None:
        self._target = target
        self._store = store
        self._challenge = challenge
        self._identity = identity
        self._texts = words
        self._log = ServerLog()
        self._provider: OAuthClientProvider | None = None

    async def run(self, open_page: Callable[[str], None], seconds: float = SIGN_IN_TIMEOUT) -> None:
        """Until the tokens lie in the keyring. Raises SignInFailed, SecretsUnavailable; nothing is kept then."""
        # Before the person is asked for anything: where would it be kept?
        known = await self._store.load(self._target.url)
        try:
            async with asyncio.timeout(seconds), listen_for_callback(_callback_port(known), self._texts) as listener:
                record = await self._sign_in(known, listener, open_page)
        except TimeoutError:
            raise SignInFailed(Sentence("The sign-in took too long."), _REMEDY) from None
        except OSError:
            raise SignInFailed(Sentence("No address of this machine is free for the answer."), _REMEDY) from None
        try:
            await self._store.save(record)
        except ValueError:
            raise SignInFailed(Sentence("What the server gave is too large to be a token."), _REMEDY) from None

    async def _sign_in(
        self, known: OAuthRecord | None, listener: CallbackListener, open_page: Callable[[str], None]
    ) -> OAuthRecord:
        memory = _known_tokens(known, listener.address, self._challenge)
        if self._identity.client_id:
            memory.client = _registered_client(self._identity, listener.address)
        browser = self._browser_redirect(listener, open_page)
        provider = self._provider = make_oauth_provider(self._target.url, memory, browser, self._identity.document)
        before = memory.tokens
        try:
            async with await make_http_client(self._target, self._log) as client:
                await self._run_flow(provider, client)
        except (AgentError, asyncio.CancelledError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - a server may bring about anything, and it may hold what came
            _raise_sign_in_error(first_error(error))
        tokens = memory.tokens if memory.tokens is not before else None
        expires_at = expiry_time(tokens.model_dump()) if tokens is not None else None
        record = make_record(self._target.url, provider, memory, expires_at) if tokens is not None else None
        if record is None or not is_valid_token(record.access_token):
            raise SignInFailed(Sentence("The server gave no token."), _REMEDY)
        return record

    async def _run_flow(self, provider: "OAuthClientProvider", client: httpx2.AsyncClient) -> None:
        request = _initialize_request(self._target.url)

        async def answered(request: httpx2.Request) -> httpx2.Response:
            said = self._challenge
            if said is not None and said.header:
                return _challenge_response(said, request)
            response = await send_bounded(client, request, whole=False)
            # It may let anybody begin: the person wants to sign in all the same.
            is_refused = response.status_code in (401, 403)
            return response if is_refused else _challenge_response(said or AuthChallenge(401, ""), request)

        await run_oauth_flow(provider, request, client, answered)

    def _browser_redirect(self, listener: CallbackListener, open_page: Callable[[str], None]) -> BrowserRedirect:
        async def opened(url: str) -> None:
            if not may_open_url(url, self._target.private_hosts):
                what = Sentence("The page for signing in has an address that is not opened.")
                raise SignInFailed(what, "Ask who runs the server: it must begin with https:// and be public.")
            self._require_pkce()
            self._choose_client_auth()
            (state,) = parse_qs(urlsplit(url).query).get("state", [""])[-1:]
            listener.expect(state)
            open_page(url)

        async def answer() -> AuthorizationCodeResult:
            came = await listener.answer()
            if came.error:
                word = came.error if _ERROR_CODE.fullmatch(came.error) else "error"
                raise SignInFailed(Sentence("The sign-in was refused ({word}).", {"word": word}), _REMEDY)
            return AuthorizationCodeResult(code=came.code, state=came.state, iss=came.issuer)

        return BrowserRedirect(listener.address, opened, answer)

    def _require_pkce(self) -> None:
        """Without it whoever sees the answer of the browser could use it (RFC 7636)."""
        metadata = self._provider.context.oauth_metadata if self._provider is not None else None
        ways = metadata.code_challenge_methods_supported if metadata is not None else None
        if ways is not None and "S256" not in ways:
            what = Sentence("Who gives tokens for the server does not protect a sign-in (PKCE, S256).")
            raise SignInFailed(what, "Ask who runs the server.")

    def _choose_client_auth(self) -> None:
        """How an agreed name is proved; only now it is known which ways there are."""
        context = self._provider.context if self._provider is not None else None
        if context is None or context.oauth_metadata is None or context.client_info is None:
            return
        ways = context.oauth_metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
        if self._identity.client_secret and "client_secret_basic" not in ways and "client_secret_post" in ways:
            context.client_info.token_endpoint_auth_method = "client_secret_post"  # noqa: S105 - the name of a way


def _known_tokens(known: OAuthRecord | None, address: str, challenge: AuthChallenge | None) -> MemoryTokenStorage:
    """Who we are there already, if the answer can come to the same address; and what we may do, if more is wanted."""
    memory = MemoryTokenStorage()
    if known is None:
        return memory
    try:
        client = OAuthClientInformationFull.model_validate(known.client)
        if address in [str(each) for each in client.redirect_uris or ()]:
            memory.client = client
        if challenge is not None and challenge.is_step_up:
            memory.tokens = OAuthToken.model_validate(known.tokens)
    except ValidationError:
        return MemoryTokenStorage()
    return memory


def _registered_client(identity: ClientIdentity, address: str) -> OAuthClientInformationFull:
    secret = identity.client_secret
    return OAuthClientInformationFull(
        client_id=identity.client_id or "",
        client_secret=secret.get_secret_value() if secret is not None else None,
        redirect_uris=[AnyUrl(address)],
        # What counts where nothing is said (RFC 8414, section 2).
        token_endpoint_auth_method="client_secret_basic" if secret is not None else "none",
    )


def _callback_port(known: OAuthRecord | None) -> int:
    """Where the last answer came to: whoever knows us knows us with that address."""
    try:
        addresses: list[str] = known.client.get("redirect_uris", []) if known else []
        return urlsplit(addresses[0]).port or 0
    except (ValueError, IndexError, TypeError, AttributeError):
        return 0


def _initialize_request(url: str) -> httpx2.Request:
    about = {"name": "desktop-agent", "version": "0.1.0"}
    asks = {"protocolVersion": LATEST_PROTOCOL_VERSION, "capabilities": {}, "clientInfo": about}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LATEST_PROTOCOL_VERSION}
    return httpx2.Request(
        "POST", url, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asks}
    )


def _challenge_response(challenge: AuthChallenge, request: httpx2.Request) -> httpx2.Response:
    headers = {"www-authenticate": challenge.header} if challenge.header else {}
    return httpx2.Response(challenge.status, headers=headers, content=b"", request=request)


def _raise_sign_in_error(error: BaseException) -> NoReturn:
    """Never in the words of the error: they may hold what the server gave."""
    if isinstance(error, AgentError):
        raise error
    found = _ERROR_FIELD.search(str(error)) if isinstance(error, OAuthTokenError | OAuthRegistrationError) else None
    values = {"why": found.group(1) if found else type(error).__name__}
    if isinstance(error, OAuthRegistrationError):
        template = "The server knows no programs that it was not told of before ({why})."
        raise SignInFailed(Sentence(template, values), _REGISTER_REMEDY) from None
    if isinstance(error, OAuthTokenError):
        raise SignInFailed(Sentence("The server gave no token ({why}).", values), _REMEDY) from None
    if isinstance(error, OAuthFlowError | ValidationError | TooManyRequests):
        template = "What the server says about signing in does not fit together ({why})."
        raise SignInFailed(Sentence(template, values), "Ask who runs it.") from None
    template = "The server for signing in could not be reached ({why})."
    raise SignInFailed(Sentence(template, values), "Check the connection, then sign in again.") from None
