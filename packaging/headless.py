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
# Stores a key as the program does, from another process. It comes over standard input.
STORE = "import keyring, sys; keyring.set_password('Desktop Agent', sys.argv[1], sys.stdin.read())"
# What may come from outside the folder: see DRIVERS in linux_packages.py.
SYSTEM = ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libGL", "libEGL", "libOpenGL", "ld-linux", "linux-vdso")
SYSTEM += ("libfontconfig.", "libresolv.", "libutil.", "libgcc_s.", "libstdc++.", "libxcb.", "libwayland-")
SYSTEM += ("libXau.", "libXdmcp.", "libbsd.", "libmd.")  # come with libxcb1
LATE = ("tree_sitter", "tree_sitter_bash", "ziamath", "ziafont", "latex2mathml", "jsonschema_specifications")
LATE += ("mcp.client.streamable_http", "mcp.client.auth.oauth2", "httpx2", "bs4", "markdownify")
LATE += ("simpleeval", "pygments.lexers._mapping", "pygments.lexers.python", "pygments.lexers.jvm")
DATA = ("ziafont/fonts/*", "ziamath/fonts/*", "latex2mathml/*.txt", "jsonschema_specifications/schemas/*/*")
# Loads the packaged libraries alone, not those of this environment.
PARSE = """
import sys
sys.path[:0] = sys.argv[1:]
from tree_sitter._binding import Language, Parser
from tree_sitter_bash._binding import language
tree = Parser(Language(language())).parse(b"ls && rm x")
(line,) = tree.root_node.children
print(*(f"({node.text.decode()})" for node in line.children if node.type == "command"))
"""
DECODERS = ("libqsvg.so", "libqjpeg.so", "libqgif.so", "libqwebp.so")


def ask(program: Path, environment: dict[str, str], *words: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of `ask`."""
    run = subprocess.run(
        [program, "ask", *words], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    return run.returncode, run.stdout.strip(), run.stderr.strip()


def headless(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Yield all checks."""
    with serving() as server:
        code, answer, errors = ask(program, environment, "--base-url", server.url, "--model", "m", "Well?")
    yield "ask a server", code == 0 and ANSWER in answer, f"{answer} ({code}) {errors}"
    code, answer, errors = ask(program, environment, "--demo", "Hello")
    yield "ask the demo", code == 0 and "demo model" in answer, f"{len(answer)} characters ({code})"
    yield from pictures(program, environment, home)
    yield from certificates(program, environment, home)
    yield from keys(program, environment, home)
    inside = program.parent / "_internal"
    missing = [name for name in DECODERS if not list(inside.rglob(name))]
    yield "picture plugins of Qt", not missing, f"missing: {missing}" if missing else ", ".join(DECODERS)
    yield from late(program)
    wrong = outside(program.parent)
    yield "libraries", not wrong, ", ".join(wrong) or "from outside only those that the package depends on"


def late(program: Path) -> Iterator[Check]:
    """Check that what is loaded late is there: modules, fonts, schemas, and a parser of shell lines that works."""
    inside = program.parent / "_internal"
    modules = {path.relative_to(inside).with_suffix("").as_posix() for path in inside.rglob("*.pyc")}
    lacking = [name for name in LATE if not modules & {name.replace(".", "/"), f"{name.replace('.', '/')}/__init__"}]
    seen = f"missing: {lacking}" if lacking else f"{len(modules)} modules"
    yield "modules that are loaded late", not lacking, seen
    inside = program.parent / "_internal"
    empty = [pattern for pattern in DATA if not list(inside.glob(pattern))]
    yield "data of libraries", not empty, f"missing: {empty}" if empty else ", ".join(DATA)
    parsing = [sys.executable, "-I", "-S", "-c", PARSE, str(inside)]
    run = subprocess.run(parsing, capture_output=True, text=True, check=False)
    yield "shell lines are parsed", run.stdout.strip() == "(ls) (rm x)", run.stdout.strip() or run.stderr[-200:]


def pictures(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Check that each format is decoded, and arrives as one that may be sent."""
    good: list[str] = []
    for kind in FORMATS:
        data = io.BytesIO()
        try:
            Image.new("RGB", (123, 45), "teal").save(data, kind)
        except (KeyError, OSError):  # this Pillow cannot write it
            continue
        file = home / f"picture.{kind.lower()}"
        file.write_bytes(data.getvalue())
        _, answer, errors = ask(program, environment, "--demo", "--image", str(file), "What is this?")
        if "123 x 45" in answer:
            good.append(kind)
        else:
            yield f"picture {kind}", False, answer or errors
    yield "pictures", len(good) >= 5, " ".join(good)


def certificates(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Check that TLS works, with the list of authorities in the folder, and refuses a server that it does not know."""
    authorities = list((program.parent / "_internal").rglob("cacert.pem"))
    yield "certificate authorities", len(authorities) == 1, f"{len(authorities)} file"
    certificate = own_certificate(home)
    words = ("--model", "m", "Well?", "--base-url")
    with serving(certificate) as server:
        code, answer, errors = ask(program, environment, *words, server.url)
        refused = code == 1 and "not trusted" in errors and "Traceback" not in errors and not server.keys
        yield "a certificate that nobody signed", refused, (errors or answer).splitlines()[-1]
        trusting = {**environment, "SSL_CERT_FILE": str(certificate)}
        code, answer, errors = ask(program, trusting, *words, server.url)
        yield "the same one, trusted by the person", code == 0 and ANSWER in answer, answer or errors


def keys(program: Path, environment: dict[str, str], home: Path) -> Iterator[Check]:
    """Check that a key in the system's keyring reaches its server, where nothing names the backend."""
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
            code, answer, errors = ask(program, unlocked, *words)
        seen = "the key arrived" if server.keys == [KEY] else f"keys: {len(server.keys)}, {answer} {errors}"
        yield "keyring", code == 0 and server.keys == [KEY], seen


def outside(folder: Path) -> list[str]:
    """Return libraries that the loader takes from the system though the package does not depend on them, or lacks."""
    wrong: set[str] = set()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder / "_internal")}  # as the program sets it for itself
    for file in libraries(folder):
        listed = subprocess.run(["ldd", file], env=environment, capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            name, _, path = line.strip().partition(" => ")
            if path and str(folder) not in path and not name.startswith(SYSTEM):
                wrong.add(f"{name} => {path.split(' (')[0]}")
    return sorted(wrong)
