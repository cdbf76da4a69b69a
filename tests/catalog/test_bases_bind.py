"""What is known of bases, stacks and system packages binds: each, taken out, changes a resolve or a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from tests.catalog.walks import walks

from rocbase.errors import ExplainedError
from rocwheel_samples.tables import each
from rocwright.catalog.base import Base, BaseRelease, Provided
from rocwright.catalog.issue import the_issues
from rocwright.catalog.load import Catalog, builtin_catalog
from rocwright.catalog.model import Component, Stack, StackRow, SystemNeeds, SystemPackages
from rocwright.catalog.remedy import AddPackages
from rocwright.catalog_lint.for_people import ForPeopleFile, marked
from rocwright.plan.make import make_plan
from rocwright.plan.resolve.choose import choose
from rocwright.plan.resolve.model import Request
from rocwright.plan.resolve.shipped import request_of, rows, shipped_lock
from rocwright.plan.resolve.validate import wanted_packages
from rocwright.verify.verdict import verdict

CATALOG = builtin_catalog()
STACKS, BASES = list(CATALOG.stacks.values()), list(CATALOG.bases.values())
EACH_BASE = pytest.mark.parametrize("base", BASES, ids=lambda one: one.name)
EACH_STACK = pytest.mark.parametrize("stack", STACKS, ids=lambda one: one.name)
RELEASES = [pytest.param(base, one, id=f"{base.name}-{one.name}") for base in BASES for one in base.release]
ROWS = list(rows(CATALOG))
NAMED = [f"{stack.name}-{row.gpu}-{row.base}" for stack, row in ROWS]


def answer(catalog: Catalog, request: Request) -> object:
    """What a request resolves to: versions, ROCm, tools and packages; or that it is refused."""
    try:
        found = choose(request, catalog, lambda one: one.version)
        packages = wanted_packages(
            catalog, found.components, found.versions, found.base, found.release, found.provided, True
        )
    except ExplainedError as error:
        return type(error)
    rocm = found.provider.name if found.provider else ""
    return dict(found.versions), rocm, found.tools, found.release, packages


def needed_on(name: str) -> set[str]:
    """Every component that a stack on a base may take in."""
    return needed_by(
        [one for stack in STACKS if name in stack.bases for one in (*stack.components, *stack.optional)]
    )


def needed_by(names: Iterable[str]) -> set[str]:
    """These components, and all that some version of them may take in."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            recipe = CATALOG.components.get(one)
            for release in recipe.release if recipe else ():
                waiting += [*release.needs, *release.uses, *(recipe.uses if recipe else ())]
    return found


# bases


@walks(
    "bases/*.toml", *(f"release.{one}" for one in ("name", "python", "provides.package", "provides.version"))
)
@walks("bases/*.toml", "provides.package", "provides.version")
@each(("base", "release"), RELEASES)
def test_a_release_of_a_base_and_what_it_brings_along_serve_a_stack(
    for_people: ForPeopleFile, base: Base, release: BaseRelease
) -> None:
    name = f"{base.name}:{release.name}"
    serves = any(name in stack.bases for stack in STACKS)
    assert serves != marked(for_people, f"bases/{base.name}.toml", f"release[{release.name}]")
    if serves:
        assert set(base.provided(release)) <= needed_on(name), "brought along for nobody"


def row_on(base: str) -> Iterator[Request]:
    yield from (request_of(stack, row) for stack, row in ROWS if row.base == base)


def with_base(base: Base, **change: object) -> Catalog:
    return replace(CATALOG, bases={**CATALOG.bases, base.name: base.model_copy(update=change)})


@walks("bases/*.toml", "provides.build", "provides.run", "release.provides.build", "release.provides.run")
@each(("base", "release"), RELEASES)
def test_packages_of_what_a_base_brings_along_are_asked_for(base: Base, release: BaseRelease) -> None:
    requests = list(row_on(f"{base.name}:{release.name}"))
    for name, one in base.provided(release).items():
        if not (one.build or one.run) or not any(
            name in choose(asked, CATALOG, lambda one: one.version).provided for asked in requests
        ):
            continue
        bare = Provided(package=one.package, version=one.version, source=one.source)
        rest = release.model_copy(update={"provides": base.provided(release) | {name: bare}})
        releases = tuple(rest if each is release else each for each in base.release)
        catalog = with_base(base, release=releases)
        assert any(answer(CATALOG, asked) != answer(catalog, asked) for asked in requests)


