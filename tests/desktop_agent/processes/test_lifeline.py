"""The small process around a program."""

import os
import subprocess
import sys

import pytest

from desktop_agent.processes.lifeline import MODULE, PART
from tests.frame.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it starts env")
FROZEN = f"import sys; sys.frozen = True; from {MODULE} import main; sys.exit(main())"


def test_the_program_loads_no_libraries_of_the_frozen_one() -> None:
    frozen = {"LD_LIBRARY_PATH": "/frozen/_internal", "_PYI_ARCHIVE_FILE": "/frozen/program", "LLAMA_API_KEY": "kept"}
    with subprocess.Popen(
        [sys.executable, "-c", FROZEN, "--child", PART, "env"],
        env={**os.environ, **frozen},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        # Its input stays open until all is read: it would end the program.
        given = process.stdout.read().splitlines()
        assert process.wait(PATIENCE) == 0
    assert "LLAMA_API_KEY=kept" in given
    assert [line for line in given if line.startswith(("LD_LIBRARY_PATH", "_PYI"))] == []
