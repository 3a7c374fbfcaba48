"""The checks that end within 90 seconds: the linters, and the tests of what was changed.

    python -m tests.frame.check [--all] [--list]
    python -m tests.frame.check --whole PYTEST...    all tests, with these arguments of pytest
    python -m tests.frame.check --measured LOG

Changed are the files that differ from the branch that this one follows, or from the last commit where it follows none,
and files that git does not know yet. Tests mirror the source tree: those of a module are in the same folder below
`tests`. Where nothing was changed, or much, or something that all depends on, all quick tests of the runtime run.

Files that take longer than QUICK are in slow_tests.toml. Such a file runs if it was changed itself, or is named after a
module that was changed. Of the other slow files in the same folders, as many run as there is ROOM for. `--measured`
writes that table anew from the output of `pytest --durations=0 --durations-min=0.005`.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from pathlib import Path

from tests.frame.selection import SLOW, slow_files

ROOT = Path(__file__).parents[2]
QUICK = 1.0
"""Seconds that a file of tests may take."""
ROOM = 60.0
"""Seconds that the slow files in the folders of a change may take together, the quickest first."""
MOST_FOLDERS = 8
"""A change in more folders runs all quick tests."""
ALWAYS = ("tests/data_folder", "tests/frame/test_stranger.py")
ALL = ("tests/desktop_agent", *ALWAYS)
DOCUMENTS = "tests/frame/test_documents.py"
PACKAGES = ("desktop_agent", "ui")
# Whole files, so that the fixtures of a module are set up once; the slow files first: tests/frame/selection.py.
# A worker that crashes ends the run: with whole files, xdist would wait for ever for the rest of the crashed worker's.
DISTRIBUTED = ("--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")
LINTERS = {
    "ruff check": ("ruff", "check", "--quiet", "."),
    "ruff format": ("ruff", "format", "--quiet", "--check", "."),
    "types": ("basedpyright",),
    "contracts": ("lint-imports", "--no-cache"),
    "sizes": ("python", "-m", "tests.frame.budgets"),
}


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1]


def changed_files() -> list[str]:
    base = git("merge-base", "HEAD", "@{upstream}") or ["HEAD"]
    return [*git("diff", "--name-only", *base), *git("ls-files", "--others", "--exclude-standard")]


def belonging_to(file: str, root: Path = ROOT) -> set[str] | None:
    """The files and folders of tests that belong to a file; None where all tests do."""
    path = Path(file)
    top = path.parts[0]
    if path.suffix == ".md" or top == "docs":
        return {DOCUMENTS}
    if top == "tests":
        if path.name.startswith("test_"):
            return {file} if (root / file).exists() else set()
        return {path.parent.as_posix()} if any((root / path.parent).glob("test_*.py")) else None
    if top not in PACKAGES:
        return None
    folder = Path("tests", path.parent)
    while not any((root / folder).glob("test_*.py")):
        folder = folder.parent
        if len(folder.parts) < 3:
            return None
    named = folder / f"test_{path.stem.removeprefix('_')}.py"
    return {path.as_posix() for path in (folder, named) if (root / path).exists()}


def chosen(changed: Iterable[str], slow: Mapping[str, float], root: Path = ROOT) -> list[str]:
    """The files of tests to be run for these changes."""
    belonging = [belonging_to(file, root) for file in changed]
    places = {place for tests in belonging for place in tests or ()}
    named = {place for place in places if place.endswith(".py")}
    if not places or None in belonging or len(places - named) > MOST_FOLDERS:
        return sorted({*named, *quick(ALL, slow, root)})
    slow_here = {file: slow[file] for file in {*quick(places, (), root)} & slow.keys() - named}
    order = sorted(slow_here, key=slow_here.__getitem__)
    totals = accumulate(slow_here[file] for file in order)
    fitting = [file for file, total in zip(order, totals, strict=True) if total <= ROOM]
    return sorted({*named, *fitting, *quick({*places, *ALWAYS}, slow, root)})


def quick(places: Iterable[str], slow: Iterable[str], root: Path = ROOT) -> list[str]:
    """The files of tests in these places, each a folder or a file, except the slow ones."""
    files: set[str] = set()
    for place in places:
        below = [root / place] if place.endswith(".py") else (root / place).rglob("test_*.py")
        files |= {file.relative_to(root).as_posix() for file in below}
    return sorted(files - set(slow))


def measured(log: str) -> str:
    """The table of files that take long, from the durations of their tests."""
    seconds: Counter[str] = Counter()
    for took, file in re.findall(r"^\s*([\d.]+)s (?:call|setup|teardown)\s+(\S+?)::", log, re.MULTILINE):
        seconds[file] += float(took)
    lines = [f'"{file}" = {took:.0f}' for file, took in sorted(seconds.items()) if took > QUICK]
    return f"# Files of tests that take more than {QUICK:g} s: python -m tests.frame.check --measured\n[seconds]\n" + (
        "".join(f"{line}\n" for line in lines)
    )


def run(pytest: Iterable[str]) -> int:
    """Run the linters beside the tests, which leave the processor idle for part of their time."""
    programs = Path(sys.executable).parent
    linters = {
        name: subprocess.Popen([ROOT / "packaging/step.sh", name, programs / command[0], *command[1:]], cwd=ROOT)
        for name, command in LINTERS.items()
    }
    tests = subprocess.run([sys.executable, "-m", "pytest", *DISTRIBUTED, *pytest], cwd=ROOT, check=False)
    failed = [name for name, linter in linters.items() if linter.wait()]
    # Their own messages are far above.
    sys.stdout.write("".join(f"{name} failed, see above\n" for name in failed))
    return tests.returncode or int(bool(failed))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--measured"]:
        SLOW.write_text(measured(Path(arguments[1]).read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if arguments[:1] == ["--whole"]:
        return run(arguments[1:])
    files = chosen(() if "--all" in arguments else changed_files(), slow_files())
    if "--list" in arguments:
        sys.stdout.write("".join(f"{file}\n" for file in files))
        return 0
    sys.stdout.write(f"tests: {len(files)} files\n")
    sys.stdout.flush()
    return run(["-q", "--numprocesses", "2", *files])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