@walks("bases/*.toml", *(f"release.pythons.{one}" for one in ("version", "interpreter", "packages")))
@walks("bases/*.toml", "release.interpreter")
@each(("base", "release"), RELEASES)
def test_another_python_of_a_release_is_one_that_a_stack_takes(base: Base, release: BaseRelease) -> None:
    for python in release.pythons:
        rest = release.model_copy(
            update={"pythons": tuple(one for one in release.pythons if one is not python)}
        )
        releases = tuple(rest if each is release else each for each in base.release)
        catalog = with_base(base, release=releases)
        asked = list(row_on(f"{base.name}:{release.name}"))
        stacks = [stack for stack in STACKS if f"{base.name}:{release.name}" in stack.bases]
        asked += [
            Request(stack=stack.name, gpu=(gpu,), base=f"{base.name}:{release.name}")
            for stack in stacks
            for gpu in {row.gpu for row in stack.row}
        ]
        assert any(answer(CATALOG, one) != answer(catalog, one) for one in asked)
        for name, packages in python.packages.items():
            mine, _ = CATALOG.base(f"{base.name}:{release.name}", python.version)
            assert CATALOG.system_packages(mine, [name]) == tuple(sorted(packages))
            assert CATALOG.system_packages(base, [name]) != tuple(sorted(packages)), "it is called so anyway"


@walks("bases/*.toml", "packages", "manager")
@EACH_BASE
def test_a_name_of_a_base_differs_from_that_of_its_package_manager(base: Base) -> None:
    plain = base.model_copy(update={"packages": {}})
    for name in base.packages:
        known = CATALOG.system.packages.get(name, {}).get(base.manager)
        if known is not None:
            assert CATALOG.system_packages(base, [name]) != CATALOG.system_packages(plain, [name]), name


@walks("bases/*.toml", "common", "minimal", "compiler_reads", "env", "made", "architecture")
@walks("bases/*.toml", "release.image", "release.digest")
def test_what_a_base_says_of_its_roots_and_builds_changes_a_lock_or_a_plan() -> None:
    seen = set()
    for stack, row in ROWS:
        lock = shipped_lock(CATALOG, request_of(stack, row))
        if lock is None:
            continue
        base, _ = CATALOG.base(row.base)
        before = [one.model_dump_json() for one in make_plan(lock, CATALOG).steps]
        for key in ("compiler_reads", "env"):
            if not getattr(base, key):
                continue
            empty = type(getattr(base, key))()
            after = [one.model_dump_json() for one in make_plan(lock, with_base(base, **{key: empty})).steps]
            seen |= {key} if before != after else set()
        bare = with_base(base, common=("x",))
        seen |= {"common"} if answer(CATALOG, lock.request) != answer(bare, lock.request) else set()
        if len(seen) == 3:
            return
    raise AssertionError(f"only these change anything: {sorted(seen)}")


# system packages


def asked_for() -> set[str]:
    """The names of system packages that a recipe, a base, a launcher or a remedy asks for."""

    def of(needs: SystemNeeds) -> set[str]:
        return {*needs.build, *needs.rocm, *needs.run, *needs.check}

    found: set[str] = set()
    for recipe in CATALOG.components.values():
        found |= of(recipe.system)
        for release in recipe.release:
            found |= of(release.system).union(*(of(on.system) for on in release.on))
    for base in BASES:
        for one in base.release:
            for provided in base.provided(one).values():
                found |= {*provided.build, *provided.run}
    for issue in the_issues()[0].values():
        for action in issue.remedies:
            found |= set(action.names) if isinstance(action, AddPackages) else set()
    return found | {one.package for one in CATALOG.launchers}


