"""Whatever ends a build, the next one ends with the same tree as one that nothing disturbed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rocwheel.home import Home
from rocwheel.wheels.index.check import check
from rocwheel.wheels.index.examine import Seen
from rocwheel.wheels.index.tree import FolderTree
from rocwheel_samples.index_making import index, make_wheel


class KilledError(BaseException):
    """A process that ends here."""


class Mortal(FolderTree):
    """A tree whose writer ends after so many writes."""

    def __init__(self, path: Path, left: int) -> None:
        super().__init__(path)
        self.left = left

    def _live(self) -> None:
        if self.left == 0:
            raise KilledError
        self.left -= 1

    def put(self, key: str, data: bytes) -> bool:
        self._live()
        return super().put(key, data)

    def put_wheel(self, key: str, folder: Path, seen: Seen) -> bool:
        self._live()
        return super().put_wheel(key, folder, seen)

    def delete(self, keys: object) -> int:
        self._live()
        return super().delete(keys)  # type: ignore[arg-type]


def content(tree: Path) -> dict[str, bytes]:
    """Every file of a tree but the marker, which names the cache that it was written from."""
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


def test_a_build_may_end_before_any_write(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "wheels"
    for number, _ in enumerate(states(folder)):
        clean = tmp_path / f"clean-{number}"
        index(folder, Home(tmp_path / f"home-{number}"), str(clean))
        before = tmp_path / "before"
        shutil.rmtree(before, ignore_errors=True)
        if (tmp_path / "tree").exists():
            shutil.copytree(tmp_path / "tree", before, copy_function=os.link)
        for left in range(100):
            tree = Mortal(tmp_path / "tree", left)
            try:
                index(folder, home, tree=tree)
            except KilledError:
                index(folder, home, str(tree.path))
                assert content(tree.path) == content(clean), f"state {number}, after {left} writes"
                shutil.rmtree(tree.path)
                if before.exists():
                    shutil.copytree(before, tree.path, copy_function=os.link)
                continue
            break
        assert left > 5
        assert content(tmp_path / "tree") == content(clean)
        assert check(FolderTree(tmp_path / "tree")) == []


def test_a_killed_command_is_gone_on_from(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "wheels"
    for number in range(240):
        make_wheel(folder, f"p{number % 48}", f"1.{number}")
    words = [sys.executable, "-m", "rocwheel", "index", "build", str(folder)]
    env = os.environ | {"ROCWRIGHT_HOME": str(home.path)}
    with subprocess.Popen(words, env=env, start_new_session=True, stdout=subprocess.DEVNULL) as process:
        time.sleep(0.5)  # somewhere in the middle; wherever it is, what follows holds
        os.killpg(process.pid, signal.SIGKILL)
    look, _ = index(folder, home)
    assert (look.listed, look.problems) == (240, ())
    assert check(FolderTree(folder)) == []
    assert len(list(folder.rglob("*.metadata"))) == 240
