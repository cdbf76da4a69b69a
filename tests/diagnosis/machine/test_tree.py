"""Files of a machine are read in time, and what cannot be read is told."""

from __future__ import annotations

import os
from pathlib import Path

from rocwheel_samples.trees import write_tree
from rocwright.diagnosis.machine.tree import Tree

SHORT = 0.3


def test_what_is_not_there_is_nothing_and_no_failure(tmp_path: Path) -> None:
    with Tree(tmp_path) as tree:
        assert tree.text("/sys/none") is None
        assert tree.names("/sys") == []
        assert tree.number("/sys/none") is None
        assert tree.stat("/sys/none") is None
        assert tree.unread == []


def test_a_file_that_never_answers_is_left_behind_and_others_are_read(tmp_path: Path) -> None:
    write_tree(tmp_path, {"sys/other/file": "7\n", "sys/stuck/beside": "1\n"})
    os.mkfifo(tmp_path / "sys/stuck/fifo")
    with Tree(tmp_path, limit=SHORT) as tree:
        assert tree.text("/sys/stuck/fifo") is None
        assert tree.number("/sys/other/file") == 7
        assert tree.text("/sys/stuck/beside") is None
        told = {one.path: one.why for one in tree.unread}
    assert told == {
        "/sys/stuck/fifo": "no answer in 0.3 s",
        "/sys/stuck/beside": "not read: a file next to it does not answer",
    }


def test_a_folder_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "sys/file").mkdir(parents=True)
    with Tree(tmp_path) as tree:
        assert tree.text("/sys/file") is None
        assert [one.path for one in tree.unread] == ["/sys/file"]


def test_what_should_be_a_number_and_is_none_is_told(tmp_path: Path) -> None:
    write_tree(tmp_path, {"sys/file": "many\n"})
    with Tree(tmp_path) as tree:
        assert tree.number("/sys/file") is None
        assert [one.why for one in tree.unread] == ["is not a number"]


def test_numbers_are_read_in_the_kernels_spellings_and_sizes_in_bytes(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a": "0x83\n", "b": "MemTotal:   2 kB\nHugePages: 3\nodd\n"})
    with Tree(tmp_path) as tree:
        assert tree.number("/a") == 0x83
        assert tree.table("/b") == {"MemTotal": 2048, "HugePages": 3}


def test_bytes_that_are_no_text_are_read_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\x00\n")
    with Tree(tmp_path) as tree:
        assert tree.raw("/a") == b"\xff\x00\n"


def test_the_room_of_what_is_not_there_yet_is_that_of_its_parent(tmp_path: Path) -> None:
    with Tree(tmp_path) as tree:
        found, root = tree.room("/not/there"), tree.room("/")
    assert found is not None
    assert root is not None
    assert (found["device"], found["total"]) == (root["device"], root["total"])
