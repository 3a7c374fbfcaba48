"""Programs that a tool starts, of which nothing is left running when the call is over."""

from desktop_agent.tools.processes.running import Ending, ProcessEnd, run_process

__all__ = ["Ending", "ProcessEnd", "run_process"]
