"""`rocwheel check-gpu`, as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocwheel_samples.command import Command
from rocwheel_samples.fake_rocm import compile_library
from rocwheel_samples.fatbin import write_wheel
from rocwheel_samples.wheel_making import small_wheel


def test_arguments_in_the_other_order_are_told_to_be(rocwheel: Command, tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path)
    done = rocwheel("check-gpu", str(wheel), "gfx1151")
    assert done.returncode == 2
    assert f"error[input] {wheel} is a file, not a GPU\n" in done.stderr
    assert f" check-gpu GPU {wheel}\n" in done.stderr
    assert rocwheel("check-gpu", "gfx1151", str(wheel)).returncode == 0


def test_what_is_no_code_gets_no_verdict(rocwheel: Command, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    for text in ("torch==2.6.0\n", ""):
        path.write_text(text)
        for verb in (["check-gpu", "gfx803"], ["inspect"]):
            done = rocwheel(*verb, str(path))
            assert (done.returncode, done.stdout) == (2, "")
            assert "is no wheel, archive, library" in done.stderr


RUNTIME = (
    "needs ROCm's runtime 7 (libamdhip64.so.7); holds no device code; what it loads by name was not seen"
)
COMPILES = "it names {}: it compiles for the GPU when it runs"
NOTHING = "holds no GPU code, and nothing in it needs ROCm's runtime"


@pytest.fixture(scope="module")
def needy(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library that needs ROCm's runtime."""
    folder = tmp_path_factory.mktemp("needy")
    hip = compile_library(folder / "libamdhip64.so.7", "int h(void) { return 1; }", soname="libamdhip64.so.7")
    code = "int h(void); int x(void) { return h(); }"
    return compile_library(folder / "libx.so", code, needs=(hip,)).read_bytes()


@pytest.mark.parametrize(
    ("names", "status", "words"),
    [
        (("needy",), 15, RUNTIME),
        (("dll",), 15, "needs ROCm's runtime 6 (amdhip64_6.dll)"),
        (("triton",), 13, COMPILES.format("@triton.jit")),
        (("compiler",), 13, COMPILES.format("amdgcn-amd-amdhsa")),
        (("needy", "compiler"), 13, RUNTIME),
        (("plain",), 0, NOTHING),
    ],
)
def test_a_yes_needs_a_reason_that_was_read(
    rocwheel: Command, needy: bytes, tmp_path: Path, names: tuple[str, ...], status: int, words: str
) -> None:
    contents = {
        "needy": ("x/libx.so", needy),
        "dll": ("x/x.dll", b"MZ" + bytes(100) + b"amdhip64_6.dll\0"),
        "triton": ("x/kernels.py", b"import triton\n\n\n@triton.jit\ndef kernel():\n    pass\n"),
        "compiler": ("x/libllvm.so", needy.replace(b"libamdhip64", b"libordinary") + b"amdgcn-amd-amdhsa"),
        "plain": ("x/plain.so", needy.replace(b"libamdhip64", b"libordinary")),
    }
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", dict(contents[name] for name in names))
    done = rocwheel("check-gpu", "gfx803", str(wheel))
    assert (done.returncode, words in done.stdout) == (status, True), done.stdout
    report = json.loads(rocwheel("check-gpu", "gfx803", "--json", str(wheel)).stdout)
    assert report["runs"] == (status == 0)
    inspected = json.loads(rocwheel("inspect", "--json", str(wheel)).stdout)
    assert len(inspected["without_code"]) == (0 if status == 0 else len(names))
    assert (words in rocwheel("inspect", str(wheel)).stdout) == (status != 0)
