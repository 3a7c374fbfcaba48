"""The secret that a server repeats wherever it can never gets past the connection."""

import logging
import sys

import pytest

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.mcp.stdio import ServerCommand
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.errors import ToolFailed
from tests.fakes.mcp_client import program

SECRET = "s3cret-t0ken"
PARROT = """
import json, os, sys
secret = os.environ["TOKEN"]
pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
def say(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)
print("words to the errors", secret, file=sys.stderr, flush=True)
for line in sys.stdin:
    said = json.loads(line)
    method, number = said.get("method"), said.get("id")
    if method == "initialize":
        version, about = said["params"]["protocolVersion"], {"name": "x" + secret, "version": secret}
        say(id=number, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    elif method == "tools/list":
        schema = {"type": "object", "description": secret, "properties": {secret: {"type": "string"}}}
        fine = {"name": "speak", "description": "It knows " + secret, "inputSchema": schema}
        wrong = {"name": "wrong" + secret, "inputSchema": {"type": "string"}}
        named = {"name": "named" + secret, "inputSchema": {"type": "object"}}
        say(id=number, result={"tools": [fine, wrong, named]})
    elif method == "tools/call" and said["params"]["arguments"].get("fail"):
        say(id=number, error={"code": -32000, "message": "no " + secret})
    elif method == "tools/call":
        token = said["params"]["_meta"]["progressToken"]
        say(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": secret})
        say(method="notifications/progress", params={"progressToken": [secret], "progress": secret})
        content = [
            {"type": "text", "text": secret},
            {"type": "resource", "resource": {"uri": "x://a/" + secret, "mimeType": "image/png", "blob": pixel}},
            {"type": "resource", "resource": {"uri": "x://b/" + secret, "mimeType": "x/" + secret, "blob": "AAAA"}},
            {"type": "resource_link", "uri": "x://c/" + secret, "name": secret},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/" + secret},
        ]
        say(id=number, result={"content": content, "structuredContent": {secret: [secret]}})
    elif number is not None:
        say(id=number, error={"code": -32601, "message": secret})
"""


async def test_it_is_hidden_in_all_that_is_told_kept_or_sent(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    async with program([sys.executable, "-c", PARROT], tmp_path, {"TOKEN": SECRET}) as live:
        live.log.add_secrets((SECRET,))
        offer = await load_tool_offer(live)
        (tool,) = offer.tools
        assert "•••" in tool.description
        assert "•••" in str(tool.schema.json_schema)
        assert len(offer.unusable) == 2
        progress: list[str] = []
        parts = await tool.run({}, RunningCall("call", progress.append))
        assert "•••" in "".join(progress)
        with pytest.raises(ToolFailed) as failure:
            await tool.run({"fail": True}, RunningCall("call", progress.append))
        assert live.log.lines
        logs = (live.log.lines, caplog.text)
        everything = (offer.tools, offer.listed, offer.unusable, progress, parts, failure.value, logs)
        assert SECRET not in repr(everything)
        assert SECRET not in str([described.tool.schema.json_schema for described in offer.described])
        # A program that uses this one as a library may log by the same name.
        logging.getLogger("client").warning("of another program")
        assert "of another program" in caplog.text


def test_the_environment_of_a_server_is_in_no_repr(tmp_path):
    assert SECRET not in repr(ServerCommand(("x",), tmp_path, {"TOKEN": SECRET}))
