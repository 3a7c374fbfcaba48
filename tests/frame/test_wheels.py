"""How `make wheels` compares lock files and wheels, without the network."""

from pathlib import Path

import pytest

from tests.frame.translations import script

ROOT = Path(__file__).parents[2]
wheels = script("wheels")
ONE, OTHER, THIRD = "a" * 64, "b" * 64, "c" * 64
LOCK = f"""\
everywhere==1.0 \\
    --hash=sha256:{ONE} \\
    --hash=sha256:{OTHER}
of-windows==2.0 ; sys_platform == 'win32' \\
    --hash=sha256:{THIRD}
old==3.0 ; python_full_version < '3.12' and platform_machine != 'arm64' \\
    --hash=sha256:{THIRD}
"""
WINDOWS, ARM_MAC, INTEL_MAC = "x86_64-pc-windows-msvc", "aarch64-apple-darwin", "x86_64-apple-darwin"


def package(name="everywhere", version="1.0", *hashes):
    entries = [{"hashes": {"sha256": digest}} for digest in hashes]
    return {"name": name, "version": version, **({"wheels": entries} if entries else {})}


@pytest.mark.parametrize(
    ("platform", "python", "names"),
    [
        (WINDOWS, "3.13", {"everywhere==1.0", "of-windows==2.0"}),
        (WINDOWS, "3.11", {"everywhere==1.0", "of-windows==2.0", "old==3.0"}),
        (ARM_MAC, "3.11", {"everywhere==1.0"}),
        (INTEL_MAC, "3.11", {"everywhere==1.0", "old==3.0"}),
    ],
)
def test_markers_say_what_is_expected_where(platform, python, names):
    expected = wheels.expected(LOCK, platform, python)
    assert expected.keys() == names
    assert expected["everywhere==1.0"] == {ONE, OTHER}


@pytest.mark.parametrize(
    ("packages", "faults"),
    [
        ([package("everywhere", "1.0", ONE)], []),
        ([package("everywhere", "1.0", ONE, OTHER)], []),
        ([], ["everywhere==1.0 is not found"]),
        ([package()], ["everywhere==1.0 has no wheel"]),
        ([package("everywhere", "1.0", ONE, THIRD)], ["everywhere==1.0 has a wheel whose hash is not pinned"]),
        ([package("everywhere", "1.1", ONE)], ["everywhere==1.0 is not found", "everywhere==1.1 is not pinned"]),
    ],
)
def test_only_pinned_wheels_will_do(packages, faults):
    assert wheels.judge({"everywhere==1.0": {ONE, OTHER}}, {"packages": packages}) == faults


@pytest.mark.parametrize("lock", wheels.LOCKS)
def test_every_package_of_the_lock_files_is_read_with_its_hashes(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    pins = wheels._PIN.findall(text)
    assert len(pins) == text.count("==") - text.count("' ==") - text.count(" == '") > 60
    assert sum(len(wheels._HASH.findall(hashes)) for *_, hashes in pins) == text.count("--hash=")
