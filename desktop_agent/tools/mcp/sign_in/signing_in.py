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

from desktop_agent.tools.mcp.faults import inner
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.flow import Browser, Endless, Memory, asked, driven, provider_of, record_of
from desktop_agent.tools.mcp.sign_in.listener import Listener, listening
from desktop_agent.tools.mcp.sign_in.record import Keeping, Record, expiry_of, is_token
from desktop_agent.tools.mcp.sign_in.renewing import Challenge
from desktop_agent.tools.mcp.web.hosts import may_be_opened
from desktop_agent.tools.mcp.web.streams import Place, new_client
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.sign_in_words import ENGLISH, PageWords

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

PATIENCE = 300.0
"""Seconds that a person has."""
_WORD = re.compile(r"[a-z_]{1,40}")
_ERROR = re.compile(r'"error"\s*:\s*"([a-z_]{1,40})"')
_REMEDY = "Sign in again."
_REGISTER = "Ask who runs it for a client id, and enter it with Edit; or for a key, and give that as a header."


class NotSignedIn(ToolFailed):
    """The person is signed in no more than before."""

    kind = "not_signed_in"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this program is there. `document` is the address of a page that says so (CIMD), `client_id` a name that was
    agreed on beforehand; without either it makes itself known each time.
    """

    document: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None


class SigningIn:
    """One sign-in. `challenge` is what the server said when it refused."""

    def __init__(
        self,
        place: Place,
        keeping: Keeping,
        challenge: Challenge | None = None,
        identity: Identity = Identity(),
        words: PageWords = ENGLISH,
    ) -> None:
        self._place = place
        self._keeping = keeping
        self._challenge = challenge
        self._identity = identity
        self._words = words
        self._log = ServerLog()
        self._provider: OAuthClientProvider | None = None

    async def run(self, open_page: Callable[[str], None], seconds: float = PATIENCE) -> None:
        """Until the tokens lie in the keyring. Raises NotSignedIn, SecretsUnavailable; nothing is kept then."""
        # Before the person is asked for anything: where would it be kept?
        known = await self._keeping.load(self._place.url)
        try:
            async with asyncio.timeout(seconds), listening(_port_of(known), self._words) as listener:
                record = await self._signed_in(known, listener, open_page)
        except TimeoutError:
            raise NotSignedIn(Sentence("The sign-in took too long."), _REMEDY) from None
        except OSError:
            raise NotSignedIn(Sentence("No address of this machine is free for the answer."), _REMEDY) from None
        try:
            await self._keeping.save(record)
        except ValueError:
            raise NotSignedIn(Sentence("What the server gave is too large to be a token."), _REMEDY) from None

    async def _signed_in(self, known: Record | None, listener: Listener, open_page: Callable[[str], None]) -> Record:
        memory = _remembered(known, listener.address, self._challenge)
        if self._identity.client_id:
            memory.client = _agreed(self._identity, listener.address)
        browser = self._browser(listener, open_page)
        provider = self._provider = provider_of(self._place.url, memory, browser, self._identity.document)
        before = memory.tokens
        try:
            async with await new_client(self._place, self._log) as client:
                await self._driven(provider, client)
        except (AgentError, asyncio.CancelledError, TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - a server may bring about anything, and it may hold what came
            _explain(inner(error))
        tokens = memory.tokens if memory.tokens is not before else None
        expires_at = expiry_of(tokens.model_dump()) if tokens is not None else None
        record = record_of(self._place.url, provider, memory, expires_at) if tokens is not None else None
        if record is None or not is_token(record.access_token):
            raise NotSignedIn(Sentence("The server gave no token."), _REMEDY)
        return record

    async def _driven(self, provider: "OAuthClientProvider", client: httpx2.AsyncClient) -> None:
        request = _first_question(self._place.url)

        async def answered(request: httpx2.Request) -> httpx2.Response:
            said = self._challenge
            if said is not None and said.wants:
                return _said(said, request)
            response = await asked(client, request, whole=False)
            # It may let anybody begin: the person wants to sign in all the same.
            is_refused = response.status_code in (401, 403)
            return response if is_refused else _said(said or Challenge(401, ""), request)

        await driven(provider, request, client, answered)

    def _browser(self, listener: Listener, open_page: Callable[[str], None]) -> Browser:
        async def opened(url: str) -> None:
            if not may_be_opened(url, self._place.own):
                what = Sentence("The page for signing in has an address that is not opened.")
                raise NotSignedIn(what, "Ask who runs the server: it must begin with https:// and be public.")
            self._require_pkce()
            self._choose_proof()
            (state,) = parse_qs(urlsplit(url).query).get("state", [""])[-1:]
            listener.expect(state)
            open_page(url)

        async def answer() -> AuthorizationCodeResult:
            came = await listener.answer()
            if came.error:
                word = came.error if _WORD.fullmatch(came.error) else "error"
                raise NotSignedIn(Sentence("The sign-in was refused ({word}).", {"word": word}), _REMEDY)
            return AuthorizationCodeResult(code=came.code, state=came.state, iss=came.issuer)

        return Browser(listener.address, opened, answer)

    def _require_pkce(self) -> None:
        """Without it whoever sees the answer of the browser could use it (RFC 7636)."""
        metadata = self._provider.context.oauth_metadata if self._provider is not None else None
        ways = metadata.code_challenge_methods_supported if metadata is not None else None
        if ways is not None and "S256" not in ways:
            what = Sentence("Who gives tokens for the server does not protect a sign-in (PKCE, S256).")
            raise NotSignedIn(what, "Ask who runs the server.")

    def _choose_proof(self) -> None:
        """How an agreed name is proved; only now it is known which ways there are."""
        context = self._provider.context if self._provider is not None else None
        if context is None or context.oauth_metadata is None or context.client_info is None:
            return
        ways = context.oauth_metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
        if self._identity.client_secret and "client_secret_basic" not in ways and "client_secret_post" in ways:
            context.client_info.token_endpoint_auth_method = "client_secret_post"  # noqa: S105 - the name of a way


def _remembered(known: Record | None, address: str, challenge: Challenge | None) -> Memory:
    """Who we are there already, if the answer can come to the same address; and what we may do, if more is wanted."""
    memory = Memory()
    if known is None:
        return memory
    try:
        client = OAuthClientInformationFull.model_validate(known.client)
        if address in [str(each) for each in client.redirect_uris or ()]:
            memory.client = client
        if challenge is not None and challenge.is_step_up:
            memory.tokens = OAuthToken.model_validate(known.tokens)
    except ValidationError:
        return Memory()
    return memory


def _agreed(identity: Identity, address: str) -> OAuthClientInformationFull:
    secret = identity.client_secret
    return OAuthClientInformationFull(
        client_id=identity.client_id or "",
        client_secret=secret.get_secret_value() if secret is not None else None,
        redirect_uris=[AnyUrl(address)],
        # What counts where nothing is said (RFC 8414, section 2).
        token_endpoint_auth_method="client_secret_basic" if secret is not None else "none",
    )


def _port_of(known: Record | None) -> int:
    """Where the last answer came to: whoever knows us knows us with that address."""
    try:
        addresses: list[str] = known.client.get("redirect_uris", []) if known else []
        return urlsplit(addresses[0]).port or 0
    except (ValueError, IndexError, TypeError, AttributeError):
        return 0


def _first_question(url: str) -> httpx2.Request:
    about = {"name": "desktop-agent", "version": "0.1.0"}
    asks = {"protocolVersion": LATEST_PROTOCOL_VERSION, "capabilities": {}, "clientInfo": about}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LATEST_PROTOCOL_VERSION}
    return httpx2.Request(
        "POST", url, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asks}
    )


def _said(challenge: Challenge, request: httpx2.Request) -> httpx2.Response:
    headers = {"www-authenticate": challenge.wants} if challenge.wants else {}
    return httpx2.Response(challenge.status, headers=headers, content=b"", request=request)


def _explain(error: BaseException) -> NoReturn:
    """Never in the words of the error: they may hold what the server gave."""
    if isinstance(error, AgentError):
        raise error
    found = _ERROR.search(str(error)) if isinstance(error, OAuthTokenError | OAuthRegistrationError) else None
    values = {"why": found.group(1) if found else type(error).__name__}
    if isinstance(error, OAuthRegistrationError):
        template = "The server knows no programs that it was not told of before ({why})."
        raise NotSignedIn(Sentence(template, values), _REGISTER) from None
    if isinstance(error, OAuthTokenError):
        raise NotSignedIn(Sentence("The server gave no token ({why}).", values), _REMEDY) from None
    if isinstance(error, OAuthFlowError | ValidationError | Endless):
        template = "What the server says about signing in does not fit together ({why})."
        raise NotSignedIn(Sentence(template, values), "Ask who runs it.") from None
    template = "The server for signing in could not be reached ({why})."
    raise NotSignedIn(Sentence(template, values), "Check the connection, then sign in again.") from None
