"""Ordinary work of a developer, done for real in the sandbox that allows most of it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace
from tests.desktop_agent.tools.commands.everyday_builds import PROJECTS
from tests.desktop_agent.tools.commands.sandboxes import working_sandbox
from tests.frame.selection import few
from tests.frame.unprivileged import run_unprivileged

PYTHON = str(Path(sys.executable).resolve())
SERVE = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/word").read().decode())
"""
SHARE = """
from multiprocessing.managers import SyncManager
if __name__ == "__main__":
    with SyncManager(("127.0.0.1", 0)) as manager:
        shared = manager.dict()
        shared["made"] = 42
        print(dict(shared))
"""


def needs(program: str) -> pytest.MarkDecorator:
    missing = shutil.which(program, path="/usr/bin:/usr/local/bin") is None
    return pytest.mark.skipif(missing, reason=f"there is no {program} here")


async def run_line(workspace: Workspace, line: str, confinement: str = "bubblewrap") -> str:
    tool = run_command(workspace, confinement=lambda: working_sandbox(confinement))
    (part,) = await tool.run(tool.checked({"command": line}), RunningCall("1", lambda _: None))
    return part.text  # type: ignore[union-attr]


async def test_a_server_and_its_client_on_this_machine(workspace: Workspace) -> None:
    (workspace.folder / "p.py").write_text(SERVE)
    (workspace.folder / "word").write_text("served")
    assert "served\n" in await run_line(workspace, f"'{PYTHON}' p.py")


async def test_processes_share_by_an_address(workspace: Workspace) -> None:
    (workspace.folder / "p.py").write_text(SHARE)
    assert await run_line(workspace, f"'{PYTHON}' p.py") == "{'made': 42}\n[exit code 0.]"


async def test_processes_share_memory_queues_and_pools(workspace: Workspace) -> None:
    (workspace.folder / "p.py").write_text(
        "from multiprocessing import Pool, Queue, shared_memory\n"
        "if __name__ == '__main__':\n"
        "    memory = shared_memory.SharedMemory(create=True, size=8)\n"
        "    memory.close()\n    memory.unlink()\n"
        "    queue = Queue()\n    queue.put(1)\n"
        "    with Pool(2) as pool:\n        print(queue.get(), pool.map(abs, [-1, -2]))\n"
    )
    assert await run_line(workspace, f"'{PYTHON}' p.py") == "1 [1, 2]\n[exit code 0.]"


@needs("git")
async def test_git(workspace: Workspace) -> None:
    me = "-c user.name=Me -c user.email=me@example.org"
    line = f"git init -q . && echo x >a && git add a && git {me} commit -qm first && echo y >>a && git {me} stash -q"
    assert "exit code 0" in await run_line(workspace, line)
    output = await run_line(workspace, f"git status --short; cat a; git {me} stash pop -q && git diff --stat | tail -1")
    assert output == "x\n 1 file changed, 1 insertion(+)\n[exit code 0.]"


async def test_a_virtual_environment(workspace: Workspace) -> None:
    output = await run_line(workspace, f"'{PYTHON}' -m venv --without-pip v && v/bin/python -c 'print(6 * 7)'")
    assert output == "42\n[exit code 0.]"


@needs("npm")
async def test_scripts_and_packages_of_npm(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    # A home that exists and is read-only, as the person's is in the sandbox; that of the tests is in /tmp.
    monkeypatch.setenv("HOME", "/usr")
    (workspace.folder / "lib").mkdir()
    (workspace.folder / "lib/package.json").write_text('{"name": "lib", "version": "1.0.0"}')
    (workspace.folder / "package.json").write_text(
        '{"name": "app", "version": "1.0.0", "scripts": {"hi": "node -e \'console.log(42)\'"}}'
    )
    assert "\n42\n" in await run_line(workspace, "npm run hi")
    line = "(cd lib && npm pack --silent) && npm install ./lib/lib-1.0.0.tgz --silent && ls node_modules"
    assert await run_line(workspace, line) == "lib-1.0.0.tgz\nlib\n[exit code 0.]"


@needs("make")
@needs("cc")
async def test_make(workspace: Workspace) -> None:
    (workspace.folder / "m.c").write_text('#include <stdio.h>\nint main(void) { puts("made"); return 0; }\n')
    (workspace.folder / "Makefile").write_text("m: m.c\n\tcc -o $@ $<\n")
    assert (await run_line(workspace, "make -j2 -s && ./m")).startswith("made\n")


@needs("sqlite3")
async def test_databases(workspace: Workspace) -> None:
    line = "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(7); select a from t'"
    assert await run_line(workspace, line) == "wal\n7\n[exit code 0.]"


async def test_archives_pipes_and_processes(workspace: Workspace) -> None:
    output = await run_line(
        workspace, "echo x >a; tar czf a.tgz a && rm a && tar xzf a.tgz && diff <(cat a) <(echo x); ps | wc -l"
    )
    assert output.endswith("[exit code 0.]")


REGISTRY = Path("/usr/share/cargo/registry")
NEEDED = {
    # The command line has this path: a program elsewhere does not help.
    "crate": ["/usr/bin/cargo"],
    "repository": ["git"],
    "package": ["npm"],
    "library": ["make", "cc"],
    "tools_of_the_home_folder": ["git"],
}


@pytest.mark.parametrize("confinement", ["bubblewrap", "Landlock"])
@pytest.mark.parametrize("project", few(PROJECTS, 1, "test_a_project_is_built_by_a_user_without_rights: one of them"))
def test_a_project_is_built_by_a_user_without_rights(project: str, confinement: str) -> None:
    working_sandbox(confinement)
    missing = [name for name in NEEDED.get(project, ()) if shutil.which(name, path="/usr/bin:/usr/local/bin") is None]
    if missing:
        pytest.skip(f"there is no {missing[0]} here")
    if project == "crate" and not all(list(REGISTRY.glob(f"{name}-*")) for name in ("semver", "serde")):
        pytest.skip("Debian's librust-semver-dev and librust-serde-dev are not installed")
    module = "tests.desktop_agent.tools.commands.everyday_builds"
    process = run_unprivileged(module, confinement, project, timeout=400)
    # No assertion on the first lines: the result may also report startup files of the clone.
    assert "built\n[exit code 0.]" in process.stdout, process.stdout + process.stderr


@pytest.mark.parametrize("confinement", ["bubblewrap", "Landlock"])
async def test_cargo_from_the_home_folder(
    workspace: Workspace, confinement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    # The real home: only there may a toolchain be installed.
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    if not (home / ".cargo/bin/cargo").exists():
        pytest.skip("there is no cargo in the home folder")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.cargo/bin:/usr/bin:/bin")
    (workspace.folder / "src").mkdir()
    (workspace.folder / "Cargo.toml").write_text('[package]\nname = "p"\nversion = "1.0.0"\nedition = "2021"\n')
    (workspace.folder / "src/main.rs").write_text(
        'fn main() { println!("made"); }\n#[test]\nfn it() { assert_eq!(6 * 7, 42); }\n'
    )
    output = await run_line(
        workspace, "cargo build -q --offline && target/debug/p && cargo test -q --offline", confinement
    )
    assert output.startswith("made\n")
    assert "1 passed" in output
    assert output.endswith("[exit code 0.]")
