"""A place in which a shell may run any line: it finds stand-ins for programs there, which log, and nothing else.

The root is an empty file system with the shell, its libraries, and the stand-in under many names; there is no network,
and memory, time, processes and sizes of files are bounded. One process of the shell is started for each line.

What the shell runs is taken from two logs. Each stand-in writes down how it was started: that is exact. What starts no
process (commands of the shell itself, functions) is taken from bash's xtrace to a descriptor of its own: unlike a DEBUG
trap it shows words as they are after all expansions, quoted so that they can be told apart, it goes on in functions,
substitutions, `eval`, traps and shells that are started in turn, and no line loses it without a command that says so.
The plain shell's xtrace separates words by spaces alone; there they are compared as one text.
"""

import re
import shutil
import struct
import subprocess
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from desktop_agent.sandbox.environment import command_environment
from tests.shell_differential.xtrace import MARK, Traced, read_bash, read_dash

HERE = Path(__file__).parent
WORDS = tomllib.loads((HERE / "words.toml").read_text())
SHELLS = ("bash", "dash")
WORKING_FOLDER = "/w"
_MAX_MILLISECONDS = 700
# As in box.c: whoever writes more is ended.
_LONGEST_FILE = 1 << 18
# What the line's variables hold would run something if it were read once more.
_VARIABLES = {
    "x": "z[$(evil)]",
    "n": "1 evil 2",
    "y": "-v z[$(evil)] ; evil",
    "HOME": WORKING_FOLDER,
    "LANG": "C.UTF-8",
    "USER": "tester",
    "PATH": "/usr/bin:/bin",
}
_HANDLER = '() {  /.box/handle "$@"\n}'
_SYNTAX_ERROR = re.compile(
    rb"^(?:bash: -c: line \d+: |dash: \d+: Syntax error|.*: syntax error: unexpected end of file)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Started:
    """A program that was started: its words, its file, the folder, and a number for what its environment holds."""

    words: tuple[str, ...]
    file: str
    folder: str
    environment: str


@dataclass(frozen=True, slots=True)
class Ran:
    """What a line did. `is_ended`: it did not end by itself in time. `opened` and `written` are paths of files."""

    started: tuple[Started, ...]
    traced: tuple[Traced, ...]
    opened: frozenset[str]
    written: frozenset[str]
    is_accepted: bool
    is_ended: bool
    errors: str = ""


class Box:
    """Runs lines in one shell. Use it in a `with`. Raises EOFError where the box itself broke."""

    def __init__(self, shell: str = "bash", locale: str = "C.UTF-8") -> None:
        self._shell = shell
        self._folder = tempfile.TemporaryDirectory(prefix="shell-differential-")
        command = [*_walls(build(Path(self._folder.name)), locale), "/.box/run", shell]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()

    def run(self, line: str) -> Ran:
        """What the line does."""
        return self._sent(line, reads_only=False)

    def accepts(self, line: str) -> bool:
        """Whether the shell takes the line for one without a syntax error. It is not run."""
        return self._sent(line, reads_only=True).is_accepted

    def _sent(self, line: str, *, reads_only: bool) -> Ran:
        process = self._process
        assert process.stdin is not None
        data = line.encode()
        process.stdin.write(struct.pack("=3I", reads_only, _MAX_MILLISECONDS, len(data)) + data)
        process.stdin.flush()
        (state,) = struct.unpack("=i", self._received(process, 4))
        log, trace, errors, files = (self._text(process) for _ in range(4))
        told = trace if self._shell == "bash" else errors
        traced = read_bash(told) if self._shell == "bash" else read_dash(told)
        if len(told) >= _LONGEST_FILE:
            # What ends there may be cut.
            traced = traced[:-1]
        paths = [each.decode("utf-8", "surrogateescape") for each in files.split(b"\0") if each]
        return Ran(
            _started(log),
            traced,
            frozenset(each[1:] for each in paths),
            frozenset(each[1:] for each in paths if each[0] == "W"),
            _SYNTAX_ERROR.search(errors) is None,
            state == -1,
            errors.decode("utf-8", "replace"),
        )

    def _text(self, process: subprocess.Popen[bytes]) -> bytes:
        return self._received(process, struct.unpack("=I", self._received(process, 4))[0])

    def _received(self, process: subprocess.Popen[bytes], size: int) -> bytes:
        assert process.stdout is not None
        data = process.stdout.read(size)
        if len(data) < size:
            raise EOFError("the box broke")
        return data


def why_none() -> str | None:
    """Why no box can be made on this machine; None where one can."""
    missing = [name for name in ("bwrap", "cc", "ldd", *SHELLS) if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    with tempfile.TemporaryDirectory() as name:
        tried = [*_walls(build(Path(name)), "C"), "/.box/real/bash", "-c", ":"]
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no namespaces here: {done.stderr.strip()}"


def build(folder: Path) -> Path:
    """Compile the stand-in, and give it its many names. Return the folder that `_walls` needs."""
    program = folder / "box"
    subprocess.run(["cc", "-O1", "-static", "-o", program, HERE / "box.c"], check=True)
    names = folder / "names"
    names.mkdir()
    for name in {*WORDS["programs"].split(), *WORDS["real"]} - {"''"}:
        (names / name).symlink_to("/.box/run")
    return folder


def _walls(folder: Path, locale: str) -> list[str]:
    real = {name: Path(found) for name in WORDS["real"] if (found := shutil.which(name, path="/usr/bin:/bin"))}
    walls = ["bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--die-with-parent"]
    walls += ["--as-pid-1", "--clearenv", "--size", str(1 << 25), "--tmpfs", "/", "--dev", "/dev"]
    for file in _libraries(real.values()):
        walls += ["--ro-bind", str(file.resolve()), str(file)]
    if (spoken := Path("/usr/lib/locale/C.utf8")).is_dir():
        walls += ["--ro-bind", str(spoken), str(spoken)]
    walls += ["--ro-bind", str(folder / "names"), "/usr/bin", "--symlink", "usr/bin", "/bin"]
    walls += ["--ro-bind", str(folder / "box"), "/.box/run", "--symlink", "run", "/.box/handle"]
    for name, file in real.items():
        walls += ["--ro-bind", str(file.resolve()), f"/.box/real/{name}"]
    walls += ["--dir", WORKING_FOLDER, "--dir", "/tmp"]
    given = command_environment({**_VARIABLES, "LANG": locale}, Path("/tmp"), network=False)
    given |= {name: _VARIABLES[name] for name in ("n", "x", "y")}
    given |= {"BASH_XTRACEFD": "63", "SHELLOPTS": "braceexpand:hashall:interactive-comments:xtrace", "PS4": MARK}
    given["BASH_FUNC_command_not_found_handle%%"] = _HANDLER
    for name, value in given.items():
        walls += ["--setenv", name, value]
    return walls


def _libraries(programs: Iterable[Path]) -> list[Path]:
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=True).stdout
    return sorted({Path(found) for found in re.findall(r"(/\S+) \(0x", told)})


def _started(log: bytes) -> tuple[Started, ...]:
    found: list[Started] = []
    at = 0
    while at + 4 <= len(log):
        (size,) = struct.unpack_from("=I", log, at)
        if at + 4 + size > len(log):
            break
        record = log[at + 4 : at + 4 + size].decode("utf-8", "surrogateescape")
        environment, folder, file, *words = record.split("\0")[:-1]
        found.append(Started(tuple(words), file, folder, environment))
        at += 4 + size
    return tuple(found)
