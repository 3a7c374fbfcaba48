"""A client of a server that dies, hangs, floods or sends invalid answers."""

import asyncio
import json
import sys
from pathlib import Path

import psutil
import pytest

from desktop_agent.engine.mcp_tools import describe_changes, load_tool_offer
from desktop_agent.mcp import connection
from desktop_agent.mcp.client import MAX_TOOLS
from desktop_agent.mcp.diagnostics import MAX_LINES, MAX_LOG_LINE_LENGTH
from desktop_agent.mcp.limits import OpenRequests
from desktop_agent.mcp.oauth_login import _initialize_request
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import ToolFailed, ToolInputInvalid
from tests.fakes.mcp_client import called, own_server, program, until

RAW = Path(__file__).with_name("raw_server.py")


async def test_arguments_are_checked_before_the_server_sees_them(tmp_path):
    async with program(own_server(), tmp_path) as live:
        assert await called(live, "srv__add", {"a": 1, "b": 2}) == (Text(text="3"),)
        before = live.call_count
        with pytest.raises(ToolInputInvalid):
            await called(live, "srv__add", {"a": "one", "b": 2})
        assert live.call_count == before + 1  # the listing


async def test_its_environment_is_only_what_was_given_and_it_works_in_the_workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    async with program(own_server(), tmp_path, {"TOKEN": "t0ken-value"}) as live:
        (result,) = await called(live, "srv__environment", {})
        text = str(result)
        assert "SECRET_OF_OURS" not in text
        assert str(tmp_path) in text
        assert "t0ken-value" in text


async def test_a_tool_that_changes_is_another_one_and_is_told(tmp_path):
    async with program(own_server(), tmp_path) as live:
        changes: list[bool] = []
        live.lifecycle.on_tools_changed = lambda: changes.append(True)
        before = await load_tool_offer(live)
        assert not live.lifecycle.is_stale
        await live.call("change", {})
        await until(lambda: bool(changes))
        assert live.lifecycle.is_stale
        after = await load_tool_offer(live)
        identities = [{tool.name: tool.identity for tool in offer.tools} for offer in (before, after)]
        differing = {name for name in identities[0] if identities[0][name] != identities[1][name]}
        assert differing == {"srv__add"}
        ((sentence, _),) = describe_changes("Server", dict(before.digests), after)
        assert "srv__add" in str(sentence)
        assert describe_changes("Server", {}, after) == ()
        old, new = (next(t for t in offer.tools if t.name == "srv__add") for offer in (before, after))
        assert old.digest({"a": 1, "b": 2}) != new.digest({"a": 1, "b": 2})


async def test_one_that_never_answers_can_be_left_and_the_next_call_lives(tmp_path):
    async with program(own_server(), tmp_path) as live:
        hanging = asyncio.create_task(called(live, "srv__never", {}))
        await until(lambda: any("begun" in line.text for line in live.log.lines))
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert str(await called(live, "srv__add", {"a": 2, "b": 2})).count("4")
        assert live.lifecycle.start_count == 1


async def test_nothing_that_it_started_is_left(tmp_path):
    async with program(own_server(), tmp_path) as live:
        (result,) = await called(live, "srv__family", {})
        pid = int(result.text)
        assert psutil.pid_exists(pid)
    await until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


async def test_one_that_dies_again_and_again_is_waited_for(tmp_path):
    clock = [1000.0]
    async with program(own_server(), tmp_path, clock=lambda: clock[0]) as live:
        for _ in range(2):
            with pytest.raises(ToolFailed, match="ended while it was asked"):
                await live.call("die", {})
        with pytest.raises(ToolFailed, match="could not be started"):
            await live.call("add", {"a": 1, "b": 1})
        assert live.lifecycle.start_count == 2
        clock[0] += 2
        await live.call("add", {"a": 1, "b": 1})
        assert live.lifecycle.start_count == 3


