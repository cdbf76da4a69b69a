"""An architecture goes from the request through the lock to the plan; x86_64 leaves everything as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.load import builtin_catalog
from rocwright.execution.options import BuildOptions
from rocwright.execution.progress import PlainProgress
from rocwright.flow import build
from rocwright.home import Home
from rocwright.model.architecture import Architecture
from rocwright.model.steps import BaseAction, ImageAction, Plan, RunAction
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.files import (
    lock_text,
    read_lock,
    read_project,
    read_request,
    write_lock,
    write_request,
)
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.network import NetworkUpstream
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.plan.resolve.validate import check_request
from rocwright.project import project_of
from rocwright.store import open_store

CATALOG = builtin_catalog()
ARM = Architecture.AARCH64
LLAMA = Request(stack="llama-vulkan", gpu=("gfx1151",), base="debian:sid")
LLAMA_ARM = LLAMA.model_copy(update={"architecture": ARM})


def lock(request: Request) -> Lock:
    return make_lock(request, CATALOG, OfflineUpstream(request.architecture), lambda _: None)


def arm(stack: str, base: str, **more: object) -> Request:
    said = {"stack": stack, "gpu": ("gfx1151",), "base": base, "architecture": ARM}
    return Request.model_validate(said | more)


def here(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)


# x86_64 is what is meant where nothing is said


def test_x86_64_is_in_no_name_of_a_request() -> None:
    assert "--arch" not in LLAMA.words
    assert LLAMA.variant == ""
    assert LLAMA.name == "llama-vulkan_gfx1151_debian-sid"


def test_every_lock_that_comes_along_reads_as_one_for_x86_64() -> None:
    for stack, row in rows(CATALOG):
        found = shipped_lock(CATALOG, request_of(stack, row))
        if found is not None:
            assert found.request.architecture is Architecture.X86_64
            assert "aarch64" not in lock_text(found)


def test_a_lock_that_comes_along_does_not_answer_for_another_architecture() -> None:
    assert shipped_lock(CATALOG, LLAMA) is not None
    assert shipped_lock(CATALOG, LLAMA_ARM) is None


# request -> lock -> plan


def test_a_lock_says_its_architecture_and_reads_so_again(tmp_path: Path) -> None:
    made = lock(LLAMA_ARM)
    write_lock(tmp_path / "lock", made)
    assert read_lock(tmp_path / "lock", LLAMA_ARM) == made
    with pytest.raises(InputError, match="does not match") as caught:
        read_lock(tmp_path / "lock", LLAMA)
    assert "architecture" in caught.value.cause
    assert Lock.model_validate_json(made.model_dump_json(by_alias=True)) == made


def test_its_roots_are_of_that_architecture_by_the_bases_name_for_it() -> None:
    assert {root.architecture for root in lock(LLAMA).roots} == {"amd64"}
    assert {root.architecture for root in lock(LLAMA_ARM).roots} == {"arm64"}


def by_name(plan: Plan) -> dict[str, str]:
    return {step.name: step.key for step in plan.steps}


def test_a_plan_is_of_that_architecture_and_so_are_its_keys() -> None:
    plan, other = (make_plan(lock(one), CATALOG) for one in (LLAMA, LLAMA_ARM))
    assert {
        step.action.architecture for step in other.steps if isinstance(step.action, BaseAction | ImageAction)
    } == {"arm64"}
    mine, theirs = by_name(plan), by_name(other)
    assert mine.keys() == theirs.keys()
    same = {name for name in mine if mine[name] == theirs[name]}
    # what is fetched and unpacked is the same for both
    assert {"llama.cpp", "root/build", "root/run", "image/llama.cpp"} & same == set()
    assert {"source/llama.cpp", "tree/llama.cpp"} <= same


def test_a_recipe_names_what_it_makes_by_the_architecture() -> None:
    for request, word in ((LLAMA, "vulkan-linux-x86_64"), (LLAMA_ARM, "vulkan-linux-aarch64")):
        [step] = [one for one in make_plan(lock(request), CATALOG).steps if one.name == "llama.cpp"]
        assert isinstance(step.action, RunAction)
        assert f"$OUT/llama.cpp-b$LLAMA_VERSION-{word}.tar.gz" in step.action.commands[-1]
        assert not any("{architecture}" in one for one in step.action.commands)


def test_rows_locks_and_plans_of_two_architectures_lie_apart(tmp_path: Path) -> None:
    one, two = (project_of(request, tmp_path, Home(tmp_path)) for request in (LLAMA, LLAMA_ARM))
    assert one.lock_path != two.lock_path
    assert one.last_plan != two.last_plan
    assert one.lock_path.name == "llama-vulkan-debian-sid-gfx1151.lock"
    assert LLAMA_ARM.name == "llama-vulkan_gfx1151_debian-sid_aarch64"
    assert LLAMA_ARM.variant == "aarch64"
    assert LLAMA_ARM.words[-2:] == ["--arch", "aarch64"]


# a project file


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_project_that_names_none_is_for_the_machine_that_it_is_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text('stack = "llama-vulkan"\ngpu = ["gfx1151"]\nbase = "debian:sid"\n')
    here(monkeypatch, machine)
    assert read_request(path).architecture == machine


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("request_", [LLAMA, LLAMA_ARM], ids=["x86_64", "aarch64"])
def test_a_project_file_asks_for_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: str, request_: Request
) -> None:
    here(monkeypatch, machine)
    path = tmp_path / "rocwright.toml"
    write_request(path, request_)
    assert read_request(path) == request_
    assert ("architecture" in path.read_text()) is (request_.architecture != machine)


def test_a_matrix_may_name_one_and_has_the_projects_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    row = '[[matrix]]\nstack = "llama-vulkan"\ngpu = "gfx1151"\nbase = "debian:sid"\n'
    head = 'stack = "llama-vulkan"\ngpu = ["gfx1151"]\nbase = "debian:sid"\narchitecture = "aarch64"\n'
    path.write_text(f'{head}{row}{row}architecture = "x86_64"\n')
    assert [one.architecture for one in read_project(path).rows] == ["aarch64", "x86_64"]


def test_an_architecture_that_is_none_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = tmp_path / "rocwright.toml"
    path.write_text('stack = "x"\ngpu = ["gfx1151"]\nbase = "debian:sid"\narchitecture = "sparc"\n')
    with pytest.raises(InputError) as caught:
        read_request(path)
    assert "x86_64" in caught.value.cause
    assert "aarch64" in caught.value.cause


# what is not there


def test_a_base_that_is_not_there_for_it_is_refused_with_those_that_are() -> None:
    with pytest.raises(InputError) as caught:
        check_request(arm("rocm", "arch:2025-10-28"), CATALOG)
    told = caught.value
    assert told.message == "the base arch is not there for aarch64"
    assert told.cause == "the catalog knows it for x86_64"
    assert "--arch x86_64" in told.next_step
    assert "ubuntu:24.04" in told.next_step


@pytest.mark.parametrize(("stack", "base"), [("pytorch", "ubuntu:24.04"), ("llama-hip", "fedora:43")])
def test_rocm_is_refused_where_no_fact_says_that_it_exists(stack: str, base: str) -> None:
    with pytest.raises(ConflictError, match="no provider of ROCm serves gfx1151") as caught:
        lock(arm(stack, base))
    assert caught.value.message.endswith(f"on {base} for aarch64")
    assert caught.value.cause == f"no fact of the catalog says that there is ROCm for aarch64 on {base}"
    assert "--arch x86_64" in caught.value.next_step


def test_rocm_is_there_where_a_fact_says_so() -> None:
    found = lock(arm("llama-hip", "debian:sid", gpu=("gfx1100",)))
    assert found.rocm is not None
    assert found.rocm.name == "distribution"


def test_a_component_that_is_published_for_another_architecture_alone_is_refused() -> None:
    with pytest.raises(ConflictError, match="vllm-image is not there for aarch64") as caught:
        lock(arm("vllm-prebuilt", "debian:trixie"))
    assert "x86_64" in caught.value.cause


def test_the_packages_of_an_image_are_not_chosen_on_another_machine(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    here(monkeypatch, "x86_64")
    base, release = CATALOG.base("fedora:43")
    store = open_store(home.store)
    with (
        NetworkUpstream(base, release, CATALOG, store, home, print, architecture=ARM) as asked,
        pytest.raises(InputError, match="fedora:43 for aarch64 cannot be locked here") as caught,
    ):
        asked.root("build", base, release, ("bash",))
    assert "on a machine that is aarch64" in caught.value.next_step


def test_what_is_for_another_machine_is_not_built_here(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here(monkeypatch, "x86_64")
    project = project_of(LLAMA_ARM, tmp_path, home)
    with pytest.raises(InputError, match=r"this machine cannot build for aarch64 \(it is x86_64\)") as caught:
        build(project, lock(LLAMA_ARM), BuildOptions(jobs=1), PlainProgress())
    assert "x86_64" in caught.value.cause
    assert caught.value.next_step.endswith("--arch x86_64")


def test_every_base_says_for_which_architectures_it_is_there() -> None:
    have = {name: set(base.architecture) for name, base in CATALOG.bases.items()}
    assert all(Architecture.X86_64 in one for one in have.values())
    assert {name for name, one in have.items() if ARM in one} == {"debian", "fedora", "ubi", "ubuntu"}
