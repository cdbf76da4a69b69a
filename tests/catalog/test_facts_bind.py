"""What providers are known to serve binds: each fact, taken out, changes what is resolved or refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

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


@pytest.mark.parametrize(("provider", "number"), FACTS)
def test_a_fact_that_is_taken_out_changes_who_is_served_or_what_lacks_code(
    provider: Provider, number: int
) -> None:
    fact = provider.serves[number]
    rest = (*provider.serves[:number], *provider.serves[number + 1 :])
    without = provider.model_copy(update={"serves": rest})
    assert answers(provider, fact) != answers(without, fact), (
        "another fact says the same of every version, base and GPU that it names: it is known in vain"
    )


@pytest.mark.parametrize(("provider", "number"), FACTS)
def test_a_library_that_is_named_as_rebuilt_is_one_that_recipes_use(provider: Provider, number: int) -> None:
    used = {name for one in CATALOG.components.values() for name in one.system.rocm}
    assert set(provider.serves[number].rebuilt) <= used
