"""A data folder without file locks: the kernel refuses them to a real process, as on a network file system."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# A seccomp filter of this process and its children; the numbers are those of x86_64 (asm/unistd_64.h, linux/fcntl.h).
WITHOUT = """
import ctypes, runpy, sys
from desktop_agent.sandbox.kernel_limits import (
    ALLOW, EQUAL, LOAD, NUMBER, REFUSE, RETURN, SECOND_ARGUMENT, install_filter, instruction,
)
from desktop_agent.sandbox.kernel_limits import no_new_privileges
FLOCK, FCNTL, LOCKING = 73, 72, (5, 6, 7, 36, 37, 38)
refused, code = sys.argv.pop(1), int(sys.argv.pop(1))
refuse, allow = instruction(RETURN, REFUSE | code), instruction(RETURN, ALLOW)
steps = {
    "flock": [instruction(LOAD, NUMBER), instruction(EQUAL, FLOCK, otherwise=1), refuse, allow],
    "fcntl": [
        instruction(LOAD, NUMBER),
        instruction(EQUAL, FCNTL, otherwise=len(LOCKING) + 1),
        instruction(LOAD, SECOND_ARGUMENT),
        *(instruction(EQUAL, each, then=len(LOCKING) - at) for at, each in enumerate(LOCKING)),
        allow,
        refuse,
    ],
}[refused]
libc = ctypes.CDLL(None, use_errno=True)
no_new_privileges(libc)
install_filter(libc, steps)
runpy.run_module("desktop_agent", run_name="__main__")
"""


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="the filter is for this machine")
@pytest.mark.parametrize(
    ("refused", "code"), [("flock", errno.ENOLCK), ("flock", errno.EOPNOTSUPP), ("fcntl", errno.EOPNOTSUPP)]
)
def test_nothing_is_opened_where_the_file_system_has_no_locks(tmp_path: Path, refused: str, code: int) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-c", WITHOUT, refused, str(code), "ask", "--data-dir", str(data), "--demo", "hello"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (1, "")
    assert "has no locks, so two programs could write the same conversation at once." in process.stderr
    assert "Choose a data folder on a disk of this computer" in process.stderr
    assert "Traceback" not in process.stderr
    assert not (data / "conversations.sqlite3").exists()
