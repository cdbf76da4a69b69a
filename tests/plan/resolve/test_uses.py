"""What is asked for beside a stack becomes an input of those that can take it in."""

from __future__ import annotations

import pytest

from rocbase.errors import ConflictError, InputError
from rocwright.catalog.address import ArchivePlace
from rocwright.catalog.load import builtin_catalog
from rocwright.export.write import export
from rocwright.model.steps import ArchiveOrigin, FilePin, Plan, RunAction
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.shipped import request_of, rows
from rocwright.plan.resolve.upstream import OfflineUpstream

GFX803 = Request(
    stack="pytorch",
    gpu=("gfx803",),
    base="rocm-ubuntu-24.04:6.4",
    provider="amd",
    versions={"pytorch": "2.6.0"},
)
GFX1103 = Request(stack="pytorch", gpu=("gfx1103",), base="arch:2025-10-28", versions={"pytorch": "2.9.1"})


def lock_with(request: Request, *extra: str) -> Lock:
    wanted = request.model_copy(update={"extra": extra})
    return make_lock(wanted, builtin_catalog(), OfflineUpstream(), lambda _: None)


def plan_with(request: Request, *extra: str) -> Plan:
    return make_plan(lock_with(request, *extra), builtin_catalog())


def inputs(plan: Plan, name: str) -> set[str]:
    return {one.name for step in plan.steps if step.name == name for one in step.inputs}


def action(plan: Plan, name: str) -> RunAction:
    (found,) = (step.action for step in plan.steps if step.name == name)
    assert isinstance(found, RunAction)
    return found


def test_a_library_that_is_asked_for_is_built_before_and_laid_into_the_build() -> None:
    plan = plan_with(GFX803, "rocblas")
    names = [step.name for step in plan.steps]
    assert names.index("rocblas") < names.index("pytorch")
    assert "rocblas" in inputs(plan, "pytorch")
    commands = action(plan, "pytorch").commands
    setup = builtin_catalog().component("rocblas").setup
    at = commands.index(setup[0])
    assert commands[at : at + len(setup)] == setup
    assert at + len(setup) < commands.index(builtin_catalog().component("pytorch").run[-1])


def test_where_rocm_has_it_without_code_for_the_gpu_it_is_built_without_being_asked_for() -> None:
    assert "rocblas" in inputs(plan_with(GFX803), "pytorch")


def test_where_rocm_has_it_with_code_for_the_gpu_it_is_nowhere() -> None:
    sid = Request(stack="pytorch", gpu=("gfx803",), base="debian:sid", versions={"pytorch": "2.6.0"})
    plan = plan_with(sid)
    assert not any("rocblas" in {step.name, *inputs(plan, step.name)} for step in plan.steps)


def test_what_is_taken_in_changes_the_environment_of_who_takes_it() -> None:
    without, with_it = (
        action(plan_with(GFX1103, *one), "pytorch") for one in ((), ("aotriton", "aocl-blis"))
    )
    assert (without.env["USE_FLASH_ATTENTION"], without.env["BLAS"]) == ("0", "OpenBLAS")
    assert (with_it.env["USE_FLASH_ATTENTION"], with_it.env["BLAS"]) == ("1", "BLIS")
    assert any("AOTRITON_INSTALLED_PREFIX" in one for one in with_it.commands)


def test_the_version_taken_is_one_that_fits() -> None:
    versions = {one.name: one.version for one in lock_with(GFX1103, "aotriton").components}
    assert versions["aotriton"].startswith("0.11")


def test_the_newest_that_takes_it_in_is_chosen_where_none_is_pinned() -> None:
    lock = lock_with(GFX1103.model_copy(update={"versions": {}}), "aotriton")
    assert {one.name: one.version for one in lock.components}["pytorch"] == "2.9.1"


def test_what_a_pinned_version_does_not_take_in_is_a_conflict_in_words() -> None:
    request = Request(stack="pytorch", gpu=("gfx1151",), base="ubuntu:24.04", versions={"pytorch": "2.12.1"})
    with pytest.raises(ConflictError) as caught:
        lock_with(request, "aotriton")
    assert "pytorch 2.12.1 takes in no aotriton" in caught.value.detail


