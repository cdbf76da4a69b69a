"""Where code cannot be read, or lies elsewhere, no verb says that there is none: it says what it saw."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocbase.errors import ExplainedError
from rocwheel.cli import cli
from rocwheel.wheels.audit.judge import AuditVerdict, Judged
from rocwheel.wheels.audit.llvm import Disassembler
from rocwheel.wheels.audit.run import Audited, AuditReport, _no_code
from rocwheel.wheels.choose import Target
from rocwheel.wheels.devicecode.code_objects import Unseen, code_objects
from rocwheel.wheels.lint.judge import judge
from rocwheel.wheels.runs_on import RunsOn, runs_on
from rocwheel_samples.fatbin import (
    compressed_bundle,
    entry_id,
    gpu_elf,
    host_elf,
    plain_bundle,
    write_wheel,
)
from rocwheel_samples.kpack import SEARCH, kpacked_elf


def of_a_newer_form() -> bytes:
    bundle = bytearray(
        compressed_bundle(plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A))]), version=3, method=1)
    )
    bundle[4] = 9
    return host_elf(bytes(bundle), name=b".rodata")


FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "in archives": (kpacked_elf, SEARCH),
    "of a newer form": (of_a_newer_form, "version 9"),
}
VERBS = {
    "inspect": ("inspect", "WHEEL"),
    "inspect-targets": ("inspect", "--targets", "WHEEL"),
    "inspect-kernels": ("inspect", "--kernels", "WHEEL"),
    "inspect-resources": ("inspect", "--resources", "WHEEL"),
    "check-gpu": ("check-gpu", "gfx1151", "WHEEL"),
    "slim": ("slim", "WHEEL", "--gpu", "gfx1151", "-o", "OUT"),
    "split": ("split", "WHEEL", "-o", "OUT"),
    "split-kpack": ("split", "--kpack", "WHEEL", "-o", "OUT"),
}
FALSE = ("no GPU code, and", "no GPU code in", "already neutral", "a host wheel already", "no kernels in")


def output(wheel: Path, words: tuple[str, ...]) -> str:
    places = {"WHEEL": str(wheel), "OUT": str(wheel.parent / "out")}
    done = CliRunner().invoke(cli, [places.get(one, one) for one in words])
    error = done.exception
    told = f"{error.message}: {error.cause}\n{error.detail}" if isinstance(error, ExplainedError) else ""
    assert told or error is None or isinstance(error, SystemExit)
    return done.output + told


def damaged_behind_its_head() -> bytes:
    """Sound as far as the targets are told, and not behind that."""
    code = gpu_elf(0x4A, body=random.Random(1).randbytes(500_000))
    bundle = bytearray(compressed_bundle(plain_bundle([(entry_id("gfx1151"), code)]), version=3, method=1))
    bundle[16] += 8  # of the size that it unpacks to
    return host_elf(bytes(bundle), name=b".rodata")


@pytest.fixture(params=FILES)
def unseen(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A wheel whose code is not seen, and words of the reason."""
    made, reason = FILES[request.param]
    return wheel_of(tmp_path, made()), reason


def wheel_of(folder: Path, content: bytes, name: str = "x/lib/x.so") -> Path:
    metadata = {
        "x-1.dist-info/METADATA": b"Metadata-Version: 2.1\nName: x\nVersion: 1\n\n",
        "x-1.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        "x-1.dist-info/RECORD": b"",
    }
    return write_wheel(folder / "x-1-py3-none-any.whl", {name: content, **metadata})


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_takes_it_for_a_wheel_without_code(unseen: tuple[Path, str], verb: str) -> None:
    wheel, reason = unseen
    told = output(wheel, VERBS[verb])
    assert "x/lib/x.so" in told and reason in told, told
    assert not [one for one in FALSE if one in told], told


