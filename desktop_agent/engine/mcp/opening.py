"""How a server is reached: with which environment and headers, and where their secret values come from."""

import asyncio
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.engine.mcp.place import has_same_connection
from desktop_agent.engine.mcp.sign_ins import OAuthManager
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.upkeep import OnSignInRequired, Transport
from desktop_agent.tools.mcp.web.streams import http_streams
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.servers import HttpConnection, McpServer, StdioConnection

_INHERITED_VARIABLES = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH"}
    | {"PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"}
)


class TransportFactory:
    """Makes the transport of a server, for each start anew."""

    def __init__(
        self, secrets: SecretStore, sign_ins: OAuthManager, configured: Callable[[], tuple[McpServer, ...]]
    ) -> None:
        self._secrets = secrets
        self._configured = configured
        self.locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """By id of the server: who holds one changes where it is and its secrets together."""
        self._oauth = sign_ins
        self.private_hosts = sign_ins.private_hosts

    async def transport(
        self, config: McpServer, workspace: Path | None, log: ServerLog, refuse: OnSignInRequired
    ) -> Transport:
        """Raises ToolFailed for a secret that is not there or meant for another place, and SecretsUnavailable."""
        async with self.locks[config.id]:
            if not any(has_same_connection(each, config) for each in self._configured()):
                what = Sentence("The server “{server}” was set up otherwise meanwhile.", {"server": config.title})
                raise ToolFailed(what, "Try again: it starts as it is set up now.")
            values = {name: await self._secret(config, name) for name in config.secret_names}
        plain = {name: value.get_secret_value() for name, value in values.items()}
        log.add_secrets(tuple(plain.values()))
        connection = config.connection
        if not isinstance(connection, StdioConnection):
            return await self._http_transport(config, connection, plain, log, refuse)
        # Late: a program is started some time after the window is shown.
        from desktop_agent.tools.mcp.stdio import ServerCommand, stdio_streams

        environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        command = ServerCommand(
            (connection.command, *connection.args),
            workspace or Path(tempfile.gettempdir()),
            {**environment, **connection.env, **plain},
        )
        return partial(stdio_streams, command, log)

    async def _http_transport(
        self,
        config: McpServer,
        connection: HttpConnection,
        headers: dict[str, str],
        log: ServerLog,
        refuse: OnSignInRequired,
    ) -> Transport:
        target = replace(self._oauth.http_target(connection), headers=headers)
        if connection.sign_in:
            return partial(http_streams, target, log, await self._oauth.make_auth(config, target, log, refuse))
        template = "The server “{server}” wants to know who you are: turn on signing in, or correct its key."
        unknown = partial(refuse, Sentence(template, {"server": config.title}))
        return partial(http_streams, replace(target, on_unauthorized=unknown), log)

    async def _secret(self, config: McpServer, name: str) -> SecretStr:
        value = await self._secrets.get(config.keyring_name(name))
        if value is None:
            what = Sentence("The value of “{name}” is not in the keyring.", {"name": name})
            raise ToolFailed(what, "Enter it again in the settings of the server.")
        return value
