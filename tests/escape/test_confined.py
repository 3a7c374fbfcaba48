"""Allowed commands cannot leave the workspace, read keys or use the network."""

import asyncio
import os
import socket
from pathlib import Path

import psutil
import pytest

from desktop_agent.sandbox.backends import available_sandbox
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import Outcome
from desktop_agent.types.tool_calls import AllowOnce, CommandPreview
from tests.escape.attack import Trial, run
from tests.frame.children import Children

SECRET = "only for me"

# No command may read or change the files in {outside}, {home} and {data}.
LINES = {
    "writes outside": "echo mine > {outside}/secret",
    "makes a file outside": "touch {outside}/new",
    "writes outside through a link": "ln -s {outside} l; echo mine > l/secret",
    "writes outside through a hard link": "ln {outside}/secret h; echo mine > h",
    "writes outside by its own descriptor": "cd {outside} && echo mine > secret",
    "writes outside through the root of a process": "echo mine > /proc/self/root{outside}/secret",
    "writes outside through the root of another process": "echo mine > /proc/1/root{outside}/secret",
    "deletes outside": "rm -f {outside}/secret",
    "moves away what is outside": "mv {outside}/secret .",
    "mounts it away": "mount --bind . {outside}; umount {outside}",
    "becomes another": "unshare -r -m sh -c 'umount -a; cat {home}/.ssh/key'",
    "writes to the start of a shell": "echo 'touch pwned' >> {home}/.bashrc",
    "writes to the start of a session": "mkdir -p {home}/.config/autostart && echo x > {home}/.config/autostart/x",
    "reads a key": "cat {home}/.ssh/key",
    "reads a key by a pattern": "cat {home}/.s*/*",
    "reads a key through a link": "ln -s {home}/.ssh l; cat l/key",
    "reads a key through its folder": "tar cf - {home}/.ssh | tr -d '\\0'",
    "reads passwords": "cat {home}/.netrc",
    "reads the program's data": "cat {data}/secret",
    "reads the program's data through a process": "cat /proc/*/cwd/../data/secret",
    "reads the program's environment": "cat /proc/{pid}/environ",
    "reads its own environment": "env",
    "reads the memory of the program": "head -c 1000 /proc/{pid}/mem",
    # Signal 0 only checks whether the process can be reached; if so, the line prints the secret.
    "reaches the program with signals": "kill -0 {pid} && echo only for me",
    "connects": "echo x > /dev/tcp/127.0.0.1/{port}",
    "connects by a program": "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'",
    "sends without a connection": "echo x > /dev/udp/127.0.0.1/{port}",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path.home() / f"of-{tmp_path.name}"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "key").write_text(SECRET)
    (folder / ".netrc").write_text(SECRET)
    (folder / ".bashrc").write_text("")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("DESKTOP_AGENT_TEST_SECRET", SECRET)
    return folder


class Confined(Trial):
    """A trial with files and ports outside the workspace that a command may not reach."""

    def begin(self) -> None:
        for name in ("outside", "data"):
            (self.folder / name).mkdir(exist_ok=True)
            (self.folder / name / "secret").write_text(SECRET)
        tools = ToolRegistry((run_command(Workspace(self.work), (self.folder / "data",)),))
        self.engine._tools_for = lambda _: tools


@pytest.mark.parametrize("trick", LINES)
async def test_what_is_confined_stays_so(trick: str, tmp_path: Path, home: Path) -> None:
    if not await asyncio.to_thread(lambda: available_sandbox().name):
        pytest.skip("this system confines no commands")
    if "signals" in trick and available_sandbox().name != "bubblewrap":
        pytest.skip("only namespaces keep signals in on every kernel")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port = listener.getsockname()[1]
    paths = {
        "outside": tmp_path / "outside",
        "home": home,
        "data": tmp_path / "data",
        "pid": os.getpid(),
        "port": port,
    }
    line = LINES[trick]
    for name, path in paths.items():
        line = line.replace(f"{{{name}}}", str(path))
    with listener:
        async with Confined(tmp_path, run(line), person=lambda _: AllowOnce()) as trial:
            trial.begin()
            await trial.play()
            preview = trial.cards[0].preview
            assert isinstance(preview, CommandPreview)
            assert (preview.line, preview.confinement) == (line, available_sandbox().title(()))
            assert SECRET not in str(trial.result().content)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert [(file.name, file.read_text()) for file in (tmp_path / "outside").iterdir()] == [("secret", SECRET)]
    assert ((home / ".ssh" / "key").read_text(), (home / ".bashrc").read_text()) == (SECRET, "")
    assert not (home / ".config" / "autostart").exists()
    assert (tmp_path / "data" / "secret").read_text() == SECRET


DAEMONS = {
    "in the background": "sleep 4711 &",
    "in a session of its own": "setsid -f sleep 4711",
    "deaf to signals": "(trap '' HUP TERM INT; sleep 4711) &",
    "forked twice": "( ( sleep 4711 & ) & )",
    "disowned": "sleep 4711 & disown",
}


@pytest.mark.parametrize("trick", DAEMONS)
async def test_nothing_stays_behind(trick: str, tmp_path: Path, new_children: Children) -> None:
    async with Trial(tmp_path, run(f"{DAEMONS[trick]}\necho begun"), person=lambda _: AllowOnce()) as trial:
        await trial.play()
        assert trial.result().outcome is Outcome.SUCCEEDED
        assert "begun" in str(trial.result().content)
        assert new_children() == []
        assert not [
            process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", "4711"]
        ]
