"""Whatever ends a build, the next one ends with the same tree as one that nothing disturbed."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocwheel.wheels.index.check import check
from rocwheel.wheels.index.model import Marker
from rocwheel.wheels.index.write import _Writer
from rocwheel_samples.index_making import index, make_wheel


class KilledError(BaseException):
    """A process that ends here."""


def ends_after(writes: int, patch: pytest.MonkeyPatch) -> None:
    """Have the writer end before the write after so many."""
    left = itertools.count(writes, -1)

    def mortal(name: str, owner: type) -> None:
        inner = getattr(owner, name)

        def act(*given: object, **named: object) -> object:
            if next(left) == 0:
                raise KilledError
            return inner(*given, **named)

        patch.setattr(owner, name, act)

    for name, owner in (("save", Marker), ("_put", _Writer), ("_copy", _Writer), ("_remove", _Writer)):
        mortal(name, owner)


def content(tree: Path) -> dict[str, bytes]:
    """Every file of a tree but the marker, which names inodes."""
    return {
        str(path.relative_to(tree)): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and path.name != ".rocwright-index.json"
    }


def states(folder: Path) -> Iterator[None]:
    """A folder in two states, one after the other."""
    make_wheel(folder, "plain")
    make_wheel(folder, "kernels", targets=("gfx1151",))
    yield
    make_wheel(folder, "kernels", "1.1", targets=("gfx1030",))
    (folder / "kernels-1.0-py3-none-any.whl").unlink()
    make_wheel(folder, "plain", files={"other": b"content"})
    yield


def test_a_build_may_end_before_any_write(tmp_path: Path) -> None:
    folder, tree, before = (tmp_path / name for name in ("wheels", "tree", "before"))
    for number, _ in enumerate(states(folder)):
        clean = tmp_path / f"clean-{number}"
        index(folder, clean)
        shutil.rmtree(before, ignore_errors=True)
        if tree.exists():
            shutil.copytree(tree, before, copy_function=os.link)
        for left in range(100):
            try:
                with pytest.MonkeyPatch.context() as patch:
                    ends_after(left, patch)
                    index(folder, tree)
            except KilledError:
                index(folder, tree)
                assert content(tree) == content(clean), f"state {number}, after {left} writes"
                shutil.rmtree(tree)
                if before.exists():
                    shutil.copytree(before, tree, copy_function=os.link)
                continue
            break
        assert left > 5
        assert content(tree) == content(clean)
        assert check(tree) == []


def test_a_killed_command_is_gone_on_from(tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    for number in range(240):
        make_wheel(folder, f"p{number % 48}", f"1.{number}")
    words = [sys.executable, "-m", "rocwheel", "index", "build", str(folder)]
    with subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL) as process:
        time.sleep(0.5)  # somewhere in the middle; wherever it is, what follows holds
        os.killpg(process.pid, signal.SIGKILL)
    look, _ = index(folder)
    assert (len(look.wheels), look.problems) == (240, ())
    assert check(folder) == []
    assert len(list(folder.rglob("*.metadata"))) == 240
