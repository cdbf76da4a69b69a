from __future__ import annotations

import ctypes
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocbase.errors import CheckError, ExplainedError, InputError
from rocwheel.cli import cli
from rocwheel.wheels.archive import open_wheel
from rocwheel.wheels.canonicalize import normalise
from rocwheel.wheels.devicecode.code_objects import code_objects
from rocwheel.wheels.diff.wheels import diff
from rocwheel.wheels.slim import slim
from rocwheel.wheels.split.manifest import NAME, NEUTRAL
from rocwheel.wheels.split.merge import merge_wheels
from rocwheel.wheels.split.wheel import split_wheel
from rocwheel.wheels.write import WheelFile, write_wheel
from rocwheel_samples.fatbin import entry_id, fatbin, gpu_elf, pe_file, plain_bundle
from rocwheel_samples.hip_compiler import compile_library
from rocwheel_samples.wheel_making import FILES, METADATA, small_wheel

EPOCH = 1_700_000_000
TARGETS = ["gfx1030", "gfx1100", "gfx90a:xnack-", "gfx90a:xnack+"]
NAMES = ["gfx1030", "gfx1100", "gfx90a"]
INFO = "small-1.0.dist-info"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with three bundles."""
    return compile_library(
        tmp_path_factory.mktemp("plain"), TARGETS, units=(("add",), ("scale", "wave"), ("last",))
    )


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with compressed bundles."""
    return compile_library(
        tmp_path_factory.mktemp("packed"), TARGETS, units=(("add",), ("last",)), compress=True
    )


