"""Temporary folders go at the end, and those of a run that was killed go with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocbase.folders.temporary import sweep_temporary, temporary_folder

HOLDER = """
import sys, time
from pathlib import Path
from rocbase.folders.temporary import temporary_folder
with temporary_folder("test", place=Path(sys.argv[1])) as folder:
    (folder / "deep" / "tree").mkdir(parents=True)
    print(folder, flush=True)
    time.sleep(100)
"""


def test_a_folder_goes_at_the_end_however_that_comes(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), temporary_folder("test", place=tmp_path) as folder:
        (folder / "file").touch()
        assert folder.stat().st_mode & 0o777 == 0o700
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_held_stays_and_that_of_a_killed_run_goes(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        folder = Path(holder.stdout.readline().strip())
        assert sweep_temporary(tmp_path) == []
        assert (folder / "deep" / "tree").is_dir()
        holder.kill()
    assert sweep_temporary(tmp_path) == [folder]
    assert list(tmp_path.iterdir()) == []


def test_nothing_else_is_touched_and_no_link_is_followed(tmp_path: Path) -> None:
    place, outside = tmp_path / "place", tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    place.mkdir()
    (place / "rocwright-link-x.tmp").symlink_to(outside)
    (place / "rocwright-file-x.tmp").touch()
    (place / "rocwright-older").mkdir()
    (place / "other.tmp").mkdir()
    left = place / "rocwright-left-x.tmp"
    left.mkdir()
    (left / "link").symlink_to(outside)
    before = {*place.iterdir()} - {left}
    assert sweep_temporary(place, tmp_path / "none") == [left]
    assert {*place.iterdir()} == before
    assert (outside / "kept").is_dir()


def test_another_users_is_never_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rocwright-theirs-x.tmp").mkdir()
    theirs = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: theirs)
    assert sweep_temporary(tmp_path) == []
    assert (tmp_path / "rocwright-theirs-x.tmp").is_dir()
