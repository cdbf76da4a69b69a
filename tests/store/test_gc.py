"""What a store holds in figures, whether it is whole, and what a clean-up takes."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from tests.making import put_output, record_of, small_plan

from rocwheel_samples.hostile_files import make_deep, make_fifo
from rocwright.execution.cleanup.inside import find_work
from rocwright.execution.cleanup.model import the_kinds
from rocwright.home import Home
from rocwright.model.steps import Plan
from rocwright.sources.bases.roots import remove_tree
from rocwright.store.gc import Rubbish, check_whole, folder_size, leftovers, remove, rubbish, usage
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record, records, verified


def filled(store: LocalStore, folder: Path) -> tuple[Plan, dict[str, Output]]:
    """A store with an output for each step of the small plan."""
    plan = small_plan()
    return plan, {
        step.name: put_output(store, step, "out", step.name.encode(), folder) for step in plan.steps
    }


def aged(store: LocalStore, record: Record | None, days: float) -> None:
    assert record is not None
    then = time.time() - days * 86400
    os.utime(store.path / "records" / record.key[:2] / f"{record.key}.json", (then, then))


def test_usage_adds_up_bytes_by_kind_and_counts_no_file_twice(store: LocalStore, tmp_path: Path) -> None:
    plan, outputs = filled(store, tmp_path)
    again = record_of(plan.steps[-1], outputs["hello"], key="0" * 64)
    store.put_record(again)
    rows = {row.kind: (row.files, row.size) for row in usage(store)}
    assert rows["run"] == (1, len("hello"))
    assert rows["fetch"] == (2, len("packages/build") + len("source/hello"))
    assert sum(size for _, size in rows.values()) == sum(file.size for file in store.local.files())


def test_a_file_that_no_record_names_is_shown_apart(store: LocalStore, tmp_path: Path) -> None:
    path = tmp_path / "loose"
    path.write_bytes(b"12345")
    store.put_file(path)
    assert [(row.kind, row.size) for row in usage(store)] == [("no step", 5)]


def test_a_whole_store_is_found_whole(store: LocalStore, tmp_path: Path) -> None:
    filled(store, tmp_path)
    verdict = check_whole(store)
    assert (verdict.files, verdict.damaged, verdict.incomplete) == (5, (), ())


def test_a_damaged_file_is_found_and_its_record_dropped(store: LocalStore, tmp_path: Path) -> None:
    plan, outputs = filled(store, tmp_path)
    bad = outputs["tree/hello"]
    path = verified(store, bad.sha256)
    path.chmod(0o644)
    path.write_bytes(b"x" * bad.size)
    verdict = check_whole(store)
    assert verdict.damaged == (bad.sha256,)
    assert [name.split()[0] for name in verdict.incomplete] == ["tree/hello"]
    assert store.record(plan.steps[3].key) is None
    assert check_whole(store).damaged == ()


def test_a_clean_up_keeps_what_the_last_plan_needs_however_old(store: LocalStore, tmp_path: Path) -> None:
    plan, _ = filled(store, tmp_path)
    for step in plan.steps:
        aged(store, store.record(step.key), 400)
    found = rubbish(store, {step.key for step in plan.steps}, 30, [])
    assert (found.records, found.blobs, found.size) == ((), (), 0)


def test_a_clean_up_keeps_what_is_needed_by_its_key_or_by_its_content(store: LocalStore) -> None:
    step = small_plan().steps[-1]
    by_key = store.put_record(record_of(step, key="1" * 64, content_key="2" * 64))
    by_content = store.put_record(record_of(step, key="3" * 64, content_key="4" * 64))
    by_neither = store.put_record(record_of(step, key="5" * 64, content_key="6" * 64))
    for record in (by_key, by_content, by_neither):
        aged(store, record, 400)
    assert rubbish(store, {"1" * 64, "4" * 64}, 30, []).records == (by_neither.key,)


def test_a_clean_up_takes_old_records_and_files_that_only_they_need(
    store: LocalStore, tmp_path: Path
) -> None:
    plan, outputs = filled(store, tmp_path)
    old, shared = plan.steps[-1], outputs["root/build"]
    newer = record_of(plan.steps[0], shared, key="1" * 64)
    store.put_record(newer)
    for step in (old, plan.steps[1]):
        aged(store, store.record(step.key), 31)
    found = rubbish(store, set(), 30, [])
    assert set(found.records) == {old.key, plan.steps[1].key}
    assert found.blobs == (outputs["hello"].sha256,)
    assert found.size == outputs["hello"].size
    remove(store, found, remove_tree)
    assert not store.has(outputs["hello"].sha256)
    assert store.has(shared.sha256)
    assert check_whole(store).incomplete == ()


def test_looking_for_rubbish_removes_nothing(store: LocalStore, tmp_path: Path) -> None:
    filled(store, tmp_path)
    before = list(store.local.files()), list(records(store))
    assert rubbish(store, set(), 0, []).records
    assert (list(store.local.files()), list(records(store))) == before


def test_an_unpacked_root_goes_when_its_archive_does(store: LocalStore, tmp_path: Path) -> None:
    plan, outputs = filled(store, tmp_path)
    kept, gone = tmp_path / outputs["root/build"].sha256, tmp_path / ("e" * 64)
    for folder in (kept, gone):
        folder.mkdir()
        (folder / "file").write_bytes(b"1234")
    found = rubbish(store, {step.key for step in plan.steps}, 30, [kept, gone])
    assert (found.folders, found.size) == ((str(gone),), 4)
    remove(store, found, remove_tree)
    assert kept.exists()
    assert not gone.exists()


def test_what_killed_builds_left_behind_is_found_once_it_is_old(home: Home) -> None:
    old = [home.second / "7", home.roots / ".unpacking-x", home.work / "abc"]
    for folder in (*old, home.roots / ("f" * 64)):
        folder.mkdir(parents=True)
    assert leftovers(home, 1) == []
    then = time.time() - 2 * 86400
    for folder in old:
        os.utime(folder, (then, then))
    assert leftovers(home, 1) == old


def test_the_size_of_a_folder_counts_no_link_and_ends(tmp_path: Path) -> None:
    """What a step left: folders deeper than any path, links, and a file that is no file."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "outside").write_bytes(b"x" * 1000)
    (folder / "a").write_bytes(b"x" * 10)
    (folder / "link").symlink_to(tmp_path)
    make_fifo(folder / "pipe")
    make_deep(folder, 1500)
    assert folder_size(folder) == 10
    assert folder_size(folder / "a") == 10
    assert folder_size(folder / "link" / "missing") == 0
    remove_tree(folder)
    assert not folder.exists()


def test_what_goes_while_leftovers_are_looked_for_is_left_out(home: Home, store: LocalStore) -> None:
    """Steps end, and their folders with them, while a clean-up looks."""
    kind = next(one for one in the_kinds().kind if one.name == "work")
    for number in range(2000):
        (home.work / f"{number:04}").mkdir(parents=True)

    def go() -> None:
        for one in sorted(home.work.iterdir()):
            one.rmdir()

    going = threading.Thread(target=go)
    going.start()
    while going.is_alive():
        leftovers(home, 0)
        find_work(kind, home, store, Rubbish(records=(), blobs=(), folders=(), size=0))
    assert leftovers(home, 0) == []
