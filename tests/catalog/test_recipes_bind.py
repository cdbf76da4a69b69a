"""What recipes say binds: each fact, taken out, changes a resolve, an environment, a plan or a check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from tests.catalog.walks import walks

from rocbase.errors import ConflictError, InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Release, Value
from rocwright.catalog_lint.for_people import ForPeopleFile, marked
from rocwright.model.edits import Edit
from rocwright.model.versions import version_in
from rocwright.plan.edits import edits_as_written
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.aliases import PYTHON, ROCM
from rocwright.plan.resolve.constraints import VersionCandidate, refusals, solve
from rocwright.plan.resolve.model import Lock
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.plan.values import chosen_values

CATALOG = builtin_catalog()
RECIPES = list(CATALOG.components.values())
EACH_RECIPE = pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: one.name)


def with_recipe(recipe: Component, **change: object) -> Catalog:
    """The catalog with another word in one recipe."""
    return replace(CATALOG, components={**CATALOG.components, recipe.name: recipe.model_copy(update=change)})


def with_release(recipe: Component, release: Release, **change: object) -> Catalog:
    changed = release.model_copy(update=change)
    return with_recipe(recipe, release=tuple(changed if one is release else one for one in recipe.release))


def without(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != name}


# constraints


@cache
def universe() -> dict[str, tuple[str, ...]]:
    """The versions that there are of what is no recipe: Pythons, what bases bring along, providers' ROCm."""
    found: dict[str, set[str]] = {PYTHON: {"2.7"}, ROCM: {"4.0"}}
    for base in CATALOG.bases.values():
        for release in base.release:
            found[PYTHON] |= {release.python, *(one.version for one in release.pythons)} - {""}
            for name, one in base.provided(release).items():
                found.setdefault(name, set()).update({one.version} - {""})
    for provider in CATALOG.providers.values():
        found[ROCM] |= set(provider.versions)
    rocm = CATALOG.component(ROCM)
    found[ROCM] |= {one.version for one in rocm.release}
    return {name: tuple(sorted(versions, key=Version)) for name, versions in found.items()}


def known(name: str) -> tuple[str, ...]:
    recipe = CATALOG.components.get(name)
    return (*universe().get(name, ()), *((one.version for one in recipe.release) if recipe else ()))


def ends(wanted: str) -> Iterator[str]:
    """The versions that a range names: a base of one's own may have one that no base here has."""
    yield from (one.version.removesuffix(".*") for one in SpecifierSet(wanted))


def resolves(catalog: Catalog, recipe: Component, version: str, need: str, other: str) -> bool:
    """Whether a recipe in a version goes with a version of what it needs; all else is as it wants."""
    provided = {
        name: [VersionCandidate(name, one, "base") for one in (*known(name), *ends(wanted))]
        for name, wanted in recipe.takes(version, ()).items()
        if name != need
    }
    provided[need] = [VersionCandidate(need, other, "base")]
    try:
        solve(catalog, (recipe.name,), {recipe.name: version}, provided, recipe.released(version).targets[:1])
    except ConflictError:
        return False
    return True


NEEDS = [
    pytest.param(recipe, release, need, id=f"{recipe.name}-{release.version}-{need}")
    for recipe in RECIPES
    for release in recipe.release
    for need in release.needs
]


@walks("components/*.toml", "release.needs", "release.on.needs")
@each(("recipe", "release", "need"), NEEDS)
def test_a_need_that_is_taken_out_admits_what_it_refused(
    recipe: Component, release: Release, need: str
) -> None:
    said = SpecifierSet(release.needs[need])
    outside = [one for one in known(need) if not said.contains(one, prereleases=True)]
    rest = with_release(recipe, release, needs=without(release.needs, need))
    if not outside:
        # any version will do: what is needed is taken in
        assert need in recipe.takes(release.version, ())
        assert need not in rest.component(recipe.name).takes(release.version, ())
        return
    assert any(
        not resolves(CATALOG, recipe, release.version, need, one)
        and resolves(rest, recipe, release.version, need, one)
        for one in outside
    ), f"{need} {said} refuses no version that there is"


REFUSED = [
    pytest.param(recipe, release, gpu, id=f"{recipe.name}-{release.version}-{gpu}")
    for recipe in RECIPES
    for release in recipe.release
    for gpu in CATALOG.targets
    if gpu in release.without or (release.targets and gpu not in release.targets)
]


@walks("components/*.toml", "release.targets", "release.without")
def test_a_target_that_a_release_does_not_serve_is_refused_for_its_word_alone() -> None:
    for recipe in RECIPES:
        for release in recipe.release:
            for gpu in (*release.without, *(set(CATALOG.targets) - set(release.targets or CATALOG.targets))):
                rest = release.model_copy(update={"without": without(release.without, gpu), "targets": ()})
                assert refusals(release, [gpu])
                assert not refusals(rest, [gpu])


@walks("components/*.toml", "uses", "release.uses")
@EACH_RECIPE
def test_what_a_recipe_uses_is_taken_in_where_it_is_asked_for(recipe: Component) -> None:
    for release in recipe.release:
        for name in recipe.uses | release.uses:
            assert name in recipe.takes(release.version, {name})
            bare = recipe.model_copy(
                update={"uses": {}, "release": (release.model_copy(update={"uses": {}}),)}
            )
            assert name not in bare.takes(release.version, {name})


@walks("components/*.toml", "release.evidence")
@EACH_RECIPE
def test_evidence_puts_a_release_before_those_without(recipe: Component) -> None:
    for release in recipe.release:
        said = release.evidence
        by_gpu = said if isinstance(said, dict) else {}
        for gpu in by_gpu:
            bare = release.model_copy(update={"evidence": without(by_gpu, gpu)})
            asked = [gpu] if gpu in CATALOG.targets else []
            assert release.known_good(asked) > bare.known_good(asked)
        if isinstance(said, str) and said:
            assert release.known_good([]) > release.model_copy(update={"evidence": ""}).known_good([])


