"""Where code cannot be read, or lies elsewhere, no verb says that there is none: it says what it saw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from rocwheel.cli import cli
from rocwheel.errors import RocwheelError
from rocwheel.wheels.audit.run import _no_code
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
FALSE = ("no GPU code:", "no GPU code in", "already neutral", "a host wheel already", "no kernels in")


def output(wheel: Path, words: tuple[str, ...]) -> str:
    places = {"WHEEL": str(wheel), "OUT": str(wheel.parent / "out")}
    done = CliRunner().invoke(cli, [places.get(one, one) for one in words])
    error = done.exception
    told = f"{error.message}: {error.cause}\n{error.detail}" if isinstance(error, RocwheelError) else ""
    assert told or error is None or isinstance(error, SystemExit)
    return done.output + told


@pytest.fixture(params=FILES)
def unseen(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A wheel whose code is not seen, and words of the reason."""
    made, reason = FILES[request.param]
    metadata = {
        "x-1.dist-info/METADATA": b"Metadata-Version: 2.1\nName: x\nVersion: 1\n\n",
        "x-1.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        "x-1.dist-info/RECORD": b"",
    }
    return write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/lib/x.so": made(), **metadata}), reason


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_takes_it_for_a_wheel_without_code(unseen: tuple[Path, str], verb: str) -> None:
    wheel, reason = unseen
    told = output(wheel, VERBS[verb])
    assert "x/lib/x.so" in told and reason in told, told
    assert not [one for one in FALSE if one in told], told


def test_an_audit_says_that_there_is_code_and_why_it_is_not_judged(unseen: tuple[Path, str]) -> None:
    wheel, reason = unseen
    error = _no_code(wheel, "gfx1100", [])
    assert "cannot be read" in error.cause and error.next_step
    assert error.detail.startswith("x/lib/x.so: ") and reason in error.detail


@pytest.mark.parametrize("verb", VERBS)
def test_of_a_wheel_without_code_it_is_still_said(tmp_path: Path, verb: str) -> None:
    wheel = write_wheel(tmp_path / "x-1-py3-none-any.whl", {"x/x.so": host_elf(b"text", name=b".text")})
    told = output(wheel, VERBS[verb])
    assert "not shown" not in told and "cannot be" not in told
