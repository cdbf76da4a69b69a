"""`rocwheel check-gpu`, as people type it."""

from __future__ import annotations

from pathlib import Path

from rocwheel_samples.command import Command
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