def test_an_audit_says_that_there_is_code_and_why_it_is_not_judged(unseen: tuple[Path, str]) -> None:
    wheel, reason = unseen
    heard = Unseen()
    error = _no_code(wheel, "gfx1100", code_objects(wheel, unseen=heard), heard.reasons)
    assert "cannot be read" in error.cause and error.next_step
    assert error.detail.startswith("x/lib/x.so: ") and reason in error.detail


@pytest.mark.parametrize("verb", sorted({*VERBS} - {"inspect-targets", "check-gpu", "slim"}))
def test_what_is_damaged_behind_its_head_is_told_by_whoever_reads_it_whole(tmp_path: Path, verb: str) -> None:
    told = output(wheel_of(tmp_path, damaged_behind_its_head()), VERBS[verb])
    assert "x/lib/x.so" in told, told
    assert "does not decompress to" in told, told
    assert not [one for one in FALSE if one in told], told


def test_an_audit_is_not_safe_where_some_code_cannot_be_read(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, damaged_behind_its_head())
    heard = Unseen()
    assert code_objects(wheel, unseen=heard) == []
    error = _no_code(wheel, "gfx1151", [], heard.reasons)
    assert "x/lib/x.so" in error.detail and "no GPU code" not in error.cause
    safe = Audited(
        path="x",
        index=0,
        target="gfx1151",
        size=1,
        kernels=(Judged(name="k", verdict=AuditVerdict.SAFE, reasons=()),),
    )
    disassembler = Disassembler(path=Path("llvm-objdump"), version="22", processors=frozenset(), spelling=())
    report = AuditReport(code="gfx1151", on="gfx1100", llvm=disassembler, objects=(safe,))
    assert report.verdict is AuditVerdict.SAFE
    assert replace(report, unread=tuple(heard.reasons)).verdict is AuditVerdict.NOT_CHECKED


@pytest.mark.parametrize("verb", ["inspect-kernels", "inspect-resources"])
def test_spir_v_is_not_taken_for_code_without_kernels(tmp_path: Path, verb: str) -> None:
    spirv = plain_bundle([("hip-spirv64-amd-amdhsa--amdgcnspirv", b"\x03\x02\x23\x07" + bytes(60))])
    told = output(wheel_of(tmp_path, host_elf(spirv)), VERBS[verb])
    assert "x/lib/x.so: 1 piece of code for amdgcnspirv, which names no kernels" in told
    assert "no kernels in" not in told


@pytest.mark.parametrize("verb", ["split", "split-kpack"])
def test_code_that_split_cannot_move_is_no_neutral_wheel(tmp_path: Path, verb: str) -> None:
    bundle = plain_bundle([(entry_id("gfx1151"), gpu_elf(0x4A))])
    told = output(wheel_of(tmp_path, host_elf(bundle, name=b".rodata")), VERBS[verb])
    assert "x/lib/x.so: code embedded in .rodata" in told
    assert not [one for one in FALSE if one in told], told


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"])
def test_an_archive_in_name_only_is_not_passed_over(tmp_path: Path, content: bytes) -> None:
    name = "x/.kpack/x_gfx1151.kpack"
    wheel = wheel_of(tmp_path, content, name)
    for verb, words in VERBS.items():
        told = output(wheel, words)
        assert not [one for one in FALSE if one in told], verb
        assert f"{name} holds no GPU code, though its name says so" in told
        assert "Git LFS" in told
    assert RunsOn.UNKNOWN in [one.verdict for one in runs_on(wheel, Target("gfx1151"))]
    assert [(one.kind, one.path) for one in judge(wheel) if one.kind == "GPU code"] == [("GPU code", name)]


@pytest.mark.parametrize("verb", VERBS)
def test_of_a_wheel_without_code_it_is_still_said(tmp_path: Path, verb: str) -> None:
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/x.so": host_elf(b"text", name=b".text")})
    told = output(wheel, VERBS[verb])
    assert "not shown" not in told and "cannot be" not in told
