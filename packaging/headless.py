"""What the packaged program must do without a screen."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from loopback import ANSWER, own_certificate, serving
from prune import libraries
from tests.frame.displays import keyring, session_bus

Check = tuple[str, bool, str]
PATIENCE = 60.0
KEY = "sk-kept-by-the-keyring"
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "AVIF")
# Stores as the program does, from outside of it. The key comes by standard input.
STORE = "import keyring, sys; keyring.set_password('Desktop Agent', sys.argv[1], sys.stdin.read())"
# What may come from outside the folder: see DEPENDS in build.py.
SYSTEM = ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libGL", "libEGL", "libOpenGL", "ld-linux", "linux-vdso")
SYSTEM += ("libfontconfig.", "libresolv.", "libutil.", "libgcc_s.", "libstdc++.", "libxcb.", "libwayland-")
SYSTEM += ("libXau.", "libXdmcp.", "libbsd.", "libmd.")  # come with libxcb1
LATE = ("tree_sitter", "tree_sitter_bash", "ziamath", "ziafont", "latex2mathml", "jsonschema_specifications")
LATE += ("mcp.client.streamable_http", "mcp.client.auth.oauth2", "httpx2", "bs4", "markdownify")
LATE += ("simpleeval", "pygments.lexers._mapping", "pygments.lexers.python", "pygments.lexers.jvm")
DATA = ("ziafont/fonts/*", "ziamath/fonts/*", "latex2mathml/*.txt", "jsonschema_specifications/schemas/*/*")
# The libraries themselves, without what Python would find elsewhere.
PARSE = """
import sys
sys.path[:0] = sys.argv[1:]
from tree_sitter._binding import Language, Parser
from tree_sitter_bash._binding import language
tree = Parser(Language(language())).parse(b"ls && rm x")
(line,) = tree.root_node.children
print(*(f"({each.text.decode()})" for each in line.children if each.type == "command"))
"""
DECODERS = ("libqsvg.so", "libqjpeg.so", "libqgif.so", "libqwebp.so")


def ask(program: Path, environment: dict[str, str], *words: str) -> tuple[int, str, str]:
    """Exit code, output, errors of `ask`."""
    run = subprocess.run(
        [program, "ask", *words], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    return run.returncode, run.stdout.strip(), run.stderr.strip()


def headless(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """All of it."""
    with serving() as server:
        code, said, errors = ask(program, environment, "--base-url", server.url, "--model", "m", "Well?")
    yield "ask a server", code == 0 and ANSWER in said, f"{said} ({code}) {errors}"
    code, said, errors = ask(program, environment, "--demo", "Hello")
    yield "ask the demo", code == 0 and "demo model" in said, f"{len(said)} characters ({code})"
    yield from pictures(program, environment, home)
    yield from certificates(program, environment, home)
    yield from keys(program, environment, home)
    inside = program.parent / "_internal"
    missing = [name for name in DECODERS if not list(inside.rglob(name))]
    yield "picture plugins of Qt", not missing, f"missing: {missing}" if missing else ", ".join(DECODERS)
    yield from late(program)
    found = outside(program.parent)
    yield "libraries", not found, ", ".join(found) or "from outside only those that the package depends on"


def late(program: Path) -> Iterator[Check]:
    """What is loaded late is there: modules, fonts and schemas, and the parser of shell lines, which parses."""
    inside = program.parent / "_internal"
    modules = {path.relative_to(inside).with_suffix("").as_posix() for path in inside.rglob("*.pyc")}
    lacking = [name for name in LATE if not modules & {name.replace(".", "/"), f"{name.replace('.', '/')}/__init__"}]
    seen = f"missing: {lacking}" if lacking else f"{len(modules)} modules"
    yield "modules that are loaded late", not lacking, seen
    inside = program.parent / "_internal"
    empty = [pattern for pattern in DATA if not list(inside.glob(pattern))]
    yield "data of libraries", not empty, f"missing: {empty}" if empty else ", ".join(DATA)
    parsing = [sys.executable, "-I", "-S", "-c", PARSE, str(inside)]
    said = subprocess.run(parsing, capture_output=True, text=True, check=False)
    yield "shell lines are parsed", said.stdout.strip() == "(ls) (rm x)", said.stdout.strip() or said.stderr[-200:]


def pictures(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Each format is decoded, and arrives as one that may be sent."""
    good: list[str] = []
    for kind in FORMATS:
        held = io.BytesIO()
        try:
            Image.new("RGB", (123, 45), "teal").save(held, kind)
        except (KeyError, OSError):  # this Pillow cannot write it
            continue
        file = home / f"picture.{kind.lower()}"
        file.write_bytes(held.getvalue())
        _, said, errors = ask(program, environment, "--demo", "--image", str(file), "What is this?")
        if "123 x 45" in said:
            good.append(kind)
        else:
            yield f"picture {kind}", False, said or errors
    yield "pictures", len(good) >= 5, " ".join(good)


def certificates(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """TLS works, with the list of authorities that the folder carries, and refuses whom it does not know."""
    authorities = list((program.parent / "_internal").rglob("cacert.pem"))
    yield "certificate authorities", len(authorities) == 1, f"{len(authorities)} file"
    certificate = own_certificate(home)
    words = ("--model", "m", "Well?", "--base-url")
    with serving(certificate) as server:
        code, said, errors = ask(program, environment, *words, server.url)
        refused = code == 1 and "not trusted" in errors and "Traceback" not in errors and not server.keys
        yield "a certificate that nobody signed", refused, (errors or said).splitlines()[-1]
        trusting = {**environment, "SSL_CERT_FILE": str(certificate)}
        code, said, errors = ask(program, trusting, *words, server.url)
        yield "the same one, trusted by the person", code == 0 and ANSWER in said, said or errors


def keys(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """A key that lies in the system's keyring reaches its server, found without any hint."""
    with serving() as server:
        data = home / "keyed"
        data.mkdir()
        endpoint = {"id": f"custom:{server.url}", "title": "Checked", "base_url": server.url, "has_key": True}
        (data / "preferences.json").write_text(json.dumps({"providers": {"endpoints": [endpoint]}}))
        bare = {name: value for name, value in environment.items() if name != "PYTHON_KEYRING_BACKEND"}
        with session_bus(bare) as bus, keyring(bus) as unlocked:
            storing = [sys.executable, "-c", STORE, endpoint["id"]]
            subprocess.run(storing, env={**os.environ, **unlocked}, input=KEY, text=True, check=True)
            unlocked.pop("PYTHON_KEYRING_BACKEND")
            words = ("--data-dir", str(data), "--base-url", server.url, "--model", "m", "Well?")
            code, said, errors = ask(program, unlocked, *words)
        seen = "the key arrived" if server.keys == [KEY] else f"keys: {len(server.keys)}, {said} {errors}"
        yield "keyring", code == 0 and server.keys == [KEY], seen


def outside(folder: Path) -> list[str]:
    """Libraries that the loader takes from the system although the package does not ask for them, or does not find."""
    wrong: set[str] = set()
    found_as = {**os.environ, "LD_LIBRARY_PATH": str(folder / "_internal")}  # what the program sets for itself
    for file in libraries(folder):
        listed = subprocess.run(["ldd", file], env=found_as, capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            name, _, path = line.strip().partition(" => ")
            if path and str(folder) not in path and not name.startswith(SYSTEM):
                wrong.add(f"{name} => {path.split(' (')[0]}")
    return sorted(wrong)
