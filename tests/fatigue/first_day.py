"""Two days with an agent, counted: how often a person is asked who grants only the narrowest rule that is offered.

The calls and the files are data, written before the code that they judge and never edited for it (`first_day.toml`).
`python -m tests.fatigue.first_day` lives both days in the current folder and prints what was asked, as JSON. Run it by
tests.frame.unprivileged: no confinement holds root, so root is asked more.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from desktop_agent.engine.session import Session
from desktop_agent.permissions.approvals import Approval
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.tools.web.fetch_page import fetch_page
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.engine_events import ToolFinished
from desktop_agent.types.permissions import RuleScope
from desktop_agent.types.policies import Limits
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, Decision, Deny
from tests.escape.attack import Trial
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.fakes.web_servers import RawServer, answer, sending, way_of

DATA = tomllib.loads((Path(__file__).parent / "first_day.toml").read_text(encoding="utf-8"))
_GIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


@dataclass(frozen=True)
class Call:
    number: int
    tool: str
    input: dict[str, Any]
    hosts: tuple[str, ...]
    dangerous: bool
    why: str

    @property
    def about(self) -> str:
        return next(str(value) for key, value in self.input.items() if key != "folder")


def calls() -> tuple[Call, ...]:
    return tuple(
        Call(
            number,
            each["tool"],
            each["input"],
            tuple(each.get("hosts", ())),
            each.get("dangerous", False),
            each.get("why", ""),
        )
        for number, each in enumerate(DATA["call"])
    )


class FirstDay(Trial):
    """The day as often as one likes, each in a conversation of its own, with the rules of the days before.

    Their policy: the first rule that is offered for this folder, which is the narrowest; where it is about something
    that brings in what others wrote, with trust in that. Nothing dangerous is granted.
    """

    def __init__(self, folder: Path, server: RawServer) -> None:
        super().__init__(folder)
        self.calls = calls()
        self.server = server
        self.person = self.decide
        self.patience = 900

    def use(self, call: Call) -> ToolUse:
        given = dict(call.input)
        if call.tool == "fetch_page" and not call.dangerous:
            address = urlsplit(given["url"])
            given["url"] = self.server.url(address.hostname or "", address.path)
        if call.hosts:
            given["hosts"] = list(call.hosts)
        return ToolUse(id=str(call.number), name=call.tool, input=given)

    async def client(self) -> dict[str, list[int]]:
        """One day; the numbers of the calls that were asked about, that started, and that ended otherwise."""
        self.lay_out()
        self.events.clear()
        turns = (*(Turn(self.use(each)) for each in self.calls), Turn())
        self.engine.connections._providers["e"] = ScriptedProvider(*turns)
        self.prepare = self.begin
        await self.play()
        return {
            "asked": [int(each) for each in self.asked],
            "started": [int(each) for each in self.started],
            "ended": [int(each.id) for each in self.of(ToolFinished)],
        }

    def lay_out(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        for name, text in DATA["files"].items():
            place = self.work / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        for words in (
            ("init", "-q"),
            ("add", "-A"),
            ("commit", "-q", "-m", "Begin"),
            ("commit", "-q", "--allow-empty", "-m", "Go on"),
        ):
            subprocess.run([*_GIT, *words], cwd=self.work, check=True, capture_output=True)

    def begin(self, session: Session) -> None:
        setup = replace(session._runs._setup, tools_for=self.tools, limits=lambda: Limits(tool_iterations=400))
        session._runs._setup = session._runs.run_factory._setup = setup

    def tools(self, *_: object) -> ToolRegistry:
        made = builtin_tools(Workspace(self.work), "all", (self.folder,))
        web = fetch_page(frozenset, way=way_of())
        return ToolRegistry(tuple(web if each.name == "fetch_page" else offline(each) for each in made))

    def decide(self, card: Approval) -> Decision:
        call = self.calls[int(card.tool_use.id)]
        if call.dangerous:
            return Deny()
        if "came into this conversation" in card.reason:
            self.session.permission_policy.lift_suspension()
            return AllowForConversation()
        here = [each for each in card.proposals if each.scope is RuleScope.WORKSPACE]
        # Of what comes from outside they trust what they allow from now on.
        return AllowAlways(rule_id=(*(each for each in here if each.trusts), *here)[0].id)


def offline(tool: AnyTool) -> AnyTool:
    """The same tool; what would reach servers of other people is judged, and then not run."""
    if tool.name != "run_command":
        return tool

    async def run(wanted: Any, call: Any) -> Any:
        if tool.subjects is not None and len(await tool.subjects(wanted)) > 1:
            return (Text(text="[not run in a test]"),)
        return await tool.run(wanted, call)

    return replace(tool, run=run)


def texts(numbers: list[int]) -> Iterator[str]:
    everything = calls()
    return (everything[each].about for each in numbers)


async def two_days(folder: Path) -> dict[str, Any]:
    page = sending(answer(b"<p>Words.</p>", content_type="text/html"))
    async with RawServer(page) as server, FirstDay(folder, server) as day:
        return {"first": await day.client(), "second": await day.client()}


if __name__ == "__main__":
    json.dump(asyncio.run(two_days(Path.cwd())), sys.stdout)
