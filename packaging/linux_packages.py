"""Packs the laid-out tree as packages of Debian's and of Fedora's kind, and as an archive: equal trees, equal bytes."""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from linux_tree import settle
from prune import libraries

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

# What PyInstaller leaves to the system: drivers and what must match the machine's own configuration.
DRIVERS = {
    "libgl1": "libGL.so.1",
    "libegl1": "libEGL.so.1",
    "libxcb1": "libxcb.so.1",
    "libwayland-client0": "libwayland-client.so.0",
    "libwayland-cursor0": "libwayland-cursor.so.0",
    "libwayland-egl1": "libwayland-egl.so.1",
    "libfontconfig1": "libfontconfig.so.1",
}
"""Packages of Debian, and the libraries by which packages of the other kind ask for them on any system."""
PROGRAMS = ("fontconfig", "ca-certificates")
RECOMMENDS = (
    "bubblewrap",
    "fonts-noto-core",
    "fonts-noto-color-emoji",
    "gnome-keyring | kwalletmanager | keepassxc",
    "xdg-utils",
)
RPM_RECOMMENDS = ("bubblewrap", "google-noto-sans-fonts", "google-noto-color-emoji-fonts", "xdg-utils")
AUTHORS = "The Desktop Agent authors <desktop-agent@localhost>"

RPM_SPEC = """
%global debug_package %{{nil}}
%global __os_install_post %{{nil}}
%global _build_id_links none
%global _binary_payload w13.zstdio
Name: desktop-agent
Version: {version}
Release: 1
Summary: {description}
License: MIT
Packager: {authors}
AutoReqProv: no
{requires}
{recommends}

%description
Desktop Agent is a native window in which you talk with language models and let them act.
You see every word and every summary of reasoning as it arrives, approve what may be done,
and stop it at once.

%install
cp -a {tree}/. %{{buildroot}}/

%files
%defattr(-, root, root, -)
/usr/bin/desktop-agent
/usr/lib/desktop-agent
/usr/share/applications/desktop-agent.desktop
/usr/share/icons/hicolor/*/apps/desktop-agent.*
/usr/share/man/man1/desktop-agent.1.gz
/usr/share/metainfo/*.metainfo.xml
%doc /usr/share/doc/desktop-agent
"""


def packages(tree: Path, target: Path, project: dict[str, str]) -> list[Path]:
    """Build the packages for which this machine has the tools. Returns the files."""
    files = [archive(tree, target, project["version"])]
    if shutil.which("dpkg-deb"):
        files.append(debian_package(tree, target, project))
    else:
        sys.stdout.write("No dpkg-deb here, so no Debian package.\n")
    if shutil.which("rpmbuild"):
        files.append(rpm_package(tree, target, project))
    else:
        sys.stdout.write("No rpmbuild here, so no RPM package.\n")
    return files


def archive(tree: Path, target: Path, version: str) -> Path:
    """Pack `usr` as an archive, whose content may be put below any folder, such as ~/.local."""
    name = f"desktop-agent-{version}-linux-{platform.machine()}"
    file = target / f"{name}.tar.xz"
    reproducible = ("--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu")
    rename = ("--transform", f"s,^usr,{name},", "-C", str(tree), "usr")
    run("tar", *reproducible, "--use-compress-program=xz -T2 -4", "-cf", str(file), *rename)
    return file


def debian_package(tree: Path, target: Path, project: dict[str, str]) -> Path:
    """Build the Debian package."""
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    metadata = tree / "DEBIAN"
    metadata.mkdir()
    (metadata / "control").write_text(control(tree, architecture, project))
    files = [path for path in sorted((tree / "usr").rglob("*")) if path.is_file() and not path.is_symlink()]
    sums = (f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(tree)}\n" for path in files)  # noqa: S324
    (metadata / "md5sums").write_text("".join(sums))
    settle(metadata)
    file = target / f"desktop-agent_{project['version']}_{architecture}.deb"
    try:
        run("dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=2", "--build", str(tree), str(file))
    finally:
        shutil.rmtree(metadata)
    return file


def control(tree: Path, architecture: str, project: dict[str, str]) -> str:
    """Return the package's description (Debian Policy Manual, chapter 5)."""
    fields = {
        "Package": "desktop-agent",
        "Version": project["version"],
        "Architecture": architecture,
        "Maintainer": AUTHORS,
        "Section": "utils",
        "Priority": "optional",
        "Installed-Size": str(size_of(tree / "usr") // 1024),
        "Depends": ", ".join([f"libc6 (>= {needed_glibc(tree)})", *DRIVERS, *PROGRAMS]),
        "Recommends": ", ".join(RECOMMENDS),
        "Description": project["description"],
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items())


def rpm_package(tree: Path, target: Path, project: dict[str, str]) -> Path:
    """Build the package for Fedora, openSUSE and their kin. It asks for libraries by name, as their packages differ."""
    work = tree.with_name("rpm")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    names = [f"libc.so.6(GLIBC_{needed_glibc(tree)})(64bit)", *(f"{name}()(64bit)" for name in DRIVERS.values())]
    spec = work / "desktop-agent.spec"
    values = {
        **project,
        "authors": AUTHORS,
        "tree": tree,
        "requires": "\n".join(f"Requires: {name}" for name in (*names, *PROGRAMS)),
        "recommends": "\n".join(f"Recommends: {name}" for name in RPM_RECOMMENDS),
    }
    spec.write_text(RPM_SPEC.format_map(values))
    macros = {
        "_topdir": work,
        "_rpmdir": work,
        "_rpmfilename": "desktop-agent.rpm",
        "_buildhost": "localhost",
        "use_source_date_epoch_as_buildtime": 1,
        "clamp_mtime_to_source_date_epoch": 1,
        "source_date_epoch_from_changelog": 0,
    }
    defined = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
    run("rpmbuild", "--quiet", *defined, "-bb", str(spec))
    file = target / f"desktop-agent-{project['version']}-1.{platform.machine()}.rpm"
    shutil.move(work / "desktop-agent.rpm", file)
    shutil.rmtree(work)
    return file


def needed_glibc(folder: Path) -> str:
    """Return the newest symbol version of the C library that any part asks for."""
    versions = {(2, 17)}
    for file in libraries(folder):
        symbols = subprocess.run(["objdump", "-T", file], capture_output=True, text=True, check=False).stdout
        versions |= {(int(a), int(b)) for a, b in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", symbols)}
    return "{}.{}".format(*max(versions))


def size_of(folder: Path) -> int:
    """Return the bytes on disk."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())


def run(*command: str | Path, **environment: str) -> None:
    """Run a command, and end the program with its exit code when it fails."""
    result = subprocess.run(command, env={**os.environ, **environment}, check=False)
    if result.returncode != 0:
        sys.exit(result.returncode)
