"""A look at files that are said to have changed, and at nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rocwheel.errors import InputError
from rocwheel.home import Home
from rocwheel.wheels.index.scan import MARKER, MOST_DEEP, look_at, scan
from rocwheel_samples.index_making import index, make_wheel, names, page


@pytest.fixture
def wheels(tmp_path: Path, home: Home) -> Path:
    """Two wheels, and their index."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    make_wheel(folder / "deeper", "kernels", targets=("gfx1030",))
    index(folder, home)
    return folder


def test_one_that_came_is_listed_and_no_other_is_looked_at(wheels: Path, home: Home) -> None:
    new = make_wheel(wheels / "deeper", "kernels", "2.0", targets=("gfx1151",))
    make_wheel(wheels, "unseen")
    look, written = index(wheels, home, changed=[new])
    assert (look.read, look.gone, look.listed) == (1, 0, 3)
    assert "gfx1151" in written.views
    assert names(wheels, "kernels", "gfx1151") == [new.name]
    assert [one["name"] for one in page(wheels)["projects"]] == ["kernels", "plain"]
    assert index(wheels, home)[0].read == 1


def test_one_that_went_or_is_another_is_told_as_such(wheels: Path, home: Home) -> None:
    (wheels / "plain-1.0-py3-none-any.whl").unlink()
    kernels = make_wheel(wheels / "deeper", "kernels", targets=("gfx1151",))
    look, written = index(wheels, home, changed=[wheels / "plain-1.0-py3-none-any.whl", kernels])
    assert (look.read, look.gone, look.listed) == (1, 2, 1)
    assert written.views == ("gfx1151",)
    assert [one["name"] for one in page(wheels)["projects"]] == ["kernels"]


def test_the_first_look_is_at_all_of_the_folder(tmp_path: Path, home: Home) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    look, _ = index(folder, home, changed=[make_wheel(folder, "other")])
    assert look.listed == 2


def test_a_first_look_that_was_cut_short_is_made_again(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "wheels"
    make_wheel(folder, "plain")
    new = make_wheel(folder, "other")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("rocwheel.wheels.index.refresh.examine", _interrupted)
        index(folder, home)
    assert index(folder, home, changed=[new])[0].listed == 2


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["../outside-1.0-py3-none-any.whl", "deeper", "plain-1.0.tar.gz"])
def test_what_is_no_wheel_of_the_folder_is_refused(wheels: Path, home: Home, name: str) -> None:
    with pytest.raises(InputError, match="is no wheel below") as caught:
        index(wheels, home, changed=[wheels / name])
    assert "--changed" in caught.value.next_step


def test_the_same_is_seen_as_by_a_look_at_all(wheels: Path, tmp_path: Path) -> None:
    name = "plain-1.0-py3-none-any.whl"
    good = wheels / name
    other = wheels / "other"
    deep = wheels.joinpath(*["d"] * MOST_DEEP)
    places = [
        *(".hidden", "simple", "gfx1030/simple", "a/b/simple", "other/below", "odd\x07folder"),
        *(deep.relative_to(wheels).as_posix(), (deep / "d").relative_to(wheels).as_posix()),
    ]
    for place in places:
        (wheels / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(good, wheels / place / name)
    (other / MARKER).write_text("{}")
    shutil.copy(good, wheels / f".{name}")
    shutil.copy(good, wheels / "odd\x07-1.0-py3-none-any.whl")
    os.mkfifo(wheels / "fifo-1.0-py3-none-any.whl")
    (wheels / "broken-1.0-py3-none-any.whl").symlink_to("nowhere")
    (wheels / "out-1.0-py3-none-any.whl").symlink_to(tmp_path)
    (wheels / "again-1.0-py3-none-any.whl").symlink_to(good)
    files = list(wheels.rglob("*.whl"))
    found, told = scan(wheels)
    seen, said, paths = look_at(wheels, files)
    assert seen == found
    assert len(paths) == len(files)
    # of folders that are passed with a word, only a look at all says it
    assert set(said) == {one for one in told if ".whl" in one.path}
    assert look_at(wheels, [wheels / "gone-1.0-py3-none-any.whl"])[:2] == ([], [])
