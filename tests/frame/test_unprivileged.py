"""The user without rights, as whom tests of the sandbox run."""

import os
from pathlib import Path

from tests.frame.unprivileged import run_unprivileged


def test_it_is_another_user_with_a_home_folder_and_reads_nothing_of_root(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("only for its owner")
    secret.chmod(0o600)
    run = run_unprivileged("tests.frame.who_am_i", str(secret), timeout=60)
    uid, home, listed, read = run.stdout.splitlines()
    assert (run.returncode, run.stderr) == (0, "")
    assert int(uid) != 0
    assert not home.startswith(str(Path.home()))
    assert listed == "[]"
    assert read == ("only for its owner" if os.geteuid() != 0 else "PermissionError")
