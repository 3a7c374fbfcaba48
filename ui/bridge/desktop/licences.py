"""The components that the program is made of: names, versions, licences and their texts.

A packaged program reads its bill of materials (CycloneDX), which `packaging/bill_of_materials.py` wrote when it was
built. Elsewhere the metadata of installed packages is read. Both read many files: never in the GUI thread.
"""

import json
import os
import platform
import re
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from resources import resource_path

PROGRAM = "desktop-agent"
BILL_OF_MATERIALS = "components.cdx.json"
"""The resource of a packaged program."""

UNNAMED = "see the text"
"""The name of a licence without one in the metadata: CycloneDX requires a name."""

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
_TEXT_FILE = re.compile(r"(licen[cs]e|copying|notice|copyright)", re.IGNORECASE)
_CLASSIFIER = "License :: "


@dataclass(frozen=True, slots=True)
class Component:
    """One component. `licence` is an SPDX expression, or the words of the metadata; "" if it has none."""

    name: str
    version: str
    licence: str
    text: str
    kind: str = "pypi"
    """The type of its package URL, which names where it is from."""


def program_components() -> list[Component]:
    """Return all components, by name. Raises OSError or ValueError if the bill of materials is damaged."""
    try:
        file = resource_path(BILL_OF_MATERIALS)
    except FileNotFoundError:
        return installed_components()
    return parse_bill_of_materials(file.read_text(encoding="utf-8"))


def parse_bill_of_materials(text: str) -> list[Component]:
    """Read the components from CycloneDX. Raises ValueError if it is something else."""
    document: Any = json.loads(text)
    try:
        return [_parse_component(component) for component in document["components"]]
    except (KeyError, TypeError, AttributeError) as error:
        message = "This is no bill of materials."
        raise ValueError(message) from error


def installed_components() -> list[Component]:
    """Return Python and every installed distribution that the program needs, also with all extras, by name."""
    distributions = _required_distributions()
    return by_name([python_component(), *(component_of(package) for package in distributions)])


def by_name(components: list[Component]) -> list[Component]:
    """Return the components sorted by name."""
    return sorted(components, key=lambda component: (component.name.casefold(), component.version))


def component_of(package: Distribution) -> Component:
    """Read the metadata of a distribution."""
    name, licence = package.metadata["Name"], _licence_of(package)
    text = _own_text(package) or _standard_text(licence, package)
    return Component(name, package.version, licence, "\n\n".join(filter(None, (text, _missing_text(name)))))


def python_component() -> Component:
    """Return the running Python."""
    library = Path(os.__file__).parent
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    files = (
        library / "LICENSE.txt",
        Path(sys.base_prefix, "LICENSE.txt"),
        Path("/usr/share/doc", version, "copyright"),
    )
    text = next((_read(file) for file in files if file.is_file()), "")
    return Component("Python", platform.python_version(), "PSF-2.0", text, "generic")


def canonical_name(name: str) -> str:
    """Return the name of a distribution as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _parse_component(component: dict[str, Any]) -> Component:
    licences = [entry["license"] for entry in component.get("licenses", ())]
    names = [str(licence.get("id") or licence.get("name", "")) for licence in licences]
    names = [name for name in names if name != UNNAMED]
    texts = [str(licence["text"]["content"]) for licence in licences if "text" in licence]
    return Component(str(component["name"]), str(component.get("version", "")), ", ".join(names), "\n\n".join(texts))


def _required_distributions() -> list[Distribution]:
    pending: list[tuple[str, frozenset[str] | None]] = [(PROGRAM, None)]
    read: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str] | None]] = set()
    while pending:
        name, extras = request = pending.pop()
        if request in seen:
            continue
        seen.add(request)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            # For another system or another Python, or an extra that was not installed.
            continue
        read[canonical_name(name)] = package
        for requirement in package.requires or ():
            extra = _EXTRA.search(requirement)
            if extra and extras is not None and extra[1] not in extras:
                continue
            if parts := _REQUIREMENT.match(requirement):
                names = (name.strip() for name in (parts[2] or "").split(","))
                pending.append((canonical_name(parts[1]), frozenset(filter(None, names))))
    return list(read.values())


def _licence_of(package: Distribution) -> str:
    if expression := _field(package, "License-Expression"):
        return expression
    # Some packages put the whole text there.
    if (words := _field(package, "License")) and "\n" not in words and len(words) < 80:
        return words
    classifiers = package.metadata.get_all("Classifier") or []
    names = [name.rpartition(" :: ")[2] for name in classifiers if name.startswith(_CLASSIFIER)]
    return ", ".join(name for name in names if name != "OSI Approved")


def _field(package: Distribution, name: str) -> str:
    return str((package.metadata.get_all(name) or [""])[0])


def _own_text(package: Distribution) -> str:
    texts: list[str] = []
    for path in sorted(package.files or (), key=str):
        is_metadata = any(part.endswith(".dist-info") for part in path.parts[:1])
        # PEP 639 has a folder for them, with names of any kind.
        if is_metadata and (path.parts[1:2] == ("licenses",) or _TEXT_FILE.search(path.name)):
            texts.append(_read(Path(str(path.locate()))))
    return "\n\n".join(text for text in dict.fromkeys(texts) if text)


def _standard_text(licence: str, package: Distribution) -> str:
    """Return the standard texts of these licences, for a distribution that comes without any."""
    texts: list[str] = []
    for name in re.findall(r"[A-Za-z0-9.+-]+", licence):
        try:
            texts.append(_read(resource_path("licences", f"{name}.txt")))
        except FileNotFoundError:
            continue
    author = _field(package, "Author") or _field(package, "Author-email")
    return "\n\n".join([f"{package.metadata['Name']}, {author}".strip(", "), *texts])


def _missing_text(name: str) -> str:
    """Return the terms of third-party parts that a distribution contains without their licences."""
    try:
        return _read(resource_path("licences", f"with-{canonical_name(name)}.txt"))
    except FileNotFoundError:
        return ""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
