"""What servers make the person be told, each once."""

from desktop_agent.types.errors import Sentence
from tests.fakes.qt_loop import Bridge, Heard
from ui.bridge.mcp.servers import McpNotices


def test_a_notice_is_told_once_also_when_many_came_between(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        first = Sentence("before anybody listened")
        bridge.engine.mcp.notifier.notify(first)
        notices = McpNotices(bridge.engine)
        noticed = Heard(notices.noticed)
        notices.notify_all()
        assert noticed == [first]
        others = [Sentence("{n} is another tool now", {"n": str(number)}) for number in range(20)]
        for notice in (*others, first, *others):
            bridge.engine.mcp.notifier.notify(notice)
        assert noticed == [first, *others]
        for digest in ("one", "other", "one"):
            bridge.engine.mcp.notifier.notify(Sentence(first.template), digest)
        assert noticed[21:] == [first, first]
        bridge.engine.mcp.notifier.notify_failure(first)
        bridge.engine.mcp.notifier.notify_failure(first)
        assert noticed[-2:] == [first, first]
        noticed.leave()
        await bridge.close()

    in_loop(work())
