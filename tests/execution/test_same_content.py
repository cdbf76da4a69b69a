"""Steps whose inputs are the same and were packed by different versions of libzstd: here, levels."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest
from tests.execution.conftest import Workshop
from tests.making import EPOCH
from tests.sources.conftest import make_repository

from rocwheel_samples.trees import write_tree
from rocwright.execution.asked import Asked
from rocwright.execution.step_process import run
from rocwright.home import Home
from rocwright.model.steps import (
    ArchiveOrigin,
    BaseAction,
    FetchAction,
    FilePin,
    GitOrigin,
    Input,
    Step,
    TreeAction,
)
from rocwright.sources import signed_packages
from rocwright.sources.archive import pack
from rocwright.sources.bases import debian
from rocwright.sources.bases.roots import remove_tree
from rocwright.sources.bases.tools import Tools
from rocwright.sources.git import pack_commit
from rocwright.store import packed
from rocwright.store.local import LocalStore
from rocwright.store.model import Output, Record, verified
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


def tree(workshop: Workshop, name: str, level: int, *, bare: bool = False, text: str = "text\n") -> Step:
    """A tree step of a machine; the record of a `bare` one says no content."""
    step = Step(name=f"tree/{name}", component=name, action=TreeAction(subdir=name))
    folder = write_tree(workshop.folder / f"tree-{name}", {"file": text})
    path = workshop.folder / f"{name}.tar.zst"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "LEVEL", level)
        content = pack(folder, path, epoch=EPOCH)
    remove_tree(folder)
    return put(workshop, step, "tree", path, "" if bare else content)


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
    laid: list[Path] = []

    def index(tools: Tools, folder: Path, suite: str) -> list[str]:
        laid.extend(folder.iterdir())
        return ["one"]

    made = ["sh", "-c", "printf 'a root '; printf 'file system'"]
    monkeypatch.setattr(debian, "_command", lambda *words: made)
    monkeypatch.setattr(debian, "write_index", index)
    monkeypatch.setattr("rocwright.sources.bases.tools.Tools.digest", "ab" * 32)
    signed = workshop.home.apt / signed_packages.KEPT
    signed.parent.mkdir(parents=True)
    signed.write_text(hashlib.sha256(b"a package").hexdigest())
    packages = Step(name="packages", component="root", action=FetchAction(pending="p"))
    (workshop.folder / "one.deb").write_bytes(b"a package")
    put(workshop, packages, "p", workshop.folder / "one.deb", "")
    inputs = (Input(name="packages", key=packages.key, output="*"),)
    # the key of such a root does not hold `image`, so it changes nothing
    image = hashlib.sha256(b"a package").hexdigest()
    action = BaseAction(suite="sid", architecture="amd64", image=image)
    step = Step(name="root/x", component="root", action=action, inputs=inputs)
    workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
    record = workshop.run(step)
    [output] = record.outputs
    assert laid
    assert record.tools == "ab" * 32
    assert output.content == hashlib.sha256(b"a root file system").hexdigest()
    assert output.content == content_of(verified(workshop.store, output.sha256))


def _plain(path: Path) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().stream_reader(path.open("rb")).read()


def test_another_tree_is_built(workshop: Workshop) -> None:
    workshop.run(build(workshop, tree(workshop, "one", 3)))
    assert workshop.run(build(workshop, tree(workshop, "two", 3, text="other\n"))).reused == ""


def test_an_archive_under_another_name_gives_a_tree_of_its_own(workshop: Workshop) -> None:
    """A hostile lock names an honest archive so that nothing of it is unpacked."""
    archive = workshop.folder / "x.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(write_tree(workshop.folder / "x", {"file": "text\n"}), "x-1")
    sha256, size = workshop.store.put_file(archive)
    made = []
    for name in ("x.debian.tar.gz", "x.tar.gz"):
        pin = FilePin(filename=name, sha256=sha256, size=size, origin=ArchiveOrigin(url="https://x.test/x"))
        source = Step(name="source/x", component="x", action=FetchAction(files=(pin,)))
        inputs = (Input(name="source", key=source.key, output="*"),)
        step = Step(name="tree/x", component="x", action=TreeAction(), inputs=inputs)
        for each in (source, step):
            workshop.store.put_step(each.key, each.model_dump_json(by_alias=True).encode())
            made.append(workshop.run(each))
    _, empty, _, honest = made
    assert honest.reused == ""
    assert not honest.gave_same(empty)


def test_the_files_of_one_key_are_in_one_order(workshop: Workshop) -> None:
    orders = []
    for names in ("ab", "ba"):
        pins = []
        for name in names:
            path = workshop.folder / name
            path.write_text(name)
            sha256, size = workshop.store.put_file(path)
            origin = ArchiveOrigin(url="https://x.test/x")
            pins.append(FilePin(filename=name, sha256=sha256, size=size, origin=origin))
        step = Step(name="source/x", component="x", action=FetchAction(files=tuple(pins)))
        workshop.store.put_step(step.key, step.model_dump_json(by_alias=True).encode())
        orders.append([one.filename for one in workshop.run(step).outputs])
        workshop.store.local.remove("record", step.key)
    assert orders == [["a", "b"], ["a", "b"]]


def test_the_key_of_a_step_does_not_know_of_contents(workshop: Workshop) -> None:
    assert (
        build(workshop, tree(workshop, "one", 3, bare=True)).key == build(workshop, workshop.tree("one")).key
    )


def test_a_step_says_what_is_in_the_tree_that_it_packed_and_so_does_its_report(
    store: LocalStore, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("ROCWRIGHT_HOME", str(home.path))
    repository = make_repository(tmp_path / "upstream")
    pin = pack_commit(GitOrigin(url=repository.url, commit=repository.git("rev-parse", "HEAD")), tmp_path)
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
        store.local.remove("record", step.key)
        store.local.remove("record", record.content_key)
    one, two = outputs["tree/x", 1], outputs["tree/x", 19]
    assert one.sha256 != two.sha256
    assert one.content == two.content == content_of(verified(store, one.sha256)) != ""
    assert outputs["source/x", 1].content == "", "what a lock names by its bytes is its bytes"
