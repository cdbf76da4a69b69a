"""Versions that fit together, or the reasons why none do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocbase.errors import ConflictError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Release
from rocwright.catalog.place import BuiltinPlace
from rocwright.model.versions import version_in
from rocwright.plan.resolve.constraints import VersionCandidate, nearest_version, solve

BASE = "debian:trixie (package python3-torch)"


def base(torch: str) -> dict[str, list[VersionCandidate]]:
    """A base that brings torch along."""
    return {"torch": [VersionCandidate("torch", torch, BASE)]}


def component(name: str, **releases: dict[str, str]) -> Component:
    return Component(
        name=name,
        summary="a component",
        license="MIT",
        kind="wheel",
        run=("true",),
        output=(),
        release=tuple(
            Release(
                version=version.removeprefix("v").replace("_", "."),
                places=(BuiltinPlace(builtin=name),),
                needs=needs,
                source=f"release notes of {name}",
            )
            for version, needs in releases.items()
        ),
    )


@pytest.fixture
def catalog() -> Catalog:
    """vision 1.0 and 2.0 go with torch 2.5 and 2.6; audio goes with torch 2.5; vllm needs vision."""
    made = (
        component("vision", v1_0={"torch": "==2.5.*"}, v2_0={"torch": "==2.6.*"}),
        component("audio", v2_5={"torch": "==2.5.*"}),
        component("vllm", v0_1={"vision": ">=2", "torch": ">=2.5"}),
        component("alone", v1_0={}, v1_10={}, v1_9={}, v2_0rc1={}),
        component("lost", v1_0={"nowhere": ">=1"}),
    )
    return replace(builtin_catalog(), components={one.name: one for one in made})


def versions(found: dict[str, VersionCandidate]) -> dict[str, str]:
    return {name: one.version for name, one in found.items()}


def test_the_newest_release_that_fits_what_the_base_brings_is_taken(catalog: Catalog) -> None:
    found = solve(catalog, ["vision"], {}, base("2.6.0"))
    assert versions(found) == {"vision": "2.0", "torch": "2.6.0"}
    assert found["torch"].provided == BASE
    older = solve(catalog, ["vision"], {}, base("2.5.1"))
    assert versions(older) == {"vision": "1.0", "torch": "2.5.1"}


def test_ten_is_newer_than_nine(catalog: Catalog) -> None:
    assert versions(solve(catalog, ["alone"], {"alone": "1.*"}, {})) == {"alone": "1.10"}


def test_a_pin_is_kept(catalog: Catalog) -> None:
    assert versions(solve(catalog, ["alone"], {"alone": "1.9"}, {})) == {"alone": "1.9"}


def test_what_a_component_needs_is_chosen_too(catalog: Catalog) -> None:
    found = solve(catalog, ["vllm"], {}, base("2.6.0"))
    assert versions(found) == {"vllm": "0.1", "vision": "2.0", "torch": "2.6.0"}


def test_an_older_release_is_taken_where_the_newest_cannot_hold(catalog: Catalog) -> None:
    found = solve(catalog, ["vision", "audio"], {}, base("2.5.0"))
    assert versions(found) == {"vision": "1.0", "audio": "2.5", "torch": "2.5.0"}


def test_a_pin_that_breaks_a_constraint_is_told_with_both_sides_and_their_sources(catalog: Catalog) -> None:
    with pytest.raises(ConflictError) as caught:
        solve(catalog, ["vision"], {"vision": "1.0"}, base("2.6.0"))
    error = caught.value
    assert "vision 1.0 needs torch ==2.5.*   [release notes of vision]" in error.detail
    assert f"{BASE} provides torch 2.6.0, and no other" in error.detail
    assert "vision = '1.0'" in error.next_step


def test_two_components_that_cannot_go_together_are_both_named(catalog: Catalog) -> None:
    pins = {"vision": "2.0", "audio": "2.5"}
    with pytest.raises(ConflictError) as caught:
        solve(catalog, ["vision", "audio"], pins, base("2.6.0"))
    assert "audio 2.5 needs torch ==2.5.*" in caught.value.detail


def test_a_pin_that_leaves_no_answer_further_down_is_named_and_not_the_base(catalog: Catalog) -> None:
    app = component("app", v1_0={"middle": "==1.0"}, v2_0={"middle": "==2.0"})
    middle = component("middle", v1_0={"torch": "==2.5.*"}, v2_0={"torch": "==2.6.*"})
    grown = replace(catalog, components={**catalog.components, "app": app, "middle": middle})
    with pytest.raises(ConflictError) as caught:
        solve(grown, ["app"], {"app": "1.0", "alone": "1.9"}, base("2.6.0"))
    assert "rocwright.toml pins app to 1.0: without that there is an answer" in caught.value.detail
    assert caught.value.next_step == "loosen [versions] in rocwright.toml (app = '1.0')"


def test_a_chain_of_needs_that_breaks_is_told(catalog: Catalog) -> None:
    with pytest.raises(ConflictError) as caught:
        solve(catalog, ["vllm"], {"vision": "1.0"}, base("2.5.0"))
    assert "vllm 0.1 needs vision >=2" in caught.value.detail
    assert "rocwright.toml needs vision ==1.0" in caught.value.detail


def test_a_pin_of_what_the_base_brings_must_be_what_it_brings(catalog: Catalog) -> None:
    with pytest.raises(ConflictError) as caught:
        solve(catalog, ["vision"], {"torch": "2.5.0"}, base("2.6.0"))
    assert "rocwright.toml needs torch ==2.5.0" in caught.value.detail


def test_a_need_that_nobody_can_give_is_told(catalog: Catalog) -> None:
    with pytest.raises(ConflictError) as caught:
        solve(catalog, ["lost"], {}, {})
    assert "lost 1.0 needs nowhere >=1" in caught.value.detail


def test_an_unknown_version_is_refused_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(InputError, match=r"alone 1\.8 is not known") as caught:
        solve(catalog, ["alone"], {"alone": "1.8"}, {})
    assert "1.0, 1.10, 1.9, 2.0rc1" in caught.value.cause
    assert "use 1.9" in caught.value.next_step
    assert caught.value.next_step.endswith("--set 'alone=1.8 like 1.9'")


def test_a_pin_of_an_unknown_component_is_refused_with_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(InputError, match="unknown component 'visoin'") as caught:
        solve(catalog, ["vision"], {"visoin": "1.0"}, base("2.6.0"))
    assert "vision" in caught.value.cause


@pytest.mark.parametrize("text", ["", "newest", "1.0 or so", "v", ">=1", "../1"])
def test_what_is_no_version_is_refused(catalog: Catalog, text: str) -> None:
    with pytest.raises(InputError, match="is not a version of alone"):
        solve(catalog, ["alone"], {"alone": text}, {})


def test_a_prerelease_may_be_pinned(catalog: Catalog) -> None:
    assert versions(solve(catalog, ["alone"], {"alone": "2.0rc1"}, {})) == {"alone": "2.0rc1"}


def test_the_builtin_torch_stack_fits_the_torch_of_trixie_and_no_newer_one() -> None:
    wanted = builtin_catalog().stack("torch-extensions").components
    found = solve(builtin_catalog(), wanted, {}, {"pytorch": [VersionCandidate("pytorch", "2.6.0", BASE)]})
    assert versions(found) == {"pytorch": "2.6.0", "torchvision": "0.21.0", "torchaudio": "2.6.0"}
    with pytest.raises(ConflictError):
        solve(builtin_catalog(), wanted, {}, {"pytorch": [VersionCandidate("pytorch", "9.9.0", BASE)]})


@each(("asked", "nearest"), [("0.21.1", "0.21.0"), ("0.19", "0.20.1"), ("2", "0.20.1"), ("what", "0.21.0")])
def test_the_nearest_version_is_nearest_from_the_left(asked: str, nearest: str) -> None:
    assert nearest_version(asked, ["0.20.1", "0.21.0"]) == nearest


def test_every_version_lies_in_the_empty_range() -> None:
    assert version_in("1.0", "")
    assert version_in("0.21.0", "<0.22")
    assert not version_in("0.22.0", "<0.22")


def test_what_was_seen_good_on_the_gpu_asked_for_goes_first(catalog: Catalog) -> None:
    seen = {
        "1.0": {"gfx803": "it ran there"},
        "1.9": {"any": "a distribution carries it", "gfx1151": "it ran there"},
        "1.10": "",
    }
    alone = catalog.components["alone"]
    release = tuple(one.model_copy(update={"evidence": seen.get(one.version, "")}) for one in alone.release)
    known = replace(
        catalog, components={**catalog.components, "alone": alone.model_copy(update={"release": release})}
    )

    def chosen(*targets: str) -> str:
        return versions(solve(known, ["alone"], {}, {}, targets))["alone"]

    assert chosen("gfx803") == "1.0"
    assert chosen("gfx1151") == "1.9"
    assert chosen("gfx1103") == "1.9", "what is good for any goes before what nobody saw"
    assert chosen("gfx803", "gfx1151") == "1.9", "it must be good for both"
