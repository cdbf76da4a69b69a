from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.errors import CheckError, InputError
from rocwheel.cli import cli
from rocwheel.wheels.canonicalize import normalise
from rocwheel.wheels.diff.model import ValueChange
from rocwheel.wheels.diff.text import lines, summary
from rocwheel.wheels.diff.wheels import diff
from rocwheel_samples.code_object import code_object, metadata
from rocwheel_samples.fatbin import entry_id, fatbin, host_elf, plain_bundle
from rocwheel_samples.hip_compiler import compile_library
from rocwheel_samples.kpack import kpack, kpacked_elf
from rocwheel_samples.wheel_making import FILES, METADATA, WHEEL, small_wheel

INFO = "small-1.0.dist-info"
NEXT = {
    "small/__init__.py": FILES["small/__init__.py"],
    "small-2.0.dist-info/METADATA": METADATA.replace(b"1.0", b"2.0").replace(b"small wheel", b"wheel"),
    "small-2.0.dist-info/WHEEL": WHEEL,
}


def test_the_same_bytes_are_the_same(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path)
    found = diff(wheel, wheel)
    assert found.same_bytes
    assert found.same
    assert summary(found) == "the same bytes"


def test_the_same_content_written_otherwise_is_told_as_such(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path / "one")
    other = small_wheel(tmp_path / "two", dict(reversed(FILES.items())))
    found = diff(wheel, other)
    assert found.same
    assert not found.same_bytes
    assert summary(found).startswith("the same content, written differently: the order of the files")
    normalise(wheel, wheel, epoch=0, fix_record=True)
    assert diff(wheel, other).same


def test_another_version_is_a_matter_of_metadata_not_of_every_file(tmp_path: Path) -> None:
    one = small_wheel(tmp_path)
    two = small_wheel(tmp_path, NEXT, "small-2.0-py3-none-any.whl")
    found = diff(one, two)
    assert [change.what for change in found.metadata] == [
        "file name: version",
        "METADATA: Version",
        "METADATA: text",
    ]
    assert not found.files and not found.moved


def test_files_added_removed_changed_and_moved_are_told(tmp_path: Path) -> None:
    one = small_wheel(tmp_path / "1", {**FILES, "a": b"1", "b": b"22", "old/c": b"333", "empty": b""})
    two = small_wheel(tmp_path / "2", {**FILES, "a": b"x", "new/c": b"333", "d": b"4444"})
    found = diff(one, two)
    assert {(file.path, file.before, file.after) for file in found.files} == {
        ("a", 1, 1),
        ("b", 2, None),
        ("empty", 0, None),
        ("d", None, 4),
    }
    assert found.moved == (ValueChange(what="moved", before="old/c", after="new/c"),)
    assert summary(found) == "files: 1 changed, 1 added, 2 removed, 1 moved"


def test_damaged_and_missing_wheels_are_told(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path)
    damaged = tmp_path / "small-1.1-py3-none-any.whl"
    damaged.write_bytes(wheel.read_bytes()[:-30])
    with pytest.raises(CheckError):
        diff(wheel, damaged)
    with pytest.raises(InputError):
        diff(wheel, tmp_path / "small-1.2-py3-none-any.whl")


CHANGED = """
extern "C" __global__ void same(float *a, int n) { a[n] = 1.0f; }
extern "C" __global__ void other(float *a, int n) { a[n] = %s; }
extern "C" __global__ void %s(float *a, int n) { __shared__ float held[64]; held[n] = a[n];
    __builtin_amdgcn_s_barrier(); a[n] = held[n ^ 1]; }
"""

WIDE = """
extern "C" __global__ void wide(float *a, int n) { __shared__ float held[%d]; held[n] = a[n];
    __builtin_amdgcn_s_barrier(); a[n] = held[n ^ 1]; }
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same kernels in two states, with one bundle that both have."""
    made = [
        compile_library(
            tmp_path_factory.mktemp(name),
            ["gfx1100", "gfx90a"],
            units=(CHANGED % words, WIDE % size, ("kept",)),
        )
        for name, words, size in (("one", ("2.0f", "gone"), 64), ("two", ("3.0f", "came"), 128))
    ]
    return made[0], made[1]


def test_kernels_that_came_went_and_changed_are_told_by_target(libraries: tuple[Path, Path]) -> None:
    found = diff(*libraries)
    (file,) = found.files
    assert [code.target for code in file.code] == ["gfx1100", "gfx90a"]
    for code in file.code:
        assert (code.before, code.after, code.same) == (3, 3, 1)
        assert (code.removed, code.added) == (("gone",), ("came",))
        changed = {kernel.name: kernel for kernel in code.changed}
        assert list(changed) == ["other", "wide"]
        assert changed["other"].instructions
        assert not changed["other"].numbers
        assert ValueChange(what="lds", before="256", after="512") in changed["wide"].numbers
    assert "kernels: 4 changed, 2 added, 2 removed" in summary(found)
    assert "GPU code: gfx1100, gfx90a" in summary(found)
    told = "\n".join(lines(found))
    assert "kernel ~ other: instructions" in told
    assert "lds 256 -> 512" in told


