"""Runs the probes in one confinement, among files, programs and services made for them; prints JSON results.

Run by `stage`, as an ordinary user or as root, in a mount namespace that it may fill with files.
"""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from desktop_agent.sandbox.backends import Sandbox, bubblewrap_sandbox, landlock_sandbox, no_sandbox
from desktop_agent.sandbox.environment import command_environment
from desktop_agent.sandbox.policy import build_policy

SECRET = "cherry-blackbird-of-a-probe"
PYTHON = str(Path(sys.executable).resolve())
PATIENCE = 20.0
HOME = Path("/home/tester")
NUMBERS = {
    "x86_64": """
        read 0 ptrace 101 shmget 29 msgget 68 msgrcv 70 semget 64 mq_open 240 request_key 249 keyctl 250 add_key 248
        name_to_handle_at 303 open_by_handle_at 304 process_vm_readv 310 process_vm_writev 311 pidfd_open 434
        pidfd_getfd 438 pidfd_send_signal 424 fanotify_init 300 open_tree 428 renameat2 316 fsopen 430 pivot_root 155
        chroot 161 umount2 166 unshare 272 setns 308 io_uring_setup 425 kcmp 312 tgkill 234 clone 56 clone3 435 bpf 321
        perf_event_open 298 userfaultfd 323 syslog 103 init_module 175 delete_module 176 kexec_load 246 reboot 169
        swapon 167 acct 163 sethostname 170 iopl 172 capset 126
    """,
    "aarch64": """
        read 63 ptrace 117 shmget 194 msgget 186 msgrcv 188 semget 190 mq_open 180 request_key 218 keyctl 219
        add_key 217
        name_to_handle_at 264 open_by_handle_at 265 process_vm_readv 270 process_vm_writev 271 pidfd_open 434
        pidfd_getfd 438 pidfd_send_signal 424 fanotify_init 262 open_tree 428 renameat2 276 fsopen 430 pivot_root 41
        chroot 51 umount2 39 unshare 97 setns 268 io_uring_setup 425 kcmp 272 tgkill 131 clone 220 clone3 435 bpf 280
        perf_event_open 241 userfaultfd 282 syslog 116 init_module 105 delete_module 106 kexec_load 104 reboot 142
        swapon 224 acct 89 sethostname 161 iopl 9999 capset 91
    """,
}
PRELUDE = """
import ctypes, errno, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
words = {numbers!r}.split()
NUMBERS = dict(zip(words[::2], map(int, words[1::2])))
REFUSED = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT, errno.ESRCH, errno.ENOENT, errno.EBADF,
    errno.EROFS, errno.EXDEV)

def place(path):
    return path

def call(name, *arguments):
    long = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return libc.syscall(NUMBERS[name], *long)

def done(result):
    code = ctypes.get_errno()
    print("ESCAPED" if result >= 0 or code not in REFUSED else os.strerror(code))

"""
VICTIM = """
import ctypes, fcntl, os, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
secret = ctypes.create_string_buffer(sys.argv[1].encode())
os.dup2(os.open(sys.argv[2] + "/diary.md", os.O_RDONLY), 7)
os.dup2(os.open(sys.argv[2] + "/outside/file", os.O_WRONLY), 8)
os.chdir(sys.argv[2])
os.umask(0)
if sys.argv[3] == "x86_64":
    shmget, msgget, msgsnd, semget, add_key = 29, 68, 69, 64, 248
else:
    shmget, msgget, msgsnd, semget, add_key = 194, 186, 189, 190, 217
key = int(sys.argv[4])
shm = libc.syscall(shmget, key, 4096, 0o1600)
libc.shmat.restype = ctypes.c_void_p
ctypes.memmove(libc.shmat(shm, None, 0), secret, len(secret))
queue = libc.syscall(msgget, key, 0o1600)
libc.syscall(msgsnd, queue, struct.pack("l", 1) + secret.value, len(secret.value), 0)
semaphores = libc.syscall(semget, key, 1, 0o1600)
libc.syscall(add_key, b"user", b"probe", secret, len(secret.value), -4)
for each in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGIO):
    signal.signal(each, lambda number, frame: print("signalled", number, flush=True))
print(ctypes.addressof(secret), shm, queue, semaphores, flush=True)
while sys.stdin.readline():
    pass
libc.shmctl(shm, 0, None)
libc.msgctl(queue, 0, None)
libc.semctl(semaphores, 0, 0)
"""


# The file is only opened, not written, as it could be a kernel setting.
_WRITE = "[ -e %s ] && { : 9>>%s; } 2>/dev/null && echo ESCAPED"
_READ = "head -c 1 <%s >/dev/null && echo ESCAPED"


@dataclass(frozen=True, slots=True)
class Probe:
    """One attempt to disprove `claim`; `line` is for bash, `program` for Python."""

    claim: str
    name: str
    line: str = ""
    program: str = ""


