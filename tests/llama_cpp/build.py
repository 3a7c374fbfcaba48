"""Builds the server of llama.cpp and writes a model for it: `make llama-server`. Takes ten minutes or more, once.

The source is the one that the package llama-cpp-python carries. Needs cmake and a C++ compiler (on Debian and Ubuntu:
cmake, g++ and make). What comes of it lies in a folder of the person's cache, or in DESKTOP_AGENT_LLAMA_CPP, where
the tests beside this file look for it; nothing of it belongs to the project.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

SOURCE = "llama-cpp-python==0.3.36"
WRITER = "gguf==0.19.0"
FOLDER_VARIABLE = "DESKTOP_AGENT_LLAMA_CPP"
# No page, no TLS, no programs of its own, no libraries that the machine may lack; little optimisation builds sooner.
SWITCHES = (
    "-DCMAKE_BUILD_TYPE=None",
    "-DCMAKE_C_FLAGS=-O1",
    "-DCMAKE_CXX_FLAGS=-O1",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_SUBPROCESS=OFF",
    "-DLLAMA_BUILD_NUMBER=1",
    "-DLLAMA_BUILD_COMMIT=source",
    "-DGGML_OPENMP=OFF",
    "-DGGML_LLAMAFILE=OFF",
    "-DGGML_CPU_REPACK=OFF",
)


def folder() -> Path:
    """Where server and model lie. The person's real home counts: the tests replace the one in the environment."""
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()), "desktop-agent-tests", "llama.cpp")
    import pwd

    return Path(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "desktop-agent-tests", "llama.cpp")


def server() -> Path:
    """The program."""
    return folder() / ("llama-server.exe" if sys.platform == "win32" else "llama-server")


def model() -> Path:
    """The model that it loads."""
    return folder() / "chance.gguf"


def build(jobs: int) -> None:
    """Fetch, build, write the model. Raises CalledProcessError."""
    folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder(), prefix="build-") as name:
        work = Path(name)
        if not server().exists():
            _build_server(work, jobs)
        _run(sys.executable, "-m", "venv", work / "venv")
        python = work / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        _run(python, "-m", "pip", "install", "--quiet", WRITER)
        _run(python, Path(__file__).with_name("model.py"), work / "model.gguf")
        (work / "model.gguf").replace(model())


def _build_server(work: Path, jobs: int) -> None:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", SOURCE.partition("==")[0])
    _run(*pip, "--dest", work, SOURCE)
    with tarfile.open(next(work.glob("*.tar.gz"))) as archive:
        archive.extractall(work, filter="data")
    source = next(work.glob("*/vendor/llama.cpp"))
    _run("cmake", "-S", source, "-B", work / "build", *SWITCHES)
    _run("cmake", "--build", work / "build", "--target", "llama-server", "--parallel", str(jobs))
    shutil.copy2(next((work / "build").rglob(server().name)), server())


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)


def main() -> int:
    """0 when everything is there."""
    parser = argparse.ArgumentParser(prog="python -m tests.llama_cpp.build", description="Build llama.cpp's server")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many files at once")
    asked = parser.parse_args()
    missing = [name for name in ("cmake",) if shutil.which(name) is None]
    if missing:
        sys.stderr.write(f"{missing[0]} is not installed. On Debian and Ubuntu: sudo apt-get install cmake g++ make\n")
        return 1
    try:
        build(asked.jobs)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"This failed: {' '.join(error.cmd)}\n")
        return 1
    sys.stdout.write(f"{server()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