@walks("system.toml", "*")
@walks("components/*.toml", "system.*", "release.system.*", "release.on.system.*")
@each("name", CATALOG.system.packages)
def test_a_system_package_is_asked_for_or_marked(for_people: ForPeopleFile, name: str) -> None:
    assert (name in asked_for()) != marked(for_people, "system.toml", name)


@walks("launchers.toml", "launcher.package", "launcher.setup")
def test_a_launcher_that_is_taken_out_changes_a_plan() -> None:
    for launcher in CATALOG.launchers:
        rest = replace(CATALOG, launchers=[one for one in CATALOG.launchers if one is not launcher])
        locks = (shipped_lock(CATALOG, request_of(stack, row)) for stack, row in ROWS)
        assert any(make_plan(lock, CATALOG) != make_plan(lock, rest) for lock in locks if lock)


# stacks


def with_stack(stack: Stack, **change: object) -> Catalog:
    return replace(CATALOG, stacks={**CATALOG.stacks, stack.name: stack.model_copy(update=change)})


@walks("stacks/*.toml", "components", "bases", "targets")
@EACH_STACK
def test_what_a_stack_is_for_changes_what_is_answered(stack: Stack) -> None:
    # nothing pinned: what is pinned is taken in whoever names it
    asked = request_of(stack, stack.row[0]).model_copy(update={"versions": {}})
    for name in stack.components:
        rest = tuple(one for one in stack.components if one != name)
        changed = answer(CATALOG, asked) != answer(with_stack(stack, components=rest or ("cmake",)), asked)
        assert changed or name in needed_by(rest), f"{name} changes nothing"
    assert answer(CATALOG, asked) != answer(with_stack(stack, bases=()), asked)
    if stack.targets:
        foreign = asked.model_copy(
            update={"gpu": (next(one for one in CATALOG.targets if one not in stack.targets),)}
        )
        assert isinstance(answer(CATALOG, foreign), type)


@walks("stacks/*.toml", "any_gpu")
def test_a_stack_for_any_gpu_is_named_for_cards_on_which_nothing_ran() -> None:
    target = next(iter(CATALOG.targets.values()))
    for stack in (one for one in CATALOG.stacks.values() if one.any_gpu):
        assert stack.name in {one.stack for one in verdict(target, CATALOG).instead}
        rest = verdict(target, with_stack(stack, any_gpu=False)).instead
        assert stack.name not in {one.stack for one in rest}


@walks("stacks/*.toml", "optional")
@EACH_STACK
def test_what_is_optional_can_be_asked_for(stack: Stack) -> None:
    for name in stack.optional:
        recipe: Component = CATALOG.component(name)
        used = [
            one
            for one in (*stack.components, *stack.optional)
            for release in CATALOG.component(one).release
            if name in CATALOG.component(one).uses | release.uses | release.needs
        ]
        assert used or recipe.kind in ("wheel", "file", "archive"), name


@walks(
    "stacks/*.toml",
    *(f"row.{one}" for one in ("gpu", "base", "provider", "versions", "extra", "accept_missing")),
)
@each(("stack", "row"), ROWS, ids=NAMED)
def test_a_row_that_is_taken_out_has_no_lock_any_more(stack: Stack, row: StackRow) -> None:
    request = request_of(stack, row)
    rest = with_stack(stack, row=tuple(one for one in stack.row if one is not row))
    assert shipped_lock(CATALOG, request) is not None
    assert shipped_lock(rest, request) is None


def test_a_system_package_without_a_row_is_refused() -> None:
    bare = replace(CATALOG, system=SystemPackages())
    stack, row = next(pair for pair in ROWS if pair[0].name == "gfx-smoke")
    assert answer(CATALOG, request_of(stack, row)) != answer(bare, request_of(stack, row))


@walks("components/*.toml", "python", "release.python")
def test_python_packages_that_a_recipe_names_are_among_the_tools_of_a_row() -> None:
    for recipe in (one for one in CATALOG.components.values() if one.python):
        bare = replace(
            CATALOG, components={**CATALOG.components, recipe.name: recipe.model_copy(update={"python": ()})}
        )
        if any(answer(CATALOG, request_of(*one)) != answer(bare, request_of(*one)) for one in ROWS):
            return
    raise AssertionError("no row has other tools")
