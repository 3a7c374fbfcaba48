"""Our client as the suite has it act: the servers of an engine, a person who agrees, a browser that follows."""

import asyncio
import json
import urllib.request
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import ToolFailed
from desktop_agent.types.mcp import CLIENT_SECRET, ElicitationAnswer, ElicitationRequest, ServerRequestHandlers
from tests.fakes.mcp_servers import Stand, at, stand
from tests.frame.patience import PATIENCE

DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""What the suite expects as the name of a client that has a page about itself."""
ARGUMENTS: dict[str, JsonObject] = {"add_numbers": {"a": 5, "b": 3}}
_MAX_SIGN_INS = 3


async def act(scenario: str, url: str, context: JsonObject, folder: Path) -> None:
    """What a person would do there: sign in where that is wanted, call every tool, close."""
    server = at(url, sign_in=scenario.startswith("auth/"), client_id=str(context.get("client_id", "")))
    async with stand(folder, server, people=ServerRequestHandlers(elicit=_agreed), document=DOCUMENT) as there:
        if "client_secret" in context:
            await there.secrets.set(server.secret_name(CLIENT_SECRET), SecretStr(str(context["client_secret"])))
        await _Person(there).use_all()


class _Person:
    def __init__(self, there: Stand) -> None:
        self._servers = there.servers
        self._left = _MAX_SIGN_INS
        self._browsing: set[asyncio.Task[None]] = set()

    async def use_all(self) -> None:
        state = await self._servers.test("web", None)
        while state.state == "signed_out" and self._left:
            self._left -= 1
            state = await self._servers.sign_in("web", self._opens)
        if state.state != "running":
            raise AssertionError(f"{state.state}: {state.reason}")
        for name in [tool.name for tool in state.tools]:
            await self._call(name)

    async def _call(self, name: str) -> None:
        arguments = ARGUMENTS.get(name, {})
        while True:
            try:
                await self._tool(name).run(arguments, RunningCall("call", lambda _: None))
            except ToolFailed:
                if self._servers.state("web", None).state != "signed_out" or not self._left:
                    raise
                self._left -= 1
                await self._servers.sign_in("web", self._opens)
            else:
                return

    def _tool(self, name: str) -> AnyTool:
        return next(tool for tool in self._servers.tools(None) if tool.name == f"web__{name}")

    def _opens(self, url: str) -> None:
        task = asyncio.create_task(asyncio.to_thread(_browse, url))
        self._browsing.add(task)
        task.add_done_callback(self._browsing.discard)


def _browse(url: str) -> None:
    with urllib.request.urlopen(url, timeout=PATIENCE) as page:
        page.read()


async def _agreed(request: ElicitationRequest) -> ElicitationAnswer:
    """As a form would that is left as it is: with what the server wrote in before."""
    fields: JsonObject = request.form.get("properties", {})
    written = {name: field["default"] for name, field in fields.items() if "default" in field}
    return ElicitationAnswer("accept", json.loads(json.dumps(written)))
