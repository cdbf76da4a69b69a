"""The recipes and stacks that come along: every row has an answer, every known wrong wish a refusal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from rocbase.errors import ConflictError, InputError
from rocwheel_samples.tables import each
from rocwheel_samples.trees import write_tree
from rocwright.catalog.folders import DATA
from rocwright.catalog.load import builtin_catalog, load_catalog
from rocwright.catalog.model import Component, Release, Stack, StackRow, SystemNeeds
from rocwright.catalog.place import GitPlace
from rocwright.catalog_lint.tables import check
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.choose import choose
from rocwright.plan.resolve.constraints import nearest_version
from rocwright.plan.resolve.lock import make_lock
from rocwright.plan.resolve.model import Lock, Request
from rocwright.plan.resolve.shipped import request_of, rows
from rocwright.plan.resolve.upstream import OfflineUpstream
from rocwright.plan.values import chosen_values

CATALOG = builtin_catalog()
ROWS = list(rows(CATALOG))
EACH_ROW = pytest.mark.parametrize(
    ("stack", "row"), ROWS, ids=[f"{stack.name}-{row.gpu}-{row.base}" for stack, row in ROWS]
)


def lock(request: Request) -> Lock:
    return make_lock(request, CATALOG, OfflineUpstream(), lambda _: None)


def versions(request: Request) -> dict[str, str]:
    return dict(choose(request, CATALOG, lambda package: package.version).versions)


def releases(name: str) -> tuple[Release, ...]:
    return CATALOG.component(name).release


def refused(stack: str, gpu: str, base: str, **pins: str) -> str:
    with pytest.raises((ConflictError, InputError)) as caught:
        versions(Request(stack=stack, gpu=(gpu,), base=base, versions=pins))
    return f"{caught.value} {caught.value.cause} {caught.value.detail}"


# rows


def test_every_row_of_the_documents_is_there() -> None:
    told = {(stack.name, row.gpu, row.base.partition(":")[0]) for stack, row in ROWS}
    assert told >= {
        ("pytorch", "gfx803", "rocm-ubuntu-24.04"),
        ("pytorch", "gfx803", "rocm-ubuntu-22.04"),
        ("pytorch", "gfx803", "arch"),
        ("pytorch", "gfx1103", "arch"),
        ("pytorch", "gfx1151", "ubuntu"),
        ("rocm", "gfx1103", "arch"),
        ("vllm", "gfx1151", "fedora"),
        ("vllm", "gfx1151", "rocm-ubuntu-24.04"),
        ("vllm-prebuilt", "gfx1151", "debian"),
        ("vllm-spoof", "gfx1151", "debian"),
        ("vllm-spoof-locked", "gfx1151", "debian"),
        ("llama-vulkan", "gfx1151", "debian"),
        ("llama-hip", "gfx1151", "debian"),
        ("ollama", "gfx1151", "debian"),
        ("sdnext", "gfx1103", "arch"),
    }


@EACH_ROW
def test_a_row_has_an_answer_and_a_plan_without_a_network(stack: Stack, row: StackRow) -> None:
    locked = lock(request_of(stack, row))
    assert {one.name for one in locked.components} >= set(stack.components)
    assert make_plan(locked, CATALOG).artifacts


@EACH_ROW
def test_a_row_says_what_was_wished_and_what_holds(stack: Stack, row: StackRow) -> None:
    assert row.base in stack.bases
    assert row.wish
    assert row.holds
    CATALOG.target(row.gpu)
    if row.provider:
        CATALOG.provider(row.provider)


@EACH_ROW
def test_what_a_row_holds_names_the_versions_that_it_holds(stack: Stack, row: StackRow) -> None:
    chosen = versions(request_of(stack, row))
    short = {"pytorch": "torch", "torchvision": "vision", "torchaudio": "audio", "triton": "triton"}
    for name, word in short.items():
        for told in re.findall(rf"\b{word} (\d+\.\d+\.\d+)", row.holds):
            assert name not in chosen or chosen[name] == told


def test_the_oldest_rocm_gets_the_torch_that_fits_it() -> None:
    found = versions(Request(stack="pytorch", gpu=("gfx803",), base="rocm-ubuntu-22.04:5.4.2"))
    assert found["pytorch"] == "2.0.1"
    assert found["torchvision"] == "0.15.2"
    assert found["torchaudio"] == "2.0.2"
    assert Version(found["numpy"]) < Version("2")


def test_rocblas_for_one_gpu_follows_the_rocm_of_the_base() -> None:
    for base, version in (("rocm-ubuntu-24.04:6.4", "6.4.0"), ("rocm-ubuntu-24.04:6.3.4", "6.3.3")):
        request = Request(stack="pytorch", gpu=("gfx803",), base=base, extra=("rocblas",))
        assert versions(request)["rocblas"] == version


def test_host_tools_are_held_where_the_trees_need_it() -> None:
    for stack, row in ROWS:
        chosen = versions(request_of(stack, row))
        # Debian's source has no third-party trees, which are what asks for an old CMake
        trees = "pytorch" in chosen and not row.base.startswith("debian:")
        if trees and "cmake" in chosen and Version(chosen["pytorch"]) < Version("2.7"):
            assert Version(chosen["cmake"]) < Version("4")
        if "vllm" in chosen:
            assert Version(chosen["setuptools"]) < Version("80")
            assert Version(chosen["cmake"]) < Version("4")


def test_an_archive_that_a_recipe_needs_is_laid_into_its_build() -> None:
    request = Request(
        stack="rocm",
        gpu=("gfx1103",),
        base="arch:2025-10-28",
        provider="therock-source",
        extra=("aocl-libflame",),
    )
    steps = {step.name: step for step in make_plan(lock(request), CATALOG).steps}
    assert steps["aocl-utils"].key in {item.key for item in steps["aocl-libflame"].inputs}
    assert "aocl-utils" in {item.name for item in steps["aocl-libflame"].inputs}


# pairs


@each("release", releases("torchvision"), ids=lambda one: one.version)
def test_torchvision_is_fifteen_minors_ahead_of_its_torch(release: Release) -> None:
    minor = Version(release.version).minor
    assert f"2.{minor - 15}.0" in SpecifierSet(release.needs["pytorch"])
    assert f"2.{minor - 14}.0" not in SpecifierSet(release.needs["pytorch"])
    assert f"2.{minor - 16}.0" not in SpecifierSet(release.needs["pytorch"])


@each("release", releases("torchaudio"), ids=lambda one: one.version)
def test_torchaudio_has_the_version_of_its_torch_up_to_the_last_one(release: Release) -> None:
    needs = SpecifierSet(release.needs["pytorch"])
    if Version(release.version) < Version("2.1"):
        assert "2.0.1" in needs
    elif Version(release.version) < Version("2.11"):
        assert str(needs) == f"=={release.version}"
    else:
        assert {"2.11.0", "2.14.1"} <= set(needs.filter(one.version for one in releases("pytorch")))


@each("name", ["torchvision", "torchaudio", "triton", "flash-attention", "vllm", "sdnext"])
def test_every_release_that_needs_a_torch_finds_one(name: str) -> None:
    torches = [one.version for one in releases("pytorch")]
    for release in releases(name):
        assert list(SpecifierSet(release.needs["pytorch"]).filter(torches)), release.version


# wishes that cannot be had


def test_there_is_no_vllm_0_10_3() -> None:
    told = refused("vllm", "gfx1151", "fedora:43", vllm="0.10.3")
    assert "vllm 0.10.3 is not known" in told
    assert nearest_version("0.10.3", [one.version for one in releases("vllm")]) == "0.10.2"


def test_there_is_no_torch_2_5_0_for_rocm_6_3() -> None:
    assert "is not known" in refused("pytorch", "gfx1151", "rocm-ubuntu-24.04:6.3.4", pytorch="2.5.0+rocm6.3")


def test_vllm_does_not_go_with_torch_2_6() -> None:
    told = refused("vllm", "gfx1151", "rocm-ubuntu-24.04:6.4.1", pytorch="2.6.0", vllm="0.10.2")
    assert "vllm 0.10.2 needs pytorch ==2.8.0" in told
    assert "requirements/rocm-build.txt" in told


@pytest.mark.parametrize("name", ["triton", "flash-attention"])
def test_gfx803_has_no_triton(name: str) -> None:
    with pytest.raises(ConflictError) as caught:
        versions(
            Request(
                stack="pytorch",
                gpu=("gfx803",),
                base="rocm-ubuntu-24.04:6.4",
                extra=(name,),
                versions={"pytorch": "2.6.0"},
            )
        )
    assert "does not serve gfx803" in caught.value.detail


def test_no_release_of_ollama_serves_gfx803() -> None:
    assert "does not serve gfx803" in refused("ollama", "gfx803", "debian:trixie")


def test_the_first_ollama_for_strix_halo_is_0_6_2() -> None:
    known = [one.version for one in releases("ollama") if "gfx1151" in one.targets]
    assert min(known, key=Version) == "0.6.2"
    told = refused("ollama", "gfx1151", "debian:trixie", ollama="0.6.0")
    assert "ollama 0.6.0 does not serve gfx1151" in told


def test_composable_kernel_attention_is_for_the_big_cards_alone() -> None:
    for release in releases("flash-attention-ck"):
        assert release.targets
        assert not [gpu for gpu in release.targets if gpu.startswith(("gfx10", "gfx11", "gfx12", "gfx803"))]


def test_torch_2_8_does_not_go_with_a_python_that_is_too_new() -> None:
    release = CATALOG.component("pytorch").released("2.8.0")
    assert "3.14" not in SpecifierSet(release.needs["python"])
    assert "3.13" in SpecifierSet(release.needs["python"])


# what recipes may not do


def served(component: Component) -> set[str]:
    return set(component.serve.env) if component.serve is not None else set()


def test_a_variable_that_no_ollama_reads_is_set_nowhere() -> None:
    for component in CATALOG.components.values():
        assert "OLLAMA_GPU_MEMORY" not in set(component.env) | served(component)


def test_an_override_of_the_gpu_is_in_no_build() -> None:
    overrides = re.compile(r"^HSA_OVERRIDE_GFX_VERSION")
    for component in CATALOG.components.values():
        every = set(component.env) | {key for one in component.release for key in one.env}
        assert not [key for key in every if overrides.match(key)], component.name
        assert not [one for one in (*component.run, *component.prepare) if "HSA_OVERRIDE" in one]


def test_a_stack_with_an_override_warns_and_names_the_better_one() -> None:
    for stack in CATALOG.stacks.values():
        spoofs = any("HSA_OVERRIDE_GFX_VERSION" in served(CATALOG.component(one)) for one in stack.components)
        assert bool(stack.warning) == spoofs
        assert stack.prefer in CATALOG.stacks if spoofs else not stack.prefer


def test_a_git_place_is_never_a_branch() -> None:
    for component in CATALOG.components.values():
        for release in component.release:
            for place in release.places:
                if isinstance(place, GitPlace):
                    # upstream tags may name the branch they were cut from; then the commit is in them
                    cut = re.fullmatch(r"master-\d+-([0-9a-f]{7})", place.tag)
                    assert cut or not re.match(r"(release/|main|master|dev|nightly)", place.tag), (
                        component.name
                    )
                    assert not cut or (place.commit or "").startswith(cut[1]), component.name
                    assert not place.commit or re.fullmatch(r"[0-9a-f]{40}", place.commit), component.name


def test_code_for_the_gpus_asked_for_is_checked_after_every_build() -> None:
    for component in CATALOG.components.values():
        always = [
            value for value in chosen_values(component.env, frozenset()).values() if "{targets}" in value
        ]
        if always and component.kind in ("wheel", "archive"):
            assert "machine-code" in {check.kind for check in component.check}, component.name


def test_extensions_of_torch_are_the_same_on_a_base_without_rocm_as_before() -> None:
    vision = chosen_values(CATALOG.component("torchvision").env, frozenset({"pytorch"}))
    audio = chosen_values(CATALOG.component("torchaudio").env, frozenset({"pytorch"}))
    assert vision["FORCE_CUDA"] == audio["USE_ROCM"] == "0"
    assert not {"PYTORCH_ROCM_ARCH"} & {*vision, *audio}
    assert chosen_values(CATALOG.component("torchvision").env, frozenset({"rocm"}))["FORCE_CUDA"] == "1"


def test_every_fact_of_a_recipe_has_a_source() -> None:
    for component in CATALOG.components.values():
        for release in component.release:
            assert len(release.source) > 10, f"{component.name} {release.version}"
            assert all(release.without.values())


LIKE = """name = "mine"
summary = "s"
env = { LDFLAGS = "-s" }
like = { component = "gloo", takes = ["license", "kind", "env", "release", "run", "output"] }
"""


def test_a_recipe_takes_of_another_what_it_names(tmp_path: Path) -> None:
    own = write_tree(tmp_path, {"components/mine.toml": LIKE})
    mine, gloo = (load_catalog(own, DATA).component(name) for name in ("mine", "gloo"))
    assert (mine.license, mine.release, mine.system) == (gloo.license, gloo.release, SystemNeeds())
    assert mine.env == {**gloo.env, "LDFLAGS": "-s"}


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('"gloo"', '"glooo"', "like: components/glooo.toml is not known"),
        ('"run"', '"runs"', "like: gloo has no runs"),
        ("takes", "take", "like.take: there is no such entry"),
    ],
)
def test_what_another_recipe_does_not_have_is_refused(
    tmp_path: Path, before: str, after: str, problem: str
) -> None:
    own = write_tree(tmp_path, {"components/mine.toml": LIKE.replace(before, after)})
    assert problem in "\n".join(f"{fault.place}: {fault.what}" for fault in check((own, DATA)))
    with pytest.raises(InputError):
        load_catalog(own, DATA)