@pytest.fixture(scope="module")
def wheel(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the plain library and files for one target each; METADATA in a spelling of its own."""
    files = {
        **FILES,
        f"{INFO}/METADATA": METADATA.replace(b"Version: 1.0", b"version:  1.0.0"),
        "small/lib.so": plain.read_bytes(),
        "small-1.0.data/scripts/tool": b"#!/bin/sh\n",
        "small/library/TensileLibrary_gfx1100.co": b"code",
    }
    return small_wheel(tmp_path_factory.mktemp("wheel"), files)


@pytest.fixture(scope="module")
def parts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pieces of the wheel, by target."""
    found = split_wheel(wheel, tmp_path_factory.mktemp("parts"), epoch=EPOCH)
    assert not found.left
    return {piece.target: piece.path for piece in found.pieces}


def test_all_pieces_give_the_wheel_in_its_one_form(
    wheel: Path, parts: dict[str, Path], tmp_path: Path
) -> None:
    assert list(parts) == [NEUTRAL, *NAMES]
    found = merge_wheels(list(parts.values()), tmp_path / "merged")
    normal = normalise(wheel, tmp_path, epoch=EPOCH, fix_record=True)
    assert found.exact
    assert found.targets == tuple(NAMES)
    assert found.path.name == wheel.name
    assert found.path.read_bytes() == normal.path.read_bytes()


@pytest.mark.parametrize("chosen", [*combinations(NAMES, 1), *combinations(NAMES, 2)], ids="-".join)
def test_some_pieces_give_what_slim_gives(
    wheel: Path, parts: dict[str, Path], chosen: tuple[str, ...], tmp_path: Path
) -> None:
    merged = merge_wheels([parts[NEUTRAL], *(parts[one] for one in chosen)], tmp_path / "merged")
    slimmed = slim(wheel, list(chosen), tmp_path, epoch=EPOCH, allow_missing=True)
    assert not merged.exact
    assert merged.path.name == slimmed.out.name
    assert diff(merged.path, slimmed.out).same
    assert {one.target for one in code_objects(merged.path)} == set(chosen)


def test_each_piece_holds_the_code_of_its_target_and_the_neutral_one_none(
    wheel: Path, parts: dict[str, Path]
) -> None:
    whole = {(one.target_id, one.sha256) for one in code_objects(wheel, hashes=True)}
    found = set()
    for target in NAMES:
        held = code_objects(parts[target], hashes=True)
        assert {one.target for one in held} == {target}
        assert len(held) == (6 if target == "gfx90a" else 3)
        found |= {(one.target_id, one.sha256) for one in held}
    assert found == whole
    assert code_objects(parts[NEUTRAL]) == []
    with zipfile.ZipFile(parts["gfx1100"]) as archive:
        assert archive.read("small/library/TensileLibrary_gfx1100.co") == b"code"


def test_the_library_of_the_neutral_wheel_loads_and_registers_its_bundles(
    parts: dict[str, Path], tmp_path: Path
) -> None:
    with zipfile.ZipFile(parts[NEUTRAL]) as archive:
        archive.extract("small/lib.so", tmp_path)
    library = ctypes.CDLL(str(tmp_path / "small/lib.so"))
    library.registered_bundle.restype = ctypes.c_void_p
    assert library.registered_count() == 3
    for index in range(3):
        assert ctypes.string_at(library.registered_bundle(index), 24) == b"__CLANG_OFFLOAD_BUNDLE__"


def test_compressed_bundles_come_back_with_the_same_code(packed: Path, tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path, {**FILES, "small/lib.so": packed.read_bytes()})
    pieces = {one.target: one.path for one in split_wheel(wheel, tmp_path / "parts", epoch=EPOCH).pieces}
    merged = merge_wheels(list(pieces.values()), tmp_path / "merged")
    assert not merged.exact
    assert code_objects(merged.path, hashes=True) == code_objects(wheel, hashes=True)
    one = merge_wheels([pieces[NEUTRAL], pieces["gfx1100"]], tmp_path / "one")
    slimmed = slim(wheel, ["gfx1100"], tmp_path, epoch=EPOCH)
    assert diff(one.path, slimmed.out).same


def test_pieces_that_do_not_belong_together_are_refused(
    parts: dict[str, Path], packed: Path, tmp_path: Path
) -> None:
    other = small_wheel(tmp_path, {**FILES, "small/lib.so": packed.read_bytes()})
    strange = {one.target: one.path for one in split_wheel(other, tmp_path / "parts", epoch=EPOCH).pieces}
    for wrong, told in (
        ([parts[NEUTRAL]], "1 neutral wheels and 0 with code"),
        ([parts["gfx1100"]], "0 neutral wheels and 1 with code"),
        ([parts[NEUTRAL], strange[NEUTRAL], parts["gfx1100"]], "2 neutral wheels"),
        ([parts[NEUTRAL], strange["gfx1100"]], "is not a piece of"),
        ([parts[NEUTRAL], parts["gfx1100"], parts["gfx1100"]], "two wheels are for gfx1100"),
        ([other, parts["gfx1100"]], "is not a piece of a wheel"),
    ):
        with pytest.raises(InputError, match=told):
            merge_wheels(wrong, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_a_manifest_that_merging_would_not_read_is_not_written(
    wheel: Path, parts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("manifest", "merge"):
        monkeypatch.setattr(f"rocwheel.wheels.split.{module}.LARGEST", 99)
    with pytest.raises(InputError, match="the manifest of the pieces has"):
        split_wheel(wheel, tmp_path, epoch=EPOCH)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError) as caught:
        merge_wheels([parts[NEUTRAL], parts["gfx1100"]], tmp_path)
    assert "has more than 99 bytes" in caught.value.cause


def test_a_wheel_without_gpu_code_has_no_pieces(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="no GPU code"):
        split_wheel(small_wheel(tmp_path), tmp_path / "parts", epoch=EPOCH)


def test_code_that_cannot_be_taken_out_stays_and_is_told(tmp_path: Path) -> None:
    bundle = plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41)), (entry_id("gfx1030"), gpu_elf(0x36))])
    files = {**FILES, "small/a.dll": pe_file({b".hip_fat": fatbin([bundle])}), "small/b.co": bundle}
    with pytest.raises(CheckError, match="no GPU code that can") as told:
        split_wheel(small_wheel(tmp_path, files), tmp_path / "parts", epoch=EPOCH)
    assert "a.dll: a Windows library" in told.value.detail
    assert "b.co: a file of bundles" in told.value.detail

    files["small/c.co"] = plain_bundle([(entry_id("gfx1100"), gpu_elf(0x41))])
    found = split_wheel(small_wheel(tmp_path, files), tmp_path / "parts", epoch=EPOCH)
    assert [piece.target for piece in found.pieces] == [NEUTRAL, "gfx1100"]
    assert set(found.left) == {"small/a.dll", "small/b.co"}