def test_it_is_exported_as_an_input_too() -> None:
    files = export(lock_with(GFX803, "rocblas"), builtin_catalog(), "all")
    assert "COPY --from=rocblas /out/rocblas-*.tar.gz /in/rocblas/\n" in files["pipeline/Containerfile"].text
    assert '/out/"rocblas-*.tar.gz' in files["nspawn/build-nspawn.sh"].text


def test_no_row_of_a_stack_is_touched_by_what_could_be_asked_for() -> None:
    for stack, row in rows(builtin_catalog()):
        lock = make_lock(request_of(stack, row), builtin_catalog(), OfflineUpstream(), lambda _: None)
        rocm = lock.rocm
        fact = rocm and builtin_catalog().provider(rocm.name).evidence(row.gpu, rocm.version, row.base)
        rebuilt = set(fact.rebuilt) if fact else set()
        assert {one.name for one in lock.components} & set(stack.optional) <= {*rebuilt, *row.extra}


TARBALL = Request(
    stack="pytorch",
    gpu=("gfx1151",),
    base="ubuntu:24.04",
    provider="therock-tarball",
    versions={"pytorch": "2.12.1", "rocm": "7.14.0"},
)


def test_a_tarball_of_rocm_is_fetched_and_laid_into_the_builds_that_need_it() -> None:
    lock = lock_with(TARBALL)
    assert lock.rocm is not None
    (url,) = lock.rocm.wanted
    assert url.endswith("/therock-dist-linux-gfx1151-7.14.0.tar.gz")
    assert lock.rocm.pending
    plan = make_plan(lock, builtin_catalog())
    built = action(plan, "pytorch")
    assert "rocm" in inputs(plan, "pytorch")
    assert "rocm" not in built.install
    assert "tar -C /build/rocm" in built.commands[0]


def test_a_tarball_of_rocm_is_exported_with_its_address_and_hash() -> None:
    lock = lock_with(TARBALL)
    assert lock.rocm is not None
    (url,) = lock.rocm.wanted
    files = export(lock, builtin_catalog(), "all")
    name = url.rpartition("/")[2]
    script = files["pipeline/prepare.sh"].text
    assert f"fetched rocm {name} {url}\n" in script
    assert 'given rocm "$ROCM_SHA256"\n' in script
    assert "COPY rocm/ /in/rocm/\n" in files["pipeline/Containerfile"].text
    pin = FilePin(filename=name, sha256="0" * 64, size=1, origin=ArchiveOrigin(url=url))
    known = lock.rocm.model_copy(update={"files": (pin,), "pending": ""})
    files = export(lock.model_copy(update={"rocm": known}), builtin_catalog(), "all")
    assert f"hashed rocm/{name} sha256 {'0' * 64}\n" in files["pipeline/prepare.sh"].text
    assert "requirements/rocm/requirements.lock" not in files


def test_targets_of_one_family_share_a_tarball() -> None:
    provider = builtin_catalog().provider("therock-tarball")
    assert len(provider.archives("7.14.0", ["gfx1100", "gfx1103"])) == 1
    assert len(provider.archives("7.14.0", ["gfx1100", "gfx1151"])) == 2
    with pytest.raises(InputError, match="no tarball for gfx803"):
        provider.archives("7.14.0", ["gfx803"])


def test_what_is_handed_on_as_published_is_an_artifact_and_nothing_is_built_of_it() -> None:
    lock = lock_with(GFX803, "amdgpu_top")
    plan = make_plan(lock, builtin_catalog())
    assert "file/amdgpu_top" in plan.artifacts
    assert {one for one in (step.name for step in plan.steps) if "amdgpu" in one} == {"file/amdgpu_top"}
    files = export(lock, builtin_catalog(), "all")
    place = builtin_catalog().component("amdgpu_top").release[0].places[0]
    assert isinstance(place, ArchivePlace)
    path = f"sources/amdgpu-top/{place.filename}"
    assert f"fetched sources/amdgpu-top {place.filename} {place.url}\n" in files["pipeline/prepare.sh"].text
    assert f"COPY {path} /\n" in files["pipeline/Containerfile"].text
    assert f'cp {path} "$WORK/artifacts/"\n' in files["nspawn/build-nspawn.sh"].text
