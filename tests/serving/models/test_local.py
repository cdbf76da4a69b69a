"""Models that lie here: which format they have, are they whole, may they be loaded."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from rocbase.errors import CheckError, ExplainedError, InputError
from rocbase.files.atomic import sha256_file
from rocwright.home import Home
from rocwright.serving.models.find import find_model
from rocwright.serving.models.model import Model
from rocwright.verify.tiny_gguf import write_tiny_model

ALL = ("gguf", "ggml", "safetensors", "transformers", "diffusers", "pickled")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "models"
    found.mkdir()
    return found


def find(path: Path, *kinds: str, trust: bool = False) -> Model:
    home = Home(path.parent / "home")
    return find_model(str(path), kinds or ALL, home=home, trust=trust, say=lambda _: None)


def refused(path: Path, *kinds: str) -> ExplainedError:
    with pytest.raises(ExplainedError) as error:
        find(path, *kinds)
    assert error.value.cause and error.value.next_step
    return error.value


def safe(path: Path, data: int = 4) -> Path:
    said = json.dumps({"a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(said)) + said + bytes(data))
    return path


def index(path: Path, files: dict[str, Any]) -> None:
    path.write_text(json.dumps({"metadata": {}, "weight_map": files}))


def test_a_format_is_told_by_content_not_by_name(folder: Path) -> None:
    write_tiny_model(folder / "model.bin")
    assert find(folder / "model.bin").format == "gguf"


@pytest.mark.parametrize(
    ("begins", "what", "helps"),
    [
        ("<!DOCTYPE html>\n<title>x</title>", "a web page", "/resolve/"),
        ("<HTML><body>", "a web page", "/resolve/"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of Git LFS", "lfs pull"),
    ],
)
def test_what_people_have_in_a_models_place_is_named(
    folder: Path, begins: str, what: str, helps: str
) -> None:
    (folder / "model.gguf").write_text(begins)
    told = refused(folder / "model.gguf", "gguf")
    assert told.cause == f"it is {what}, and no model" and helps in told.next_step


def test_an_empty_file_is_said_to_be_empty(folder: Path) -> None:
    (folder / "model.gguf").touch()
    assert refused(folder / "model.gguf", "gguf").cause == "it is empty"


def test_a_pickle_is_one_whatever_its_name_says(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x80\x02}q\x00.")
    assert "pickled weights" in refused(folder / "model.safetensors").message


@pytest.mark.parametrize("name", ["a.ckpt", "a.pt", "a.pth", "a.bin", "A.CKPT"])
def test_pickled_weights_are_refused_unless_trusted(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"(lp0\n.")
    error = refused(folder / name)
    assert "can run any program" in error.message and "--trust-model" in error.next_step
    assert find(folder / name, trust=True).format == "pickled"


def test_the_safetensors_file_beside_is_named(folder: Path) -> None:
    (folder / "b.ckpt").write_bytes(b"PK\3\4")
    safe(folder / "a.safetensors")
    safe(folder / "b.safetensors")
    assert refused(folder / "b.ckpt").next_step.startswith("use b.safetensors instead")


def test_pickled_weights_that_the_stack_could_not_load_either_are_no_question_of_trust(folder: Path) -> None:
    (folder / "b.ckpt").write_bytes(b"PK\3\4")
    safe(folder / "b.safetensors")
    error = refused(folder / "b.ckpt", "gguf")
    assert error.cause.endswith("this stack takes GGUF")
    assert "safetensors" not in error.next_step and "--trust-model" not in error.next_step


def test_a_format_that_the_stack_does_not_take_is_refused(folder: Path) -> None:
    error = refused(safe(folder / "a.safetensors"), "gguf")
    assert error.cause == "it is safetensors; this stack takes GGUF"


def test_a_model_that_is_not_there_names_its_neighbours(folder: Path) -> None:
    safe(folder / "model-a.safetensors")
    error = refused(folder / "modle-a.safetensors")
    assert isinstance(error, InputError) and "model-a.safetensors" in error.cause


def test_a_file_of_no_format_is_refused(folder: Path) -> None:
    (folder / "notes.txt").write_text("words")
    assert "no format" in refused(folder / "notes.txt").message


def test_a_pipe_is_refused_at_once(folder: Path) -> None:
    os.mkfifo(folder / "a.gguf")
    assert "is no file" in refused(folder / "a.gguf").message


def test_an_empty_file_is_damaged(folder: Path) -> None:
    (folder / "a.gguf").write_bytes(b"")
    assert "damaged" in refused(folder / "a.gguf").message


def test_a_model_in_several_files_is_all_of_them(folder: Path) -> None:
    for number in (1, 2, 3):
        write_tiny_model(folder / f"m-0000{number}-of-00003.gguf")
    found = find(folder / "m-00001-of-00003.gguf")
    assert len(found.paths) == 3 and found.head is not None
    one = find(folder / "m-00001-of-00003.gguf").head
    assert one is not None and one.weights == found.head.weights == 3 * 1699328


def test_a_missing_part_of_a_model_is_named(folder: Path) -> None:
    write_tiny_model(folder / "m-00001-of-00002.gguf")
    error = refused(folder / "m-00001-of-00002.gguf")
    assert isinstance(error, CheckError) and "m-00002-of-00002.gguf" in error.cause


def test_the_only_model_of_a_folder_is_taken(folder: Path) -> None:
    write_tiny_model(folder / "a.gguf")
    (folder / "README.md").write_text("words")
    assert find(folder).path == folder / "a.gguf"


def test_of_several_models_in_a_folder_one_must_be_named(folder: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        write_tiny_model(folder / name)
    error = refused(folder)
    assert "several models" in error.message and error.cause == "a.gguf, b.gguf"


def test_a_folder_of_transformers_is_one_model(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    safe(folder / "model.safetensors")
    (folder / "training_args.bin").write_bytes(b"PK\3\4")  # no weights: nothing loads it
    found = find(folder)
    assert (found.format, found.path) == ("transformers", folder)
    assert found.head is not None and found.head.weights == 4


def test_a_folder_with_pickled_weights_alone_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "pytorch_model.bin").write_bytes(b"PK\3\4")
    assert "pytorch_model.bin has pickled weights" in refused(folder).message
    assert find(folder, trust=True).format == "transformers"


def test_pickled_weights_of_one_part_of_a_pipeline_are_refused(folder: Path) -> None:
    (folder / "model_index.json").write_text("{}")
    for part in ("unet", "vae"):
        (folder / part).mkdir()
    safe(folder / "unet" / "model.safetensors")
    (folder / "vae" / "model.bin").write_bytes(b"PK\3\4")
    assert "vae/model.bin" in refused(folder).message


def test_a_file_that_the_index_names_and_that_is_missing_is_told(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    safe(folder / "a.safetensors")
    index(folder / "model.safetensors.index.json", {"x": "a.safetensors", "y": "b.safetensors"})
    assert "b.safetensors" in refused(folder).cause


@pytest.mark.parametrize("names", [{"x": "../a.safetensors"}, {"x": 3}, [], 3])
def test_an_index_that_names_something_elsewhere_is_damaged(folder: Path, names: Any) -> None:
    (folder / "config.json").write_text("{}")
    safe(folder / "a.safetensors")
    index(folder / "model.safetensors.index.json", names)
    assert "damaged" in refused(folder).message


def test_a_truncated_file_of_a_folder_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    safe(folder / "model.safetensors", data=1)
    assert "model.safetensors is cut short: at least 3 bytes" in refused(folder).message


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    assert "no weights" in refused(folder).message


def test_the_small_models_are_the_same_everywhere(tmp_path: Path) -> None:
    home = Home(tmp_path)
    marks = {
        name: find_model("tiny", (kind,), home=home, tiny=name, say=lambda _: None).sha256
        for name, kind in (("", "gguf"), ("whisper", "ggml"))
    }
    assert marks == {
        "": "14d61a59ce5b70683d01465da6c988dedbc854907d4fae756619986758a3cfcd",
        "whisper": "23bd40ea937317ff8d9efe7fa2316d2087b0a38eca6e555784813eabc318931e",
    }


def test_the_small_model_of_pictures_is_three_files(tmp_path: Path) -> None:
    found = find_model("tiny:picture", ("gguf",), home=Home(tmp_path), say=lambda _: None)
    assert found.sha256 == "8bcde0380490d4e4ae6e6c4c6e0009923a419584448cf60a585c39239095f9ca"
    assert {what: sha256_file(path) for what, path in found.companions.items()} == {
        "llm": "53d8730f37923c8ad33fed1913e63852b1a663748393531660004d889f63afb9",
        "taesd": "3b9b2ce7ac43e5a1b6f95ece8839814bd1cbb968b47eb208460d104c93b1c4bc",
    }
    for path in found.companions.values():
        assert find_model(str(path), ("gguf",), home=Home(tmp_path), say=lambda _: None).head


def test_a_small_model_that_nobody_makes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no small model tiny:x"):
        find_model("tiny:x", ALL, home=Home(tmp_path), say=lambda _: None)
