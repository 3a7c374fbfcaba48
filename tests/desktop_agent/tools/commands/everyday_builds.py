"""Build a small real project in a sandbox and print the tool's result; run as a user without rights.

python -m tests.desktop_agent.tools.commands.everyday_builds bubblewrap|Landlock PROJECT
"""

import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from desktop_agent.sandbox.backends import bubblewrap_sandbox, find_bubblewrap, landlock_sandbox
from desktop_agent.tools.commands.run_command import run_command
from desktop_agent.tools.tool import RunningCall
from desktop_agent.tools.workspace import Workspace

ROOT = Path(__file__).parents[4]
PYTHON = str(Path(sys.executable).resolve())
VENV_PYTHON = str(Path(sys.prefix, "bin/python"))


def _write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def wheels() -> str:
    """A virtual environment, in which a package is built and installed from its sources and from its wheel."""
    _write(
        {
            "p/pyproject.toml": "[project]\nname = 'p'\nversion = '1'\n"
            "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'\n",
            "p/p/__init__.py": "said = 'from a package'\n",
        }
    )
    return (
        # The build backend is in the environment of the tests.
        f"'{PYTHON}' -m venv v && export PYTHONPATH='{sysconfig.get_paths()['purelib']}' && "
        "v/bin/pip -q install --no-index --no-build-isolation ./p && "
        "v/bin/python -c 'import p; print(p.said)' && v/bin/pip -q wheel --no-deps --no-build-isolation -w w ./p && "
        "v/bin/pip -q install --no-index --force-reinstall w/p-1-*.whl && echo built"
    )


def repository() -> str:
    """A clone of this project: history, branches, a merge, another clone; and its own tests of a module."""
    subprocess.run(["git", "clone", "-q", "--depth", "3", f"file://{ROOT}", "c"], check=True)
    return (
        "cd c && git log --oneline | wc -l && git checkout -q -b other && echo x >x && git add x && "
        "git commit -qm x && git checkout -q - && git merge -q other && git gc -q && git clone -q . ../d && "
        f"git status --short && '{VENV_PYTHON}' -m pytest -q -p no:cacheprovider -p no:randomly "
        "tests/desktop_agent/types && echo built"
    )


def package() -> str:
    """A package of npm that needs another one, installed by the lock, with its test."""
    _write(
        {
            "lib/package.json": '{"name": "lib", "version": "1.0.0"}',
            "lib/index.js": "module.exports = 42\n",
            "package.json": '{"name": "app", "version": "1.0.0", "scripts": {"test": "node --test"}}',
            "app.test.js": "const assert = require('node:assert'), test = require('node:test')\n"
            "test('it', () => assert.equal(require('lib'), 42))\n",
        }
    )
    return (
        "(cd lib && npm pack --silent) && npm install ./lib/lib-1.0.0.tgz --silent && rm -r node_modules && "
        "npm ci --silent && npm test --silent | grep '^# pass 1' && echo built"
    )


def library() -> str:
    """A library in C with a test that looks for leaks of memory, which traces its own process."""
    _write(
        {
            "l.c": "int twice(int a) { return 2 * a; }\n",
            "t.c": "#include <stdlib.h>\nint twice(int);\n"
            "int main(void) { int *a = malloc(4); *a = twice(21); int b = *a; free(a); return b != 42; }\n",
            "Makefile": "test: t\n\t./t\nt: t.o libl.a\n\tcc -fsanitize=address -o $@ t.o -L. -ll\n"
            "libl.a: l.o\n\tar rcs $@ l.o\n%.o: %.c\n\tcc -g -fsanitize=address -c $<\n",
        }
    )
    return "make -sj2 test && echo built"


def standard_library() -> str:
    """Tests of the language's own library, which start processes and threads and make temporary files."""
    return f"'{PYTHON}' -m test -q test_json test_tempfile test_queue test_shlex && echo built"


def tools_of_the_home_folder() -> str:
    """An interpreter below ~/.pyenv, a program of pipx, a program elsewhere that the path names, settings of git."""
    home = Path.home()
    subprocess.run([PYTHON, "-m", "venv", "--copies", "--without-pip", str(home / ".pyenv/versions/x")], check=True)
    tool = home / ".local/share/pipx/venvs/tool/bin/tool"
    own = home / "apps/own/bin/own-tool"
    for program in (tool, own):
        _write({str(program): '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../lib/word"\n'})
        program.chmod(0o755)
        _write({str(program.parents[1] / "lib/word"): f"{program.name}\n"})
    (home / ".local/bin").mkdir()
    (home / ".local/bin/tool").symlink_to(tool)
    _write({str(home / ".gitconfig"): "[user]\nname = Me\nemail = me@example.org\n[include]\npath = more\n"})
    _write(
        {str(home / "more"): '[alias]\nhi = !echo hush\n[init]\ndefaultBranch = trunk\n[filter "x"]\nclean = false\n'}
    )
    folders = (home / ".pyenv/versions/x/bin", home / ".local/bin", own.parent)
    os.environ["PATH"] = os.pathsep.join([*map(str, folders), "/usr/bin:/bin"])
    return (
        "python -c 'import json, sys; print(sys.prefix)' && tool && own-tool && "
        "git init -q . && echo x >a && git add a && git commit -qm x && "
        "git log --format='%an %D' && ! git hi && git checkout -q trunk && echo built"
    )


def crate() -> str:
    """A library of Rust as Debian ships it, with its tests; and a program that finds it by the person's settings."""
    source = next(Path("/usr/share/cargo/registry").glob("semver-*"))
    shutil.copytree(source, "semver")
    _write(
        {
            "p/Cargo.toml": "[package]\nname = 'p'\nversion = '1.0.0'\n[dependencies]\nsemver = '1'\n",
            "p/src/main.rs": 'fn main() { println!("{}", semver::Version::parse("1.2.3").unwrap().minor); }\n'
            "#[test]\nfn it() { assert_eq!(6 * 7, 42); }\n",
            str(Path.home() / ".cargo/config.toml"): "[source.crates-io]\nreplace-with = 'debian'\n"
            "[source.debian]\ndirectory = '/usr/share/cargo/registry'\n"
            # Landlock cannot put a copy in the place of the file.
            + ("[registries.mine]\ntoken = 'hush'\n" if sys.argv[1] == "bubblewrap" else ""),
        }
    )
    return (
        "! grep hush ~/.cargo/config.toml && (cd p && /usr/bin/cargo build -q --offline && target/debug/p && "
        "/usr/bin/cargo test -q --offline) && "
        "(cd semver && /usr/bin/cargo test -q --offline --lib --tests) && echo built"
    )


PROJECTS: dict[str, Callable[[], str]] = {
    each.__name__: each
    for each in (library, wheels, repository, package, standard_library, tools_of_the_home_folder, crate)
}


def main() -> None:
    sandbox = landlock_sandbox() if sys.argv[1] == "Landlock" else bubblewrap_sandbox(find_bubblewrap() or "")
    Path("work").mkdir()
    os.chdir("work")
    _write({str(Path.home() / ".gitconfig"): "[user]\nname = Me\nemail = me@example.org\n[safe]\ndirectory = *\n"})
    line = PROJECTS[sys.argv[2]]()
    tool = run_command(Workspace(Path.cwd()), confinement=lambda: sandbox)
    arguments = tool.checked({"command": line, "timeout_seconds": 300})
    (part,) = asyncio.run(tool.run(arguments, RunningCall("1", lambda _: None)))
    sys.stdout.write(part.text)  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
