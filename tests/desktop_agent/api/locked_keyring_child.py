"""Runs in a process of its own, on a bus whose keyring is locked: what the window asks for, told as JSON.

Arguments: the address of a server that wants a key, and one of a server that wants none.
"""

import asyncio
import json
import subprocess
import sys
from typing import Any

from pydantic import SecretStr

from desktop_agent.engine.connections import Connections
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.errors import AgentError
from desktop_agent.types.preferences import Preferences, ProviderPreferences
from desktop_agent.types.providers import Endpoint

UNLOCK = ["gnome-keyring-daemon", "--replace", "--unlock", "--components=secrets"]


async def listed(connections: Connections, endpoint_id: str) -> str:
    try:
        return " ".join(model.id for model in await connections.models(endpoint_id, refresh=True))
    except AgentError as error:
        return f"{error.sentence} {error.remedy}"


async def main(wants_key: str, wants_none: str) -> dict[str, Any]:
    mine = Endpoint(id="key", title="Mine", base_url=wants_key, needs_key=True)
    named = Endpoint(id="given", title="Given", base_url=wants_key, has_key=True)
    local = Endpoint(id="local", title="Local", base_url=wants_none)
    preferences = Preferences(providers=ProviderPreferences(endpoints=(local, mine, named)))
    http, secrets = HttpClient(), SecretStore()
    connections = Connections(secrets, http, lambda: preferences)
    report: dict[str, Any] = {"local": await listed(connections, "local"), "has_keyring": "keyring" in sys.modules}
    report["locked"] = await listed(connections, "key")
    report["given"] = await listed(connections, "given")
    try:
        await connections.save_key("key", SecretStr("memory"))
    except AgentError as error:
        report["keep"] = f"{error.sentence} {error.remedy}"
    await connections.save_key("key", SecretStr("memory"), session_only=True)
    report["in_memory"] = await listed(connections, "key")
    # What was kept in memory is forgotten, as by the next start of the program.
    restarted = Connections(SecretStore(), http, lambda: preferences)
    report["after_the_start"] = await listed(restarted, "key")
    await asyncio.to_thread(subprocess.run, UNLOCK, input=b"pw", capture_output=True, check=True)
    report["unlocked"] = await listed(restarted, "key")
    await connections.close()
    return report


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
