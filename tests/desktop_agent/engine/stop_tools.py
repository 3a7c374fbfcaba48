"""One case for each tool: how it is brought to the middle of its work, and what must be true when it was stopped."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import psutil
import pytest

from desktop_agent.engine.mcp_tools import load_tool_offer
from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.tools.builtin_tools import builtin_tools
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.tools.workspace import FolderEntry, Workspace, WorkspacePath
from desktop_agent.types.engine_events import QuestionAsked, ToolProgress
from desktop_agent.types.policies import Hooks, PostToolUse, Specialist
from tests.desktop_agent.engine.stop_stand import BySession, RunRecording, until
from tests.desktop_agent.mcp.test_reference_servers import free_port
from tests.fakes.mcp_client import address, program
from tests.fakes.session import LIMIT
from tests.fakes.stopping_server import Answer, calls
from tests.fakes.web_servers import RawServer, answer, endless, sending

READS = "It only reads: nothing was changed."
NOTHING = "No file was changed."
KEPT_OUT = "The call took effect. Its result was kept out"
# Of this process alone: others may run the same tests.
MARK = f"98{os.getpid()}"
# Half of the work, a file that goes, one that changes, and then processes that want to stay: one in a session of its
# own, one that ignores SIGTERM, and one that waits.
LINE = (
    "echo half > half.txt; rm gone.txt; echo more >> old.txt; mkdir new; touch new/a new/b; "
    f"( setsid bash -c 'trap \"\" TERM; sleep {MARK}; sleep {MARK}' & ) ; (trap '' TERM; sleep {MARK}) & "
    f"echo ready; sleep {MARK}; touch late.txt"
)
DONE_BY_LINE = ("created half.txt, new/", "changed old.txt", "deleted gone.txt", " processes were ended.")
SLOW_SERVER = Path(__file__).with_name("stop_mcp_server.py")
SLOW_PAGE = b"<html>" + b"<p><a><b><i>" * 300_000
HTML = {"content_type": "text/html"}


class Gate:
    """Holds a thread at one step until Stop has reached it."""

    def __init__(self, at: str) -> None:
        self._at = at
        self.reached = threading.Event()
        self._opened = threading.Event()

    def step(self, name: str) -> None:
        if name == self._at:
            self.reached.set()
            assert self._opened.wait(LIMIT)

    def opens_at_stop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        hoist = CancelToken.cancel

        def hoisted(sign: CancelToken) -> None:
            hoist(sign)
            self._opened.set()

        monkeypatch.setattr(CancelToken, "cancel", hoisted)


class Stepping(Workspace):
    """The real workspace, with steps at which a thread can be held."""

    def __init__(self, folder: Path, gate: Gate) -> None:
        super().__init__(folder)
        self._gate = gate

    @contextmanager
    def open_for_reading(self, place: WorkspacePath) -> Iterator[BinaryIO]:
        with super().open_for_reading(place) as file:
            self._gate.step("reading")
            yield file

    def entries(self, place: WorkspacePath, limit: int) -> tuple[FolderEntry, ...]:
        self._gate.step("listing")
        return super().entries(place, limit)

    def write(
        self, place: WorkspacePath, data: bytes, before_replacing: Callable[[], None] = lambda: None, **named: Any
    ) -> None:
        super().write(place, data, self._held(before_replacing), **named)
        self._gate.step("after")

    def remove(self, place: WorkspacePath, before_removing: Callable[[], None] = lambda: None) -> None:
        super().remove(place, self._held(before_removing))
        self._gate.step("after")

    def move(
        self,
        source: WorkspacePath,
        target: WorkspacePath,
        before_moving: Callable[[], None] = lambda: None,
        **named: Any,
    ) -> None:
        super().move(source, target, self._held(before_moving), **named)
        self._gate.step("after")

    def _held(self, before: Callable[[], None]) -> Callable[[], None]:
        def held() -> None:
            self._gate.step("before")
            before()

        return held


@dataclass
class Scene:
    """What a case has to work with."""

    work: Path
    monkeypatch: pytest.MonkeyPatch
    recording: RunRecording
    gate: Gate
    tools: tuple[AnyTool, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    may_stay: Callable[[], set[int]] = set
    was_abandoned: Callable[[], object] = lambda: False
    release: Callable[[], None] = lambda: None
    hooks: Hooks = field(default_factory=Hooks)
    face: BySession | None = None
    before: frozenset[psutil.Process] = field(default_factory=lambda: frozenset(children()))

    def output(self, depth: int = 0) -> str:
        return "".join(event.text for event in self.recording.events_at(depth) if isinstance(event, ToolProgress))

    def has_event(self, kind: type) -> bool:
        return any(isinstance(event, kind) for event in self.recording.events_at(0))


Place_ = Callable[[Scene], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def nothing_more(_: Scene) -> AsyncGenerator[None]:
    yield


@dataclass(frozen=True)
class Case:
    """`tool` is called with `arguments`. `at`: the step where it is held; else `reached` says when it is running.

    `says` must be in its result. `files` are the workspace afterwards: name to content, None for a missing file.
    `before`: answers of the model that come first. `context` sets up what else the case needs.
    """

    id: str
    tool: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    at: str = ""
    reached: Callable[[Scene], object] = lambda scene: scene.gate.reached.is_set()
    says: tuple[str, ...] = (READS,)
    files: dict[str, str | None] = field(default_factory=dict[str, str | None])
    after: tuple[Answer, ...] = ()
    context: Place_ = nothing_more
    is_builtin: bool = True


def workspace_in(folder: Path) -> Path:
    """Create the workspace that every case begins with."""
    work = folder / "work"
    (work / "inside").mkdir(parents=True)
    (work / "old.txt").write_text("old\n")
    (work / "gone.txt").write_text("gone\n")
    (work / "hostile.txt").write_text("a" * 40 + "b\n")
    return work


OLD = {"old.txt": "old\n", "gone.txt": "gone\n"}


def builtin(scene: Scene) -> tuple[AnyTool, ...]:
    workspace = Stepping(scene.work, scene.gate)
    return builtin_tools(workspace, "all", private_hosts=lambda: frozenset({"127.0.0.1"}))


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def busy_child(scene: Scene) -> bool:
    """Whether a child process works, and does not only start."""
    for process in set(children()) - scene.before:
        with contextlib.suppress(psutil.Error):
            if process.cpu_times().user > 0.5:
                return True
    return False


def marked() -> list[psutil.Process]:
    processes: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if MARK in process.cmdline():
                processes.append(process)
    return processes


def line_is_ready(depth: int) -> Callable[[Scene], object]:
    return lambda scene: "ready" in scene.output(depth) and len(marked()) == 3


@asynccontextmanager
async def held_after(scene: Scene) -> AsyncGenerator[None]:
    """The tool has ended, and a hook after it has not."""

    async def hangs(_: PostToolUse) -> None:
        scene.gate.reached.set()
        await asyncio.Event().wait()

    scene.hooks = Hooks(post_tool_use=(hangs,))
    yield


@asynccontextmanager
async def dripping(scene: Scene) -> AsyncGenerator[None]:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    async with RawServer(endless(head, b"drop ", 0.01)) as server:
        scene.arguments = {"url": server.url("127.0.0.1")}
        scene.gate.reached = _Asked(server)  # type: ignore[assignment]
        yield
        assert not [task for task in server._tasks if not task.done()]


class _Asked:
    def __init__(self, server: RawServer) -> None:
        self._server = server

    def is_set(self) -> bool:
        return bool(self._server.requests)

    def set(self) -> None: ...


@asynccontextmanager
async def slow_page(scene: Scene) -> AsyncGenerator[None]:
    async with RawServer(sending(answer(SLOW_PAGE, **HTML))) as server:
        scene.arguments = {"url": server.url("127.0.0.1")}
        yield


@asynccontextmanager
async def over_stdio(scene: Scene) -> AsyncGenerator[None]:
    async with program([sys.executable, "-B", str(SLOW_SERVER)], scene.work) as live:
        scene.tools = (*scene.tools, *(await load_tool_offer(live)).tools)
        pids = {process.pid for process in children()}
        scene.may_stay = lambda: pids
        scene.arguments = {"folder": str(scene.work)}
        yield
        await until((scene.work / "heeded").exists)


@asynccontextmanager
async def over_http(scene: Scene) -> AsyncGenerator[None]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-B", str(SLOW_SERVER), str(port), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        while b"running on" not in await process.stderr.readline():
            pass
        draining = asyncio.create_task(process.stderr.read())
        async with address(f"http://127.0.0.1:{port}/mcp") as live:
            scene.tools = (*scene.tools, *(await load_tool_offer(live)).tools)
            scene.arguments = {"folder": str(scene.work)}
            yield
            await until((scene.work / "heeded").exists)
        process.kill()
        await draining
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()


HELPER = Specialist(name="helper", description="Works.", system_prompt="Work.", tools=("run_command", "write_file"))
LEADER = Specialist(
    name="leader",
    description="Hands on.",
    system_prompt="Hand on.",
    tools=("run_command", "write_file"),
    specialists=("helper",),
)


def own_tools(scene: Scene) -> tuple[AnyTool, ...]:
    """Return tools as a user of the library makes them."""
    from desktop_agent.tools.decorator import tool

    opened = asyncio.Event()

    @tool
    async def patient(call: RunningCall) -> str:
        """Waits, and says what it did."""
        call.report_partial_result("One of two letters was sent.")
        scene.gate.reached.set()
        await asyncio.Event().wait()
        return "never"

    @tool
    def threaded(call: RunningCall) -> str:
        """Works in a thread and tells what it does."""
        while True:
            call.progress("on and on\n")
            scene.gate.reached.set()

    @tool
    async def stubborn() -> str:
        """Does not heed a cancel."""
        scene.gate.reached.set()
        while not opened.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await opened.wait()
        return "late"

    scene.release = opened.set
    return patient, threaded, stubborn


WRITE = {"path": "old.txt", "content": "new\n"}
EDIT = {"path": "old.txt", "old_text": "old", "new_text": "new"}
MOVE = {"source": "old.txt", "target": "inside/new.txt"}
ALL_NEW = "It had taken effect by then: "
HAND_ON = (
    calls(("w1", "write_file", {"path": "first.txt", "content": "x"})),
    calls(("h1", "helper", {"task": "t"})),
    calls(("r1", "run_command", {"command": LINE})),
)
LEFT = "It did not end when it was told to, and may still be at work."
TOLD_SERVER = "was told to end it; what it had done by then is not known."

CASES = (
    Case("read_file", "read_file", {"path": "old.txt"}, "reading"),
    Case("view_image", "view_image", {"path": "old.txt"}, "reading"),
    Case("list_files", "list_files", {"recursive": True}, "listing"),
    Case("find_files", "find_files", {"names": "*"}, "listing"),
    Case("calculate", "calculate", {"expression": "1 + 1"}, context=held_after, says=(KEPT_OUT,)),
    Case("update_todos", "update_todos", {"items": []}, context=held_after, says=(KEPT_OUT,)),
    Case("change_mode", "change_mode", {"mode": "plan"}, context=held_after, says=(KEPT_OUT,)),
    Case(
        "search_files: a hostile expression in its child",
        "search_files",
        {"pattern": "(a+)+$", "is_expression": True, "path": "hostile.txt"},
        reached=busy_child,
    ),
    Case("write_file: before", "write_file", WRITE, "before", says=(NOTHING,), files=OLD),
    Case("write_file: after", "write_file", WRITE, "after", says=(f"{ALL_NEW}Replaced",), files={"old.txt": "new\n"}),
    Case("edit_file: before", "edit_file", EDIT, "before", says=(NOTHING,), files=OLD),
    Case("edit_file: after", "edit_file", EDIT, "after", says=(f"{ALL_NEW}Edited",), files={"old.txt": "new\n"}),
    Case("move_file: before", "move_file", MOVE, "before", says=(NOTHING,), files={**OLD, "inside/new.txt": None}),
    Case(
        "move_file: after",
        "move_file",
        MOVE,
        "after",
        says=(f"{ALL_NEW}Moved",),
        files={"old.txt": None, "inside/new.txt": "old\n"},
    ),
    Case("delete_file: before", "delete_file", {"path": "gone.txt"}, "before", says=(NOTHING,), files=OLD),
    Case(
        "delete_file: after",
        "delete_file",
        {"path": "gone.txt"},
        "after",
        says=(f"{ALL_NEW}Deleted",),
        files={"gone.txt": None},
    ),
    Case(
        "run_command",
        "run_command",
        {"command": LINE},
        reached=line_is_ready(0),
        says=(*DONE_BY_LINE, "The end of what it had written until then:\nready\n5 processes were ended. "),
        files={"half.txt": "half\n", "gone.txt": None, "late.txt": None},
    ),
    Case("fetch_page: a server that drips", "fetch_page", context=dripping),
    Case("fetch_page: a page that keeps its reader busy", "fetch_page", context=slow_page, reached=busy_child),
    Case(
        "ask_user",
        "ask_user",
        {"question": "Which?", "free_text": True},
        reached=lambda scene: scene.has_event(QuestionAsked),
    ),
    Case(
        "a specialist's specialist runs a command",
        "leader",
        {"task": "t"},
        reached=line_is_ready(2),
        after=HAND_ON,
        says=(
            "Its calls until then:",
            "- write_file",
            ": done",
            "- helper",
            ": broken off",
            "  - run_command",
            *DONE_BY_LINE,
        ),
        files={"first.txt": "x", "half.txt": "half\n", "late.txt": None},
    ),
    Case(
        "mcp over stdio",
        "srv__work",
        context=over_stdio,
        reached=lambda scene: "half" in scene.output(),
        says=(TOLD_SERVER, "half of it"),
        files={"first": ""},
        is_builtin=False,
    ),
    Case(
        "mcp over HTTP",
        "web__work",
        context=over_http,
        reached=lambda scene: "half" in scene.output(),
        says=(TOLD_SERVER, "half of it"),
        files={"first": ""},
        is_builtin=False,
    ),
    Case("@tool, async", "patient", says=("One of two letters was sent.",), is_builtin=False),
    Case("@tool, in a thread", "threaded", says=("It may have taken effect.", "on and on"), is_builtin=False),
    Case("@tool, swallows a cancel", "stubborn", says=(f"It may have taken effect. {LEFT}",), is_builtin=False),
)
