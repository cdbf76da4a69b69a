"""Steps whose inputs are the same and were packed by different versions of libzstd: here, levels."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.making import EPOCH
from tests.sources.conftest import make_repository

from rocwheel_samples.trees import write_tree
from rocwright.bases import debian
from rocwright.bases.roots import remove_tree
from rocwright.execution.asked import Asked
from rocwright.execution.step_process import run
from rocwright.home import Home
from rocwright.model.steps import BaseAction, FetchAction, Input, Step, TreeAction
from rocwright.sources.archive import pack
from rocwright.sources.git import pack_commit
from rocwright.store import packed
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record
from rocwright.store.packed import content_of


def put(workshop: Workshop, step: Step, name: str, path: Path, content: str) -> Step:
    """A step that gave this packed file."""
    sha256, size = workshop.store.put_file(path)
    output = Output(name=name, filename=f"{name}.tar.zst", sha256=sha256, size=size, content=content)
    record = Record(
        key=step.key,
        content_key=step.key,
        step=step.name,
        kind=step.kind,
        outputs=(output,),
        started="",
        seconds=1,
    )
    workshop.store.put_record(record)
    return step


def tree(workshop: Workshop, name: str, level: int, *, old: bool = False, text: str = "text\n") -> Step:
    """A tree step of a machine; `old` has the record of an older rocwright."""
    step = Step(name=f"tree/{name}", component=name, action=TreeAction(subdir=name))
    folder = write_tree(workshop.folder / f"tree-{name}", {"file": text})
    path = workshop.folder / f"{name}.tar.zst"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "LEVEL", level)
        content = pack(folder, path, epoch=EPOCH)
    remove_tree(folder)
    return put(workshop, step, "tree", path, "" if old else content)


def sha256(workshop: Workshop, step: Step) -> str:
    record = workshop.store.record(step.key)
    assert record is not None
    return record.outputs[0].sha256


def build(workshop: Workshop, of: Step) -> Step:
    return workshop.step("cat file > $OUT/result", "date +%s%N >> $OUT/result", name="hello", tree=of)


def test_a_step_whose_tree_was_packed_otherwise_is_not_run_again(workshop: Workshop) -> None:
    one, two = tree(workshop, "one", 1), tree(workshop, "two", 19)
    assert sha256(workshop, one) != sha256(workshop, two)
    first = workshop.run(build(workshop, one))
    again = workshop.run(build(workshop, two))
    assert (again.outputs, again.reused) == (first.outputs, first.content_key)


def test_a_step_whose_root_was_packed_otherwise_is_not_run_again(workshop: Workshop, tiny_root: Path) -> None:
    content, of = content_of(tiny_root), tree(workshop, "one", 3)
    roots = []
    for level in (1, 9):
        path = workshop.folder / "root.tar.zst"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packed, "LEVEL", level)
            with packed.packing(path) as writing:
                writing.write(_plain(tiny_root))
        assert writing.content == content
        step = Step(name="root", component="r", action=BaseAction(suite=str(level), architecture="amd64"))
        roots.append(put(workshop, step, "root", path, content))
    assert sha256(workshop, roots[0]) != sha256(workshop, roots[1])
    made = []
    for root in roots:
        workshop.root = root
        made.append(workshop.run(build(workshop, of)))
    assert made[1].reused == made[0].content_key


def test_a_step_that_makes_a_root_says_what_is_in_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mmdebstrap is left out: here it is what comes of its tar."""

    def root(command: object, folder: Path, write: Callable[[bytes], int], *rest: object) -> int:
        write(b"a root ")
        write(b"file system")
        return 0

    monkeypatch.setattr(debian, "_mmdebstrap", root)
    monkeypatch.setattr(debian, "write_index", lambda *words: ["one"])
    packages = Step(name="packages", component="root", action=FetchAction(pending="p"))
    (workshop.folder / "one.deb").write_bytes(b"a package")
    put(workshop, packages, "p", workshop.folder / "one.deb", "")
    inputs = (Input(name="packages", key=packages.key, output="*"),)
    action = BaseAction(suite="sid", architecture="amd64")
    step = Step(name="root/x", component="root", action=action, inputs=inputs)
    workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    [output] = workshop.run(step).outputs
    assert output.content == hashlib.sha256(b"a root file system").hexdigest()
    assert output.content == content_of(workshop.store.verified(output.sha256))


def _plain(path: Path) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read()


def test_another_tree_is_built(workshop: Workshop) -> None:
    workshop.run(build(workshop, tree(workshop, "one", 3)))
    assert workshop.run(build(workshop, tree(workshop, "two", 3, text="other\n"))).reused == ""


def test_a_run_of_before_contents_were_known_still_counts(workshop: Workshop) -> None:
    """A home of an older rocwright: its trees are known by their bytes, its runs by those of their inputs."""
    old, new, other = tree(workshop, "old", 3, old=True), tree(workshop, "new", 3), tree(workshop, "x", 19)
    assert sha256(workshop, old) == sha256(workshop, new) != sha256(workshop, other)
    first = workshop.run(build(workshop, old))
    again = workshop.run(build(workshop, new))
    assert again.outputs == first.outputs
    assert again.content_key != first.content_key
    # from now on it is found by content too
    assert workshop.run(build(workshop, other)).outputs == first.outputs
    assert workshop.run(build(workshop, old)) == first


def test_a_tree_of_before_that_was_packed_otherwise_is_another(workshop: Workshop) -> None:
    workshop.run(build(workshop, tree(workshop, "old", 3, old=True)))
    assert workshop.run(build(workshop, tree(workshop, "new", 19))).reused == ""


def test_the_key_of_a_step_does_not_know_of_contents(workshop: Workshop) -> None:
    assert (
        build(workshop, tree(workshop, "one", 3, old=True)).key == build(workshop, workshop.tree("one")).key
    )


def test_a_step_says_what_is_in_the_tree_that_it_packed_and_so_does_its_report(
    store: LocalStore, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    repository = make_repository(tmp_path / "upstream")
    pin = pack_commit(repository.url, repository.git("rev-parse", "HEAD"), tmp_path)
    store.put_file(tmp_path / pin.filename)
    source = Step(name="source/x", component="x", action=FetchAction(files=(pin,)))
    outputs = {}
    for level, why in ((1, "two is better"), (19, "two is more")):
        monkeypatch.setattr(packed, "LEVEL", level)
        edit = {"file": "file", "regex": "one", "with": "two", "why": why}
        action = TreeAction.model_validate({"edits": [edit]})
        inputs = (Input(name="source", key=source.key, output="*"),)
        step = Step(name="tree/x", component="x", action=action, inputs=inputs)
        for each in (source, step):
            store.put_step(each.key, each.model_dump_json(by_alias=True).encode())
            report = tmp_path / "report"
            assert run(Asked(key=each.key, store=store.url, report=str(report))) == 0
            record = Record.model_validate(json.loads(report.read_text())["record"])
            outputs[each.name, level] = record.outputs[0]
        kept = store.record(step.key)
        assert kept is not None
        assert (kept.outputs, kept.schema_version) == (record.outputs, 5)
        store.forget(step.key)
        store.forget(record.content_key)
    one, two = outputs["tree/x", 1], outputs["tree/x", 19]
    assert one.sha256 != two.sha256
    assert one.content == two.content == content_of(store.verified(one.sha256)) != ""
    assert outputs["source/x", 1].content == "", "what a lock names by its bytes is its bytes"
