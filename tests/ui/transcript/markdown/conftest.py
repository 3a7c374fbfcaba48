"""The examples of the CommonMark specification, taken from its package and kept outside of the project."""

import base64
import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.frame.node import NPM

PACKAGE = "commonmark-spec@0.31.2"
SHA512 = "vXKxmclzJPymhOJYD26G0oBjVmIcKC8p5m2DvHIq1A1btr1m0r0dT/PzRA5/nwxUbCAPedMNPEoiQE+zvuOcOw=="
_EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """Markdown, and its HTML."""

    number: int
    markdown: str
    html: str


def _is_it(archive: Path) -> bool:
    digest = hashlib.sha512(archive.read_bytes()).digest()
    return base64.b64encode(digest).decode("ascii") == SHA512


def _fetch(archive: Path) -> None:
    archive.parent.mkdir(exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="desktop-agent-npm-") as folder:
        command = [*NPM, "pack", PACKAGE, "--silent", "--cache", f"{folder}/cache", "--pack-destination", folder]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=90, cwd=folder)
        except (subprocess.SubprocessError, OSError) as error:
            pytest.skip(f"npm did not give {PACKAGE}: {error}")
        shutil.move(next(Path(folder).glob("*.tgz")), archive)


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    """Return all examples, in order."""
    archive = Path(tempfile.gettempdir(), "desktop-agent-specifications", "commonmark-spec-0.31.2.tgz")
    if not archive.exists() or not _is_it(archive):
        _fetch(archive)
    assert _is_it(archive), f"{PACKAGE} is not what it was"
    with tarfile.open(archive) as package:
        member = package.extractfile("package/spec.txt")
        assert member
        text = member.read().decode("utf-8").partition("<!-- END TESTS -->")[0].replace("→", "\t")
    numbered = enumerate(_EXAMPLE.findall(text), 1)
    return [Example(number, markdown, html) for number, (markdown, html) in numbered]
