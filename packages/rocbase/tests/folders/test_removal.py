"""A folder that a step could write goes whole, and nothing outside it does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

from rocbase.folders.removal import remove_tree
from rocwheel_samples.hostile_files import make_deep, make_fifo, make_socket


def test_everything_in_a_folder_goes_and_links_lead_nowhere(tmp_path: Path) -> None:
    folder, outside = tmp_path / "work", tmp_path / "outside"
    (folder / "a" / "b").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (folder / "a" / "b" / "f").write_text("x")
    (folder / "a" / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "kept")
    (folder / "hard").hardlink_to(outside / "kept")
    make_fifo(folder / "pipe")
    make_socket(folder / "socket")
    Path(folder, "a\n\x1b\udcff").touch()
    mode = outside.stat().st_mode
    assert remove_tree(folder)
    assert not folder.exists()
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode == mode


def test_a_link_in_place_of_the_folder_goes_and_what_it_names_stays(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    assert remove_tree(tmp_path / "link")
    assert list(tmp_path.iterdir()) == [tmp_path / "outside"]


def test_a_file_and_what_is_not_there_go(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert remove_tree(tmp_path / "file")
    assert remove_tree(tmp_path / "missing")
    assert remove_tree(tmp_path / "missing" / "missing")


def test_folders_deeper_than_any_path_go(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "work" / name).mkdir(parents=True)
        make_deep(tmp_path / "work" / name, 1500)
    assert remove_tree(tmp_path / "work")


def test_folders_that_their_owner_may_not_open_go(tmp_path: Path) -> None:
    """As a plain user too: for root every folder is open."""
    folder = tmp_path / "work"
    (folder / "shut" / "inner").mkdir(parents=True)
    (folder / "shut" / "inner" / "f").touch()
    script = """
import os, sys
from pathlib import Path
from rocbase.folders.removal import remove_tree
if os.geteuid() == 0:
    os.setgid(1000)
    os.setuid(1000)
os.chmod("shut/inner", 0o500)
os.chmod("shut", 0)
sys.exit(not remove_tree(Path("shut")))
"""
    if os.geteuid() == 0:
        for path in (folder, folder / "shut", folder / "shut" / "inner", folder / "shut" / "inner" / "f"):
            os.chown(path, 1000, 1000)
    assert subprocess.run([sys.executable, "-c", script], cwd=folder, check=False).returncode == 0
    assert not list(folder.iterdir())


def test_a_folder_made_a_link_while_it_is_removed_leads_nowhere(tmp_path: Path) -> None:
    """Somebody exchanges a folder for a link to another, again and again; the other keeps all it has."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for number in range(50):
        (outside / str(number)).touch()
    done = threading.Event()
    folder = tmp_path / "work"

    def exchange() -> None:
        while not done.is_set():
            try:
                (folder / "a").rename(folder / "b")
                (folder / "a").symlink_to(outside)
            except OSError:
                continue

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(100):
            with contextlib.suppress(OSError):
                (folder / "a").mkdir(parents=True, exist_ok=True)
                for number in range(20):
                    (folder / "a" / f"of-the-step-{number}").touch()
            remove_tree(folder)
    finally:
        done.set()
        thread.join()
    assert {str(number) for number in range(50)} <= {path.name for path in outside.iterdir()}
    remove_tree(folder)
