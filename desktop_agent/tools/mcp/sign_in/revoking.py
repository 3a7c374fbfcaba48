"""Telling a server that its tokens are needed no more (RFC 7009)."""

import asyncio
from dataclasses import replace

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata

from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.sign_in.flow import MemoryTokenStorage, make_oauth_provider, send_bounded
from desktop_agent.tools.mcp.sign_in.record import OAuthRecord
from desktop_agent.tools.mcp.web.streams import HttpTarget, make_http_client

_REVOKE_TIMEOUT = 10.0


async def revoke_tokens(record: OAuthRecord, target: HttpTarget) -> bool:
    """Whether there is a way to tell it, and it was told. Nothing is raised: tokens end by themselves, too."""
    try:
        async with asyncio.timeout(_REVOKE_TIMEOUT):
            return await _revoke_tokens(
                record, replace(target, allows_other_servers=True, headers={}, on_unauthorized=lambda: None)
            )
    except Exception:  # noqa: BLE001 - whatever a server brings about, and it may hold what came
        return False


async def _revoke_tokens(record: OAuthRecord, target: HttpTarget) -> bool:
    metadata = OAuthMetadata.model_validate(record.metadata) if record.metadata is not None else None
    if metadata is None or metadata.revocation_endpoint is None:
        return False
    provider = make_oauth_provider(record.url, MemoryTokenStorage(), None)
    client_info = provider.context.client_info = OAuthClientInformationFull.model_validate(record.client)
    # The first ends the second where the server does it right (section 2.1); both are told all the same.
    kinds = [kind for kind in ("refresh_token", "access_token") if isinstance(record.tokens.get(kind), str)]
    statuses: list[int] = []
    async with await make_http_client(target, ServerLog()) as client:
        for kind in kinds:
            about = {"token": str(record.tokens[kind]), "token_type_hint": kind, "client_id": client_info.client_id}
            form, headers = provider.context.prepare_token_auth(
                {each: value or "" for each, value in about.items()}, {}
            )
            url = str(metadata.revocation_endpoint)
            response = await send_bounded(client, httpx2.Request("POST", url, data=form, headers=headers))
            statuses.append(response.status_code)
    return bool(statuses) and all(status == 200 for status in statuses)