@pytest.mark.parametrize(
    ("argv", "expected", "remedy"),
    [
        (["/nowhere/program"], "There is no program", "Install it"),
        (["npx -y files"], "There is no program “npx -y files”", "Write the program alone"),
        (["{folder}/plain.sh"], "may not be run", "Make it executable"),
        (["{folder}"], "is a folder", "whole path"),
        (["{folder}/text"], "not a program that this computer can run", "Name the program that runs it"),
        (["{folder}/astray"], "by its first line", "Install that"),
        (own_server("refuses"), "ended with the exit code 1: the configuration is missing", "Look at its log"),
        (["false"], "ended with the exit code 1, and said nothing", "in a terminal"),
        (["sh", "-c", "kill -9 $$"], "ended by the signal 9", "Look at its log"),
        (["sh", "-c", "echo usage"], "ended with the exit code 0: usage", "Look at its log"),
    ],
)
async def test_one_that_cannot_be_started_says_why_and_what_helps(argv, expected, remedy, tmp_path):
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n")
    for name, text in (("text", "no program"), ("astray", "#!/nowhere/python\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    async with program([argument.replace("{folder}", str(tmp_path)) for argument in argv], tmp_path) as live:
        with pytest.raises(ToolFailed, match=expected) as caught:
            await load_tool_offer(live)
        assert remedy in str(caught.value.remedy)
        assert remedy in str(live.lifecycle.state.remedy)
        assert "can be tried again" not in str(live.lifecycle.state.remedy)
        assert not live.lifecycle.is_running


@pytest.mark.parametrize(
    ("argv", "expected", "remedy"),
    [
        (own_server("silent"), "did not answer within 2 seconds", "If the server must be downloaded first"),
        (["sh", "-c", "echo lorem; exec sleep 60"], "wrote “lorem” where only messages", "must speak MCP over stdio"),
    ],
)
async def test_one_that_says_nothing_of_use_at_the_start_is_given_up(argv, expected, remedy, tmp_path):
    async with program(argv, tmp_path, start_timeout=2.0) as live:
        with pytest.raises(ToolFailed, match=expected):
            await load_tool_offer(live)
        assert remedy in str(live.lifecycle.state.remedy)


async def test_a_message_without_end_closes_the_connection(tmp_path):
    async with program(own_server("too-long"), tmp_path) as live:
        with pytest.raises(ToolFailed, match="longer than"):
            await load_tool_offer(live)


async def test_what_is_no_message_is_a_line_of_the_log(tmp_path):
    async with program(own_server("chatty"), tmp_path) as live:
        await load_tool_offer(live)
        assert any("Welcome" in line.text for line in live.log.lines)


async def test_a_flood_is_kept_within_bounds_and_secrets_are_taken_out(tmp_path):
    async with program(own_server(), tmp_path, {"TOKEN": "t0ken-value"}) as live:
        live.log.add_secrets(("t0ken-value",))
        await live.call("flood", {"lines": 5_000})
        await until(lambda: any("•••" in line.text for line in live.log.lines))
        assert len(live.log) <= MAX_LINES
        assert all(len(line.text) <= MAX_LOG_LINE_LENGTH for line in live.log.lines)
        assert not any("t0ken" in line.text for line in live.log.lines)


async def test_odd_tools_are_renamed_left_out_and_counted(tmp_path):
    async with program(own_server("odd"), tmp_path) as live:
        offer = await load_tool_offer(live)
        assert len(offer.tools) + len(offer.unusable) == MAX_TOOLS
        assert any("too long" in line.text for line in live.log.lines)
        assert any("“bad”" in str(unusable) for unusable in offer.unusable)
        assert all(len(tool.name) <= 64 for tool in offer.tools)
        hidden = next(tool for tool in offer.tools if tool.name == "srv__hidden")
        assert hidden.description == "see�n�"


async def test_hostile_answers_come_in_within_bounds(tmp_path):
    async with program(own_server(), tmp_path) as live:

        async def answer(kind: str):
            return await called(live, "srv__hostile", {"kind": kind})

        (long,) = await answer("long")
        assert len(long.text) < 500_000
        assert "cut" in long.text
        assert len(await answer("many")) <= 1_000
        for kind in ("no picture", "no base64"):
            (left_out,) = await answer(kind)
            assert left_out.text.startswith("[left out: a picture")
        binary, inner = await answer("resources")
        assert "application/x-odd" in binary.text
        assert inner.text.endswith("inner")
        with pytest.raises(ToolFailed) as caught:
            await answer("failed")
        assert len(str(caught.value)) < 25_000
        assert live.lifecycle.start_count == 1


async def test_once_closed_it_does_not_start_again(tmp_path):
    async with program(own_server(), tmp_path) as live:
        await load_tool_offer(live)
        await live.lifecycle.close()
        with pytest.raises(ToolFailed, match="was turned off, removed or changed"):
            await live.call("add", {"a": 1, "b": 1})
        assert live.lifecycle.start_count == 1


ASKER = """
import json, sys
def say(**fields):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    said = json.loads(line)
    method = said.get("method")
    if method == "initialize":
        version = said["params"]["protocolVersion"]
        about = {"name": "asker", "version": "1"}
        say(id=said["id"], result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    elif method == "tools/list":
        say(id=said["id"], result={"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        for number in range(1_000_000):
            say(id=number, method="roots/list")
    elif method and "id" in said:
        say(id=said["id"], error={"code": -32601, "message": "no"})
"""


async def test_who_asks_without_end_and_hears_no_answer_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "OpenRequests", lambda: OpenRequests(30, timeout=0.3))
    before = len(asyncio.all_tasks())
    async with program([sys.executable, "-c", ASKER], tmp_path) as live:
        calling = asyncio.create_task(called(live, "srv__ask", {}))
        most = 0
        while not calling.done():
            most = max(most, len(asyncio.all_tasks()) - before)
            await asyncio.sleep(0.01)
        with pytest.raises(ToolFailed):
            await calling
        assert most < 60
        assert "took no answer" in live.log.lines[-1].text


async def test_a_server_is_told_the_version_of_this_program(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: "9.8.7")
    tells = ASKER.replace("about =", 'client = said["params"]["clientInfo"]; about =')
    tells = tells.replace('"name": "ask",', '"name": "ask", "description": client["version"],')
    async with program([sys.executable, "-c", tells], tmp_path) as live:
        offer = await load_tool_offer(live)
        assert [tool.description for tool in offer.listed] == ["9.8.7"]
    body = _initialize_request("https://tools.example/mcp").content
    assert json.loads(body)["params"]["clientInfo"]["version"] == "9.8.7"


async def test_the_remedy_for_a_question_that_is_no_call_speaks_of_no_call(tmp_path):
    async with program(own_server(), tmp_path) as live:
        with pytest.raises(ToolFailed, match="refused") as caught:
            await live.get_prompt("missing")
        assert str(caught.value.remedy) == "Look at the server's log."


async def test_an_answer_that_is_too_large_is_no_refusal(tmp_path):
    async with program([sys.executable, str(RAW), "too-large"], tmp_path) as live:
        with pytest.raises(ToolFailed, match="is too large to be read; its work may have taken effect") as caught:
            await live.tools()
        assert "let the server offer less" in str(caught.value.remedy)
