"""What servers make the person be told, each once."""

from desktop_agent.types.errors import Sentence
from tests.fakes.qt_loop import Bridge, Heard
from ui.bridge.mcp.servers import McpNotices


def test_a_notice_is_told_once_also_when_many_came_between(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        before = Sentence("before anybody listened")
        bridge.engine.mcp.notifier.notify(before)
        notices = McpNotices(bridge.engine)
        noticed = Heard(notices.noticed)
        notices.notify_all()
        assert noticed == [before]
        many = [Sentence("{n} is another tool now", {"n": str(number)}) for number in range(20)]
        for each in (*many, before, *many):
            bridge.engine.mcp.notifier.notify(each)
        assert noticed == [before, *many]
        for digest in ("one", "other", "one"):
            bridge.engine.mcp.notifier.notify(Sentence(before.template), digest)
        assert noticed[21:] == [before, before]
        bridge.engine.mcp.notifier.notify_failure(before)
        bridge.engine.mcp.notifier.notify_failure(before)
        assert noticed[-2:] == [before, before]
        noticed.leave()
        await bridge.close()

    in_loop(work())
