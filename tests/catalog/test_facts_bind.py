"""What providers are known to serve binds: each fact, taken out, changes what is resolved or refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from tests.catalog.walks import walks

from rocbase.errors import InputError
from rocwheel_samples.tables import each
from rocwright.catalog.load import builtin_catalog
from rocwright.catalog.provider import Provider, Serves

CATALOG = builtin_catalog()
FACTS = [
    pytest.param(provider, number, id=f"{provider.name}-{number}")
    for provider in CATALOG.providers.values()
    for number in range(len(provider.serves))
]


def versions(provider: Provider) -> Iterator[str]:
    """The versions of ROCm that can be asked about: those it has, those of bases, and the ends of ranges."""
    told = {*provider.versions}
    for base in CATALOG.bases.values():
        for release in base.release:
            packaged = base.provided(release).get("rocm")
            told |= {packaged.version} if packaged and packaged.version else set()
    for fact in provider.serves:
        for one in SpecifierSet(fact.versions):
            told.add(one.version.removesuffix(".*"))
    rocm = CATALOG.components.get("rocm")
    told |= {one.version for one in rocm.release} if rocm else set()
    yield from sorted(told, key=Version)


def answers(provider: Provider, fact: Serves) -> dict[tuple[str, str, str, str], object]:
    """For each GPU, version, base and architecture that the fact names: is it served, and what lacks code."""
    found: dict[tuple[str, str, str, str], object] = {}
    bases = [name for base in CATALOG.bases.values() for name in base.names]
    for target in fact.targets:
        for version in versions(provider):
            for base in bases:
                for architecture in fact.architectures:
                    told = provider.evidence(target, version, base, architecture)
                    lacks = provider.without_code((target,), version, base, architecture)
                    found[target, version, base, architecture] = (told is not None, sorted(lacks))
    return found


@walks("providers/*.toml", *(f"serves.{one}" for one in ("versions", "targets", "bases", "architectures")))
@each(("provider", "number"), FACTS)
def test_a_fact_that_is_taken_out_changes_who_is_served_or_what_lacks_code(
    provider: Provider, number: int
) -> None:
    fact = provider.serves[number]
    rest = (*provider.serves[:number], *provider.serves[number + 1 :])
    without = provider.model_copy(update={"serves": rest})
    assert answers(provider, fact) != answers(without, fact), (
        "another fact says the same of every version, base and GPU that it names: it is known in vain"
    )


@walks("providers/*.toml", "serves.rebuilt")
@each(("provider", "number"), FACTS)
def test_a_library_that_is_named_as_rebuilt_is_one_that_recipes_use(provider: Provider, number: int) -> None:
    used = {name for one in CATALOG.components.values() for name in one.system.rocm}
    assert set(provider.serves[number].rebuilt) <= used


EACH = pytest.mark.parametrize("provider", CATALOG.providers.values(), ids=lambda one: one.name)


@walks("providers/*.toml", "versions", "kind")
@EACH
def test_each_version_of_a_provider_serves_somebody_and_lies_somewhere(provider: Provider) -> None:
    for version in provider.versions:
        assert not provider.serves or any(
            provider.evidence(target, version, base)
            for target in CATALOG.targets
            for one in CATALOG.bases.values()
            for base in one.names
        ), version
        if provider.shelf:
            assert provider.shelf_of(version)


@walks(
    "providers/*.toml", "shelf.releases", "shelf.versions", "shelf.archive", "shelf.index", "shelf.listing"
)
@EACH
def test_each_place_holds_versions_that_no_other_does(provider: Provider) -> None:
    for shelf in provider.shelf:
        ends = [one.version for one in SpecifierSet(shelf.versions)]
        held = [one for one in (*provider.versions, *ends) if shelf.holds(one)]
        assert held, shelf
        others = tuple(one for one in provider.shelf if one is not shelf)
        for version in held:
            with pytest.raises(InputError):
                provider.model_copy(update={"shelf": others}).shelf_of(version)


@walks("providers/*.toml", "family", "wanted")
@EACH
def test_each_family_and_requirement_is_of_a_target_that_is_served(provider: Provider) -> None:
    served = {target for one in provider.serves for target in one.targets}
    assert set(provider.family) <= served
    for wanted in provider.wanted:
        rest = provider.model_copy(
            update={"wanted": tuple(one for one in provider.wanted if one is not wanted)}
        )
        assert provider.requirements("1.0", ["gfx1151"]) != rest.requirements("1.0", ["gfx1151"])
