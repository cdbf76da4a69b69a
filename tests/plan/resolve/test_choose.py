"""Components, versions and a provider of ROCm that fit together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.specifiers import SpecifierSet

from rocbase.errors import ConflictError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.base import BaseRelease, OtherPython, Provided
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Check, Component, Release, Stack, StackRow
from rocwright.catalog.place import BuiltinPlace
from rocwright.catalog.provider import Provider, Serves, Shelf
from rocwright.plan.resolve.choose import Choice, choose
from rocwright.plan.resolve.model import Request


def component(name: str, kind: str = "wheel", asks: tuple[str, ...] = (), **needs: str) -> Component:
    return Component.model_validate(
        {
            "name": name,
            "summary": "x",
            "license": "MIT",
            "kind": kind,
            "python": asks,
            "run": ["true"],
            "release": [{"version": "1.0", "places": [{"builtin": name}], "needs": needs, "source": "notes"}],
        }
    )


def provider(name: str, kind: str, versions: tuple[str, ...] = (), *targets: str) -> Provider:
    serves = (Serves(targets=targets, source="a table"),) if targets else ()
    return Provider.model_validate(
        {"name": name, "summary": "x", "kind": kind, "versions": versions, "serves": serves, "source": "x"}
    )


@pytest.fixture
def catalog() -> Catalog:
    """top needs mid, mid needs base-wheel and a tool; base-wheel needs ROCm 7 and Python 3.12 or newer."""
    builtin = builtin_catalog()
    made = (
        component("top", mid="==1.0"),
        component("mid", asks=("wheel>=0.40",), low=">=1", maker="<4"),
        component("low", rocm=">=7,<8", python=">=3.12"),
        component("maker", kind="tool"),
        component("aside"),
    )
    base = builtin.bases["debian"]
    releases = (
        BaseRelease(name="sid", python="3.13", source="x"),
        BaseRelease(
            name="trixie",
            python="3.13",
            provides={
                "rocm": Provided(version="6.4", source="x"),
                "low": Provided(version="1.0", source="x"),
            },
            source="x",
        ),
    )
    stack = Stack(
        name="tall",
        summary="x",
        components=("top",),
        optional=("aside",),
        bases=("debian:sid", "debian:trixie"),
        row=(
            StackRow(gpu="gfx900", base="debian:sid", provider="old", wish="x", holds="x"),
            StackRow(gpu="gfx1151", base="debian:sid", wish="x", holds="x"),
        ),
        source="x",
    )
    providers = (
        provider("packages", "packages"),
        provider("wheels", "wheels", ("7.1", "6.4"), "gfx1151"),
        provider("old", "archive", ("7.0",), "gfx900"),
    )
    return replace(
        builtin,
        components={one.name: one for one in made},
        bases={"debian": base.model_copy(update={"release": releases, "provides": {}})},
        stacks={"tall": stack},
        providers={one.name: one for one in providers},
    )


def chosen(catalog: Catalog, **asked: object) -> Choice:
    request = {"stack": "tall", "gpu": ("gfx1151",), "base": "debian:sid"} | asked
    return choose(Request.model_validate(request), catalog, lambda package: package.version)


def test_what_is_needed_comes_along_each_after_what_it_needs(catalog: Catalog) -> None:
    choice = chosen(catalog)
    assert [one.name for one in choice.components] == ["low", "mid", "top"]
    assert choice.versions["rocm"] == "7.1"
    assert choice.provided == {"rocm": "7.1", "python": "3.13"}
    assert choice.provider is not None
    assert choice.provider.name == "wheels"


def test_tools_and_python_requirements_of_all_builds_are_one_set(catalog: Catalog) -> None:
    assert chosen(catalog).tools == ("maker==1.0", "pip", "wheel>=0.40")


def test_what_checks_install_beside_it_is_in_the_chosen_version(catalog: Catalog) -> None:
    check = Check(name="imports", kind="script", script="x.py", wheels=True)
    top = catalog.component("top").model_copy(update={"python_run": ("maker", "other"), "check": (check,)})
    choice = chosen(replace(catalog, components={**catalog.components, "top": top}))
    assert choice.run_wheels == ("maker==1.0", "other")


def test_an_optional_component_comes_when_it_is_asked_for(catalog: Catalog) -> None:
    names = [one.name for one in chosen(catalog, extra=("aside",)).components]
    assert sorted(names) == ["aside", "low", "mid", "top"]


def test_a_row_names_its_provider_and_a_request_another(catalog: Catalog) -> None:
    found = chosen(catalog, gpu=("gfx900",))
    assert found.provider is not None
    assert (found.provider.name, found.versions["rocm"]) == ("old", "7.0")
    with pytest.raises(ConflictError, match="wheels has no ROCm for gfx900 on debian:sid") as caught:
        chosen(catalog, gpu=("gfx900",), provider="wheels")
    assert "these have: old" in caught.value.cause
    with pytest.raises(InputError, match="unknown provider of ROCm 'wheel'"):
        chosen(catalog, provider="wheel")


def test_a_gpu_that_nobody_serves_is_said(catalog: Catalog) -> None:
    with pytest.raises(ConflictError, match="no provider of ROCm serves gfx906 on debian:sid"):
        chosen(catalog, gpu=("gfx906",))


def test_of_several_gpus_that_nobody_serves_together_each_is_told_apart(catalog: Catalog) -> None:
    with pytest.raises(ConflictError) as caught:
        chosen(catalog, gpu=("gfx900", "gfx906"))
    assert caught.value.cause == "gfx900 alone: old; gfx906 alone: no provider"


def test_what_the_base_brings_along_is_not_built_and_ends_the_search(catalog: Catalog) -> None:
    choice = chosen(catalog, base="debian:trixie")
    assert [one.name for one in choice.components] == ["mid", "top"]
    assert choice.provided == {"low": "1.0"}
    assert choice.provider is None


def test_a_target_that_a_release_does_not_serve_is_in_the_reasons(catalog: Catalog) -> None:
    release = Release(
        version="1.0",
        places=(BuiltinPlace(builtin="top"),),
        without={"gfx1151": "its compiler stops there"},
        source="an issue",
    )
    refused = catalog.components["top"].model_copy(update={"release": (release,)})
    without = replace(catalog, components={**catalog.components, "top": refused})
    with pytest.raises(ConflictError) as caught:
        chosen(without)
    assert "top 1.0 does not serve gfx1151: its compiler stops there   [an issue]" in caught.value.detail


def test_what_costs_a_user_least_is_taken_where_several_serve(catalog: Catalog) -> None:
    source = provider("a-source", "archive", ("7.1",), "gfx1151")
    both = replace(catalog, providers={"a-source": source, **catalog.providers})
    choice = chosen(both)
    assert choice.provider is not None
    assert choice.provider.name == "wheels"


def test_wheels_are_asked_for_each_target_where_their_version_is_kept() -> None:
    wheels = provider("wheels", "wheels", ("7.1",)).model_copy(
        update={
            "wanted": ("rocm=={version}", "rocm-device-{target}=={version}"),
            "shelf": (
                Shelf(versions=">=8", index="https://new.example/", source="x"),
                Shelf(versions="<8", index="https://old.example/", source="x"),
                Shelf(releases="a", versions=">=8.1a20260101", index="https://nightly.example/", source="x"),
            ),
        }
    )
    assert wheels.requirements("7.1", ("gfx1103", "gfx1151")) == (
        "rocm==7.1", "rocm-device-gfx1103==7.1", "rocm-device-gfx1151==7.1",
    )  # fmt: skip
    kept = {version: wheels.shelf_of(version).index for version in ("7.1", "8.0", "8.1a20260102")}
    assert kept == {
        "7.1": "https://old.example/",
        "8.0": "https://new.example/",
        "8.1a20260102": "https://nightly.example/",
    }
    for version in ("8.1a20251231", "8.1rc1", "8.1.dev0"):
        with pytest.raises(InputError, match=f"the catalog has no address for ROCm {version} of wheels"):
            wheels.shelf_of(version)


@pytest.fixture
def two_pythons(catalog: Catalog) -> Catalog:
    """A base whose own Python is 3.14, with 3.13 beside it, and a component that does not build with 3.14."""
    base = catalog.bases["debian"]
    other = OtherPython(
        version="3.13", interpreter="python3.13", packages={"python": ("python3.13",)}, source="x"
    )
    sid = BaseRelease(name="sid", python="3.14", pythons=(other,), source="x")
    return replace(
        catalog,
        bases={"debian": base.model_copy(update={"release": (sid,)})},
        components={**catalog.components, "old": component("old", asks=("wheel",), python="<3.14")},
        stacks={
            "old": Stack(name="old", summary="x", components=("old",), bases=("debian:sid",), source="x"),
            "aside": Stack(
                name="aside", summary="x", components=("aside",), bases=("debian:sid",), source="x"
            ),
        },
    )


def test_the_base_s_other_python_is_taken_for_what_needs_it(two_pythons: Catalog) -> None:
    choice = chosen(two_pythons, stack="old", base="debian:sid")
    assert choice.provided["python"] == "3.13"
    assert (choice.release.python, choice.release.interpreter) == ("3.13", "python3.13")
    assert two_pythons.system_packages(choice.base, ["python"]) == ("python3.13",)


def test_the_base_s_own_python_stays_for_what_does_not_ask(two_pythons: Catalog) -> None:
    choice = chosen(two_pythons, stack="aside", base="debian:sid")
    assert (choice.release.python, choice.release.interpreter) == ("3.14", "")
    assert two_pythons.system_packages(choice.base, ["python"]) == ("python3",)


UNTESTED = {"stack": "pytorch", "gpu": ("gfx906",), "base": "rocm-ubuntu-24.04:6.3.4"}


def asked(**more: object) -> Request:
    return Request.model_validate(UNTESTED | more)


def test_a_pinned_version_may_stand_on_a_rocm_that_no_source_saw_it_on() -> None:
    catalog, pins = builtin_catalog(), {"pytorch": "2.10.0"}
    with pytest.raises(ConflictError, match="no version of rocm satisfies"):
        choose(asked(versions=pins), catalog, lambda package: package.version)
    request = asked(versions=pins, allow_untested=True)
    choice = choose(request, catalog, lambda package: package.version)
    assert (choice.versions["pytorch"], choice.versions["rocm"]) == ("2.10.0", "6.3.4")
    # what is not pinned stays within what was seen
    audio = catalog.component("torchaudio").released(choice.versions["torchaudio"])
    assert SpecifierSet(audio.needs["pytorch"]).contains("2.10.0")
    assert "--allow-untested" in request.words
    assert request.variant.endswith("untested")
    assert asked(versions=pins).digest != request.digest
    assert "allow_untested" not in asked().model_dump_json()


@each("pins", [{}, {"cmake": "3.31.10"}])
def test_going_beyond_what_was_seen_without_a_pin_is_refused(pins: dict[str, str]) -> None:
    with pytest.raises(InputError, match="--allow-untested has no effect"):
        choose(asked(versions=pins, allow_untested=True), builtin_catalog(), lambda package: package.version)
