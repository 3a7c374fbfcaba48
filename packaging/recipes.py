"""What the other packages and the recipes must do: unpack and run, or be accepted by the tools that judge them."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from build import APPLICATION_ID, BUILD, DIST, PROJECT, ROOT, draw_other_icons
from linux_tree import DATA, application_metadata

Check = tuple[str, bool, str]
OTHER_SYSTEMS = ROOT / "packaging" / "other_systems"


def recipes(environment: dict[str, str], place: Path) -> Iterator[Check]:
    """Yield all checks; one whose tool this machine lacks fails."""
    place.mkdir()
    metadata = place / f"{APPLICATION_ID}.metainfo.xml"
    metadata.write_text(application_metadata(PROJECT["version"], APPLICATION_ID), encoding="utf-8")
    scripts = [*OTHER_SYSTEMS.glob("*.sh"), *(ROOT / "packaging").glob("*.sh")]
    recipes_in_yaml = [*(ROOT / ".github/workflows").glob("*.yml"), *(DATA / "flatpak").glob("*.yaml")]
    lines = "{extends: default, rules: {line-length: {max: 140}}}"
    yield judged("desktop entry", "desktop-file-validate", DATA / "desktop-agent.desktop")
    yield judged("metadata of AppStream", "appstreamcli", "validate", "--no-net", metadata)
    yield judged("page of the manual", "mandoc", "-T", "lint", "-W", "style", DATA / "desktop-agent.1")
    yield judged("shell scripts", "shellcheck", "--severity=warning", *scripts)
    yield judged("workflows and Flatpak", "yamllint", "--strict", "-d", lines, *recipes_in_yaml)
    yield installer_of_windows(place)
    for package in (*DIST.glob("*.rpm"), *DIST.glob("*.tar.xz")):
        yield unpacked(package, environment, place / package.suffix)


def judged(what: str, *command: str | Path) -> Check:
    """Run a tool that succeeds when all is well."""
    if not shutil.which(str(command[0])):
        return what, False, f"{command[0]} is not installed"
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    output = " ".join((run.stdout + run.stderr).split())
    return what, run.returncode == 0, f"{command[0]}: {output[:400] or 'nothing to say'}"


def installer_of_windows(place: Path) -> Check:
    """Compile the installer around a stand-in for the program, which only Windows could make."""
    program = place / "program"
    (program / "_internal").mkdir(parents=True)
    (program / "desktop-agent.exe").write_bytes(b"MZ")
    (program / "_internal" / "part").write_bytes(b"part")
    draw_other_icons(BUILD)
    values = {
        "VERSION": PROJECT["version"],
        "SOURCE": program,
        "ICON": BUILD / "desktop-agent.ico",
        "OUTPUT": place / "desktop-agent-setup.exe",
    }
    defined = [f"-D{name}={value}" for name, value in values.items()]
    return judged("installer of Windows", "makensis", "-V2", "-WX", *defined, OTHER_SYSTEMS / "installer.nsi")


def unpacked(package: Path, environment: dict[str, str], root: Path) -> Check:
    """Unpack a package into a folder, and run the program in it."""
    root.mkdir()
    if package.suffix == ".rpm":
        command = ["rpm", "--install", "--nodeps", "--noscripts", f"--root={root}", str(package)]
    else:
        command = ["tar", "--strip-components=1", "-C", str(root), "-xf", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    places = (root / "usr/bin/desktop-agent", root / "bin/desktop-agent")
    program = next((file for file in places if file.exists()), None)
    if done.returncode or program is None:
        return package.name, False, done.stderr.strip()[-300:] or "it has no program"
    ask = [program, "ask", "--demo", "--data-dir", root / "data", "Hello there"]
    run = subprocess.run(ask, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return package.name, "demo model" in run.stdout, f"unpacked, and answers in {len(run.stdout)} characters"
