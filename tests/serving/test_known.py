"""A second start for the same words: as quick as it can be, and never of what is another by now."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from samples.making import make_tiny_root

from rocbase.errors import CheckError
from rocbase.processes.outlive import boot_id
from rocwheel_samples.tables import each
from rocwright import sandbox
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.server import Server
from rocwright.diagnosis.facts import host_facts
from rocwright.diagnosis.machine.tree import Tree
from rocwright.doctor.this_machine import here
from rocwright.home import Home
from rocwright.sandbox.model import Mount, SandboxJob
from rocwright.serving import check, known, launch, ready, state, stop
from rocwright.serving.asked import asked_for
from rocwright.serving.launch import Launch
from rocwright.serving.model_file import may_last
from rocwright.sources.bases.roots import unpacked_root
from rocwright.store.local import LocalStore
from tests.diagnosis.machine.machines import STRIX_HALO, machine
from tests.engines import must_work
from tests.serving.conftest import PROGRAM, STATE, free_port

MIB = 1024**2
ASKED = "0" * 64


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a root file system with a whole Python."""
    folder = tmp_path_factory.mktemp("root")
    make_tiny_root(folder / "root.tar.zst", folder, python=True, whole=True)
    return folder / "root.tar.zst"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "the.lock"
    path.write_text("a lock\n")
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_text("weights")
    return path


@pytest.fixture
def first(home: Home, tmp_path: Path, python: Path, model: Path) -> Iterator[Launch]:
    """A server that can be started: a program, a root of the store, a model."""
    must_work(sandbox.probe(sandbox.ENGINES["bubblewrap"]))
    store = LocalStore(home.store)
    sha256, _ = store.put_file(python)
    root = unpacked_root(store, sha256, home.roots, print)
    program = home.programs / "program"
    program.mkdir(parents=True)
    (program / "program.py").write_text(PROGRAM)
    port = free_port()
    job = SandboxJob(
        root=root,
        argv=("python3", "/artifact/program.py", str(port), "well"),
        env={"PATH": "/usr/bin:/bin"},
        mounts=(
            Mount(source=program, target="/artifact"),
            Mount(source=model, target="/models/model.gguf"),
        ),
        network=True,
    )
    own = {
        "model": str(model),
        "port": port,
        "boot": boot_id(),
        "mark": "rocwright-server-small-before",
    }
    kept = STATE.model_copy(update=own)
    server = Server(command=("program", "{port}"), port=port, health="/health")
    yield Launch(state=kept, argv=(), env={}, server=server, job=job)
    for one in state.servers(home):
        stop.stop(home, one.name, seconds=1)


def kept(home: Home, first: Launch, lock: Path, model: Path, *, most: int = MIB, card: bool = False) -> None:
    files = known.stamps([model])
    assert files is not None
    known.remember(home, ASKED, first, lock, files, memory=most, card=card, messages=["on: the processor"])


def again(home: Home, said: list[str] | None = None) -> Launch | None:
    return known.relaunch(home, ASKED, stays=True, say=(said if said is not None else []).append)


def test_what_went_well_starts_again_under_a_mark_of_its_own(
    home: Home, first: Launch, lock: Path, model: Path
) -> None:
    kept(home, first, lock, model)
    said: list[str] = []
    made = again(home, said)
    assert made is not None and said == ["on: the processor"]
    started, running = launch.start(made, home)
    ready.wait_until_ready(started, 30, launch.living(running), state.log_of(home, "small"))
    assert started.mark != first.state.mark and started.port == first.state.port
    assert again(home) is None, "its name is taken"
    assert stop.stop(home, "small")
    assert again(home) is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda home, lock, model: lock.write_text("another lock\n"),
        lambda home, lock, model: lock.unlink(),
        lambda home, lock, model: model.write_text("changed"),  # as long as it was
        lambda home, lock, model: (model.unlink(), model.write_text("weights")),
        lambda home, lock, model: model.unlink(),
        lambda home, lock, model: shutil.rmtree(home.programs / "program"),
        lambda home, lock, model: next(home.roots.glob("*/etc/passwd")).write_text("evil:x:0:0::/:/bin/sh\n"),
        lambda home, lock, model: (home.programs / "asked" / f"{ASKED}.json").write_text("{}"),
    ],
    ids=["lock", "no lock", "model", "other model", "no model", "program", "root", "note"],
)
def test_what_is_another_by_now_is_looked_for_in_the_long_way(
    home: Home, first: Launch, lock: Path, model: Path, change: Callable[[Home, Path, Path], object]
) -> None:
    kept(home, first, lock, model)
    assert known.recall(home, ASKED) is not None
    change(home, lock, model)
    assert again(home) is None
    assert not state.folder_of(home, "small").exists()


def test_a_port_that_is_taken_and_a_memory_that_is_too_small_are_told_in_the_long_way(
    home: Home, first: Launch, lock: Path, model: Path
) -> None:
    kept(home, first, lock, model)
    with socket.socket() as other:
        other.bind(("127.0.0.1", first.state.port))
        other.listen()
        assert again(home) is None
    kept(home, first, lock, model, most=2**60)
    assert again(home) is None


def test_a_card_is_checked_each_time(
    home: Home, first: Launch, lock: Path, model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    named = first.state.model_copy(update={"stack": "llama-vulkan"})
    kept(home, replace(first, state=named), lock, model, card=True)
    # a user in no group that may open the card
    with Tree(machine(tmp_path / "machine", STRIX_HALO)) as tree:
        found = here(tree, builtin_catalog(), host_facts(), home)
    monkeypatch.setattr(check, "machine_here", lambda catalog, home: found)
    with pytest.raises(CheckError, match="gfx1151 of this machine"):
        again(home)
    assert not state.folder_of(home, "small").exists()


def test_what_asks_for_a_key_or_runs_in_a_container_is_not_kept(
    home: Home, first: Launch, lock: Path, model: Path
) -> None:
    for made in (replace(first, key="secret"), replace(first, job=None)):
        kept(home, made, lock, model)
        assert known.recall(home, ASKED) is None


def test_a_model_that_is_a_folder_has_no_stamps(tmp_path: Path) -> None:
    assert known.stamps([tmp_path]) is None


@each(("words", "lasts"), [("tiny", True), ("a.gguf", True), ("hf:a/b/c.gguf", True), ("hf:a/b", False)])
def test_a_repository_without_a_file_is_looked_up_each_time(words: str, lasts: bool) -> None:
    assert may_last(words) is lasts


def test_another_gpu_in_this_machine_is_another_question(tmp_path: Path) -> None:
    before = asked_for(["x"], tmp_path)
    node = tmp_path / "class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "properties").write_text("gfx_target_version 110501\nsimd_count 80\ndevice_id 5510\n")
    assert asked_for(["x"], tmp_path) != before