# what is built, and how


VARIABLES = [
    pytest.param(env, name, id=f"{where}-{name}")
    for recipe in RECIPES
    for where, env in (
        (recipe.name, recipe.env),
        *((f"{recipe.name}-{one.version}", one.env) for one in recipe.release),
        *((f"{recipe.name}-{one.version}-on", on.env) for one in recipe.release for on in one.on),
        (f"{recipe.name}-serve", recipe.serve.env if recipe.serve else {}),
    )
    for name in env
]


@walks(
    "components/*.toml",
    *(
        f"{where}env.{one}"
        for where in ("", "release.", "release.on.", "serve.")
        for one in ("value", "when", "otherwise")
    ),
)
@each(("env", "name"), VARIABLES)
def test_a_variable_that_is_taken_out_is_missing_where_its_condition_holds(
    env: dict[str, str | Value], name: str
) -> None:
    said = env[name]
    wanted = said.when if isinstance(said, Value) else ""
    here = frozenset() if wanted.startswith("!") else frozenset({wanted.removeprefix("!")})
    there = frozenset({wanted.removeprefix("!")}) - here
    assert name in chosen_values(env, here)
    if wanted:
        assert wanted.removeprefix("!") in {*CATALOG.components, *universe()}
        assert chosen_values(env, here).get(name) != chosen_values(env, there).get(name), (
            "the condition changes nothing"
        )


EDITS = [
    pytest.param(recipe, edit, id=f"{recipe.name}-{number}")
    for recipe in RECIPES
    for number, edit in enumerate(recipe.edit)
]


def places(release: Release) -> Iterator[str]:
    for one in release.every_place:
        kind = type(one).__name__.removesuffix("Place").lower()
        yield "sdist" if kind == "index" else kind


@walks("components/*.toml", *(f"edit.{one}" for one in ("for", "places", "targets", "beside", "phase")))
@walks("edits/*.toml", *(f"edit.{one}" for one in ("for", "places", "targets", "beside", "phase")))
@each(("recipe", "edit"), EDITS)
def test_an_edit_holds_for_a_release_in_a_place_that_it_has(
    for_people: ForPeopleFile, recipe: Component, edit: Edit
) -> None:
    beside: dict[str, list[str]] = {
        name: [one for one in known(name) if version_in(one, wanted)] for name, wanted in edit.beside.items()
    }
    assert all(beside.values()), "beside what there is in no such version"
    chosen = {name: versions[0] for name, versions in beside.items()}
    taken = any(
        list(edits_as_written((edit,), release.version, place, chosen))
        for release in recipe.release
        for place in places(release)
    )
    assert taken != marked(for_people, f"edits/{recipe.name}.toml", "edit.*")
    assert set(edit.targets) <= set(CATALOG.targets)
    if edit.phase:
        assert any(recipe.prepare_of(one.version) for one in recipe.release)


@walks("components/*.toml", "download.for", "download.url", "download.sha256", "download.sha512")
@walks("downloads/*.toml", "download.for", "download.url", "download.sha256", "download.sha512")
@EACH_RECIPE
def test_a_download_is_wanted_by_a_release(recipe: Component) -> None:
    for download in recipe.download:
        assert any(download in recipe.downloads(one.version) for one in recipe.release), download.url


# every key of a recipe that a build takes, on the plan of a row that has it


@cache
def locks() -> tuple[Lock, ...]:
    found = (shipped_lock(CATALOG, request_of(stack, row)) for stack, row in rows(CATALOG))
    return tuple(one for one in found if one is not None)


def planned(catalog: Catalog, recipe: str) -> list[list[str]]:
    """The steps of every row with a recipe, whole; none where the lock no longer fits."""
    found = []
    for lock in locks():
        if any(one.name == recipe for one in lock.components):
            try:
                found.append([one.model_dump_json() for one in make_plan(lock, catalog).steps])
            except InputError:
                found.append([])
    return found


@walks("components/*.toml", *("run", "setup", "prepare", "guard", "resume", "split"))
@walks("components/*.toml", *(f"output.{one}" for one in ("name", "pattern")))
@walks("components/*.toml", *(f"resources.{one}" for one in ("memory_per_job", "disk", "seconds", "limit")))
@walks("components/*.toml", *(f"image.{one}" for one in ("prefix", "entrypoint", "env")))
@walks("components/*.toml", "kind", "release.prepare")
@each("key", ["run", "guard", "resume", "split", "resources", "image", "prepare"])
def test_what_a_recipe_says_of_its_build_changes_a_plan(key: str) -> None:
    """One recipe that says it stands for all: the code that takes it is the same."""
    for recipe in RECIPES:
        said = getattr(recipe, key)
        default = Component.model_fields[key].get_default(call_default_factory=True)
        # of wheels that others published it binds what is installed: tests/execution/test_published_wheels.py
        if said == default or recipe.kind == "wheels" or not (before := planned(CATALOG, recipe.name)):
            continue
        change = {key: ("true",) if key == "run" else default}
        if key == "run":
            change |= {"resume": 0, "split": 0}
        assert planned(with_recipe(recipe, **change), recipe.name) != before
        return
    raise AssertionError(f"no recipe of a row says {key}")


@EACH_RECIPE
def test_a_setup_reaches_who_builds_on_the_recipe(recipe: Component) -> None:
    if not recipe.setup:
        return
    users = [
        one.name
        for one in RECIPES
        for release in one.release
        if recipe.name in (one.uses | release.uses | release.needs)
    ]
    assert users, "nobody builds on it"
