"""What a confined command can and cannot do, tried for real in each way that this machine has."""

import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop_agent.sandbox.backends import Sandbox
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox

# Not the virtual environment of the tests: it may be in a folder that a command cannot read.
PYTHON = str(Path(sys.executable).resolve())
CONNECT = 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5).sendall(b"hi")'
# The same port, through a tunnel of the proxy.
THROUGH_PROXY = (
    'import socket, sys; s = socket.create_connection(("127.0.0.1", 3128), 5); '
    's.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.0\\r\\n\\r\\n" % int(sys.argv[1])); s.recv(99); '
    's.sendall(b"GET / HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n"); s.recv(1)'
)
SEND = (
    'import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int(sys.argv[1])))'
)
SERVICE = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
TURN_A_PAIR = """
import socket, sys
here, there = socket.socketpair(socket.AF_UNIX, getattr(socket, "SOCK_" + sys.argv[1]))
for deed in (lambda: here.sendto(b"x", sys.argv[2]), lambda: here.sendmsg([b"x"], [], 0, sys.argv[2])):
    try:
        deed()
    except OSError as error:
        print(error)
try:
    here.connect(sys.argv[2])
    here.send(b"x")
    print("turned")
except OSError as error:
    print(error)
"""


@pytest.fixture(params=["bubblewrap", "Landlock"])
def confinement(request: pytest.FixtureRequest) -> Sandbox:
    return working_sandbox(request.param)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with keys and other files in it."""
    folder = Path.home() / f"of-{tmp_path.name}"
    for name in (".ssh", ".config/gh", ".local/share/desktop-agent", "own data", "plain"):
        (folder / name).mkdir(parents=True)
        (folder / name / "secret").write_text("the secret")
    (folder / ".netrc").write_text("the secret")
    (folder / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    monkeypatch.setenv("HOME", str(folder))
    return folder


def remove_if_there(path: Path) -> bool:
    """Return whether something was there; remove it, so that no test leaves it behind."""
    if not os.path.lexists(path):
        return False
    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    return True


class Desk:
    def __init__(self, workspace: Workspace, confinement: Sandbox, home: Path) -> None:
        self.folder = workspace.folder
        self._tool = run_command(workspace, (home / "own data",), confinement=lambda: confinement)

    async def run(self, line: str, *hosts: str) -> str:
        arguments = self._tool.checked({"command": line, "hosts": list(hosts)})
        (part,) = await self._tool.run(arguments, RunningCall("1", lambda _: None))
        return part.text  # type: ignore[union-attr]

    async def try_all(self, *deeds: str) -> None:
        """Run each in its own subshell, whether or not those before failed, but all as one confined command."""
        output = await self.run("\n".join(f"( {deed} ) >/dev/null 2>&1; echo tried" for deed in deeds))
        assert output.count("tried\n") == len(deeds), output


@pytest.fixture
def desk(workspace: Workspace, confinement: Sandbox, home: Path) -> Desk:
    return Desk(workspace, confinement, home)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        yield listening


async def test_it_writes_in_the_workspace_and_in_its_own_folder(desk: Desk) -> None:
    output = await desk.run(
        'mkdir -p a/b && echo x >a/b/c && mv a/b/c a/d && rm -r a/b && echo y >"$TMPDIR/t" && cat a/d'
    )
    assert output == "x\n[exit code 0.]"
    assert (desk.folder / "a/d").read_text() == "x\n"


async def test_it_writes_nowhere_else(desk: Desk, home: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "there").write_text("as it was")
    (home / "plain/there").write_text("as it was")
    existing = (home / "plain/there", outside / "there")
    deeds = {
        Path(folder, f"{name}-of-a-test"): deed
        for folder in (home, home / "plain", outside, "/etc", "/usr", "/var/tmp", "/tmp", "/dev/shm")
        for name, deed in (("file", "echo x >"), ("folder", "mkdir "), ("link", "ln -s a "))
    }
    await desk.try_all(*(f"{deed}{path}" for path, deed in deeds.items()))
    assert [path for path in deeds if remove_if_there(path)] == []
    for deed in ("echo x >>{}", ": >{}", "rm {}", "mv {} here", "truncate -s 0 {}"):
        await desk.try_all(*(deed.format(path) for path in existing))
        assert [path.read_text() for path in existing] == ["as it was"] * 2, deed


async def test_a_link_in_the_workspace_is_no_way_out(desk: Desk, home: Path) -> None:
    (desk.folder / "out").symlink_to(home / "plain")
    await desk.run("echo x >out/new")
    assert not (home / "plain/new").exists()
    assert "the secret" not in await desk.run(f"ln -s {home}/.ssh keys; cat keys/secret; ln {home}/.netrc n; cat n")


async def test_it_reads_the_system_and_nothing_else_of_the_home_folder(desk: Desk, home: Path) -> None:
    assert "exit code 0" in await desk.run("cat /etc/passwd /usr/bin/env $GIT_CONFIG_GLOBAL >/dev/null")
    names = (
        *(".ssh/secret", ".config/gh/secret", ".local/share/desktop-agent/secret", "own data/secret", ".netrc"),
        "plain/secret",
    )
    output = await desk.run("\n".join(f"cat '{home}/{name}'; cp '{home}/{name}' copy; cat copy" for name in names))
    assert "the secret" not in output
    assert output.count("cp: ") == len(names)


async def test_a_workspace_in_the_programs_own_folder_can_be_worked_in(confinement: Sandbox, home: Path) -> None:
    inside = home / "own data/works/one"
    inside.mkdir(parents=True)
    desk = Desk(Workspace(inside), confinement, home)
    assert await desk.run(f"echo x >a; cat a; cat '{home}/own data/secret' 2>/dev/null") == "x\n[exit code 1.]"


async def test_own_data_in_the_workspace_is_not_moved_aside(tmp_path: Path, confinement: Sandbox) -> None:
    """Else the next command could read it at its new path, and the program would read what the command put there."""
    workspace = Workspace(tmp_path)
    own = tmp_path / "tools/data/own"
    own.mkdir(parents=True)
    (own / "secret").write_text("the secret")
    tool = run_command(workspace, (own,), confinement=lambda: confinement)
    for line in ("mv tools/data tools/moved", "mv tools moved", "cat */*/*/secret"):
        (part,) = await tool.run(tool.checked({"command": line}), RunningCall("1", lambda _: None))
        assert "the secret" not in part.text  # type: ignore[union-attr]
    assert (own / "secret").read_text() == "the secret"


def paths_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("is_linked", [False, True])
async def test_in_a_home_folder_nothing_is_written_that_the_person_s_programs_start(
    confinement: Sandbox, home: Path, monkeypatch: pytest.MonkeyPatch, is_linked: bool
) -> None:
    (home / ".bashrc").write_text("as it was")
    (home / "dotfiles").mkdir()
    (home / "dotfiles/zshrc").write_text("as it was")
    (home / ".zshrc").symlink_to("dotfiles/zshrc")
    (home / ".config/nvim/.git").mkdir(parents=True)
    (home / ".config/other").mkdir()
    before = paths_in(home)
    monkeypatch.setenv("HOME", str(home))
    if is_linked:
        (home.parent / f"{home.name}-link").symlink_to(home)
        monkeypatch.setenv("HOME", f"{home}-link")
    desk = Desk(Workspace(home), confinement, home)
    await desk.try_all(
        "echo x >>.bashrc",
        "echo x >>.zshrc",
        "echo x >>dotfiles/zshrc",
        "mv dotfiles/zshrc dotfiles/old; echo x >dotfiles/zshrc",
        "rm -f .zshrc && echo x >.zshrc",
        "echo x >new && mv new .bashrc",
        "sed -i s/as/AS/ .bashrc",
        "echo x >.bash_aliases",
        "rm -rf .ssh; mkdir -p .ssh && echo x >.ssh/authorized_keys",
        "mkdir -p .aws && echo x >.aws/config",
        "mkdir -p .config/autostart && echo x >.config/autostart/x.desktop",
        "mkdir -p .local/bin && echo x >.local/bin/ls",
        "mkdir -p .local/share/applications && echo x >.local/share/applications/x.desktop",
        "mv .config .old && mkdir -p .config/autostart",
        "mv .local .old && mkdir -p .local/bin",
        "echo x >>.gitconfig",
        "mkdir -p .config/git && echo x >.config/git/config",
        "echo x >.config/nvim/init.lua",
    )
    assert paths_in(home) == before
    for name in (".bashrc", ".zshrc", "dotfiles/zshrc"):
        assert (home / name).read_text() == "as it was", name
    assert (home / ".gitconfig").read_text().endswith("me@example.org\n")
    line = "echo x >plain/a && mkdir plain/b && mv plain/a plain/b/ && echo y >.config/other/c && cat .bashrc"
    assert (await desk.run(line)).startswith("as it was\n[exit code 0.]")
    assert paths_in(home) - before == {"plain/b", "plain/b/a", ".config/other/c"}


async def test_without_network_there_is_none(desk: Desk, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    assert "Error" in await desk.run(f"'{PYTHON}' -c '{CONNECT}' {port}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        await desk.run(f"'{PYTHON}' -c '{SEND}' {receiver.getsockname()[1]}")
        with pytest.raises(BlockingIOError):
            receiver.recv(1)
    listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        listener.accept()


async def test_a_host_of_this_machine_that_is_named_is_reached(
    desk: Desk, confinement: Sandbox, listener: socket.socket
) -> None:
    received: list[bytes] = []
    line, expected = (THROUGH_PROXY, b"GE") if confinement.has_own_network else (CONNECT, b"hi")

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            received.append(connection.recv(2))

    thread = threading.Thread(target=answer)
    thread.start()
    output = await desk.run(f"'{PYTHON}' -c '{line}' {listener.getsockname()[1]}", "127.0.0.1")
    thread.join()
    assert (output, received) == ("[exit code 0.]", [expected])


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1"]])
async def test_services_of_the_session_cannot_be_asked(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory, hosts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("s") / "bus"
    for address in (str(path), f"\0test-of-a-service-{path}"):
        with socket.socket(socket.AF_UNIX) as service:
            service.bind(address)
            service.listen()
            service.setblocking(False)
            escaped = address.replace("\0", "\\0")
            output = await desk.run(f"""'{PYTHON}' -c '{SERVICE.replace("sys.argv[1]", f'"{escaped}"')}'""", *hosts)
            assert "Address family not supported" in output
            with pytest.raises(BlockingIOError):
                service.accept()


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1"]])
async def test_services_that_listen_in_any_folder_cannot_be_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, hosts: list[str]
) -> None:
    # The path of a unix socket may have no more than about a hundred characters.
    monkeypatch.chdir(desk.folder)
    with socket.socket(socket.AF_UNIX) as service:
        service.bind("agent")
        service.listen()
        service.setblocking(False)
        output = await desk.run(f"ls agent; '{PYTHON}' -c '{SERVICE}' agent", *hosts)
        with pytest.raises(BlockingIOError):
            service.accept()
    assert "agent\n" in output
    assert "Address family not supported" in output


@pytest.mark.parametrize("kind", ["DGRAM", "STREAM", "SEQPACKET", "RAW"])
async def test_pairs_of_sockets_cannot_be_turned_to_services(
    desk: Desk, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket_type = socket.SOCK_DGRAM if kind == "RAW" else getattr(socket, f"SOCK_{kind}")
    monkeypatch.chdir(desk.folder)
    with socket.socket(socket.AF_UNIX, socket_type) as service:
        service.bind("agent")
        if socket_type != socket.SOCK_DGRAM:
            service.listen()
        service.setblocking(False)
        (desk.folder / "p.py").write_text(TURN_A_PAIR)
        output = await desk.run(f"'{PYTHON}' p.py {kind} agent")
        with pytest.raises(BlockingIOError):
            service.recv(1) if socket_type == socket.SOCK_DGRAM else service.accept()
    assert "turned" not in output
    assert ("Address family not supported" if socket_type == socket.SOCK_DGRAM else "already connected") in output


async def test_programs_that_talk_to_their_own_go_on(desk: Desk) -> None:
    (desk.folder / "p.py").write_text(
        "import asyncio, multiprocessing, socket\n"
        "async def main():\n"
        "    made = await asyncio.create_subprocess_exec('echo', 'child', stdout=-1)\n"
        "    print((await made.communicate())[0])\n"
        "if __name__ == '__main__':\n"
        "    asyncio.run(main())\n"
        "    here, there = multiprocessing.Pipe()\n"
        "    process = multiprocessing.Process(target=there.send, args=('own',))\n"
        "    process.start()\n    print(here.recv())\n    process.join()\n"
        "    one, other = socket.socketpair()\n    one.send(b'x')\n    print(other.recv(1))\n"
    )
    assert await desk.run(f"'{PYTHON}' p.py") == "b'child\\n'\nown\nb'x'\n[exit code 0.]"


@pytest.mark.skipif(shutil.which("node", path="/usr/bin:/usr/local/bin") is None, reason="there is no node here")
async def test_node_works(desk: Desk) -> None:
    (desk.folder / "p.js").write_text(
        "if (process.argv[2]) process.send('child'); else require('child_process').fork(__filename, ['x'])\n"
        "  .on('message', said => console.log(said));\n"
    )
    assert await desk.run("node p.js") == "child\n[exit code 0.]"


async def test_other_processes_are_out_of_reach(desk: Desk) -> None:
    output = await desk.run("kill -0 $PPID; cat /proc/$PPID/environ >e; kill -0 $$ && echo mine")
    assert "mine" in output
    assert "exit code 0" not in await desk.run(f"test -e /proc/{os.getpid()}/environ && kill -0 {os.getpid()}")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_git_works(desk: Desk) -> None:
    output = await desk.run(
        "git init -q . && echo x >a && git add a && git commit -qm first && git log --format=%an:%s"
    )
    assert output == "Me:first\n[exit code 0.]"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler is installed")
async def test_compilers_work(desk: Desk) -> None:
    (desk.folder / "m.c").write_text('#include <stdio.h>\nint main(void) { puts("made"); return 7; }\n')
    assert await desk.run("cc m.c -o m && ./m") == "made\n[exit code 7.]"


async def test_python_works_with_processes_and_temporary_files(desk: Desk) -> None:
    (desk.folder / "p.py").write_text(
        "import subprocess, sys, tempfile, os\n"
        "with tempfile.NamedTemporaryFile() as file:\n    assert file.name.startswith(os.environ['TMPDIR'])\n"
        "print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout.strip())\n"
    )
    assert await desk.run(f"'{PYTHON}' p.py") == "42\n[exit code 0.]"
    assert await desk.run("echo a >/dev/null; head -c 3 /dev/zero | wc -c; head -c 1 /dev/urandom | wc -c") == (
        "3\n1\n[exit code 0.]"
    )