def changed(piece: Path, out: Path, change: Callable[[WheelFile], WheelFile | None]) -> Path:
    """The piece with each file as `change` makes it."""
    path = out / piece.name
    with open_wheel(piece) as files:
        write_wheel(path, [new for file in files if (new := change(file))], epoch=EPOCH)
    return path


def test_code_that_was_changed_or_lost_is_found(parts: dict[str, Path], tmp_path: Path) -> None:
    def flip(file: WheelFile) -> WheelFile:
        return replace(file, content=file.read()[:-1] + b"x") if file.path.endswith(".co") else file

    def lose(file: WheelFile) -> WheelFile | None:
        return None if ".co" in file.path else file

    for change in (flip, lose):
        wrong = changed(parts["gfx1100"], tmp_path, change)
        with pytest.raises(CheckError, match="has changed since the split"):
            merge_wheels([parts[NEUTRAL], wrong], tmp_path / "merged")


def test_a_neutral_wheel_that_was_changed_does_not_pass_for_the_original(
    parts: dict[str, Path], tmp_path: Path
) -> None:
    def change(file: WheelFile) -> WheelFile:
        return replace(file, content=b"answer = 43\n") if file.path == "small/__init__.py" else file

    wrong = changed(parts[NEUTRAL], tmp_path, change)
    with pytest.raises(CheckError, match="has changed since the split"):
        merge_wheels([wrong, *(parts[one] for one in NAMES)], tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("*"))


def numbers(data: object) -> Iterator[tuple[dict[str, object], str]]:
    """Every place of a JSON text that holds a number."""
    if isinstance(data, dict):
        for key, value in data.items():
            if isinstance(value, int):
                yield data, key
            yield from numbers(value)
    elif isinstance(data, list):
        for value in data:
            yield from numbers(value)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), value=st.sampled_from([0, 1, 4095, 1 << 20, 1 << 40, (1 << 62) - 1, -1]))
def test_a_manifest_that_lies_is_told_or_makes_no_difference(
    parts: dict[str, Path], tmp_path: Path, place: int, value: int
) -> None:
    def lie(file: WheelFile) -> WheelFile:
        if not file.path.endswith(NAME):
            return file
        manifest = json.loads(file.read())
        where = list(numbers(manifest))
        holder, key = where[place % len(where)]
        holder[key] = value
        return replace(file, content=json.dumps(manifest).encode())

    wrong = changed(parts[NEUTRAL], tmp_path, lie)
    for others in (NAMES, NAMES[:1]):
        try:
            found = merge_wheels([wrong, *(parts[one] for one in others)], tmp_path / "merged")
        except ExplainedError as error:
            assert error.failure.value in ("input", "check")
        else:
            assert found.size < 1_000_000


def test_the_commands_split_and_merge(wheel: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["split", str(wheel), "-o", str(tmp_path), "--json"])
    told = json.loads(done.stdout)
    assert [one["target"] for one in told["pieces"]] == [NEUTRAL, *NAMES]
    paths = [one["path"] for one in told["pieces"]]
    done = CliRunner().invoke(cli, ["merge", *paths, "-o", str(tmp_path / "merged")])
    assert done.exit_code == 0
    assert "byte for byte the wheel that was split" in done.stdout
    assert (tmp_path / "merged" / wheel.name).is_file()