def probes() -> list[Probe]:
    """Return all probes of probes.toml."""
    result: list[Probe] = []
    for claim, kinds in tables().items():
        if claim == "not_claimed":
            continue
        files, opens = kinds.get("files", {}), kinds.get("opens", {})
        result += [Probe(claim, f"reads ~/{name}", f"cat '{{home}}/{name}'") for name in files.get("home", ())]
        result += [Probe(claim, f"reads {name}", f"cat {name}") for name in files.get("elsewhere", ())]
        result += [
            Probe(claim, f"reads secrets in ~/{name}", f"cat '{{home}}/{name}'") for name in kinds.get("settings", ())
        ]
        result += [
            Probe(claim, f"opens {name} for writing", _WRITE % (name, name)) for name in opens.get("writing", ())
        ]
        result += [Probe(claim, f"opens {name}", _READ % name) for name in opens.get("reading", ())]
        result += [Probe(claim, name, line=line) for name, line in kinds.get("sh", {}).items()]
        result += [Probe(claim, name, program=program) for name, program in kinds.get("py", {}).items()]
    return result


def tables() -> dict[str, dict[str, dict[str, str]]]:
    """Return the contents of probes.toml."""
    return tomllib.loads(Path(__file__).with_name("probes.toml").read_text(encoding="utf-8"))


def confinement(name: str) -> Sandbox:
    """Return the sandbox of that name; any other name confines nothing."""
    if name == "Landlock":
        return landlock_sandbox()
    program = shutil.which("bwrap", path="/usr/bin:/bin")
    return bubblewrap_sandbox(program or "") if name == "bubblewrap" else no_sandbox()


