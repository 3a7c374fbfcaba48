"""The layouts are those that their programs document: Ollama 0.12, LM Studio 0.3.30, huggingface_hub 1.1."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from desktop_agent.local_models.model_files import SERVER_VARIABLE, find_models, find_server
from tests.fakes.local_models import gguf, install_server, write_model

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
LAYER = "application/vnd.ollama.image."


def names(home: Path, **environment: str) -> list[tuple[str, str]]:
    return [(model.id, model.source) for model in find_models(environment, home).models]


def add_to_ollama(root: Path, name: str, *, digest: str | None = None, layers: object = None) -> Path:
    """As `ollama pull` lays it down: a manifest, and blobs by their hash."""
    data = gguf()
    digest = digest or f"sha256:{hashlib.sha256(data).hexdigest()}"
    model = {"mediaType": f"{LAYER}model", "digest": digest, "size": len(data)}
    template = {"mediaType": f"{LAYER}template", "digest": "sha256:" + "0" * 64, "size": 3}
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "layers": [template, model] if layers is None else layers}
    path = root / "manifests" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(manifest))
    blob = root / "blobs" / digest.replace(":", "-")
    blob.parent.mkdir(exist_ok=True)
    blob.write_bytes(data)
    return blob


def test_models_of_ollama(tmp_path):
    blob = add_to_ollama(tmp_path / ".ollama/models", "registry.ollama.ai/library/qwen3/8b")
    (model,) = find_models({}, tmp_path).models
    assert (model.id, model.source, model.path) == ("qwen3:8b", "Ollama", str(blob))
    assert (model.architecture, model.context_length, model.quantisation) == ("qwen3", 40960, "Q4_K_M")
    assert model.size == blob.stat().st_size


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("registry.ollama.ai/ada/tiny/latest", "ada/tiny:latest"),
        ("hf.co/bartowski/Tiny-GGUF/Q8_0", "hf.co/bartowski/Tiny-GGUF:Q8_0"),
    ],
)
def test_names_of_ollama_are_those_that_it_shows(tmp_path, place, name):
    add_to_ollama(tmp_path / "elsewhere", place)
    assert names(tmp_path, OLLAMA_MODELS=str(tmp_path / "elsewhere")) == [(name, "Ollama")]


@pytest.mark.parametrize("layers", [{}, [], "model", [7], [{"mediaType": f"{LAYER}model"}]])
def test_a_manifest_without_a_model_is_passed_over(tmp_path, layers):
    add_to_ollama(tmp_path / ".ollama/models", "registry.ollama.ai/library/odd/latest", layers=layers)
    assert names(tmp_path) == []


def test_a_manifest_leads_nowhere_else(tmp_path):
    write_model(tmp_path / "secret")
    root = tmp_path / ".ollama/models"
    add_to_ollama(root, "registry.ollama.ai/library/good/latest")
    manifest = root / "manifests/registry.ollama.ai/library/good/latest"
    bad = json.loads(manifest.read_text())
    bad["layers"][1]["digest"] = "sha256:../../../secret"
    manifest.write_text(json.dumps(bad))
    assert names(tmp_path) == []
    manifest.write_text("[" * 100_000)
    assert names(tmp_path) == []


@pytest.mark.parametrize("root", [".lmstudio/models", ".cache/lm-studio/models"])
def test_models_of_lm_studio(tmp_path, root):
    folder = tmp_path / root / "lmstudio-community/Qwen3-8B-GGUF"
    write_model(folder / "Qwen3-8B-Q4_K_M.gguf")
    write_model(folder / "mmproj-Qwen3-8B-F16.gguf", {"general.architecture": "clip"})
    (folder / "README.md").write_text("about")
    assert names(tmp_path) == [("Qwen3-8B-Q4_K_M", "LM Studio")]


def add_to_hub(hub: Path, repository: str, *files: str, revision: str = "a" * 40) -> None:
    """As huggingface_hub caches it: blobs by their hash, and links to them in a folder for each revision."""
    folder = hub / f"models--{repository.replace('/', '--')}"
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    snapshot = folder / "snapshots" / revision
    for file in files:
        blob = folder / "blobs" / hashlib.sha256(file.encode()).hexdigest()
        blob.write_bytes(gguf())
        link = snapshot / file
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", None])
def test_models_of_the_hugging_face_cache(tmp_path, variable):
    places = {"HF_HUB_CACHE": "", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}
    own = tmp_path / "own"
    hub = own / places[variable] if variable else tmp_path / ".cache/huggingface/hub"
    add_to_hub(
        hub, "ggml-org/tiny-GGUF", "tiny-Q8_0.gguf", "sub/large-00001-of-00002.gguf", "sub/large-00002-of-00002.gguf"
    )
    # Another revision links to the same blob.
    add_to_hub(hub, "ggml-org/tiny-GGUF", "tiny-Q8_0.gguf", revision="b" * 40)
    environment = {variable: str(own)} if variable else {}
    assert names(tmp_path, **environment) == [("large", "Hugging Face"), ("tiny-Q8_0", "Hugging Face")]


def test_models_that_llama_cpp_downloaded(tmp_path):
    write_model(tmp_path / "own/ggml-org_tiny.gguf")
    assert names(tmp_path, LLAMA_CACHE=str(tmp_path / "own")) == [("ggml-org_tiny", "llama.cpp")]


def test_what_cannot_be_read_hides_nothing_else(tmp_path):
    folder = tmp_path / ".lmstudio/models/a/b"
    write_model(folder / "good.gguf")
    (folder / "broken.gguf").write_bytes(b"GGUF")
    (folder / "gone.gguf").symlink_to(tmp_path / "nowhere")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe.gguf")
    write_model(folder / "split-00001-of-00002.gguf")
    assert names(tmp_path) == [("good", "LM Studio")]


def test_the_server_is_found(tmp_path):
    assert find_server({"PATH": ""}, tmp_path) is None
    usual = install_server(tmp_path / ".local/bin")
    assert find_server({"PATH": ""}, tmp_path) == usual
    on_path = install_server(tmp_path / "bin")
    assert find_server({"PATH": str(tmp_path / "bin")}, tmp_path) == on_path
    named = install_server(tmp_path / "named")
    assert find_server({"PATH": str(tmp_path / "bin"), SERVER_VARIABLE: named}, tmp_path) == named
