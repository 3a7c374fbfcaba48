import contextlib
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_agent.local_models.gguf_header import first_of_split, read_header, size_of_all
from desktop_agent.local_models.model_files import read_model
from desktop_agent.types.errors import Sentence, WrongUse
from tests.fakes.local_models import LIST, QWEN, TEXT, gguf, write_model

U64 = struct.Struct("<Q").pack


def test_it_says_what_a_model_is(tmp_path):
    header = read_header(write_model(tmp_path / "model.gguf"))
    assert (header.name, header.architecture, header.context_length) == ("Qwen3 8B", "qwen3", 40960)
    assert (header.quantisation, header.is_chat_model) == ("Q4_K_M", True)


def test_the_name_of_the_file_says_how_it_is_quantised_where_the_header_does_not(tmp_path):
    values = {key: value for key, value in QWEN.items() if key != "general.file_type"}
    assert read_header(write_model(tmp_path / "Qwen3-8B-UD-IQ2_XXS.gguf", values)).quantisation == "IQ2_XXS"
    assert read_header(write_model(tmp_path / "qwen.f16.gguf", values)).quantisation == "F16"
    assert read_header(write_model(tmp_path / "qwen.gguf", values)).quantisation is None


def test_a_header_with_little_in_it_is_read(tmp_path):
    header = read_header(write_model(tmp_path / "model.gguf", {}))
    assert (header.name, header.architecture, header.context_length, header.quantisation) == (None,) * 4


@pytest.mark.parametrize("values", [{"general.architecture": "clip"}, {"general.type": "adapter"}])
def test_a_part_of_a_model_is_no_model(tmp_path, values):
    with pytest.raises(WrongUse, match="is a part of a model"):
        read_model(write_model(tmp_path / "mmproj.gguf", values))


def nested(depth: int) -> bytes:
    data = struct.pack("<I", LIST)
    for _ in range(depth):
        data += struct.pack("<IQ", LIST, 1)
    return data + struct.pack("<IQ", TEXT, 0)


HOSTILE = {
    "nothing": b"",
    "another format": b"PK\3\4" + bytes(100),
    "the first version": gguf(version=1),
    "a version to come": gguf(version=99),
    "the other byte order": b"GGUF" + struct.pack(">I", 3) + bytes(100),
    "more entries than anybody has": gguf(count=2**64 - 1),
    "more entries than there are": gguf(count=9_999)[:-64],
    "an endless key": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + U64(2**63),
    "an endless text": gguf({"general.name": struct.pack("<I", TEXT) + U64(2**62)}),
    "an endless list of numbers": gguf({"x": struct.pack("<IIQ", LIST, 4, 2**63)}),
    "an endless list of texts": gguf({"x": struct.pack("<IIQ", LIST, TEXT, 2**63)}),
    "lists in lists": gguf({"x": nested(10_000)}),
    "an unknown type": gguf({"x": struct.pack("<I", 77)}),
    "a list of an unknown type": gguf({"x": struct.pack("<IIQ", LIST, 77, 1)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused_with_a_sentence(tmp_path, name):
    path = tmp_path / "model.gguf"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(WrongUse, match="is not a model in the GGUF format"):
        read_header(path)


@given(data=st.binary(max_size=300), cut=st.integers(min_value=0, max_value=300))
def test_no_bytes_do_anything_else(tmp_path_factory, data, cut):
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    path.write_bytes(gguf()[:cut] + data)
    with contextlib.suppress(WrongUse):
        read_header(path)


def test_names_have_no_characters_that_nobody_sees(tmp_path):
    values = {"general.architecture": "llama", "general.name": "one\nline\u202egnp\0" + "x" * 3000}
    name = read_header(write_model(tmp_path / "model.gguf", values)).name
    assert name is not None
    assert name.startswith("one line gnp")
    assert len(name) == 200


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_waited_for(tmp_path):
    pipe = tmp_path / "model.gguf"
    os.mkfifo(pipe)
    with pytest.raises(WrongUse, match="not an ordinary file") as caught:
        read_header(pipe)
    assert caught.value.sentence.values["why"] == Sentence("it is not an ordinary file")


def test_files_of_one_model_are_one(tmp_path):
    parts = [write_model(tmp_path / f"big-0000{number}-of-00003.gguf") for number in (1, 2, 3)]
    assert {first_of_split(part) for part in parts} == {parts[0]}
    model = read_model(parts[2])
    assert (model.id, Path(model.path)) == ("big", parts[0])
    assert model.size == sum(part.stat().st_size for part in parts) == size_of_all(parts[0])
    parts[1].unlink()
    with pytest.raises(WrongUse, match=r"big-00002-of-00003\.gguf"):
        read_model(parts[0])


def test_a_model_said_to_have_endless_files_is_refused(tmp_path):
    with pytest.raises(WrongUse, match="too many files"):
        read_model(write_model(tmp_path / "big-00001-of-99999.gguf"))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(WrongUse, match="cannot be read"):
        read_model(tmp_path / "gone.gguf")