class Arena:
    """The targets of all probes, and the checks whether a probe reached one of them."""

    def __init__(self, sandbox: Sandbox, number: int) -> None:
        self.sandbox = sandbox
        self.work, self.temporary, self.outside = HOME / "work/project", Path("/tmp/own-of-probes"), HOME / "outside"
        copies = Path("/tmp/copies-of-probes")
        for folder in (self.work, self.temporary, copies):
            folder.mkdir(parents=True)
        self._fill()
        # A path of a socket may have no more than a hundred letters.
        os.chdir(self.work)
        self.listeners = {
            "tcp": self._listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "udp": self._listener(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "abstract": self._listener(socket.AF_UNIX, socket.SOCK_STREAM, f"\0probe-{os.getpid()}"),
            "service": self._listener(socket.AF_UNIX, socket.SOCK_STREAM, "service"),
            "datagrams": self._listener(socket.AF_UNIX, socket.SOCK_DGRAM, "datagrams"),
        }
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        key = 0x70000000 + os.getpid()
        self.victim = subprocess.Popen(
            [PYTHON, "-c", VICTIM, SECRET, str(HOME), platform.machine(), str(key)],
            env={"PROBE_SECRET": SECRET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.address = self._victim_says().split()[0]
        self.values = {
            "home": HOME,
            "outside": self.outside,
            "pid": self.victim.pid,
            "group": self.victim.pid,
            "address": self.address,
            "shm_key": key,
            "tcp": self.listeners["tcp"].getsockname()[1],
            "udp": self.listeners["udp"].getsockname()[1],
            "abstract": f"probe-{os.getpid()}",
            "terminal": os.ttyname(self.slave),
            "is_shared": sandbox.name != "bubblewrap",
            "is_ordinary": "false" if os.geteuid() == 0 else "true",
        }
        self.bounds = build_policy(self.work, self.temporary, (), network=False, copies=copies)
        self.count = number
        self.before = self._state()

    def close(self) -> None:
        """Let the victim process end."""
        assert self.victim.stdin is not None
        with suppress(OSError):
            self.victim.send_signal(signal.SIGCONT)
        self.victim.stdin.close()
        self.victim.wait(PATIENCE)

    def escapes(self, probe: Probe) -> bool:
        """Run the probe; return whether it escaped."""
        self.count += 1
        mark = f"{43_300_000 + os.getpid() % 10_000}.{self.count}"
        values = {**self.values, "mark": mark}
        line, program = probe.line, probe.program
        for name, value in values.items():
            line, program = line.replace(f"{{{name}}}", str(value)), program.replace(f"{{{name}}}", str(value))
        argv = ("/bin/bash", "-c", line)
        if program:
            (self.work / "p.py").write_text(PRELUDE.format(numbers=NUMBERS[platform.machine()]) + program + "\n")
            argv = (PYTHON, "p.py")
        output = self._output_of(argv, network=probe.claim == "services", with_terminal="terminal" in probe.name)
        out = [
            SECRET in output,
            "ESCAPED" in output.split(),
            self._was_reached(),
            self._has_changed(),
            self._lives_on(mark),
        ]
        self._clean_work()
        return any(out)

    def _output_of(self, argv: tuple[str, ...], *, network: bool, with_terminal: bool) -> str:
        bounds = replace(self.bounds, network=network)
        environment = command_environment(os.environ, self.temporary, network=network) | dict(bounds.variables)
        # Not a pipe, as a process that is left running would hold it open.
        with (self.temporary.parent / "said").open("w+b") as file:
            started = subprocess.Popen(
                self.sandbox.command(argv, self.work, bounds),
                cwd=self.work,
                env=environment,
                stdin=self.slave if with_terminal else subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                started.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"too slow: {argv}\n")
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()
            file.seek(0)
            return file.read().decode("utf-8", "replace")

    def _fill(self) -> None:
        kinds = tables()["reads"]["files"]
        for name in (*kinds["home"], "diary.md", "outside/file", "outside/folder/file", ".pyenv/bin/python"):
            self._write(HOME / name)
        self._write(HOME / ".cache/pip/x")
        for name, text in tables()["reads"]["settings"].items():
            self._write(HOME / name, text.replace("{secret}", SECRET))
        (self.outside / "link").symlink_to("file")
        for pipe in (self.outside / "pipe", HOME / ".pyenv/pipe"):
            with suppress(FileExistsError):
                os.mkfifo(pipe)
        with suppress(OSError):
            os.setxattr(self.outside / "file", "user.kept", b"kept")
        for name in kinds["elsewhere"]:
            with suppress(OSError):
                self._write(Path(name))

    def _write(self, path: Path, text: str = f"{SECRET}\n") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def _listener(self, family: int, socket_type: int, address: object) -> socket.socket:
        listener = socket.socket(family, socket_type)
        listener.bind(address)
        if socket_type == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        return listener

    def _victim_says(self) -> str:
        assert self.victim.stdout is not None
        return self.victim.stdout.readline().decode()

    def _was_reached(self) -> bool:
        was_reached = False
        for listener in self.listeners.values():
            with suppress(BlockingIOError):
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(100)
                was_reached = True
        with suppress(BlockingIOError):
            was_reached |= b"mine" in os.read(self.master, 10_000)
        return was_reached

    def _state(self) -> dict[str, tuple[object, ...]]:
        paths = [*self.outside.rglob("*"), self.outside, HOME / ".bashrc", HOME / ".config", HOME / ".cache/pip/x"]
        paths += [HOME / ".gitconfig", HOME / ".cargo/config.toml"]
        elsewhere = ("/home/other/open", "/mnt/disk/open", "/dev/shm/notes", "/tmp/of-another-program/notes")
        return dict(self._states_of([*paths, HOME, HOME / ".pyenv/bin/python", *map(Path, elsewhere)]))

    def _states_of(self, paths: list[Path]) -> Iterator[tuple[str, tuple[object, ...]]]:
        for path in paths:
            with suppress(OSError):
                status = path.lstat()
                text = path.read_text() if path.is_file() and not path.is_symlink() else ""
                inside = sorted(map(str, path.iterdir())) if path.is_dir() and not path.is_symlink() else []
                names = os.listxattr(path, follow_symlinks=False)
                metadata = (status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_nlink)
                yield str(path), (*metadata, text, inside, sorted(names))
        with suppress(OSError):
            state = Path(f"/proc/{self.victim.pid}/stat").read_text().rpartition(")")[2].split()
            # Whether it is stopped, its priority, its process group; then its limits.
            yield "victim", (state[0] in "Tt", state[16], state[2])
            yield "limits", (Path(f"/proc/{self.victim.pid}/limits").read_text(),)

    def _has_changed(self) -> bool:
        if self._state() == self.before:
            return False
        with suppress(OSError):
            self.victim.send_signal(signal.SIGCONT)
        shutil.rmtree(self.outside, ignore_errors=True)
        for name in (".bashrc", ".cache/pip/x", ".pyenv/bin/python"):
            self._write(HOME / name)
        self._fill()
        self.before = self._state()
        return True

    def _lives_on(self, mark: str) -> bool:
        is_alive = False
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with suppress(OSError):
                    if (process / "cmdline").read_bytes().split(b"\0")[1:2] == [mark.encode()]:
                        os.kill(int(process.name), signal.SIGKILL)
                        is_alive = True
        return is_alive

    def _clean_work(self) -> None:
        for entry in self.work.iterdir():
            if entry.name not in ("service", "datagrams"):
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def main() -> int:
    name, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.environ["HOME"] = str(HOME)
    arena = Arena(confinement(name), part * 1000)
    own_probes = probes()[part::parts]
    try:
        got_out = [probe.name for probe in own_probes if arena.escapes(probe)]
    finally:
        arena.close()
    print(json.dumps({"tried": [[probe.claim, probe.name] for probe in own_probes], "got_out": got_out}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
