"""Follows a tool call and a streamed token through the code, function by function.

`python -m tests.frame.call_path` prints four figures of a stored session that talks to a loopback server:

- a tool call from its gate to its result: the functions that decide about it and run it, in the order in which each
  is first entered, and how often this path comes back to a folder that it had left;
- a streamed token: how many functions of ours are called (or resumed) for it: headless, where all tokens come at once,
  and with the window, where they come 200 a second, painting included;
- how many of our modules are loaded to answer one prompt headless.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from tests.bench import bench_window
from tests.bench.engine import calling_server
from tests.bench.engine.sessions import Noting, say, set_up, stored_session
from tests.bench.parsing import server as streaming_server
from tests.bench.window import server as window_server
from tests.fakes.vendor_streams import ROOTS

ROOT = Path(__file__).parents[2]
FEW, MANY = 500, 1500
# The folders that decide and run. What all of them use on the way (types, journal, transcript) is left out.
CALLING = ("desktop_agent/agent", "desktop_agent/permissions", "desktop_agent/tools")


@contextmanager
def _calls_noted(note: Callable[[str, str], None]) -> Iterator[None]:
    """Report each call of a function of the product, in any thread, as (file below the root, qualified name)."""
    prefix = str(ROOT) + "/"

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(prefix + "desktop_agent/"):
            note(frame.f_code.co_filename.removeprefix(prefix), frame.f_code.co_qualname)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def _session_says(port: int, root: str, *tools: Any, note: Callable[[str, str], None] | None) -> None:
    """One prompt to a server in a warmed-up session; its calls go to `note`."""
    http = HttpClient()
    provider = make_provider("openai-chat", f"http://127.0.0.1:{port}/{root}", None, http)
    try:
        async with stored_session(set_up(provider, *tools)) as session:
            await _say(session, tools)
            if note is None:
                return
            with _calls_noted(note):
                await _say(session, tools)
    finally:
        await provider.aclose()
        await http.aclose()


async def _say(session: Any, tools: tuple[Any, ...]) -> None:
    if tools:
        await say(session)
        return
    session.send(streaming_prompt())
    await session.wait_idle()


def streaming_prompt() -> Any:
    """The message that asks for the long answer."""
    from desktop_agent.types.messages import Message

    return Message.user("go")


def tool_call_path() -> list[tuple[str, str]]:
    """The functions of one tool call, from its gate to its result, in the order in which they are first entered."""
    seen: dict[tuple[str, str], None] = {}
    with calling_server.served() as port:
        tool = Noting(lambda: 0.0).tool
        asyncio.run(_session_says(port, "v1", tool, note=lambda file, name: seen.setdefault((file, name))))
    path = [place for place in seen if place[0].startswith(CALLING)]
    inside = [number for number, (file, _) in enumerate(path) if "/tool_calls/" in file or "/calls/" in file]
    return path[inside[0] : inside[-1] + 1]


def returns(path: list[tuple[str, str]]) -> tuple[list[str], int]:
    """The folders along the path, equal neighbours joined, and how often the path enters one that it had left."""
    folders: list[str] = []
    for file, _ in path:
        folder = str(Path(file).parent)
        if not folders or folders[-1] != folder:
            folders.append(folder)
    return folders, len(folders) - len(set(folders))


def calls_per_token() -> Counter[str]:
    """How often each function is called for a streamed token: the difference of a long and a short answer."""
    counted: list[Counter[str]] = []
    for size in (FEW, MANY):
        counter: Counter[str] = Counter()
        with streaming_server.served(size) as (port, _):
            root = ROOTS["openai-chat"]
            asyncio.run(_session_says(port, root, note=lambda file, name, c=counter: c.update([f"{file} {name}"])))
        counted.append(counter)
    return Counter({name: (counted[1][name] - counted[0][name]) for name in counted[1]})


def calls_per_token_in_window() -> Counter[str]:
    """How often each function is called for a token, in the program with its window, drawing offscreen."""
    with window_server.served(MANY) as port, tempfile.TemporaryDirectory() as folder:
        asyncio.run(bench_window.fill(Path(folder), port))
        figures = bench_window.figures_of("ours", folder, "calls", pieces=MANY)
    return Counter({name: count / MANY for name, count in figures["calls"].items()})


def modules_of_a_prompt() -> int:
    """How many of our modules one headless prompt to the demo loads."""
    program = (
        "import sys; sys.argv = ['desktop-agent', 'ask', '--demo', 'Hello']\n"
        "from desktop_agent.__main__ import main\n"
        "main(sys.argv[1:])\n"
        "sys.stderr.write(f'{sum(n.startswith(\"desktop_agent\") for n in sys.modules)}')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stderr.split()[-1])


def main() -> None:
    """Print all figures; `path` also prints the path of the call, `token` the calls of a token."""
    path = tool_call_path()
    folders, back = returns(path)
    print(f"tool call        {len(path)} functions, {len(folders)} folders in a row, {back} returns to one left before")
    if "path" in sys.argv:
        print("".join(f"    {file}  {name}\n" for file, name in path))
    per_token = calls_per_token()
    print(f"streamed token   {sum(per_token.values()) / (MANY - FEW):.1f} calls")
    if "token" in sys.argv:
        for name, count in per_token.most_common(40):
            print(f"    {count / (MANY - FEW):6.2f}  {name}")
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    in_window = calls_per_token_in_window()
    painting = sum(count for name, count in in_window.items() if name.startswith("ui/transcript/"))
    on_the_way = sum(in_window.values()) - painting
    print(f"with the window  {on_the_way:.1f} calls to the transcript, {painting:.1f} in it for layout and painting")
    if "token" in sys.argv:
        for name, count in in_window.most_common(60):
            print(f"    {count:6.2f}  {name}")
    print(f"headless prompt  {modules_of_a_prompt()} modules")


if __name__ == "__main__":
    main()
