"""Wheels that others built, written anew, compared, taken apart and put together."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.real.real_wheels import real_wheel

from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.canonicalize import form_of, normalise
from rocwheel.wheels.devicecode.code_objects import code_objects
from rocwheel.wheels.diff.text import lines
from rocwheel.wheels.diff.wheels import diff
from rocwheel.wheels.split.manifest import NEUTRAL
from rocwheel.wheels.split.merge import merge_wheels
from rocwheel.wheels.split.wheel import split_wheel
from rocwheel.wheels.write import WheelFile, write_wheel
from rocwheel.wheels.zipping import EARLIEST
from rocwheel_samples.wheel_making import FILES

pytestmark = pytest.mark.real

ONNX = "onnxruntime-rocm"
OWN = ("RECORD", "direct_url.json")
"""Files that pip writes itself."""

NORMAL_ONNX = "ae0e55c63d8e25f5b79b363f37730f7ae88e8ac6159e87d8fa37ff0c785b5bc0"
"""sha256 of 1.22.2.post3 in its one form, at 1980-01-01: the same on every machine."""


@pytest.mark.parametrize(("name", "version"), [("six", "1.17.0"), ("markupsafe", "3.0.3")])
def test_pip_installs_a_normalised_wheel_and_finds_what_it_would_have_found(
    name: str, version: str, tmp_path: Path
) -> None:
    wheel = real_wheel(name, version)
    made = normalise(wheel, tmp_path, epoch=EARLIEST)
    assert form_of(made.path).differences == ()
    assert diff(wheel, made.path).same
    subprocess.run(["unzip", "-tq", made.path], check=True)
    installed = []
    for number, one in enumerate((wheel, made.path)):
        target = tmp_path / str(number)
        options: list[str | Path] = [
            "--no-index",
            "--no-deps",
            "--no-compile",
            "--target",
            target,
            "--python-version=3.11",
        ]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", *options, one], check=True
        )
        files = (
            path
            for path in target.rglob("*")
            if path.is_file() and path.name not in ("RECORD", "direct_url.json")
        )
        installed.append({path.relative_to(target): path.read_bytes() for path in files})
    assert installed[0] == installed[1]


@pytest.mark.nightly
def test_a_large_wheel_has_the_bytes_that_were_written_down(tmp_path: Path) -> None:
    made = normalise(real_wheel(ONNX, "1.22.2.post3"), tmp_path, epoch=EARLIEST)
    assert made.sha256 == NORMAL_ONNX


@pytest.mark.nightly
def test_what_two_releases_differ_in_is_found_down_to_one_bit(tmp_path: Path) -> None:
    found = diff(real_wheel(ONNX, "1.22.2.post2"), real_wheel(ONNX, "1.22.2.post3"))
    (file,) = found.files
    assert file.path == "onnxruntime/capi/onnxruntime_pybind11_state.so"
    (change,) = file.changes
    assert "GNU_STACK RWX" in change.before
    assert "GNU_STACK RWX" not in change.after
    assert sum(1 for _ in lines(found)) == 4


def test_a_wheel_of_eight_targets_is_taken_apart_and_put_together_to_the_byte(tmp_path: Path) -> None:
    split = split_wheel(real_wheel(ONNX, "1.22.2.post3"), tmp_path / "pieces", epoch=EARLIEST)
    assert {piece.code_objects for piece in split.pieces} == {0, 95}
    merged = merge_wheels([piece.path for piece in split.pieces], tmp_path)
    assert merged.exact
    assert hashlib.sha256(merged.path.read_bytes()).hexdigest() == NORMAL_ONNX


@pytest.mark.nightly
def test_a_wheel_with_compressed_bundles_comes_back_with_the_same_code(tmp_path: Path) -> None:
    wheel = real_wheel("bitsandbytes", "0.50.2")
    pieces = {one.target: one.path for one in split_wheel(wheel, tmp_path, epoch=EARLIEST).pieces}
    merged = merge_wheels([pieces[NEUTRAL], pieces["gfx1151"]], tmp_path)
    wanted = [one.sha256 for one in code_objects(wheel, hashes=True) if one.target == "gfx1151"]
    assert [one.sha256 for one in code_objects(merged.path, hashes=True)] == wanted


class Zeros:
    """More bytes than 32 bits count, and none of them kept."""

    size = 2**32 + 5

    def read_at(self, offset: int, count: int, /) -> bytes:
        return bytes(count)


@pytest.mark.nightly
def test_a_file_of_more_than_4_gib_and_more_than_65535_files_are_read_back(tmp_path: Path) -> None:
    large = tmp_path / "large.whl"
    write_wheel(
        large,
        [
            *(WheelFile(path=path, content=data) for path, data in FILES.items()),
            WheelFile(path="big", content=Zeros()),
        ],
        epoch=0,
    )
    with zipfile.ZipFile(large) as archive, open_wheel(large) as files:
        assert archive.getinfo("big").file_size == Zeros.size
        assert {file.path: file.size for file in files}["big"] == Zeros.size

    many = tmp_path / "many.whl"
    names = [f"small/{number}" for number in range(70_000)]
    write_wheel(
        many,
        [
            *(WheelFile(path=path, content=data) for path, data in FILES.items()),
            *(WheelFile(path=name, content=b"") for name in names),
        ],
        epoch=0,
    )
    subprocess.run(["unzip", "-tq", many], check=True, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(many) as archive, open_wheel(many) as files:
        assert len(archive.infolist()) == len(files) == 70_000 + len(FILES) + 1
