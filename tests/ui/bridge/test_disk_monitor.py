"""What the disk does after the window is closed: the engine closes later, and still tells of it."""

from desktop_agent.engine.engine import Engine
from desktop_agent.types.errors import DiskFull, Sentence
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.storage import DiskMonitor


def test_a_closed_monitor_tells_nothing_more(in_loop, tmp_path):
    async def work():
        engine = await Engine.open(tmp_path)
        tasks = BackgroundTasks(lambda error: None)
        monitor, emitted = DiskMonitor(engine, tasks), []
        monitor.trouble_changed.connect(emitted.append)
        monitor.noticed.connect(emitted.append)
        full = DiskFull("The disk is full.")
        monitor._on_change(full)
        assert emitted == [full]
        monitor.close()
        monitor._on_change(None)
        monitor._on_notice(Sentence("Something was repaired."))
        assert emitted == [full]
        await tasks.close()
        await engine.close()

    in_loop(work())