def test_symbols_needed_libraries_and_sections_of_a_library_are_compared(
    libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    found = diff(*libraries)
    (file,) = found.files
    assert {".hip_fatbin", ".text"} & {change.what for change in file.sections} == {".hip_fatbin"}
    kinds = {names.what: names for names in file.names}
    assert any("gone" in name for name in kinds["symbols that it has"].removed)
    assert any("came" in name for name in kinds["symbols that it has"].added)

    linked = compile_library(
        tmp_path / "linked",
        ["gfx1100"],
        link=["-Wl,-rpath,$ORIGIN", "-Wl,-soname,other.so", "-lm", "-Wl,--no-as-needed"],
    )
    plain = compile_library(tmp_path / "plain", ["gfx1100"])
    (file,) = diff(plain, linked).files
    assert {change.what for change in file.changes} >= {"soname", "runpath"}
    assert ValueChange(what="runpath", before="", after="$ORIGIN") in file.changes


def test_a_right_that_a_segment_loses_is_told(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    data = libraries[0].read_bytes()
    stack = data.index((0x6474E551).to_bytes(4, "little") + (6).to_bytes(4, "little"))
    other = tmp_path / libraries[0].name
    other.write_bytes(data[: stack + 4] + b"\7" + data[stack + 5 :])
    (file,) = diff(other, libraries[0]).files
    (change,) = file.changes
    assert "GNU_STACK RWX" in change.before
    assert "GNU_STACK RW" in change.after
    assert not file.code and not file.sections


def test_code_that_does_not_tell_its_kernels_is_counted(tmp_path: Path) -> None:
    spirv = "hip-spirv64-amd-amdhsa--amdgcnspirv"
    one, two = (
        small_wheel(tmp_path / str(n), {**FILES, "a.co": plain_bundle([(spirv, b"%d" % n)])}) for n in (1, 2)
    )
    ((code,),) = [file.code for file in diff(one, two).files]
    assert (code.target, code.before, code.after, code.same, code.silent) == ("amdgcnspirv", 1, 1, 0, 2)


def test_the_command_ends_as_diff_does(tmp_path: Path) -> None:
    one = small_wheel(tmp_path / "1")
    two = small_wheel(tmp_path / "2", {**FILES, **{f"small/{n}": b"%d" % n for n in range(20)}})
    same = CliRunner().invoke(cli, ["diff", str(one), str(one)])
    assert (same.exit_code, same.output) == (0, "the same bytes\n")
    other = CliRunner().invoke(cli, ["diff", str(one), str(two)])
    assert other.exit_code == 1
    assert other.output.splitlines()[0] == "files: 20 added"
    told = json.loads(CliRunner().invoke(cli, ["diff", str(one), str(two), "--json"]).output)
    assert told["same"] is False
    assert len(told["files"]) == 20


def test_code_that_moved_into_kpack_archives_is_moved_not_removed(tmp_path: Path) -> None:
    code = {"gfx1100": code_object(0x41), "gfx1151": code_object(0x4A)}
    bundle = plain_bundle([(entry_id(target), content) for target, content in code.items()])
    fat = small_wheel(tmp_path / "1", {**FILES, "small/lib/x.so": host_elf(fatbin([bundle]))})
    library = {"small/lib/x.so": kpacked_elf()}
    archives = {
        f"small/.kpack/x_{target}.kpack": kpack({("lib/x.so#0", target): content})
        for target, content in code.items()
    }
    host = small_wheel(tmp_path / "2", {**FILES, **library})
    whole = small_wheel(tmp_path / "3", {**FILES, **library, **archives})

    for after, there in ((host, ", not in this wheel"), (whole, "")):
        (changed,) = [file for file in diff(fat, after).files if file.path == "small/lib/x.so"]
        assert changed.code == ()  # the same code objects, or none that can be compared
        assert changed.changes[0] == ValueChange(
            what="GPU code",
            before="in the file",
            after=f"in kpack archives (../.kpack/x_@GFXARCH@.kpack{there})",
        )
    other = {
        **archives,
        "small/.kpack/x_gfx1151.kpack": kpack(
            {("lib/x.so#0", "gfx1151"): code_object(0x4A, metadata("other"))}
        ),
    }
    another = small_wheel(tmp_path / "4", {**FILES, **library, **other})
    (changed,) = [file for file in diff(fat, another).files if file.path == "small/lib/x.so"]
    assert [(one.target, one.before, one.after, one.same) for one in changed.code] == [("gfx1151", 1, 1, 0)]
