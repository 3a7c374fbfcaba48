"""Find model files that other programs keep on this computer, and the server that can run them.

Each place is laid out as its program documents it: Ollama (https://docs.ollama.com/faq, `OLLAMA_MODELS`; manifests as
in its server/manifest.go), LM Studio (https://lmstudio.ai/docs/app/basics/import-model), the Hugging Face cache
(https://huggingface.co/docs/huggingface_hub/guides/manage-cache), llama.cpp's downloads (`LLAMA_CACHE`).
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from desktop_agent.local_models.gguf_header import first_of_split, model_stem, read_header, size_of_all
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.providers import FoundModels, LocalModel

SERVER_VARIABLE = "DESKTOP_AGENT_LLAMA_SERVER"
"""The environment variable that names the llama.cpp server, where it lies in no usual place."""
_MAX_MODELS = 500
_MAX_ENTRIES = 50_000
_MAX_DEPTH = 6
_MAX_MANIFEST_BYTES = 1_000_000
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


def find_models(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> FoundModels:
    """Return the models of all programs, by name, and the path of the server; blocks. Raises nothing."""
    home = home or Path.home()
    models_by_path: dict[Path, LocalModel] = {}
    for path, id_, source in _candidates(environment, home):
        if len(models_by_path) >= _MAX_MODELS:
            break
        with suppress(OSError, WrongUse, ValueError):
            real_path = path.resolve(strict=True)
            if real_path not in models_by_path and (model := _read(path, id_, source)) is not None:
                models_by_path[real_path] = model
    models = sorted(models_by_path.values(), key=lambda model: (model.id.casefold(), model.source))
    return FoundModels(tuple(models), find_server(environment, home))


def read_model(path: Path) -> LocalModel:
    """Read a file that the person chose; blocks. Raises WrongUse with a sentence for one that cannot be run."""
    try:
        first = first_of_split(path.absolute())
        model = _read(first, model_stem(first), "")
    except OSError as error:
        values = {"name": path.name, "why": error.strerror or type(error).__name__}
        raise WrongUse(Sentence("“{name}” cannot be read: {why}.", values), "Choose another file.") from error
    if model is None:
        sentence = Sentence("“{name}” is a part of a model, and cannot answer by itself.", {"name": path.name})
        raise WrongUse(sentence, "Choose the file of the model itself.")
    return model


def _read(path: Path, id_: str, source: str) -> LocalModel | None:
    header = read_header(path)
    if not header.is_chat_model:
        return None
    return LocalModel(
        id=id_[:300],
        path=str(path),
        size=size_of_all(path),
        source=source,
        name=header.name,
        architecture=header.architecture,
        context_length=header.context_length,
        quantisation=header.quantisation,
    )


def _candidates(environment: Mapping[str, str], home: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield path, name and program of each file that may be a model."""
    if named := environment.get("OLLAMA_MODELS"):
        yield from _ollama_models(Path(named))
    yield from _ollama_models(home / ".ollama/models")
    yield from _ollama_models(Path("/usr/share/ollama/.ollama/models"))
    cache = Path(environment.get("XDG_CACHE_HOME") or home / ".cache")
    hugging_face = Path(environment.get("HF_HOME") or cache / "huggingface")
    hub = Path(environment.get("HF_HUB_CACHE") or hugging_face / "hub")
    usual_downloads = home / "Library/Caches/llama.cpp" if sys.platform == "darwin" else cache / "llama.cpp"
    downloads = Path(environment.get("LLAMA_CACHE") or usual_downloads)
    found = (
        ("LM Studio", _gguf_files(home / ".lmstudio/models")),
        ("LM Studio", _gguf_files(home / ".cache/lm-studio/models")),
        ("Hugging Face", _snapshots(hub)),
        ("llama.cpp", _gguf_files(downloads, depth=1)),
    )
    for program, paths in found:
        for path in paths:
            yield path, model_stem(path), program


def _ollama_models(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the models of Ollama's manifests: HOST/NAMESPACE/MODEL/TAG, with the model's file among the blobs."""
    manifests = root / "manifests"
    for manifest in _files(manifests, 4):
        with suppress(OSError, ValueError):
            host, namespace, model, tag = manifest.relative_to(manifests).parts
            digest = _model_digest(manifest)
            if digest is not None:
                prefix = "" if host == "registry.ollama.ai" else f"{host}/"
                prefix += "" if namespace == "library" else f"{namespace}/"
                yield root / "blobs" / f"sha256-{digest}", f"{prefix}{model}:{tag}", "Ollama"


def _model_digest(manifest: Path) -> str | None:
    if manifest.stat().st_size > _MAX_MANIFEST_BYTES or not manifest.is_file():
        return None
    try:
        content: Any = json.loads(manifest.read_bytes())
    except RecursionError:
        return None
    layers: Any = cast("dict[str, Any]", content).get("layers") if isinstance(content, dict) else None
    for layer in cast("list[Any]", layers) if isinstance(layers, list) else []:
        values = cast("dict[str, Any]", layer) if isinstance(layer, dict) else {}
        match = _DIGEST.fullmatch(str(values.get("digest")))
        if values.get("mediaType") == _OLLAMA_MODEL and match is not None:
            return match[1]
    return None


def _snapshots(root: Path) -> Iterator[Path]:
    """Yield the models of all snapshots: links to blobs."""
    with suppress(OSError):
        for folder in sorted(root.glob("models--*")):
            yield from _gguf_files(folder / "snapshots")


def _gguf_files(root: Path, depth: int = _MAX_DEPTH) -> Iterator[Path]:
    """Yield model files in a folder; of a model in several files only the first."""
    for path in _files(root, depth):
        if path.suffix.lower() == ".gguf" and first_of_split(path) == path:
            yield path


def _files(root: Path, depth: int) -> Iterator[Path]:
    """Yield up to `_MAX_ENTRIES` files below a folder; links to folders are not followed."""
    seen = 0
    folders = [(root, 0)]
    while folders:
        folder, level = folders.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > _MAX_ENTRIES:
                return
            if not entry.is_dir(follow_symlinks=False):
                yield Path(entry.path)
            elif level + 1 < depth:
                folders.append((Path(entry.path), level + 1))


def find_server(environment: Mapping[str, str] = os.environ, home: Path | None = None) -> str | None:
    """Return the path of the llama.cpp server: one that is named, on the search path, or in a usual place."""
    if named := environment.get(SERVER_VARIABLE):
        return shutil.which(named)
    home = home or Path.home()
    places = (
        home / ".local/bin",
        Path("/usr/local/bin"),
        Path("/opt/homebrew/bin"),
        Path("/home/linuxbrew/.linuxbrew/bin"),
        home / ".nix-profile/bin",
        home / "llama.cpp/build/bin",
        home / "AppData/Local/Microsoft/WinGet/Links",
    )
    path = os.pathsep.join((environment.get("PATH", os.defpath), *map(str, places)))
    return shutil.which("llama-server", path=path)
