"""A page on its way through the gates of a run."""

import asyncio
from urllib.parse import urlsplit

import pytest

from desktop_agent.tools.web.fetch_page import fetch_page
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.permissions import HostPattern, Rule, RuleEffect
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, NetworkPreview
from tests.fakes.agent_run import Desk
from tests.fakes.scripted_provider import Turn
from tests.fakes.web_servers import RawServer, answer, sending, way_of
from tests.frame.patience import PATIENCE

HTML = answer(b"<title>T</title><main><p>What it says.</p></main>", content_type="text/html")


def desk_for(url: str, tool=None) -> Desk:
    use = ToolUse(id="1", name="fetch_page", input={"url": url})
    return Desk(Turn(use), Turn(ContentDelta("read")), tools=(tool or fetch_page(frozenset, way=way_of()),))


async def test_the_person_sees_where_it_goes_and_then_the_model_reads_it():
    async with RawServer(sending(HTML)) as server:
        desk = desk_for(server.url())
        running = desk.start()
        await asyncio.wait_for(desk.approvals_open(), PATIENCE)
        assert not server.requests
        (approval,) = desk.approvals.open_approvals
        assert approval.preview == NetworkPreview("GET", server.url(), "site.example")
        desk.decide(AllowOnce())
        await running
    (result,) = desk.memory.results
    assert result.outcome is Outcome.SUCCEEDED
    assert "What it says." in str(result)


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "2130706433", "127.0.0.1.", "[::ffff:127.0.0.1]"])
async def test_a_rule_that_denies_a_host_holds_however_it_is_written(host):
    async with RawServer(sending(HTML)) as server:
        tool = fetch_page(lambda: frozenset({"127.0.0.1"}))
        desk = desk_for(server.url(host), tool)
        desk.allow(tool)
        desk.permission_policy.add(Rule(effect=RuleEffect.DENY, tool="*", pattern=HostPattern(host="127.0.0.1")))
        await desk.execute()
    assert desk.memory.outcomes == [Outcome.DENIED]
    assert not server.requests


async def test_a_private_host_is_not_asked_even_where_everything_is_allowed():
    async with RawServer(sending(HTML)) as server:
        tool = fetch_page(frozenset)
        desk = desk_for(server.url("127.0.0.1"), tool)
        desk.allow(tool)
        await desk.execute()
    assert desk.memory.outcomes == [Outcome.FAILED]
    assert "Only the person can allow this host" in str(desk.memory.results[0])
    assert not server.requests


async def test_an_allowed_host_that_leads_to_another_is_a_call_of_its_own():
    moved = answer(status="302 Found", location="http://other.example/")
    async with RawServer(sending(moved)) as server:
        tool = fetch_page(frozenset, way=way_of())
        desk = desk_for(server.url(), tool)
        host = urlsplit(server.url()).hostname or ""
        desk.permission_policy.add(Rule(effect=RuleEffect.ALLOW, tool=tool.identity, pattern=HostPattern(host=host)))
        await desk.execute()
    assert desk.memory.outcomes == [Outcome.SUCCEEDED]
    assert "moved to another host: http://other.example/" in str(desk.memory.results[0])
    assert len(server.requests) == 1
