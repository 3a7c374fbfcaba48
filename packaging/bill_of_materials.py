"""The bill of materials of the packaged program (CycloneDX 1.6, JSON), from the metadata of what is really in it.

Every file of the folder belongs to a component: a distribution that recorded it, Python, PyInstaller, or a package of
the system that a library was copied from. A file without an owner ends the build.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from ui.bridge.desktop.licences import (
    BILL_OF_MATERIALS,
    PROGRAM,
    UNNAMED,
    Component,
    by_name,
    canonical_name,
    component_of,
    python_component,
)

OURS = ("desktop_agent", "ui", "resources")
UNPACKED_PYSIDE = ("shiboken6", "files.dir")
"""Unpacked from a library of PySide6: packaging/desktop-agent.spec."""
PYTHONS_FILES = re.compile(
    r"base_library\.zip|(lib)?python3[^/]*|lib-dynload|_sysconfigdata_[^/]*|vcruntime.*\.dll|api-ms-.*\.dll"
)


def write_bill(folder: Path, version: str) -> Path:
    """Write the bill of a folder into its resources. Returns the file."""
    components = components_of(folder)
    target = next(folder.rglob("resources/guide.md")).with_name(BILL_OF_MATERIALS)
    text = json.dumps(bill(components, version), ensure_ascii=False, indent=1)
    target.write_text(f"{text}\n", encoding="utf-8")
    return target


def components_of(folder: Path) -> list[Component]:
    """Find the components whose files are in the folder. Ends the program if a file has no owner."""
    recorded = {str(path): owner for owner in distributions() for path in owner.files or ()}
    owners: dict[str, Distribution] = {}
    components, unowned = [python_component(), component_of(distribution("pyinstaller"))], list[Path]()
    libraries: set[str] = set()
    for path in inside(folder):
        owner = recorded.get(str(path)) or recorded.get(str(path.with_suffix(".py")))
        if path.parts[0].split("-")[0] in OURS:
            owner = distribution(PROGRAM)
        elif path.parts[:2] == UNPACKED_PYSIDE:
            owner = distribution("shiboken6")
        if owner is not None:
            owners[canonical_name(owner.metadata["Name"])] = owner
        elif not is_pythons(path) and not is_pyinstallers(path):
            (libraries.add(path.name) if ".so" in path.name else unowned.append(path))
    components += (component_of(owner) for owner in owners.values())
    components += (component for component in system_components(libraries) if component not in components)
    if unowned:
        sys.exit("Nobody is known to own these files of the package:\n" + "\n".join(map(str, unowned)))
    return by_name(components)


def inside(folder: Path) -> Iterator[Path]:
    """Yield all files, relative to the folder from which PyInstaller imports modules."""
    internal = folder / "_internal"
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not file.is_symlink():
            yield file.relative_to(internal if internal in file.parents else folder)


def is_pythons(path: Path) -> bool:
    """Return whether a file is Python itself or belongs to its standard library."""
    first = path.parts[0]
    module = first.partition(".")[0]
    return bool(PYTHONS_FILES.match(first)) or module in sys.stdlib_module_names


def is_pyinstallers(path: Path) -> bool:
    """Return whether a file is PyInstaller's launcher or what that runs first."""
    return path.stem == PROGRAM or path.parts[0].startswith(("pyimod", "pyi_", "_pyi_"))


def system_components(libraries: set[str]) -> Iterator[Component]:
    """Find the packages of Debian that these libraries were copied from. Ends the program if one has none."""
    if not libraries:
        return
    lines = dpkg("--search", *(f"*/{name}" for name in sorted(libraries)))
    owners = {Path(path).name: package for package, path in re.findall(r"^([^:,\s]+):.* (/\S+)$", lines, re.MULTILINE)}
    if without := sorted(libraries - owners.keys()):
        sys.exit(f"Copied from this system, though no package has it: {', '.join(without)}")
    packages = sorted({owners[name] for name in libraries})
    versions = dict(
        line.split() for line in dpkg("--show", "--showformat=${Package} ${Version}\\n", *packages).splitlines()
    )
    for package in packages:
        text = Path("/usr/share/doc", package, "copyright").read_text(encoding="utf-8", errors="replace").strip()
        yield Component(package, versions[package], debian_licence(text), text, "deb")


def dpkg(*words: str) -> str:
    """Return what dpkg-query prints about the packages of this system."""
    return subprocess.run(("dpkg-query", *words), capture_output=True, text=True, check=False).stdout


def debian_licence(text: str) -> str:
    """Return the licence of most files by a copyright file of Debian that is machine-readable; "" otherwise."""
    if not text.startswith("Format"):
        return ""
    paragraphs = (paragraph for paragraph in text.split("\n\n") if re.search(r"^Files: *\*", paragraph, re.MULTILINE))
    names = (re.search(r"^License: *(\S.*)$", paragraph, re.MULTILINE) for paragraph in paragraphs)
    return next((name[1].strip() for name in names if name), "")


def bill(components: list[Component], version: str) -> dict[str, Any]:
    """Return the document."""
    moment = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    ours = {"type": "application", "bom-ref": PROGRAM, "name": PROGRAM, "version": version}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": ours},
        "components": [entry(component) for component in components],
    }


def entry(component: Component) -> dict[str, Any]:
    """Return a component in the form of CycloneDX."""
    url = package_url(component)
    properties: dict[str, Any] = {
        "type": "application" if component.name == PROGRAM else "library",
        "bom-ref": url,
        "name": component.name,
        "version": component.version,
        "purl": url,
    }
    if component.licence or component.text:
        spdx_id = spdx_name(component.licence)
        licence: dict[str, Any] = {"id": spdx_id} if spdx_id else {"name": component.licence or UNNAMED}
        if component.text:
            licence["text"] = {"contentType": "text/plain", "content": component.text}
        properties["licenses"] = [{"license": licence}]
    return properties


def spdx_name(licence: str) -> str:
    """Return the identifier of SPDX, if it is exactly one; else ""."""
    try:
        expression = str(canonicalize_license_expression(licence))
    except InvalidLicenseExpression:
        return ""
    return "" if " " in expression else expression


def package_url(component: Component) -> str:
    """Return the package URL (purl), by which databases of vulnerabilities know a component."""
    version = component.version.replace("+", "%2B").replace(":", "%3A")
    if component.kind == "deb":
        return f"pkg:deb/debian/{component.name}@{version}"
    name = canonical_name(component.name) if component.kind == "pypi" else component.name.lower()
    return f"pkg:{component.kind}/{name}@{version}"
